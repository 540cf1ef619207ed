#include "driver.h"

#include <atomic>
#include <mutex>

namespace precast {
namespace {

struct Opened {
  std::mutex mutex;
  std::atomic<Driver*> driver{nullptr};
};

// Never destroyed: calls may come while the process ends.
Opened cuda;
Opened hip;

Status Open(Opened* opened, Driver* (*make)(), Driver** driver) {
  *driver = opened->driver.load(std::memory_order_acquire);
  if (*driver != nullptr) return PRECAST_OK;
  std::lock_guard<std::mutex> lock(opened->mutex);
  *driver = opened->driver.load(std::memory_order_relaxed);
  if (*driver != nullptr) return PRECAST_OK;
  *driver = make();
  if (*driver == nullptr) return PRECAST_NO_DRIVER;
  opened->driver.store(*driver, std::memory_order_release);
  return PRECAST_OK;
}

}  // namespace

Status OpenDriver(int device_type, Driver** driver) {
  if (device_type == PRECAST_CUDA) return Open(&cuda, MakeCudaDriver, driver);
  if (device_type == PRECAST_ROCM) return Open(&hip, MakeHipDriver, driver);
  return Fail(PRECAST_INVALID_ARGUMENT, "device type %d is neither CUDA (2) nor ROCm (10)", device_type);
}

Status OpenAnyDriver(Driver** driver) {
  if (OpenDriver(PRECAST_CUDA, driver) == PRECAST_OK && (*driver)->DeviceCount() > 0) return PRECAST_OK;
  if (OpenDriver(PRECAST_ROCM, driver) == PRECAST_OK && (*driver)->DeviceCount() > 0) return PRECAST_OK;
  return Fail(PRECAST_NO_DRIVER, "no GPU: neither the CUDA driver nor HIP could be opened and has a device");
}

}  // namespace precast
