#include "call.h"

#include <cinttypes>
#include <limits>

namespace precast {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kInt32Min = std::numeric_limits<int32_t>::min();

uint16_t Packed(const precast_dtype& dtype) { return static_cast<uint16_t>(dtype.code << 8 | dtype.bits); }

std::string ShapeText(const precast_tensor& tensor) {
  std::string text = "(";
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    text += Format(i == 0 ? "%" PRId64 : ", %" PRId64, tensor.shape[i]);
  }
  return text + ")";
}

// Fills in where a tensor's first and last byte are.
void FindExtent(BoundTensor* bound) {
  const precast_tensor& t = *bound->tensor;
  const int64_t item = t.dtype.bits < 8 ? 1 : t.dtype.bits / 8;
  int64_t low = 0;
  int64_t high = 0;
  bound->bounded = true;
  for (int32_t i = 0; i < t.ndim; ++i) {
    int64_t reach = 0;
    bool over = __builtin_mul_overflow(t.shape[i] - 1, bound->strides[i], &reach);
    int64_t& end = reach < 0 ? low : high;
    over |= __builtin_add_overflow(end, reach, &end);
    if (over) bound->bounded = false;
  }
  constexpr int64_t kLimit = int64_t{1} << 62;  // sums and differences of two fit 64 bits
  if (__builtin_mul_overflow(low, item, &bound->lowest) || __builtin_mul_overflow(high, item, &bound->highest) ||
      __builtin_add_overflow(bound->highest, item - 1, &bound->highest) || bound->lowest < -kLimit ||
      bound->highest > kLimit) {
    bound->bounded = false;
  }
}

Status BindTensor(const Operator& op, size_t index, const precast_value& value, Purpose purpose, Call* call) {
  const Argument& a = op.arguments[index];
  const char* name = a.name.c_str();
  BoundTensor& bound = call->tensors[index];
  bound.tensor = nullptr;
  bound.data = nullptr;
  bound.empty = false;
  if (value.kind == PRECAST_NONE) {
    if (a.optional || (a.output && purpose != Purpose::kRun)) return PRECAST_OK;
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is missing: give a tensor of shape %s", op.name.c_str(),
                name, a.shape_text.c_str());
  }
  if (value.kind != PRECAST_TENSOR || value.u.tensor == nullptr) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s must be a tensor of shape %s", op.name.c_str(), name,
                a.shape_text.c_str());
  }
  const precast_tensor& t = *value.u.tensor;
  if (t.ndim != a.rank) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s has %d dims, it must have %d: %s", op.name.c_str(), name,
                t.ndim, a.rank, a.shape_text.c_str());
  }
  if (t.dtype.lanes != 1) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s has a vector dtype", op.name.c_str(), name);
  }
  if (t.ndim > 0 && t.shape == nullptr) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s has no shape", op.name.c_str(), name);
  }
  const uint16_t dtype = Packed(t.dtype);
  if (a.type_variable == kNone && dtype != a.fixed_dtype) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is %s, it must be %s", op.name.c_str(), name,
                DtypeName(dtype).c_str(), DtypeName(a.fixed_dtype).c_str());
  }
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) {
      return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s has a negative dim: %s", op.name.c_str(), name,
                  ShapeText(t).c_str());
    }
    if (t.shape[i] == 0) bound.empty = true;
  }
  bound.tensor = &t;
  bound.strides = t.strides;
  if (t.strides == nullptr) {
    int64_t step = 1;
    for (int32_t i = t.ndim - 1; i >= 0; --i) {
      call->compact[index][i] = step;
      if (__builtin_mul_overflow(step, t.shape[i] > 0 ? t.shape[i] : 1, &step)) {
        return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is too large: %s", op.name.c_str(), name,
                    ShapeText(t).c_str());
      }
    }
    bound.strides = call->compact[index];
  }
  bound.data = static_cast<char*>(t.data) + (t.data == nullptr ? 0 : t.byte_offset);
  FindExtent(&bound);
  if (purpose != Purpose::kRun) {
    call->any_tensor = true;
    return PRECAST_OK;
  }
  if (t.device.device_type != PRECAST_CUDA && t.device.device_type != PRECAST_ROCM) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is %s: move it to a GPU", op.name.c_str(), name,
                t.device.device_type == PRECAST_CPU ? "on the CPU" : "on no CUDA or ROCm device");
  }
  if (!call->any_tensor) {
    call->any_tensor = true;
    call->device_type = t.device.device_type;
    call->device_id = t.device.device_id;
  } else if (t.device.device_type != call->device_type || t.device.device_id != call->device_id) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is on device %d, the arguments before it on device %d",
                op.name.c_str(), name, t.device.device_id, call->device_id);
  }
  if (t.data == nullptr && !bound.empty) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s has no data", op.name.c_str(), name);
  }
  return PRECAST_OK;
}

Status BindScalar(const Operator& op, size_t index, const precast_value& value, Call* call) {
  const Argument& a = op.arguments[index];
  call->ints[index] = a.default_int;
  call->floats[index] = a.default_float;
  if (value.kind == PRECAST_NONE) {
    if (a.optional) return PRECAST_OK;
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is missing: give a number", op.name.c_str(), a.name.c_str());
  }
  if (a.kind == ArgumentKind::kFloat) {
    if (value.kind != PRECAST_FLOAT && value.kind != PRECAST_INT) {
      return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s must be a number", op.name.c_str(), a.name.c_str());
    }
    call->floats[index] = value.kind == PRECAST_FLOAT ? value.u.f : static_cast<double>(value.u.i);
    return PRECAST_OK;
  }
  if (value.kind != PRECAST_INT) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s must be an integer", op.name.c_str(), a.name.c_str());
  }
  const int64_t count = static_cast<int64_t>(a.labels.size());
  if ((a.kind == ArgumentKind::kBool && (value.u.i < 0 || value.u.i > 1)) ||
      (a.kind == ArgumentKind::kChoice && (value.u.i < 0 || value.u.i >= count))) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is %" PRId64 ", it must be from 0 to %" PRId64,
                op.name.c_str(), a.name.c_str(), value.u.i, a.kind == ArgumentKind::kBool ? 1 : count - 1);
  }
  call->ints[index] = value.u.i;
  return PRECAST_OK;
}

Status CheckTypes(const Call& call) {
  const Operator& op = *call.op;
  const BoundTensor* first[kMaxArguments];
  const Argument* owner[kMaxArguments];
  size_t known = 0;
  for (size_t v = 0; v < op.types.size() && v < kMaxArguments; ++v) {
    first[v] = nullptr;
    owner[v] = nullptr;
    ++known;
  }
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const uint32_t v = op.arguments[i].type_variable;
    if (v >= known || call.tensors[i].tensor == nullptr) continue;
    if (first[v] == nullptr) {
      first[v] = &call.tensors[i];
      owner[v] = &op.arguments[i];
    } else if (Packed(first[v]->tensor->dtype) != Packed(call.tensors[i].tensor->dtype)) {
      return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is %s, but %s is %s; they must be equal", op.name.c_str(),
                  op.arguments[i].name.c_str(), DtypeName(Packed(call.tensors[i].tensor->dtype)).c_str(),
                  owner[v]->name.c_str(), DtypeName(Packed(first[v]->tensor->dtype)).c_str());
    }
  }
  return PRECAST_OK;
}

// Whether two views have the same elements in the same order, so that one may be written in place of the other.
bool SameElements(const BoundTensor& a, const BoundTensor& b) {
  if (a.data != b.data || a.tensor->ndim != b.tensor->ndim || a.tensor->dtype.bits != b.tensor->dtype.bits)
    return false;
  for (int32_t i = 0; i < a.tensor->ndim; ++i) {
    if (a.tensor->shape[i] != b.tensor->shape[i]) return false;
    if (a.tensor->shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

// Bytes that a view takes of each `period` bytes, if its other dims step by whole periods; more than `period` if not.
int64_t Window(const BoundTensor& bound, int64_t period) {
  const precast_tensor& t = *bound.tensor;
  const int64_t item = t.dtype.bits < 8 ? 1 : t.dtype.bits / 8;
  int64_t bytes = item;
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] <= 1) continue;
    const int64_t step = bound.strides[i] * item;  // FindExtent has shown that this fits
    if (step % period != 0) bytes += (t.shape[i] - 1) * (step < 0 ? -step : step);
  }
  return bytes;
}

// Whether views whose address ranges meet are known to have no element in common: columns of one matrix, say, or
// query, key and value in one buffer. `distance` is from the lowest byte of `a` to that of `b`.
bool Interleaved(const BoundTensor& a, const BoundTensor& b, int64_t distance) {
  for (const BoundTensor* view : {&a, &b}) {
    const int64_t item = view->tensor->dtype.bits < 8 ? 1 : view->tensor->dtype.bits / 8;
    for (int32_t i = 0; i < view->tensor->ndim; ++i) {
      if (view->tensor->shape[i] <= 1 || view->strides[i] == 0) continue;
      const int64_t period = (view->strides[i] < 0 ? -view->strides[i] : view->strides[i]) * item;
      const int64_t shift = distance % period < 0 ? distance % period + period : distance % period;
      const int64_t window_a = Window(a, period);
      const int64_t window_b = Window(b, period);
      if (window_a <= shift && window_b <= period - shift) return true;
    }
  }
  return false;
}

Status CheckOverlap(const Call& call) {
  const Operator& op = *call.op;
  for (size_t o = 0; o < op.arguments.size(); ++o) {
    const BoundTensor& out = call.tensors[o];
    if (!op.arguments[o].output || out.tensor == nullptr || out.empty) continue;
    if (!out.bounded) {
      return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s spans 2^62 bytes or more", op.name.c_str(),
                  op.arguments[o].name.c_str());
    }
    for (int32_t i = 0; i < out.tensor->ndim; ++i) {
      if (out.strides[i] == 0 && out.tensor->shape[i] > 1) {
        return Fail(PRECAST_INVALID_ARGUMENT, "%s: output %s overlaps itself: its stride %d is 0", op.name.c_str(),
                    op.arguments[o].name.c_str(), i);
      }
    }
    const uintptr_t begin = reinterpret_cast<uintptr_t>(out.data) + static_cast<uintptr_t>(out.lowest);
    const uintptr_t end = reinterpret_cast<uintptr_t>(out.data) + static_cast<uintptr_t>(out.highest);
    for (size_t j = 0; j < op.arguments.size(); ++j) {
      const BoundTensor& other = call.tensors[j];
      if (j == o || other.tensor == nullptr || other.empty || (op.arguments[j].output && j < o)) continue;
      if (!other.bounded) continue;
      const uintptr_t other_begin = reinterpret_cast<uintptr_t>(other.data) + static_cast<uintptr_t>(other.lowest);
      const uintptr_t other_end = reinterpret_cast<uintptr_t>(other.data) + static_cast<uintptr_t>(other.highest);
      if (begin > other_end || other_begin > end) continue;
      if (Interleaved(out, other, static_cast<int64_t>(other_begin - begin))) continue;
      const bool in_place = op.arguments[o].in_place_with == j || op.arguments[j].in_place_with == o;
      if (in_place && SameElements(out, other)) continue;
      return Fail(PRECAST_INVALID_ARGUMENT, "%s: output %s shares memory with %s: give it memory of its own%s",
                  op.name.c_str(), op.arguments[o].name.c_str(), op.arguments[j].name.c_str(),
                  in_place ? ", or write in place, with the same elements" : "");
    }
  }
  return PRECAST_OK;
}

// Dims and strides of an output that is asked about without being there: what a caller would allocate, a compact
// tensor. Where its shape does not follow from the inputs, its slots stay 0.
void SupposeOutput(size_t index, Call* call) {
  const Operator& op = *call->op;
  const Argument& a = op.arguments[index];
  int64_t dims[kMaxRank];
  int64_t strides[kMaxRank];
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (Evaluate(op.expressions[a.shape[i]], call->slots, &dims[i]) != Evaluation::kOk || dims[i] < 0) return;
  }
  if (a.shape.empty()) return;
  int64_t step = 1;
  for (size_t i = a.shape.size(); i-- > 0;) {
    strides[i] = step;
    if (__builtin_mul_overflow(step, dims[i] > 0 ? dims[i] : 1, &step)) return;
  }
  for (size_t i = 0; i < op.slots.size(); ++i) {
    const Slot& s = op.slots[i];
    if (s.argument != index) continue;
    if (s.kind == SlotKind::kDim) call->slots[i] = dims[s.axis];
    if (s.kind == SlotKind::kStride) call->slots[i] = strides[s.axis];
  }
}

bool IsDiv16(const Call& call, uint32_t slot) { return (call.slots[slot] & 15) == 0; }
bool IsOne(const Call& call, uint32_t slot) { return call.slots[slot] == 1; }
bool FitsInt32(const Call& call, uint32_t slot) {
  return call.slots[slot] >= kInt32Min && call.slots[slot] <= kInt32Max;
}

bool IsAligned(const Call& call, uint32_t argument) {
  return (reinterpret_cast<uintptr_t>(call.tensors[argument].data) & 15) == 0;
}

bool OffsetsFit(const BoundTensor& bound, bool bytes) {
  if (bound.tensor == nullptr) return true;
  const precast_tensor& t = *bound.tensor;
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] > kInt32Max || bound.strides[i] > kInt32Max || bound.strides[i] < kInt32Min) return false;
  }
  if (bound.empty) return true;
  if (!bound.bounded) return false;
  const int64_t item = bytes || t.dtype.bits < 8 ? 1 : t.dtype.bits / 8;
  return bound.highest / item <= kInt32Max && bound.lowest / item >= kInt32Min;
}

bool FitsTensorMap(const BoundTensor& bound) {
  if (bound.tensor == nullptr) return true;  // asked about without it
  const precast_tensor& t = *bound.tensor;
  if ((reinterpret_cast<uintptr_t>(bound.data) & 15) != 0 || bound.empty || t.ndim == 0) return false;
  const int64_t item = t.dtype.bits < 8 ? 1 : t.dtype.bits / 8;
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] > std::numeric_limits<uint32_t>::max()) return false;
    if (i == t.ndim - 1) {
      if (bound.strides[i] != 1) return false;
      continue;
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(bound.strides[i], item, &bytes)) return false;
    if (bytes < 0 || (bytes & 15) != 0 || bytes >= (int64_t{1} << 40)) return false;
  }
  return true;
}

bool Holds(const Call& call, ConditionKind kind, uint32_t index) {
  switch (kind) {
    case ConditionKind::kPointersDiv16: return IsAligned(call, index);
    case ConditionKind::kSlotsDiv16: return IsDiv16(call, index);
    case ConditionKind::kSlotsEq1: return IsOne(call, index);
    case ConditionKind::kSlotsInt32: return FitsInt32(call, index);
    case ConditionKind::kOffsetsInt32: return OffsetsFit(call.tensors[index], false);
    case ConditionKind::kRangeInt32: return OffsetsFit(call.tensors[index], true);
    case ConditionKind::kTensorMaps: return FitsTensorMap(call.tensors[index]);
    default: return false;
  }
}

size_t SpecializationCount(const Operator& op) {
  size_t count = 1;
  for (const TypeVariable& t : op.types) count *= t.dtypes.size();
  for (const Feature& f : op.features) count *= f.values.size();
  return count;
}

// Of the specializations that differ from `index` in the type variables that are not known, the first that the
// description does not exclude.
size_t FirstAllowed(const Operator& op, size_t index, const size_t* known) {
  const size_t specializations = op.targets.empty() ? 0 : SpecializationCount(op);
  for (size_t other = 0; other < specializations; ++other) {
    size_t radix = specializations;
    bool fits = true;
    for (size_t i = 0; i < op.types.size(); ++i) {
      const size_t count = op.types[i].dtypes.size();
      radix /= count;
      fits = fits && (known[i] == kNone || other / radix % count == known[i]);
    }
    if (!fits || other % radix != index % radix) continue;  // the rest is features
    for (const OperatorTarget& t : op.targets) {
      if (t.specializations[other].status != SpecializationStatus::kExcluded) return other;
    }
  }
  return index;
}

}  // namespace

std::string DtypeName(uint16_t packed) {
  struct Entry {
    uint16_t packed;
    const char* name;
  };
  static constexpr Entry kNames[] = {
      {2 << 8 | 16, "float16"},       {4 << 8 | 16, "bfloat16"},
      {2 << 8 | 32, "float32"},       {2 << 8 | 64, "float64"},
      {10 << 8 | 8, "float8_e4m3fn"}, {11 << 8 | 8, "float8_e4m3fnuz"},
      {12 << 8 | 8, "float8_e5m2"},   {13 << 8 | 8, "float8_e5m2fnuz"},
      {6 << 8 | 8, "bool"},           {0 << 8 | 8, "int8"},
      {0 << 8 | 16, "int16"},         {0 << 8 | 32, "int32"},
      {0 << 8 | 64, "int64"},         {1 << 8 | 8, "uint8"},
      {1 << 8 | 16, "uint16"},        {1 << 8 | 32, "uint32"},
      {1 << 8 | 64, "uint64"},
  };
  for (const Entry& e : kNames) {
    if (e.packed == packed) return e.name;
  }
  return Format("dtype(code %d, %d bits)", packed >> 8, packed & 255);
}

Status Bind(const Operator& op, const precast_value* args, int32_t count, Purpose purpose, Call* call) {
  call->op = &op;
  call->any_tensor = false;
  call->device_type = 0;
  call->device_id = 0;
  if (count < 0 || (args == nullptr && count > 0) || static_cast<size_t>(count) > op.arguments.size()) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s takes %zu arguments, %d were given", op.name.c_str(), op.arguments.size(),
                count);
  }
  const precast_value none{};
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const precast_value& value = i < static_cast<size_t>(count) ? args[i] : none;
    Status status;
    if (op.arguments[i].kind == ArgumentKind::kTensor) {
      status = BindTensor(op, i, value, purpose, call);
    } else {
      call->tensors[i].tensor = nullptr;
      call->tensors[i].data = nullptr;
      status = BindScalar(op, i, value, call);
    }
    if (status != PRECAST_OK) return status;
  }
  Status status = CheckTypes(*call);
  if (status == PRECAST_OK && purpose == Purpose::kRun) status = CheckOverlap(*call);
  if (status != PRECAST_OK) return status;
  for (size_t i = 0; i < op.slots.size(); ++i) {
    const Slot& s = op.slots[i];
    const BoundTensor& t = call->tensors[s.argument];
    int64_t value = 0;
    switch (s.kind) {
      case SlotKind::kDim: value = t.tensor == nullptr ? 0 : t.tensor->shape[s.axis]; break;
      case SlotKind::kStride: value = t.tensor == nullptr ? 0 : t.strides[s.axis]; break;
      case SlotKind::kInt: value = call->ints[s.argument]; break;
      case SlotKind::kPresent: value = t.tensor != nullptr; break;
      case SlotKind::kDtype: value = t.tensor == nullptr ? 0 : Packed(t.tensor->dtype); break;
      default: break;
    }
    call->slots[i] = value;
  }
  for (size_t i = 0; purpose != Purpose::kRun && i < op.arguments.size(); ++i) {
    if (op.arguments[i].kind == ArgumentKind::kTensor && op.arguments[i].output && call->tensors[i].tensor == nullptr)
      SupposeOutput(i, call);
  }
  return PRECAST_OK;
}

void BindDevice(const Operator& op, int multiprocessors, Call* call) {
  for (size_t i = 0; i < op.slots.size(); ++i) {
    if (op.slots[i].kind == SlotKind::kDevice) call->slots[i] = multiprocessors;
  }
}

Status EvaluateFor(const Call& call, uint32_t expression, const char* what, int64_t* value) {
  const Evaluation outcome = Evaluate(call.op->expressions[expression], call.slots, value);
  if (outcome == Evaluation::kOk) return PRECAST_OK;
  return Fail(PRECAST_ARITHMETIC, "%s: %s: %s", call.op->name.c_str(), what,
              outcome == Evaluation::kOverflow ? "the value does not fit 64 bits" : "division by zero");
}

Status RunChecks(const Call& call) {
  for (const Check& check : call.op->checks) {
    int64_t holds = 0;
    const Status status = EvaluateFor(call, check.expression, check.message.c_str(), &holds);
    if (status != PRECAST_OK) return status;
    if (holds != 0) continue;
    std::string given;
    for (size_t i = 0; i < call.op->arguments.size(); ++i) {
      if (call.tensors[i].tensor == nullptr) continue;
      given += (given.empty() ? "" : ", ") + call.op->arguments[i].name + " " + ShapeText(*call.tensors[i].tensor);
    }
    return Fail(static_cast<Status>(check.status), "%s: %s; given: %s", call.op->name.c_str(), check.message.c_str(),
                given.c_str());
  }
  return PRECAST_OK;
}

Status Specialize(const Call& call, size_t* specialization) {
  const Operator& op = *call.op;
  size_t index = 0;
  bool open = false;  // whether a type variable has no tensor here, as those of outputs that are to be allocated
  size_t known[kMaxArguments];
  for (const TypeVariable& v : op.types) {
    const precast_tensor* tensor = call.tensors[v.argument].tensor;
    for (size_t i = 0; tensor == nullptr && i < op.arguments.size(); ++i) {
      if (op.arguments[i].type_variable == static_cast<size_t>(&v - op.types.data())) tensor = call.tensors[i].tensor;
    }
    size_t choice = 0;
    if (tensor != nullptr) {
      const uint16_t dtype = Packed(tensor->dtype);
      while (choice < v.dtypes.size() && v.dtypes[choice] != dtype) ++choice;
      if (choice == v.dtypes.size()) {
        std::string possible;
        for (const std::string& name : v.names) possible += (possible.empty() ? "" : ", ") + name;
        return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %s is %s, it must be one of %s", op.name.c_str(),
                    op.arguments[v.argument].name.c_str(), DtypeName(dtype).c_str(), possible.c_str());
      }
    }
    known[&v - op.types.data()] = tensor == nullptr ? kNone : choice;
    open = open || tensor == nullptr;
    index = index * v.dtypes.size() + choice;
  }
  for (const Feature& f : op.features) {
    int64_t value = 0;
    const Status status = EvaluateFor(call, f.expression, f.name.c_str(), &value);
    if (status != PRECAST_OK) return status;
    size_t choice = 0;
    while (choice < f.values.size() && f.values[choice] != value) ++choice;
    if (choice == f.values.size()) {
      std::string possible;
      for (const std::string& label : f.labels) possible += (possible.empty() ? "" : ", ") + label;
      return Fail(PRECAST_UNSUPPORTED, "%s: %s=%" PRId64 " was not built; there are %s", op.name.c_str(),
                  f.name.c_str(), value, possible.c_str());
    }
    index = index * f.values.size() + choice;
  }
  *specialization = open ? FirstAllowed(op, index, known) : index;
  return PRECAST_OK;
}

uint16_t DtypeOf(const Operator& op, size_t specialization, uint32_t type_variable) {
  size_t radix = SpecializationCount(op);
  for (uint32_t i = 0;; ++i) {
    const std::vector<uint16_t>& dtypes = op.types[i].dtypes;
    radix /= dtypes.size();
    if (i == type_variable) return dtypes[specialization / radix % dtypes.size()];
  }
}

uint64_t Conditions(const Call& call) {
  uint64_t bits = 0;
  for (size_t i = 0; i < call.op->conditions.size(); ++i) {
    const Condition& condition = call.op->conditions[i];
    bool all = true;
    for (const uint32_t index : condition.indices) {
      if (!Holds(call, condition.kind, index)) {
        all = false;
        break;
      }
    }
    bits |= static_cast<uint64_t>(all) << i;
  }
  return bits;
}

std::string DescribeUnmet(const Call& call, uint32_t condition) {
  const Condition& c = call.op->conditions[condition];
  for (const uint32_t index : c.indices) {
    if (Holds(call, c.kind, index)) continue;
    switch (c.kind) {
      case ConditionKind::kPointersDiv16:
        return Format("argument %s is not 16-byte aligned", call.op->arguments[index].name.c_str());
      case ConditionKind::kSlotsDiv16:
        return Format("%s is %" PRId64 ", not divisible by 16", call.op->slots[index].name.c_str(), call.slots[index]);
      case ConditionKind::kSlotsEq1:
        return Format("%s is %" PRId64 ", not 1", call.op->slots[index].name.c_str(), call.slots[index]);
      case ConditionKind::kSlotsInt32:
        return Format("%s is %" PRId64 ", which does not fit 32 bits", call.op->slots[index].name.c_str(),
                      call.slots[index]);
      case ConditionKind::kOffsetsInt32:
        return Format("argument %s spans 2^31 elements or more", call.op->arguments[index].name.c_str());
      case ConditionKind::kRangeInt32:
        return Format("argument %s spans 2^31 bytes or more", call.op->arguments[index].name.c_str());
      default:
        return Format(
            "argument %s can't be read by TMA: its address and strides must be divisible by 16 bytes, its "
            "last stride 1, and no dim 0",
            call.op->arguments[index].name.c_str());
    }
  }
  return "";
}

}  // namespace precast
