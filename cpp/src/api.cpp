#include "api.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "dispatch.h"
#include "log.h"
#include "report.h"

namespace precast {
namespace {

Library* Get(precast_library* library) { return reinterpret_cast<Library*>(library); }

// Reads a caller's options, of whatever size its header had, in whole fields.
Status ReadOptions(const precast_options* given, precast_options* options) {
  *options = precast_options{};
  if (given == nullptr) return PRECAST_OK;
  if (given->size < sizeof(size_t)) {
    // Without this, a caller who forgot it would find the work on another stream than the one given.
    return Fail(PRECAST_INVALID_ARGUMENT, "options->size is %zu: set it to sizeof(precast_options)", given->size);
  }
  if (given->size == sizeof *options) {
    *options = *given;
    return PRECAST_OK;
  }
  const size_t whole = given->size & ~(sizeof(void*) - 1);
  memcpy(options, given, whole < sizeof *options ? whole : sizeof *options);
  return PRECAST_OK;
}

Status GetOperator(precast_library* handle, int32_t index, const Operator** op) {
  if (handle == nullptr) return Fail(PRECAST_INVALID_ARGUMENT, "the library is NULL");
  const Status status = Get(handle)->Ready();
  if (status != PRECAST_OK) return status;
  const auto& operators = Get(handle)->first().operators;
  if (index < 0 || static_cast<size_t>(index) >= operators.size()) {
    return Fail(PRECAST_INVALID_ARGUMENT, "there is no operator %d: the library has %zu", index, operators.size());
  }
  *op = &operators[static_cast<size_t>(index)];
  return PRECAST_OK;
}

// A device's context for the time of a call.
class Inside {
 public:
  explicit Inside(DeviceState* device) : device_(device) {
    status_ = device->driver->Enter(device->ordinal, &restore_);
  }
  ~Inside() {
    if (status_ == PRECAST_OK) device_->driver->Leave(restore_);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  Status status() const { return status_; }

 private:
  DeviceState* device_;
  void* restore_ = nullptr;
  Status status_;
};

Status Describe(precast_library* handle, const char** json) {
  const Operator* op = nullptr;
  const Status status = handle == nullptr ? GetOperator(handle, 0, &op) : Get(handle)->Ready();
  if (status == PRECAST_OK) *json = Get(handle)->Description(DescribeLibrary);
  return status;
}

Status FindOperator(precast_library* handle, const char* name, int32_t* index) {
  if (handle == nullptr || name == nullptr) return Fail(PRECAST_INVALID_ARGUMENT, "the library or the name is NULL");
  const Status status = Get(handle)->Ready();
  if (status != PRECAST_OK) return status;
  std::string known;
  const auto& operators = Get(handle)->first().operators;
  for (size_t i = 0; i < operators.size(); ++i) {
    if (operators[i].name == name) {
      *index = static_cast<int32_t>(i);
      return PRECAST_OK;
    }
    known += (known.empty() ? "" : ", ") + operators[i].name;
  }
  return Fail(PRECAST_INVALID_ARGUMENT, "there is no operator %s; the library has %s", name, known.c_str());
}

Status Run(precast_library* handle, int32_t index, const precast_value* args, int32_t count,
           const precast_options* given) {
  const Operator* op = nullptr;
  Status status = GetOperator(handle, index, &op);
  if (status != PRECAST_OK) return status;
  Library* library = Get(handle);
  precast_options options;
  status = ReadOptions(given, &options);
  if (status != PRECAST_OK) return status;
  Call call;
  status = Bind(*op, args, count, Purpose::kRun, &call);
  if (status != PRECAST_OK) return status;
  if (!call.any_tensor) return Fail(PRECAST_INVALID_ARGUMENT, "%s: no tensor says which GPU to use", op->name.c_str());
  DeviceState* device = nullptr;
  status = library->GetDevice(call.device_type, call.device_id, &device);
  if (status != PRECAST_OK) return status;
  BindDevice(*op, device->facts.multiprocessors, &call);
  Choice choice;
  status = Choose(library, static_cast<size_t>(index), call, device->runnable, device->facts.arch.c_str(),
                  options.candidate, library->recorder() != nullptr, &choice);
  if (status != PRECAST_OK) return status;
  const Inside inside(device);
  if (inside.status() != PRECAST_OK) return inside.status();
  status = LaunchChoice(library, device, call, choice, options.stream);
  if (status != PRECAST_OK) return status;
  if (Recorder* recorder = library->recorder()) recorder->Count(*op, choice.specialization, choice.key, op->key.size());
  return PRECAST_OK;
}

// The kind of device that the options name, or the device of the first tensor on a GPU; of no type if there is none.
precast_device DeviceOf(const precast_options& options, const precast_value* args, int32_t count) {
  for (int32_t i = 0; i < count && args != nullptr; ++i) {
    if (args[i].kind != PRECAST_TENSOR || args[i].u.tensor == nullptr) continue;
    const precast_device d = args[i].u.tensor->device;
    if (d.device_type != PRECAST_CUDA && d.device_type != PRECAST_ROCM) continue;
    if (options.device_type == 0 || options.device_type == d.device_type) return d;
  }
  return precast_device{options.device_type, 0};
}

// What a question is asked for: a named target, or the device of the tensors, or device 0.
struct Subject {
  std::vector<Runnable> runnable;
  std::string name;
  int multiprocessors = 1;
};

Status FindSubject(Library* library, const precast_options& options, const precast_value* args, int32_t count,
                   Subject* subject) {
  if (options.target != nullptr && *options.target != '\0') {
    subject->name = options.target;
    const int capability = strncmp(options.target, "sm_", 3) == 0 ? atoi(options.target + 3) : 0;
    subject->runnable = library->RunnableOn(options.target, capability, "");
    return PRECAST_OK;
  }
  const precast_device on = DeviceOf(options, args, count);
  int type = on.device_type;
  if (type == 0) {
    Driver* driver = nullptr;
    const Status status = OpenAnyDriver(&driver);
    if (status != PRECAST_OK) {
      const std::string why = LastError();
      return Fail(status, "%s: name a target in the options to ask without a GPU", why.c_str());
    }
    type = driver->DeviceType();
  }
  DeviceState* device = nullptr;
  const Status status = library->GetDevice(type, on.device_id, &device);
  if (status != PRECAST_OK) return status;
  subject->name = device->facts.name;
  subject->runnable = device->runnable;
  subject->multiprocessors = device->facts.multiprocessors;
  return PRECAST_OK;
}

Status Ask(precast_library* handle, int32_t index, const precast_value* args, int32_t count,
           const precast_options* given, Call* call, Choice* choice, Subject* subject) {
  const Operator* op = nullptr;
  precast_options options;
  Status status = GetOperator(handle, index, &op);
  if (status == PRECAST_OK) status = ReadOptions(given, &options);
  if (status == PRECAST_OK) status = Bind(*op, args, count, Purpose::kAsk, call);
  if (status == PRECAST_OK) status = FindSubject(Get(handle), options, args, count, subject);
  if (status != PRECAST_OK) return status;
  BindDevice(*op, subject->multiprocessors, call);
  return Choose(Get(handle), static_cast<size_t>(index), *call, subject->runnable, subject->name.c_str(),
                options.candidate, true, choice);
}

Status Supports(precast_library* handle, int32_t index, const precast_value* args, int32_t count,
                const precast_options* options) {
  const Quietly quietly;
  Call call;
  Choice choice;
  Subject subject;
  return Ask(handle, index, args, count, options, &call, &choice, &subject);
}

Status Explain(precast_library* handle, int32_t index, const precast_value* args, int32_t count,
               const precast_options* options, const char** json) {
  Call call;
  Choice choice;
  Subject subject;
  const Status status = Ask(handle, index, args, count, options, &call, &choice, &subject);
  if (status == PRECAST_OK) *json = KeepForThread(ExplainChoice(*Get(handle), call, choice, subject.name));
  return status;
}

// Loads what a specialization may launch on a target.
Status WarmSpecialization(Library* library, DeviceState* device, uint32_t pack, const OperatorTarget& target,
                          const Specialization& specialization, void* stream) {
  for (const uint32_t choice : specialization.candidates) {
    for (const Launch& launch : target.candidates[choice].launches) {
      for (const LaunchVariant& v : launch.variants) {
        void* function = nullptr;
        const Status status = library->GetFunction(device, pack, target, v.variant, stream, &function);
        if (status != PRECAST_OK) return status;
      }
    }
  }
  return PRECAST_OK;
}

// Loads what the device may come to use of an operator: each specialization from the best target that has it, as
// dispatch takes it.
Status WarmOperator(Library* library, DeviceState* device, size_t index, void* stream) {
  std::vector<bool> covered;
  bool any = false;
  for (const Runnable& r : device->runnable) {
    for (const OperatorTarget& target : library->packs()[r.pack]->operators[index].targets) {
      if (target.target != r.target) continue;
      any = true;
      covered.resize(target.specializations.size());
      for (size_t i = 0; i < target.specializations.size(); ++i) {
        if (covered[i] || target.specializations[i].status != SpecializationStatus::kBuilt) continue;
        covered[i] = true;
        const Status status = WarmSpecialization(library, device, r.pack, target, target.specializations[i], stream);
        if (status != PRECAST_OK) return status;
      }
    }
  }
  if (any) return PRECAST_OK;
  return Fail(PRECAST_NO_TARGET, "the library has no code for %s (%s); it has %s", device->facts.name.c_str(),
              device->facts.arch.c_str(), library->TargetNames().c_str());
}

Status Warmup(precast_library* handle, int32_t index, int32_t device_id, const precast_value* args, int32_t count,
              const precast_options* given) {
  if (handle == nullptr) return Fail(PRECAST_INVALID_ARGUMENT, "the library is NULL");
  Library* library = Get(handle);
  Status status = library->Ready();
  if (status != PRECAST_OK) return status;
  precast_options options;
  status = ReadOptions(given, &options);
  if (status != PRECAST_OK) return status;
  int type = DeviceOf(options, args, count).device_type;
  if (type == 0) {
    Driver* driver = nullptr;
    status = OpenAnyDriver(&driver);
    if (status != PRECAST_OK) return status;
    type = driver->DeviceType();
  }
  DeviceState* device = nullptr;
  status = library->GetDevice(type, device_id, &device);
  if (status != PRECAST_OK) return status;
  const Inside inside(device);
  if (inside.status() != PRECAST_OK) return inside.status();
  void* pool = nullptr;
  status = library->GetPool(device, &pool);
  if (status != PRECAST_OK) return status;
  if (args != nullptr) {
    const Operator* op = nullptr;
    status = GetOperator(handle, index, &op);
    Call call;
    if (status == PRECAST_OK) status = Bind(*op, args, count, Purpose::kAsk, &call);
    if (status != PRECAST_OK) return status;
    BindDevice(*op, device->facts.multiprocessors, &call);
    Choice choice;
    status = Choose(library, static_cast<size_t>(index), call, device->runnable, device->facts.arch.c_str(),
                    options.candidate, false, &choice);
    return status == PRECAST_OK ? LoadChoice(library, device, choice, options.stream) : status;
  }
  const size_t operators = library->first().operators.size();
  if (index >= 0) {
    const Operator* op = nullptr;
    status = GetOperator(handle, index, &op);
    return status == PRECAST_OK ? WarmOperator(library, device, static_cast<size_t>(index), options.stream) : status;
  }
  for (size_t i = 0; i < operators; ++i) {
    status = WarmOperator(library, device, i, options.stream);
    if (status != PRECAST_OK) return status;
  }
  return PRECAST_OK;
}

Status OutputShape(precast_library* handle, int32_t index, const precast_value* args, int32_t count, int32_t arg,
                   int32_t* ndim, int64_t* shape, precast_dtype* dtype) {
  const Operator* op = nullptr;
  Status status = GetOperator(handle, index, &op);
  if (status != PRECAST_OK) return status;
  Call call;
  status = Bind(*op, args, count, Purpose::kOutputs, &call);
  if (status != PRECAST_OK) return status;
  if (arg < 0 || static_cast<size_t>(arg) >= op->arguments.size() || !op->arguments[static_cast<size_t>(arg)].output) {
    return Fail(PRECAST_INVALID_ARGUMENT, "%s: argument %d is no output", op->name.c_str(), arg);
  }
  const Argument& a = op->arguments[static_cast<size_t>(arg)];
  if (a.shape.empty() && a.rank > 0) {
    return Fail(PRECAST_UNSUPPORTED, "%s: the shape of output %s does not follow from the inputs: give it",
                op->name.c_str(), a.name.c_str());
  }
  BindDevice(*op, 1, &call);
  uint16_t packed = a.fixed_dtype;
  for (size_t i = 0; a.type_variable != kNone && i < op->arguments.size(); ++i) {
    if (op->arguments[i].type_variable != a.type_variable || call.tensors[i].tensor == nullptr) continue;
    const precast_dtype d = call.tensors[i].tensor->dtype;
    packed = static_cast<uint16_t>(d.code << 8 | d.bits);
    break;
  }
  if (packed == 0) {
    if (a.type_variable == kNone)
      return Fail(PRECAST_INTERNAL, "%s: output %s has no dtype", op->name.c_str(), a.name.c_str());
    size_t specialization = 0;
    status = Specialize(call, &specialization);
    if (status != PRECAST_OK) return status;
    packed = DtypeOf(*op, specialization, a.type_variable);
  }
  *ndim = a.rank;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    status = EvaluateFor(call, a.shape[i], a.name.c_str(), &shape[i]);
    if (status != PRECAST_OK) return status;
  }
  *dtype = precast_dtype{static_cast<uint8_t>(packed >> 8), static_cast<uint8_t>(packed & 255), 1};
  return PRECAST_OK;
}

Status ReleaseLibrary(precast_library* handle) {
  return handle == nullptr ? Fail(PRECAST_INVALID_ARGUMENT, "the library is NULL") : Get(handle)->Release();
}

constexpr precast_api kApi = {
    sizeof(precast_api), PRECAST_ABI_VERSION, 0,          Describe,       FindOperator, Run, Supports, Explain, Warmup,
    OutputShape,         LastError,           StatusName, ReleaseLibrary,
};

}  // namespace

const precast_api* Api() { return &kApi; }

const precast_api* LibraryEntry(const LibrarySpec& spec, std::atomic<Library*>* storage, uint32_t abi_version,
                                precast_library** library) {
  if (abi_version > PRECAST_ABI_VERSION) {
    Fail(PRECAST_VERSION_MISMATCH, "the program was built for ABI version %u, the library has %d", abi_version,
         PRECAST_ABI_VERSION);
    return nullptr;
  }
  Library* made = storage->load(std::memory_order_acquire);
  if (made == nullptr) {
    Library* fresh = new (std::nothrow) Library(spec);
    if (fresh == nullptr) return nullptr;
    if (storage->compare_exchange_strong(made, fresh)) {
      made = fresh;
    } else {
      delete fresh;
    }
  }
  *library = reinterpret_cast<precast_library*>(made);
  return Api();
}

}  // namespace precast
