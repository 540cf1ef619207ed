// libFuzzer on whole calls. The input is a few bytes that shape the tensors, then raw metadata, which is wrapped into a
// pack with right checksums. What loads is asked about, warmed up and launched on a driver that does nothing but look
// at everything it is given.
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "api.h"
#include "checksum.h"
#include "pack.h"

namespace precast {
namespace {

volatile uint64_t sink;

class NullDriver final : public Driver {
 public:
  const char* Name() const override { return "null"; }
  int DeviceType() const override { return PRECAST_CUDA; }
  int DeviceCount() override { return 1; }
  Status Facts(int, DeviceFacts* facts) override {
    facts->name = "no GPU";
    facts->arch = "sm_90";
    facts->capability = 90;
    facts->multiprocessors = 4;
    return PRECAST_OK;
  }
  Status Enter(int, void** restore) override {
    *restore = nullptr;
    return PRECAST_OK;
  }
  void Leave(void*) override {}
  Status Load(const void*, void** module) override {
    *module = this;
    return PRECAST_OK;
  }
  void Unload(void*) override {}
  Status GetFunction(void*, const char* name, uint32_t, uint32_t, void** function) override {
    sink = sink + strlen(name);
    *function = this;
    return PRECAST_OK;
  }
  Status IsCapturing(void*, bool* capturing) override {
    *capturing = false;
    return PRECAST_OK;
  }
  Status MakePool(int, void** pool) override {
    *pool = this;
    return PRECAST_OK;
  }
  void FreePool(void*) override {}
  Status Allocate(void*, size_t bytes, void*, void** memory) override {
    *memory = bytes > (1 << 16) ? nullptr : aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *memory == nullptr ? PRECAST_OUT_OF_MEMORY : PRECAST_OK;
  }
  Status Free(void* memory, void*) override {
    free(memory);
    return PRECAST_OK;
  }
  Status Zero(void* memory, size_t bytes, void*) override {
    memset(memory, 0, bytes);
    return PRECAST_OK;
  }
  Status Encode(const TensorMapSpec& spec, EncodedTensorMap* map) override {
    if (spec.rank == 0 || spec.rank > 5) abort();
    for (uint32_t i = 0; i < spec.rank; ++i) sink = sink + spec.dims[i] + spec.box[i];
    memset(map, 0, sizeof *map);
    return PRECAST_OK;
  }
  Status Launch(void*, const LaunchConfig& c, void** params) override {
    if (c.grid[0] == 0 || c.grid[1] == 0 || c.grid[2] == 0 || c.threads == 0 || c.cluster == 0) abort();
    sink = sink + *static_cast<uint64_t*>(params[0]);
    return PRECAST_OK;
  }
};

std::vector<uint8_t> Wrap(const uint8_t* data, size_t size, size_t objects) {
  std::vector<uint8_t> frame = {0x28, 0xB5, 0x2F, 0xFD, 0xE0};  // one segment, its size in eight bytes, raw blocks
  const auto number = [](std::vector<uint8_t>* out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out->push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  number(&frame, size, 8);
  number(&frame, 1 | size << 3, 3);
  frame.insert(frame.end(), data, data + size);
  std::vector<uint8_t> pack;
  for (const char c : {'P', 'R', 'E', 'C', 'A', 'S', 'T', '\0'}) pack.push_back(static_cast<uint8_t>(c));
  number(&pack, kFormatVersion, 4);
  number(&pack, kHeaderBytes, 4);
  number(&pack, kHeaderBytes + frame.size() + objects, 8);
  number(&pack, 0, 8);
  number(&pack, 0, 8);
  number(&pack, kHeaderBytes, 8);
  number(&pack, frame.size(), 8);
  number(&pack, size, 8);
  number(&pack, Crc32(frame.data(), frame.size()), 4);
  number(&pack, Crc32(pack.data(), pack.size()), 4);
  pack.insert(pack.end(), frame.begin(), frame.end());
  pack.resize(pack.size() + objects);
  return pack;
}

// Bytes of all code objects as the metadata has them.
size_t ObjectBytes(const uint8_t* data, size_t size) {
  Pack probe;
  (void)ParseMetadata(std::vector<uint8_t>(data, data + size), 0, 0, "fuzz", &probe);
  uint64_t total = 0;
  for (const CodeObject& o : probe.objects) total += o.stored_bytes;
  return total > (1 << 16) ? 0 : static_cast<size_t>(total);
}

}  // namespace

Driver* MakeCudaDriver() { return new (std::nothrow) NullDriver; }
Driver* MakeHipDriver() { return nullptr; }

}  // namespace precast

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using precast::kMaxRank;
  constexpr size_t kHead = 16;
  if (size < kHead || size > 100000) return 0;
  const uint8_t* const head = data;
  data += kHead;
  size -= kHead;
  std::unique_ptr<precast::Library> library;
  const size_t objects = precast::ObjectBytes(data, size);
  if (precast::Library::OpenBytes(precast::Wrap(data, size, objects), "fuzz", &library) != PRECAST_OK) return 0;
  auto* const handle = reinterpret_cast<precast_library*>(library.get());
  const precast_api* const api = precast::Api();
  const char* json = nullptr;
  api->describe(handle, &json);
  precast::DeviceState* device = nullptr;
  if (library->GetDevice(PRECAST_CUDA, 0, &device) != PRECAST_OK) abort();
  api->warmup(handle, -1, 0, nullptr, 0, nullptr);
  for (size_t i = 0; i < library->first().variant_count; ++i) device->functions[0][i] = device->driver;  // as if loaded

  static constexpr int64_t kSizes[8] = {0, 1, 2, 16, 31, 1000, int64_t{1} << 31, int64_t{1} << 60};
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];
  for (size_t i = 0; i < kMaxRank; ++i) {
    shape[i] = kSizes[head[i] & 7];
    strides[i] = (head[i] & 8) != 0 ? kSizes[head[i] >> 4 & 7] : -kSizes[head[i] >> 4 & 7];
  }
  const std::vector<precast::Operator>& operators = library->first().operators;
  for (size_t o = 0; o < operators.size() && o < 4; ++o) {
    const precast::Operator& op = operators[o];
    std::vector<precast_tensor> tensors(op.arguments.size());
    std::vector<precast_value> values(op.arguments.size());
    for (size_t i = 0; i < op.arguments.size(); ++i) {
      const precast::Argument& a = op.arguments[i];
      if (a.kind != precast::ArgumentKind::kTensor) {
        values[i].kind = a.kind == precast::ArgumentKind::kFloat ? PRECAST_FLOAT : PRECAST_INT;
        values[i].u.i = head[8 + i % 4];
        continue;
      }
      const uint16_t dtype = a.type_variable == precast::kNone ? a.fixed_dtype : op.types[a.type_variable].dtypes[0];
      const precast_dtype type{static_cast<uint8_t>(dtype >> 8), static_cast<uint8_t>(dtype & 255), 1};
      const uintptr_t address = (static_cast<uintptr_t>(i + 1) << 36) + (head[12] & 31);
      tensors[i] = precast_tensor{reinterpret_cast<void*>(address),
                                  {PRECAST_CUDA, 0},
                                  a.rank,
                                  type,
                                  shape,
                                  (head[13] & 1) != 0 ? strides : nullptr,
                                  0};
      values[i].kind = PRECAST_TENSOR;
      values[i].u.tensor = &tensors[i];
      if (i == head[14]) values[i].kind = PRECAST_NONE;
    }
    const auto index = static_cast<int32_t>(o);
    const auto count = static_cast<int32_t>(values.size());
    api->run(handle, index, values.data(), count, nullptr);
    api->explain(handle, index, values.data(), count, nullptr, &json);
    api->warmup(handle, index, 0, values.data(), count, nullptr);
    int32_t ndim = 0;
    int64_t dims[8];
    precast_dtype dtype{};
    for (size_t i = 0; i < op.arguments.size(); ++i) {
      if (op.arguments[i].output) values[i].kind = PRECAST_NONE;
    }
    for (int32_t i = 0; i < count; ++i) {
      api->output_shape(handle, index, values.data(), count, i, &ndim, dims, &dtype);
    }
    api->supports(handle, index, values.data(), count, nullptr);
  }
  return 0;
}
