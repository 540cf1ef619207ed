// HIP's module API, opened at run time. Types and constants are those of hip_runtime_api.h.
// Compiled, and run against a stand-in library; no AMD GPU has run it yet.
#include <dlfcn.h>

#include <cstring>
#include <new>

#include "driver.h"
#include "log.h"
#include "pack.h"

namespace precast {
namespace {

using Result = int;

constexpr int kMultiprocessorCount = 63;
constexpr int kReleaseThreshold = 4;
constexpr int kOutOfMemory = 2;
constexpr size_t kPropertiesBytes = 1472;  // hipDeviceProp_tR0600
constexpr size_t kArchOffset = 1160;

struct MemPoolProps {
  int allocation_type;
  int handle_types;
  int location_type;
  int location_id;
  void* security;
  size_t max_size;
  unsigned char reserved[56];
};
static_assert(sizeof(MemPoolProps) == 88, "layout of hipMemPoolProps");

struct Functions {
  Result (*Init)(unsigned);
  Result (*GetDeviceCount)(int*);
  Result (*GetDeviceProperties)(void*, int);
  Result (*DeviceGetAttribute)(int*, int, int);
  Result (*GetDevice)(int*);
  Result (*SetDevice)(int);
  Result (*ModuleLoadData)(void**, const void*);
  Result (*ModuleUnload)(void*);
  Result (*ModuleGetFunction)(void**, void*, const char*);
  Result (*StreamIsCapturing)(void*, int*);
  Result (*MemPoolCreate)(void**, const MemPoolProps*);
  Result (*MemPoolDestroy)(void*);
  Result (*MemPoolSetAttribute)(void*, int, void*);
  Result (*MallocFromPoolAsync)(void**, size_t, void*, void*);
  Result (*FreeAsync)(void*, void*);
  Result (*MemsetAsync)(void*, int, size_t, void*);
  Result (*ModuleLaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                               void**, void**);
  Result (*ModuleLaunchCooperativeKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                          void*, void**);
  const char* (*GetErrorName)(Result);
  const char* (*GetErrorString)(Result);
};

class HipDriver final : public Driver {
 public:
  bool Open() {
    const char* given = Environment("PRECAST_HIP_DRIVER");
    const char* names[] = {given, "libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"};
    // One that the process has already (PyTorch brings its own) goes before one that would be a second.
    for (const int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
      for (const char* name : names) {
        if (library_ != nullptr || name == nullptr) continue;
        if (given == nullptr || name == given) library_ = dlopen(name, flags);
      }
    }
    if (library_ == nullptr) {
      Fail(PRECAST_NO_DRIVER, "HIP can't be opened: %s; is ROCm installed?", dlerror());
      return false;
    }
    bool found = true;
    auto get = [&](auto* function, const char* symbol) {
      *reinterpret_cast<void**>(function) = dlsym(library_, symbol);
      if (*function == nullptr && found) {
        Fail(PRECAST_NO_DRIVER, "the HIP library has no %s: ROCm 6 or later is needed", symbol);
        found = false;
      }
    };
    get(&f_.Init, "hipInit");
    get(&f_.GetDeviceCount, "hipGetDeviceCount");
    get(&f_.GetDeviceProperties, "hipGetDevicePropertiesR0600");
    get(&f_.DeviceGetAttribute, "hipDeviceGetAttribute");
    get(&f_.GetDevice, "hipGetDevice");
    get(&f_.SetDevice, "hipSetDevice");
    get(&f_.ModuleLoadData, "hipModuleLoadData");
    get(&f_.ModuleUnload, "hipModuleUnload");
    get(&f_.ModuleGetFunction, "hipModuleGetFunction");
    get(&f_.StreamIsCapturing, "hipStreamIsCapturing");
    get(&f_.MemPoolCreate, "hipMemPoolCreate");
    get(&f_.MemPoolDestroy, "hipMemPoolDestroy");
    get(&f_.MemPoolSetAttribute, "hipMemPoolSetAttribute");
    get(&f_.MallocFromPoolAsync, "hipMallocFromPoolAsync");
    get(&f_.FreeAsync, "hipFreeAsync");
    get(&f_.MemsetAsync, "hipMemsetAsync");
    get(&f_.ModuleLaunchKernel, "hipModuleLaunchKernel");
    get(&f_.ModuleLaunchCooperativeKernel, "hipModuleLaunchCooperativeKernel");
    get(&f_.GetErrorName, "hipGetErrorName");
    get(&f_.GetErrorString, "hipGetErrorString");
    if (!found) return false;
    const Result result = f_.Init(0);
    if (result != 0) {
      Explain(PRECAST_NO_DRIVER, "hipInit", result);
      return false;
    }
    f_.GetDeviceCount(&count_);
    return true;
  }

  const char* Name() const override { return "HIP"; }
  int DeviceType() const override { return PRECAST_ROCM; }
  int DeviceCount() override { return count_; }

  Status Facts(int device, DeviceFacts* facts) override {
    alignas(16) char properties[2 * kPropertiesBytes] = {};
    Status status = Check("hipGetDeviceProperties", f_.GetDeviceProperties(properties, device));
    if (status != PRECAST_OK) return status;
    status =
        Check("hipDeviceGetAttribute", f_.DeviceGetAttribute(&facts->multiprocessors, kMultiprocessorCount, device));
    if (status != PRECAST_OK) return status;
    properties[255] = '\0';
    facts->name = properties;
    const char* arch = properties + kArchOffset;
    facts->arch.assign(arch, strcspn(arch, ":"));
    return PRECAST_OK;
  }

  Status Enter(int device, void** restore) override {
    int current = 0;
    f_.GetDevice(&current);
    *restore = nullptr;
    if (current == device) return PRECAST_OK;
    const Status status = Check("hipSetDevice", f_.SetDevice(device));
    if (status == PRECAST_OK) *restore = reinterpret_cast<void*>(static_cast<intptr_t>(current) + 1);
    return status;
  }

  void Leave(void* restore) override {
    if (restore != nullptr) f_.SetDevice(static_cast<int>(reinterpret_cast<intptr_t>(restore) - 1));
  }

  Status Load(const void* image, void** module) override {
    return Check("hipModuleLoadData", f_.ModuleLoadData(module, image));
  }
  void Unload(void* module) override { f_.ModuleUnload(module); }
  Status GetFunction(void* module, const char* name, uint32_t, uint32_t, void** function) override {
    return Check("hipModuleGetFunction", f_.ModuleGetFunction(function, module, name));
  }
  Status IsCapturing(void* stream, bool* capturing) override {
    int state = 0;
    const Status status = Check("hipStreamIsCapturing", f_.StreamIsCapturing(stream, &state));
    *capturing = state != 0;
    return status;
  }
  Status MakePool(int device, void** pool) override {
    MemPoolProps props{};
    props.allocation_type = 1;
    props.location_type = 1;
    props.location_id = device;
    const Status status = Check("hipMemPoolCreate", f_.MemPoolCreate(pool, &props));
    if (status != PRECAST_OK) return status;
    uint64_t keep_all = ~uint64_t{0};
    return Check("hipMemPoolSetAttribute", f_.MemPoolSetAttribute(*pool, kReleaseThreshold, &keep_all));
  }
  void FreePool(void* pool) override { f_.MemPoolDestroy(pool); }
  Status Allocate(void* pool, size_t bytes, void* stream, void** memory) override {
    const Result result = f_.MallocFromPoolAsync(memory, bytes, pool, stream);
    if (result == kOutOfMemory) {
      return Fail(PRECAST_OUT_OF_MEMORY, "no device memory for a workspace of %zu bytes", bytes);
    }
    return Check("hipMallocFromPoolAsync", result);
  }
  Status Free(void* memory, void* stream) override { return Check("hipFreeAsync", f_.FreeAsync(memory, stream)); }
  Status Zero(void* memory, size_t bytes, void* stream) override {
    return Check("hipMemsetAsync", f_.MemsetAsync(memory, 0, bytes, stream));
  }
  Status Encode(const TensorMapSpec&, EncodedTensorMap*) override {
    return Fail(PRECAST_UNSUPPORTED, "tensor maps are NVIDIA's; this kernel was compiled for another vendor");
  }
  Status Launch(void* function, const LaunchConfig& c, void** params) override {
    if (c.cluster > 1) return Fail(PRECAST_UNSUPPORTED, "clusters can't be launched through HIP yet");
    const Result result = (c.flags & kCooperative) != 0
                              ? f_.ModuleLaunchCooperativeKernel(function, c.grid[0], c.grid[1], c.grid[2], c.threads,
                                                                 1, 1, c.shared_bytes, c.stream, params)
                              : f_.ModuleLaunchKernel(function, c.grid[0], c.grid[1], c.grid[2], c.threads, 1, 1,
                                                      c.shared_bytes, c.stream, params, nullptr);
    return Check("hipModuleLaunchKernel", result);
  }

 private:
  Status Check(const char* what, Result result) {
    return result == 0 ? PRECAST_OK : Explain(PRECAST_DRIVER_ERROR, what, result);
  }
  Status Explain(Status status, const char* what, Result result) {
    return Fail(status, "%s: %s (%d): %s", what, f_.GetErrorName(result), result, f_.GetErrorString(result));
  }

  void* library_ = nullptr;
  Functions f_{};
  int count_ = 0;
};

}  // namespace

Driver* MakeHipDriver() {
  HipDriver* driver = new (std::nothrow) HipDriver;
  if (driver != nullptr && driver->Open()) return driver;
  delete driver;
  return nullptr;
}

}  // namespace precast
