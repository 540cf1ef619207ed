#include <cinttypes>
#include <cstring>

#include "dispatch.h"

namespace precast {
namespace {

uint16_t HalfBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);   // NaN
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds past 65504
  if (magnitude < 0x38800000u) {  // subnormal: let float addition do the rounding
    float scaled;
    memcpy(&scaled, &magnitude, sizeof scaled);
    const float shifted = scaled + 0.5f;  // an ulp of 0.5f is the least half
    uint32_t result;
    memcpy(&result, &shifted, sizeof result);
    return static_cast<uint16_t>(sign | (result - 0x3F000000u));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - 0x38000000u;
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

uint16_t Bfloat16Bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// The float that a value can go through on its way to a narrower type and be rounded once: inexact values get an odd
// last bit, which the second rounding sees as "not a tie".
float RoundToOdd(double value) {
  float single = static_cast<float>(value);
  const double back = static_cast<double>(single);
  if (back == value || value != value) return single;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  if ((back < 0 ? -back : back) > (value < 0 ? -value : value)) --bits;
  bits |= 1;
  memcpy(&single, &bits, sizeof single);
  return single;
}

uint64_t FloatBits(ScalarType type, double value) {
  const float single = static_cast<float>(value);
  uint64_t bits = 0;
  switch (type) {
    case ScalarType::kFp16: return HalfBits(RoundToOdd(value));
    case ScalarType::kBf16: return Bfloat16Bits(RoundToOdd(value));
    case ScalarType::kFp32: memcpy(&bits, &single, sizeof single); return bits;
    default: memcpy(&bits, &value, sizeof value); return bits;
  }
}

bool Fits(ScalarType type, int64_t value) {
  switch (type) {
    case ScalarType::kI8: return value >= INT8_MIN && value <= INT8_MAX;
    case ScalarType::kI16: return value >= INT16_MIN && value <= INT16_MAX;
    case ScalarType::kI32: return value >= INT32_MIN && value <= INT32_MAX;
    case ScalarType::kU8: return value >= 0 && value <= UINT8_MAX;
    case ScalarType::kU16: return value >= 0 && value <= UINT16_MAX;
    case ScalarType::kU32: return value >= 0 && value <= UINT32_MAX;
    default: return true;
  }
}

// Memory for one call: workspaces of the candidate, then scratch of each launch, in one allocation.
class Arena {
 public:
  Arena(Library* library, DeviceState* device, void* stream) : library_(library), device_(device), stream_(stream) {}
  ~Arena() {
    if (memory_ != nullptr) device_->driver->Free(memory_, stream_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Reserves bytes and returns their offset; false on overflow.
  bool Reserve(int64_t bytes, size_t* offset) {
    *offset = size_;
    int64_t rounded = 0;
    if (bytes < 0 || __builtin_add_overflow(bytes, kWorkspaceAlignment - 1, &rounded)) return false;
    rounded &= ~static_cast<int64_t>(kWorkspaceAlignment - 1);
    int64_t total = 0;
    if (__builtin_add_overflow(static_cast<int64_t>(size_), rounded, &total)) return false;
    size_ = static_cast<size_t>(total);
    return true;
  }

  Status Allocate() {
    if (size_ == 0) return PRECAST_OK;
    void* pool = nullptr;
    const Status status = library_->GetPool(device_, &pool);
    return status == PRECAST_OK ? device_->driver->Allocate(pool, size_, stream_, &memory_) : status;
  }

  char* At(size_t offset) const { return static_cast<char*>(memory_) + offset; }

 private:
  Library* library_;
  DeviceState* device_;
  void* stream_;
  size_t size_ = 0;
  void* memory_ = nullptr;
};

// Without initialisers: only as many are used as the candidate has launches.
struct PreparedLaunch {
  const Variant* variant;
  void* function;
  LaunchConfig config;
  bool empty;
  size_t global_scratch;
  size_t profile_scratch;
  int64_t profile_bytes;
};

Status PrepareGrid(const Call& call, const Launch& launch, PreparedLaunch* prepared) {
  static constexpr int64_t kLimits[3] = {2147483647, 65535, 65535};
  static constexpr const char* kAxes[3] = {"grid x", "grid y", "grid z"};
  for (int i = 0; i < 3; ++i) {
    int64_t size = 0;
    const Status status = EvaluateFor(call, launch.grid[static_cast<size_t>(i)], kAxes[i], &size);
    if (status != PRECAST_OK) return status;
    const int64_t limit = i == 0 ? kLimits[0] / prepared->variant->cluster : kLimits[i];
    if (size < 0 || size > limit) {
      return Fail(PRECAST_UNSUPPORTED, "%s: kernel %s: %s would be %" PRId64 ", a GPU can launch up to %" PRId64,
                  call.op->name.c_str(), prepared->variant->kernel.c_str(), kAxes[i], size, limit);
    }
    prepared->config.grid[i] = static_cast<uint32_t>(size);
    if (size == 0) prepared->empty = true;
  }
  return PRECAST_OK;
}

Status EncodeMap(const Call& call, DeviceState* device, const TensorMap& map, EncodedTensorMap* encoded) {
  const BoundTensor& bound = call.tensors[map.argument];
  if (bound.tensor == nullptr) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is missing", call.op->name.c_str(),
                call.op->arguments[map.argument].name.c_str());
  }
  TensorMapSpec spec{};
  spec.data_type = map.data_type;
  spec.element_bytes = map.element_bytes;
  spec.rank = static_cast<uint32_t>(map.box.size());
  spec.address = bound.data;
  spec.swizzle = map.swizzle;
  spec.fill_nan = map.fill_nan != 0;
  for (uint32_t i = 0; i < spec.rank; ++i) {
    const uint32_t axis = spec.rank - 1 - i;
    int64_t dim = bound.tensor->shape[axis];
    int64_t stride = bound.strides[axis];
    if (!map.shape.empty()) {
      const Status status = EvaluateFor(call, map.shape[axis], "tensor map shape", &dim);
      if (status != PRECAST_OK) return status;
    }
    if (!map.strides.empty()) {
      const Status status = EvaluateFor(call, map.strides[axis], "tensor map stride", &stride);
      if (status != PRECAST_OK) return status;
    }
    spec.dims[i] = static_cast<uint64_t>(i == 0 && map.fp4_padded != 0 ? dim * 2 : dim);
    spec.box[i] = map.box[axis];
    if (i > 0) spec.strides[i - 1] = static_cast<uint64_t>(stride) * map.element_bytes;
  }
  return device->driver->Encode(spec, encoded);
}

// What a launch passes. Without initialisers, as above.
struct Parameters {
  uint64_t values[kMaxParams];
  void* pointers[kMaxParams];
  EncodedTensorMap maps[kMaxTensorMaps];
};

Status FillParameters(const Call& call, DeviceState* device, const PreparedLaunch& prepared, const Arena& arena,
                      const size_t* workspaces, Parameters* parameters) {
  const Variant& v = *prepared.variant;
  uint64_t* const values = parameters->values;
  for (size_t i = 0; i < v.params.size(); ++i) {
    const Param& p = v.params[i];
    parameters->pointers[i] = &values[i];
    int64_t number = 0;
    switch (p.kind) {
      case ParamKind::kPointer: values[i] = reinterpret_cast<uintptr_t>(call.tensors[p.index].data); continue;
      case ParamKind::kFloat: values[i] = FloatBits(p.type, call.floats[p.index]); continue;
      case ParamKind::kWorkspace: values[i] = reinterpret_cast<uintptr_t>(arena.At(workspaces[p.index])); continue;
      case ParamKind::kGlobalScratch:
        values[i] = v.global_scratch_bytes == 0 ? 0 : reinterpret_cast<uintptr_t>(arena.At(prepared.global_scratch));
        continue;
      case ParamKind::kProfileScratch:
        values[i] = v.profile_scratch_bytes == 0 ? 0 : reinterpret_cast<uintptr_t>(arena.At(prepared.profile_scratch));
        continue;
      case ParamKind::kTensorMap: {
        EncodedTensorMap* const encoded = &parameters->maps[p.index];
        const Status status = EncodeMap(call, device, v.tensor_maps[p.index], encoded);
        if (status != PRECAST_OK) return status;
        parameters->pointers[i] = encoded;
        continue;
      }
      case ParamKind::kSlot: number = call.slots[p.index]; break;
      default: {
        const Status status = EvaluateFor(call, p.index, v.kernel.c_str(), &number);
        if (status != PRECAST_OK) return status;
      }
    }
    if (!Fits(p.type, number)) {
      return Fail(PRECAST_UNSUPPORTED, "%s: kernel %s: the value %" PRId64 " of parameter %zu does not fit its type",
                  call.op->name.c_str(), v.kernel.c_str(), number, i);
    }
    values[i] = static_cast<uint64_t>(number);
  }
  return PRECAST_OK;
}

}  // namespace

Status LoadChoice(Library* library, DeviceState* device, const Choice& choice, void* stream) {
  for (size_t i = 0; i < choice.candidate->launches.size(); ++i) {
    void* function = nullptr;
    const Status status =
        library->GetFunction(device, choice.pack, *choice.target, choice.variants[i], stream, &function);
    if (status != PRECAST_OK) return status;
  }
  return PRECAST_OK;
}

Status LaunchChoice(Library* library, DeviceState* device, const Call& call, const Choice& choice, void* stream) {
  const Candidate& candidate = *choice.candidate;
  PreparedLaunch prepared[kMaxLaunches];
  size_t workspaces[kMaxWorkspaces];
  Arena arena(library, device, stream);
  bool anything = false;
  for (size_t i = 0; i < candidate.launches.size(); ++i) {
    PreparedLaunch& p = prepared[i];
    p.empty = false;
    p.global_scratch = 0;
    p.profile_scratch = 0;
    p.profile_bytes = 0;
    p.variant = &choice.target->variants[choice.variants[i]];
    p.config.threads = p.variant->threads;
    p.config.shared_bytes = p.variant->shared_bytes;
    p.config.cluster = p.variant->cluster;
    p.config.flags = p.variant->flags;
    p.config.stream = stream;
    Status status = PrepareGrid(call, candidate.launches[i], &p);
    if (status != PRECAST_OK) return status;
    if (p.empty) continue;
    anything = true;
    status = library->GetFunction(device, choice.pack, *choice.target, choice.variants[i], stream, &p.function);
    if (status != PRECAST_OK) return status;
  }
  if (!anything) return PRECAST_OK;
  int64_t sizes[kMaxWorkspaces];
  for (size_t i = 0; i < candidate.workspaces.size(); ++i) {
    const Workspace& w = candidate.workspaces[i];
    const Status status = EvaluateFor(call, w.bytes, w.name.c_str(), &sizes[i]);
    if (status != PRECAST_OK) return status;
    if (!arena.Reserve(sizes[i], &workspaces[i])) {
      return Fail(PRECAST_ARITHMETIC, "%s: workspace %s would have %" PRId64 " bytes", call.op->name.c_str(),
                  w.name.c_str(), sizes[i]);
    }
  }
  for (size_t i = 0; i < candidate.launches.size(); ++i) {
    PreparedLaunch& p = prepared[i];
    if (p.empty || (p.variant->global_scratch_bytes | p.variant->profile_scratch_bytes) == 0) continue;
    const int64_t programs = static_cast<int64_t>(p.config.grid[0]) * p.config.grid[1] * p.config.cluster;
    int64_t total = 0;
    int64_t global_bytes = 0;
    if (__builtin_mul_overflow(programs, static_cast<int64_t>(p.config.grid[2]), &total) ||
        __builtin_mul_overflow(total, static_cast<int64_t>(p.variant->global_scratch_bytes), &global_bytes) ||
        __builtin_mul_overflow(total, static_cast<int64_t>(p.variant->profile_scratch_bytes), &p.profile_bytes) ||
        !arena.Reserve(global_bytes, &p.global_scratch) || !arena.Reserve(p.profile_bytes, &p.profile_scratch)) {
      return Fail(PRECAST_ARITHMETIC, "%s: kernel %s asks for more scratch than there can be", call.op->name.c_str(),
                  p.variant->kernel.c_str());
    }
  }
  Status status = arena.Allocate();
  Parameters parameters;
  // A refused call launches nothing: whatever a later launch could be refused for is found before the first.
  for (size_t i = 1; status == PRECAST_OK && i < candidate.launches.size(); ++i) {
    if (!prepared[i].empty) status = FillParameters(call, device, prepared[i], arena, workspaces, &parameters);
  }
  for (size_t i = 0; status == PRECAST_OK && i < candidate.workspaces.size(); ++i) {
    if (candidate.workspaces[i].zero && sizes[i] > 0) {
      status = device->driver->Zero(arena.At(workspaces[i]), static_cast<size_t>(sizes[i]), stream);
    }
  }
  for (size_t i = 0; status == PRECAST_OK && i < candidate.launches.size(); ++i) {
    const PreparedLaunch& p = prepared[i];
    if (p.empty) continue;
    if (p.profile_bytes > 0) {
      status = device->driver->Zero(arena.At(p.profile_scratch), static_cast<size_t>(p.profile_bytes), stream);
    }
    if (status == PRECAST_OK) status = FillParameters(call, device, p, arena, workspaces, &parameters);
    if (status == PRECAST_OK) status = device->driver->Launch(p.function, p.config, parameters.pointers);
  }
  return status;
}

}  // namespace precast
