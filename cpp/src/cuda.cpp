// The CUDA driver API, opened at run time. Types and constants are those of cuda.h.
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "driver.h"
#include "log.h"
#include "pack.h"

namespace precast {
namespace {

using Result = int;
using Device = int;

enum : int {
  kMultiprocessorCount = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxDynamicSharedBytes = 8,
  kNonPortableClusterAllowed = 14,
  kReleaseThreshold = 4,
};

enum : int {
  kErrorLogBuffer = 5,
  kErrorLogBytes = 6,
};

enum : uint32_t {
  kAttributeCooperative = 2,
  kAttributeCluster = 4,
  kAttributeClusterPolicy = 5,
  kAttributeDependentLaunch = 6,
  kPolicySpread = 1,
};

struct LaunchAttribute {
  uint32_t id;
  uint32_t pad;
  union {
    char bytes[64];
    uint32_t words[16];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72, "layout of CUlaunchAttribute");

struct NativeLaunchConfig {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};

struct MemPoolProps {
  int allocation_type;
  int handle_types;
  int location_type;
  int location_id;
  void* security;
  size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(MemPoolProps) == 88, "layout of CUmemPoolProps");

constexpr int kNewestDriverThatNeedsTheSmallTensorFix = 13010;

struct Functions {
  Result (*Init)(unsigned);
  Result (*DriverGetVersion)(int*);
  Result (*DeviceGetCount)(int*);
  Result (*DeviceGet)(Device*, int);
  Result (*DeviceGetName)(char*, int, Device);
  Result (*DeviceGetAttribute)(int*, int, Device);
  Result (*PrimaryCtxRetain)(void**, Device);
  Result (*CtxGetCurrent)(void**);
  Result (*CtxPushCurrent)(void*);
  Result (*CtxPopCurrent)(void**);
  Result (*ModuleUnload)(void*);
  Result (*ModuleGetFunction)(void**, void*, const char*);
  Result (*FuncSetAttribute)(void*, int, int);
  Result (*StreamIsCapturing)(void*, int*);
  Result (*MemPoolCreate)(void**, const MemPoolProps*);
  Result (*MemPoolDestroy)(void*);
  Result (*MemPoolSetAttribute)(void*, int, void*);
  Result (*MemAllocFromPoolAsync)(uint64_t*, size_t, void*, void*);
  Result (*MemFreeAsync)(uint64_t, void*);
  Result (*MemsetD8Async)(uint64_t, unsigned char, size_t, void*);
  Result (*LaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                         void**);
  Result (*GetErrorName)(Result, const char**);
  Result (*GetErrorString)(Result, const char**);
  Result (*ModuleLoadDataEx)(void**, const void*, unsigned, const int*, void**);
  Result (*ThreadExchangeStreamCaptureMode)(int*);
  // These are missing from older drivers, which then refuse only what needs them.
  Result (*LaunchKernelEx)(const NativeLaunchConfig*, void*, void**, void**);
  Result (*TensorMapEncodeTiled)(EncodedTensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                                 const uint32_t*, const uint32_t*, int, int, int, int);
};

// While one lives, the calling thread may do what would otherwise spoil another thread's capture of a graph.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Functions& functions) : functions_(functions) {
    functions_.ThreadExchangeStreamCaptureMode(&mode_);
  }
  ~RelaxedCapture() { functions_.ThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Functions& functions_;
  int mode_ = 2;  // relaxed; after the exchange, the thread's own
};

class CudaDriver final : public Driver {
 public:
  bool Open() {
    const char* given = Environment("PRECAST_CUDA_DRIVER");
    const char* name = given != nullptr ? given : "libcuda.so.1";
    library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      Fail(PRECAST_NO_DRIVER, "the CUDA driver can't be opened: %s; is an NVIDIA driver installed?", dlerror());
      return false;
    }
    bool found = true;
    auto get = [&](auto* function, const char* symbol, bool needed = true) {
      *reinterpret_cast<void**>(function) = dlsym(library_, symbol);
      if (*function == nullptr && needed && found) {
        Fail(PRECAST_NO_DRIVER, "%s has no %s: the driver is too old (CUDA 12 or later is needed)", name, symbol);
        found = false;
      }
    };
    get(&f_.Init, "cuInit");
    get(&f_.DriverGetVersion, "cuDriverGetVersion");
    get(&f_.DeviceGetCount, "cuDeviceGetCount");
    get(&f_.DeviceGet, "cuDeviceGet");
    get(&f_.DeviceGetName, "cuDeviceGetName");
    get(&f_.DeviceGetAttribute, "cuDeviceGetAttribute");
    get(&f_.PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    get(&f_.CtxGetCurrent, "cuCtxGetCurrent");
    get(&f_.CtxPushCurrent, "cuCtxPushCurrent_v2");
    get(&f_.CtxPopCurrent, "cuCtxPopCurrent_v2");
    get(&f_.ModuleUnload, "cuModuleUnload");
    get(&f_.ModuleGetFunction, "cuModuleGetFunction");
    get(&f_.FuncSetAttribute, "cuFuncSetAttribute");
    get(&f_.StreamIsCapturing, "cuStreamIsCapturing");
    get(&f_.MemPoolCreate, "cuMemPoolCreate");
    get(&f_.MemPoolDestroy, "cuMemPoolDestroy");
    get(&f_.MemPoolSetAttribute, "cuMemPoolSetAttribute");
    get(&f_.MemAllocFromPoolAsync, "cuMemAllocFromPoolAsync");
    get(&f_.MemFreeAsync, "cuMemFreeAsync");
    get(&f_.MemsetD8Async, "cuMemsetD8Async");
    get(&f_.LaunchKernel, "cuLaunchKernel");
    get(&f_.GetErrorName, "cuGetErrorName");
    get(&f_.GetErrorString, "cuGetErrorString");
    get(&f_.ModuleLoadDataEx, "cuModuleLoadDataEx");
    get(&f_.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
    get(&f_.LaunchKernelEx, "cuLaunchKernelEx", false);
    get(&f_.TensorMapEncodeTiled, "cuTensorMapEncodeTiled", false);
    if (!found) return false;
    const Result result = f_.Init(0);
    if (result != 0) {
      Explain(PRECAST_NO_DRIVER, "cuInit", result);
      return false;
    }
    f_.DriverGetVersion(&version_);
    f_.DeviceGetCount(&count_);
    if (count_ > kMaxDevices) count_ = kMaxDevices;
    return true;
  }

  const char* Name() const override { return "CUDA"; }
  int DeviceType() const override { return PRECAST_CUDA; }
  int DeviceCount() override { return count_; }

  Status Facts(int device, DeviceFacts* facts) override {
    Device handle = 0;
    Result result = f_.DeviceGet(&handle, device);
    if (result != 0) return Explain(PRECAST_DRIVER_ERROR, "cuDeviceGet", result);
    char name[256] = "";
    f_.DeviceGetName(name, sizeof name - 1, handle);
    int major = 0;
    int minor = 0;
    result = f_.DeviceGetAttribute(&major, kCapabilityMajor, handle);
    if (result == 0) result = f_.DeviceGetAttribute(&minor, kCapabilityMinor, handle);
    if (result == 0) result = f_.DeviceGetAttribute(&facts->multiprocessors, kMultiprocessorCount, handle);
    if (result != 0) return Explain(PRECAST_DRIVER_ERROR, "cuDeviceGetAttribute", result);
    facts->name = name;
    facts->capability = major * 10 + minor;
    facts->arch = Format("sm_%d", facts->capability);
    // Libraries share this driver, and each asks for a device's facts.
    std::lock_guard<std::mutex> lock(mutex_);
    if (contexts_[device].load(std::memory_order_relaxed) != nullptr) return PRECAST_OK;
    void* context = nullptr;
    result = f_.PrimaryCtxRetain(&context, handle);
    if (result != 0) return Explain(PRECAST_DRIVER_ERROR, "cuDevicePrimaryCtxRetain", result);
    contexts_[device].store(context, std::memory_order_release);
    return PRECAST_OK;
  }

  Status Enter(int device, void** restore) override {
    void* current = nullptr;
    f_.CtxGetCurrent(&current);
    *restore = nullptr;
    void* const wanted = contexts_[device].load(std::memory_order_acquire);
    if (current == wanted) return PRECAST_OK;
    const Result result = f_.CtxPushCurrent(wanted);
    if (result != 0) return Explain(PRECAST_DRIVER_ERROR, "cuCtxPushCurrent", result);
    *restore = this;
    return PRECAST_OK;
  }

  void Leave(void* restore) override {
    void* popped = nullptr;
    if (restore != nullptr) f_.CtxPopCurrent(&popped);
  }

  Status Load(const void* image, void** module) override {
    const RelaxedCapture relaxed(f_);
    char log[1024] = "";
    const int options[] = {kErrorLogBuffer, kErrorLogBytes};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
    const Result result = f_.ModuleLoadDataEx(module, image, 2, options, values);
    if (result != 0 && log[0] != '\0') {
      const Status status = Explain(PRECAST_DRIVER_ERROR, "cuModuleLoadDataEx", result);
      const std::string why = LastError();
      return Fail(status, "%s; the driver's compiler says: %s", why.c_str(), log);
    }
    return Check("cuModuleLoadDataEx", result);
  }

  void Unload(void* module) override { f_.ModuleUnload(module); }

  Status GetFunction(void* module, const char* name, uint32_t shared_bytes, uint32_t cluster,
                     void** function) override {
    Status status = Check("cuModuleGetFunction", f_.ModuleGetFunction(function, module, name));
    if (status == PRECAST_OK && shared_bytes > 48 * 1024) {
      status = Check("cuFuncSetAttribute",
                     f_.FuncSetAttribute(*function, kMaxDynamicSharedBytes, static_cast<int>(shared_bytes)));
    }
    if (status == PRECAST_OK && cluster > 8) {
      status = Check("cuFuncSetAttribute", f_.FuncSetAttribute(*function, kNonPortableClusterAllowed, 1));
    }
    return status;
  }

  Status IsCapturing(void* stream, bool* capturing) override {
    int state = 0;
    const Status status = Check("cuStreamIsCapturing", f_.StreamIsCapturing(stream, &state));
    *capturing = state != 0;
    return status;
  }

  Status MakePool(int device, void** pool) override {
    const RelaxedCapture relaxed(f_);
    MemPoolProps props{};
    props.allocation_type = 1;  // pinned
    props.location_type = 1;    // device
    props.location_id = device;
    Status status = Check("cuMemPoolCreate", f_.MemPoolCreate(pool, &props));
    if (status != PRECAST_OK) return status;
    uint64_t keep_all = ~uint64_t{0};
    return Check("cuMemPoolSetAttribute", f_.MemPoolSetAttribute(*pool, kReleaseThreshold, &keep_all));
  }

  void FreePool(void* pool) override { f_.MemPoolDestroy(pool); }

  Status Allocate(void* pool, size_t bytes, void* stream, void** memory) override {
    uint64_t address = 0;
    const Result result = f_.MemAllocFromPoolAsync(&address, bytes, pool, stream);
    *memory = reinterpret_cast<void*>(address);
    if (result == 2) return Fail(PRECAST_OUT_OF_MEMORY, "no device memory for a workspace of %zu bytes", bytes);
    return Check("cuMemAllocFromPoolAsync", result);
  }

  Status Free(void* memory, void* stream) override {
    return Check("cuMemFreeAsync", f_.MemFreeAsync(reinterpret_cast<uint64_t>(memory), stream));
  }

  Status Zero(void* memory, size_t bytes, void* stream) override {
    return Check("cuMemsetD8Async", f_.MemsetD8Async(reinterpret_cast<uint64_t>(memory), 0, bytes, stream));
  }

  Status Encode(const TensorMapSpec& spec, EncodedTensorMap* map) override {
    if (f_.TensorMapEncodeTiled == nullptr) {
      return Fail(PRECAST_DRIVER_ERROR, "the driver has no cuTensorMapEncodeTiled: it is too old for TMA");
    }
    const uint32_t ones[5] = {1, 1, 1, 1, 1};
    constexpr int kNoInterleave = 0;
    constexpr int kPromote128Bytes = 2;
    const Result result = f_.TensorMapEncodeTiled(map, static_cast<int>(spec.data_type), spec.rank, spec.address,
                                                  spec.dims, spec.strides, spec.box, ones, kNoInterleave,
                                                  static_cast<int>(spec.swizzle), kPromote128Bytes, spec.fill_nan);
    if (result != 0) return Explain(PRECAST_DRIVER_ERROR, "cuTensorMapEncodeTiled", result);
    if (version_ <= kNewestDriverThatNeedsTheSmallTensorFix && IsSmall(spec)) {
      map->words[1] &= ~(uint64_t{1} << 21);  // these drivers misplace reads of tensors under 128 KiB
    }
    return PRECAST_OK;
  }

  Status Launch(void* function, const LaunchConfig& c, void** params) override {
    Result result;
    if (c.cluster == 1 && c.flags == 0) {
      result = f_.LaunchKernel(function, c.grid[0], c.grid[1], c.grid[2], c.threads, 1, 1, c.shared_bytes, c.stream,
                               params, nullptr);
      return result == 0 ? PRECAST_OK : Explain(PRECAST_DRIVER_ERROR, "cuLaunchKernel", result);
    }
    if (f_.LaunchKernelEx == nullptr) {
      return Fail(PRECAST_DRIVER_ERROR, "the driver has no cuLaunchKernelEx: it is too old for this kernel");
    }
    LaunchAttribute attributes[4];
    memset(attributes, 0, sizeof attributes);
    uint32_t count = 0;
    if ((c.flags & kDependentLaunch) != 0) {
      attributes[count].id = kAttributeDependentLaunch;
      attributes[count++].value.words[0] = 1;
    }
    if ((c.flags & kCooperative) != 0) {
      attributes[count].id = kAttributeCooperative;
      attributes[count++].value.words[0] = 1;
    }
    if (c.cluster > 1) {
      attributes[count].id = kAttributeCluster;
      attributes[count].value.words[0] = c.cluster;
      attributes[count].value.words[1] = 1;
      attributes[count++].value.words[2] = 1;
      attributes[count].id = kAttributeClusterPolicy;
      attributes[count++].value.words[0] = kPolicySpread;
    }
    NativeLaunchConfig native{
        {c.grid[0] * c.cluster, c.grid[1], c.grid[2]}, {c.threads, 1, 1}, c.shared_bytes, c.stream, attributes, count};
    result = f_.LaunchKernelEx(&native, function, params, nullptr);
    return result == 0 ? PRECAST_OK : Explain(PRECAST_DRIVER_ERROR, "cuLaunchKernelEx", result);
  }

 private:
  static constexpr int kMaxDevices = 64;

  static bool IsSmall(const TensorMapSpec& spec) {
    uint64_t last = (spec.dims[0] - 1) * spec.element_bytes;
    for (uint32_t i = 1; i < spec.rank; ++i) last += (spec.dims[i] - 1) * spec.strides[i - 1];
    return last + 1 < 128 * 1024;
  }

  Status Check(const char* what, Result result) {
    return result == 0 ? PRECAST_OK : Explain(PRECAST_DRIVER_ERROR, what, result);
  }

  Status Explain(Status status, const char* what, Result result) {
    const char* name = nullptr;
    const char* text = nullptr;
    f_.GetErrorName(result, &name);
    f_.GetErrorString(result, &text);
    return Fail(status, "%s: %s (%d): %s", what, name != nullptr ? name : "unknown error", result,
                text != nullptr ? text : "");
  }

  void* library_ = nullptr;
  Functions f_{};
  int version_ = 0;
  int count_ = 0;
  std::mutex mutex_;
  std::atomic<void*> contexts_[kMaxDevices] = {};
};

}  // namespace

Driver* MakeCudaDriver() {
  CudaDriver* driver = new (std::nothrow) CudaDriver;
  if (driver != nullptr && driver->Open()) return driver;
  delete driver;
  return nullptr;
}

}  // namespace precast
