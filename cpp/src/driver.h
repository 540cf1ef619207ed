// One interface over the CUDA driver API and HIP, both opened at run time.
#ifndef PRECAST_SRC_DRIVER_H_
#define PRECAST_SRC_DRIVER_H_

#include <cstdint>
#include <string>

#include "error.h"

namespace precast {

struct DeviceFacts {
  std::string name;    // "NVIDIA H200"
  std::string arch;    // "sm_90" or "gfx942"
  int capability = 0;  // 90 on NVIDIA, 0 elsewhere
  int multiprocessors = 0;
};

struct LaunchConfig {
  uint32_t grid[3];
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t cluster;
  uint32_t flags;  // VariantFlag
  void* stream;
};

struct TensorMapSpec {
  uint32_t data_type;
  uint32_t element_bytes;
  uint32_t rank;
  void* address;
  uint64_t dims[5];     // innermost first
  uint64_t strides[5];  // bytes, of dims 1 and up
  uint32_t box[5];
  uint32_t swizzle;
  bool fill_nan;
};

struct alignas(64) EncodedTensorMap {
  uint64_t words[16];
};

// A driver reports failures through Fail(). Functions that take a device expect to be inside its context.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual const char* Name() const = 0;
  virtual int DeviceType() const = 0;
  virtual int DeviceCount() = 0;
  virtual Status Facts(int device, DeviceFacts* facts) = 0;

  // Makes the device's primary context current for this thread; Leave with `*restore` undoes it.
  virtual Status Enter(int device, void** restore) = 0;
  virtual void Leave(void* restore) = 0;

  virtual Status Load(const void* image, void** module) = 0;
  virtual void Unload(void* module) = 0;
  virtual Status GetFunction(void* module, const char* name, uint32_t shared_bytes, uint32_t cluster,
                             void** function) = 0;
  virtual Status IsCapturing(void* stream, bool* capturing) = 0;
  virtual Status MakePool(int device, void** pool) = 0;
  virtual void FreePool(void* pool) = 0;
  virtual Status Allocate(void* pool, size_t bytes, void* stream, void** memory) = 0;
  virtual Status Free(void* memory, void* stream) = 0;
  virtual Status Zero(void* memory, size_t bytes, void* stream) = 0;
  virtual Status Encode(const TensorMapSpec& spec, EncodedTensorMap* map) = 0;
  virtual Status Launch(void* function, const LaunchConfig& config, void** params) = 0;
};

// The driver for tensors of a DLPack device type, opened at the first call. A failed opening is tried again
// at the next call, so that a process may start before its driver is there.
Status OpenDriver(int device_type, Driver** driver);

// Any driver that opens and has a device: CUDA's, else HIP's.
Status OpenAnyDriver(Driver** driver);

// Defined in cuda.cpp and hip.cpp; nullptr with a message if the library or a function of it is missing.
Driver* MakeCudaDriver();
Driver* MakeHipDriver();

}  // namespace precast

#endif  // PRECAST_SRC_DRIVER_H_
