// Python's glue: an operator of a library as a function of apache-tvm-ffi. It is a library of its own, so that C
// and C++ users never meet it.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cstring>
#include <string>

#include "precast/precast.h"

namespace ffi = tvm::ffi;

namespace {

constexpr int kMaxArguments = 64;

static_assert(sizeof(precast_tensor) == sizeof(DLTensor), "a DLTensor is a precast_tensor");

// The Python exception of a status; the classes are registered under these names by precast.runtime.errors.
const char* ErrorKind(precast_status status) {
  switch (status) {
    case PRECAST_INVALID_ARGUMENT: return "InvalidArgumentError";
    case PRECAST_UNSUPPORTED: return "UnsupportedError";
    case PRECAST_NO_TARGET: return "NoTargetError";
    case PRECAST_NO_DRIVER: return "NoDriverError";
    case PRECAST_DRIVER_ERROR: return "DriverError";
    case PRECAST_BAD_PACK: return "BadPackError";
    case PRECAST_VERSION_MISMATCH: return "VersionMismatchError";
    case PRECAST_NO_PACK: return "NoPackError";
    case PRECAST_OUT_OF_MEMORY: return "DeviceMemoryError";
    case PRECAST_UNTUNED: return "UntunedError";
    case PRECAST_ARITHMETIC: return "ExpressionArithmeticError";
    case PRECAST_NOT_WARM: return "NotWarmError";
    default: return "PrecastError";
  }
}

struct Operator {
  const precast_api* api;
  precast_library* library;
  int32_t index;
  int32_t count;
  uint64_t outputs;   // bit i: argument i is an output
  int32_t candidate;  // to run instead of the one that dispatch chooses, from 1; or 0

  void Check(precast_status status) const {
    if (status != PRECAST_OK) throw ffi::Error(ErrorKind(status), api->last_error(), "");
  }

  void Convert(const ffi::AnyView* args, int32_t given, precast_value* values, DLDevice* device) const {
    if (given > count || given > kMaxArguments) {
      throw ffi::Error("InvalidArgumentError",
                       "takes " + std::to_string(count) + " arguments, " + std::to_string(given) + " were given", "");
    }
    for (int32_t i = 0; i < given; ++i) {
      precast_value& value = values[i];
      value.reserved = 0;
      const TVMFFIAny raw = args[i].CopyToTVMFFIAny();
      switch (raw.type_index) {
        case kTVMFFINone: value.kind = PRECAST_NONE; break;
        case kTVMFFIInt:
        case kTVMFFIBool:
          value.kind = PRECAST_INT;
          value.u.i = raw.v_int64;
          break;
        case kTVMFFIFloat:
          value.kind = PRECAST_FLOAT;
          value.u.f = raw.v_float64;
          break;
        case kTVMFFIDLTensorPtr:
        case kTVMFFITensor: {
          const DLTensor* tensor = args[i].cast<DLTensor*>();
          value.kind = PRECAST_TENSOR;
          value.u.tensor = reinterpret_cast<const precast_tensor*>(tensor);
          if (device->device_type == 0) *device = tensor->device;
          break;
        }
        default:
          throw ffi::Error(
              "InvalidArgumentError",
              "argument " + std::to_string(i) + " is neither a tensor nor a number: " + args[i].GetTypeKey(), "");
      }
    }
    for (int32_t i = given; i < count; ++i) values[i] = precast_value{};
  }

  precast_options Options(const DLDevice& device, const char* target = nullptr) const {
    precast_options options{};
    options.size = sizeof options;
    options.target = target;
    options.candidate = candidate;
    if (device.device_type == kDLCUDA || device.device_type == kDLROCM) {
      options.stream = TVMFFIEnvGetStream(device.device_type, device.device_id);
    }
    return options;
  }

  void Run(const ffi::AnyView* args, int32_t given, ffi::Any* result) const {
    precast_value values[kMaxArguments];
    DLDevice device{};
    Convert(args, given, values, &device);
    uint64_t missing = 0;
    for (uint64_t rest = outputs; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctzll(rest);
      if (values[i].kind == PRECAST_NONE) missing |= uint64_t{1} << i;
    }
    if (missing == 0) {
      const precast_options options = Options(device);
      Check(api->run(library, index, values, count, &options));
      return;
    }
    if (device.device_type != kDLCUDA && device.device_type != kDLROCM) {
      throw ffi::Error("InvalidArgumentError",
                       device.device_type == kDLCPU ? "the tensors are on the CPU: move them to a GPU"
                                                    : "no tensor says on which GPU to allocate the outputs",
                       "");
    }
    ffi::Array<ffi::Any> made;
    ffi::Tensor tensors[kMaxArguments];
    for (uint64_t rest = missing; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctzll(rest);
      int32_t ndim = 0;
      int64_t shape[8] = {};
      precast_dtype dtype{};
      Check(api->output_shape(library, index, values, count, i, &ndim, shape, &dtype));
      const DLDataType type{dtype.code, dtype.bits, dtype.lanes};
      tensors[i] = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, ffi::ShapeView(shape, static_cast<size_t>(ndim)),
                                             type, device);
    }
    for (uint64_t rest = missing; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctzll(rest);
      values[i].kind = PRECAST_TENSOR;
      values[i].u.tensor = reinterpret_cast<const precast_tensor*>(tensors[i].GetDLTensorPtr());
      made.push_back(tensors[i]);
    }
    const precast_options options = Options(device);
    Check(api->run(library, index, values, count, &options));
    if (made.size() == 1) {
      *result = made[0];
    } else {
      *result = made;
    }
  }

  // supports, explain and warmup: the first argument is the target, or "" for the tensors' device.
  void Ask(int what, const ffi::AnyView* args, int32_t given, ffi::Any* result) const {
    precast_value values[kMaxArguments];
    DLDevice device{};
    const std::string target = args[0].cast<ffi::String>();
    Convert(args + 1, given - 1, values, &device);
    const precast_options options = Options(device, target.c_str());
    if (what == 0) {
      Check(api->supports(library, index, values, count, &options));
    } else if (what == 1) {
      const char* json = nullptr;
      Check(api->explain(library, index, values, count, &options, &json));
      *result = ffi::String(json);
    } else {
      Check(api->warmup(library, index, device.device_id, values, count, &options));
    }
  }
};

void* Handle(int64_t address) { return reinterpret_cast<void*>(static_cast<intptr_t>(address)); }

Operator MakeOperator(int64_t api, int64_t library, int64_t index, int64_t count, int64_t outputs, int64_t candidate) {
  return Operator{static_cast<const precast_api*>(Handle(api)),
                  static_cast<precast_library*>(Handle(library)),
                  static_cast<int32_t>(index),
                  static_cast<int32_t>(count),
                  static_cast<uint64_t>(outputs),
                  static_cast<int32_t>(candidate)};
}

ffi::Function RunFunction(int64_t api, int64_t library, int64_t index, int64_t count, int64_t outputs,
                          int64_t candidate) {
  const Operator op = MakeOperator(api, library, index, count, outputs, candidate);
  return ffi::Function::FromPacked(
      [op](const ffi::AnyView* args, int32_t given, ffi::Any* result) { op.Run(args, given, result); });
}

ffi::Function AskFunction(int64_t api, int64_t library, int64_t index, int64_t count, int64_t what, int64_t candidate) {
  const Operator op = MakeOperator(api, library, index, count, 0, candidate);
  const int question = static_cast<int>(what);
  return ffi::Function::FromPacked([op, question](const ffi::AnyView* args, int32_t given, ffi::Any* result) {
    op.Ask(question, args, given, result);
  });
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run_function, RunFunction)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(ask_function, AskFunction)
