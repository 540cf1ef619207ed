// A stand-in for HIP, for tests on machines without an AMD GPU. It is no HIP: "device memory" is host memory, every
// kernel adds n float32, and what was done is counted. Environment: STANDIN_ARCH (default gfx942:sramecc+:xnack-),
// STANDIN_DEVICES (default 2).
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalidDevice = 101;
constexpr size_t kPropertiesBytes = 1472;
constexpr size_t kArchOffset = 1160;

thread_local int current = 0;
std::atomic<int> capturing{0};
char object;

int DeviceCount() {
  const char* text = getenv("STANDIN_DEVICES");
  return text != nullptr ? atoi(text) : 2;
}

}  // namespace

// What tests read.
struct StandinHipRecord {
  std::atomic<int64_t> launches;
  std::atomic<int64_t> cooperative;
  std::atomic<int64_t> loads;
  std::atomic<int64_t> unloads;
  std::atomic<int64_t> allocations;
  std::atomic<int64_t> frees;
  std::atomic<int64_t> memsets;
  std::atomic<int64_t> device;  // of the last launch
  std::atomic<int64_t> grid_x;
  std::atomic<int64_t> block_x;
};
static StandinHipRecord counts;

EXPORT StandinHipRecord* standin_hip_record() { return &counts; }
EXPORT void standin_hip_capture(int on) { capturing = on; }

EXPORT int hipInit(unsigned) { return 0; }
EXPORT int hipGetDeviceCount(int* count) {
  *count = DeviceCount();
  return 0;
}
EXPORT int hipGetDevicePropertiesR0600(void* properties, int) {
  auto* bytes = static_cast<char*>(properties);
  memset(bytes, 0, kPropertiesBytes);
  strcpy(bytes, "stand-in (no AMD GPU)");
  const char* arch = getenv("STANDIN_ARCH");
  strcpy(bytes + kArchOffset, arch != nullptr ? arch : "gfx942:sramecc+:xnack-");
  return 0;
}
EXPORT int hipDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 63 ? 304 : 0;
  return 0;
}
EXPORT int hipGetDevice(int* device) {
  *device = current;
  return 0;
}
EXPORT int hipSetDevice(int device) {
  if (device < 0 || device >= DeviceCount()) return kInvalidDevice;
  current = device;
  return 0;
}
EXPORT int hipModuleLoadData(void** module, const void*) {
  *module = &object;
  ++counts.loads;
  return 0;
}
EXPORT int hipModuleUnload(void*) {
  ++counts.unloads;
  return 0;
}
EXPORT int hipModuleGetFunction(void** function, void* module, const char*) {
  *function = module;
  return 0;
}
EXPORT int hipStreamIsCapturing(void*, int* state) {
  *state = capturing;
  return 0;
}
EXPORT int hipMemPoolCreate(void** pool, const void*) {
  *pool = malloc(1);
  return 0;
}
EXPORT int hipMemPoolDestroy(void* pool) {
  free(pool);
  return 0;
}
EXPORT int hipMemPoolSetAttribute(void*, int, void*) { return 0; }
EXPORT int hipMallocFromPoolAsync(void** memory, size_t bytes, void*, void*) {
  *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(*memory, 0xCD, bytes);
  ++counts.allocations;
  return *memory != nullptr ? 0 : 2;
}
EXPORT int hipFreeAsync(void* memory, void*) {
  free(memory);
  ++counts.frees;
  return 0;
}
EXPORT int hipMemsetAsync(void* memory, int value, size_t bytes, void*) {
  memset(memory, value, bytes);
  ++counts.memsets;
  return 0;
}
EXPORT int hipModuleLaunchKernel(void*, unsigned gx, unsigned, unsigned, unsigned bx, unsigned, unsigned, unsigned,
                                 void*, void** params, void**) {
  float* z = *static_cast<float**>(params[0]);
  const float* x = *static_cast<float**>(params[1]);
  const float* y = *static_cast<float**>(params[2]);
  const int32_t n = *static_cast<int32_t*>(params[3]);
  for (int32_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
  ++counts.launches;
  counts.device = current;
  counts.grid_x = gx;
  counts.block_x = bx;
  return 0;
}
EXPORT int hipModuleLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                            unsigned by, unsigned bz, unsigned shared, void* stream, void** params) {
  ++counts.cooperative;
  return hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, nullptr);
}
EXPORT const char* hipGetErrorName(int) { return "STANDIN_HIP_ERROR"; }
EXPORT const char* hipGetErrorString(int) { return "planted by the stand-in"; }
