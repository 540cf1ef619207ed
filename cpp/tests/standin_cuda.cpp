// A stand-in for the CUDA driver, for tests on machines without a GPU. It is no CUDA: "device memory" is host
// memory, a code object is a text that names a function of this file, and everything done is counted.
//
// Code objects: "standin:add" adds n float32, "standin:nothing" does nothing, "standin:fail" can't be loaded.
// Environment: STANDIN_CAPABILITY (default 90), STANDIN_DEVICES (default 1), STANDIN_FAIL=function=result.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidImage = 200;

struct Module {
  std::string text;
};

std::atomic<int> contexts_pushed{0};
std::atomic<int> capturing{0};
thread_local void* current_context = nullptr;
thread_local void* context_stack[8];
thread_local int context_depth = 0;
thread_local int capture_mode = 0;
char devices[8];

int Number(const char* name, int fallback) {
  const char* text = getenv(name);
  return text != nullptr && *text != '\0' ? atoi(text) : fallback;
}

int Planted(const char* function) {
  const char* text = getenv("STANDIN_FAIL");
  if (text == nullptr) return 0;
  const size_t length = strlen(function);
  return strncmp(text, function, length) == 0 && text[length] == '=' ? atoi(text + length + 1) : 0;
}

}  // namespace

// What tests read. Counters first, then the last launch.
struct StandinRecord {
  int64_t launches;
  int64_t loads;
  int64_t unloads;
  int64_t allocations;
  int64_t frees;
  int64_t memsets;
  int64_t live_bytes;
  int64_t encodes;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t attribute_count;
  uint32_t attributes[8];  // id, first word
  void* stream;
  uint64_t params[16];  // the first eight bytes of each
  uint64_t map_dims[5];
  uint64_t map_strides[5];
  uint32_t map_box[5];
  uint32_t map_rank;
  uint32_t map_swizzle;
  uint32_t map_data_type;
};

static StandinRecord record_storage;
static std::mutex record_mutex;
static uint32_t param_count = 0;

EXPORT StandinRecord* standin_record() { return &record_storage; }
EXPORT void standin_reset() { record_storage = StandinRecord{}; }
EXPORT void standin_capture(int on) { capturing = on; }
EXPORT void standin_params(uint32_t count) { param_count = count; }

// The words of the tensor map that the last launch got as its first parameter.
static uint64_t map_words[16];
EXPORT const uint64_t* standin_map_words() { return map_words; }

EXPORT int cuInit(unsigned) { return Planted("cuInit"); }
EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  *count = Number("STANDIN_DEVICES", 1);
  return 0;
}
EXPORT int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < Number("STANDIN_DEVICES", 1) ? 0 : 101;
}
EXPORT int cuDeviceGetName(char* name, int size, int) {
  strncpy(name, "stand-in (no GPU)", static_cast<size_t>(size));
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int capability = Number("STANDIN_CAPABILITY", 90);
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 16 ? 132 : 0;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &devices[device];
  return 0;
}
EXPORT int cuCtxGetCurrent(void** context) {
  *context = current_context;
  return 0;
}
EXPORT int cuCtxPushCurrent_v2(void* context) {
  if (context_depth == 8) return kInvalidValue;
  context_stack[context_depth++] = current_context;
  current_context = context;
  ++contexts_pushed;
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(void** context) {
  if (context_depth == 0) return kInvalidValue;
  *context = current_context;
  current_context = context_stack[--context_depth];
  return 0;
}
EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}

EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned count, const int* options, void** values) {
  if (capture_mode != 2) return 900;  // loading must not spoil another thread's capture
  if (const int planted = Planted("cuModuleLoadDataEx")) {
    if (count == 2 && options[0] == 5) strcpy(static_cast<char*>(values[0]), "ptxas fatal: planted");
    return planted;
  }
  const std::string text = static_cast<const char*>(image);
  if (text == "standin:fail") return kInvalidImage;
  *module = new Module{text};
  std::lock_guard<std::mutex> lock(record_mutex);
  ++record_storage.loads;
  return 0;
}
EXPORT int cuModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  ++record_storage.unloads;
  return 0;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char*) {
  *function = module;
  return Planted("cuModuleGetFunction");
}
EXPORT int cuFuncSetAttribute(void*, int, int) { return Planted("cuFuncSetAttribute"); }
EXPORT int cuStreamIsCapturing(void*, int* state) {
  *state = capturing;
  return 0;
}
EXPORT int cuMemPoolCreate(void** pool, const void*) {
  *pool = malloc(1);
  return Planted("cuMemPoolCreate");
}
EXPORT int cuMemPoolDestroy(void* pool) {
  free(pool);
  return 0;
}
EXPORT int cuMemPoolSetAttribute(void*, int, void*) { return 0; }
EXPORT int cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, void*, void*) {
  if (bytes > (size_t{1} << 40)) return kOutOfMemory;
  auto* memory = static_cast<char*>(aligned_alloc(256, (bytes + 511) / 256 * 256));
  memcpy(memory, &bytes, sizeof bytes);
  memset(memory + 256, 0xCD, bytes);
  *address = reinterpret_cast<uint64_t>(memory + 256);
  std::lock_guard<std::mutex> lock(record_mutex);
  ++record_storage.allocations;
  record_storage.live_bytes += static_cast<int64_t>(bytes);
  return 0;
}
EXPORT int cuMemFreeAsync(uint64_t address, void*) {
  char* memory = reinterpret_cast<char*>(address) - 256;
  size_t bytes = 0;
  memcpy(&bytes, memory, sizeof bytes);
  std::lock_guard<std::mutex> lock(record_mutex);
  ++record_storage.frees;
  record_storage.live_bytes -= static_cast<int64_t>(bytes);
  free(memory);
  return 0;
}
EXPORT int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void*) {
  memset(reinterpret_cast<void*>(address), value, bytes);
  std::lock_guard<std::mutex> lock(record_mutex);
  ++record_storage.memsets;
  return 0;
}

static void RunKernel(const Module& module, void** params) {
  if (module.text != "standin:add") return;
  float* z = *static_cast<float**>(params[0]);
  const float* x = *static_cast<float**>(params[1]);
  const float* y = *static_cast<float**>(params[2]);
  const int32_t n = *static_cast<int32_t*>(params[3]);
  for (int32_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
}

EXPORT int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** params, void**) {
  if (const int planted = Planted("cuLaunchKernel")) return planted;
  if (getenv("STANDIN_FAST") != nullptr) return 0;
  RunKernel(*static_cast<Module*>(function), params);
  std::lock_guard<std::mutex> lock(record_mutex);
  StandinRecord& r = record_storage;
  ++r.launches;
  const uint32_t grid[3] = {gx, gy, gz};
  const uint32_t block[3] = {bx, by, bz};
  memcpy(r.grid, grid, sizeof grid);
  memcpy(r.block, block, sizeof block);
  r.shared_bytes = shared;
  r.stream = stream;
  r.attribute_count = 0;
  for (uint32_t i = 0; i < param_count && i < 16; ++i) memcpy(&r.params[i], params[i], sizeof(uint64_t));
  if (r.encodes > 0) memcpy(map_words, params[0], sizeof map_words);
  return 0;
}

struct Attribute {
  uint32_t id;
  uint32_t pad;
  uint32_t words[16];
};
struct Config {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  void* stream;
  Attribute* attributes;
  uint32_t count;
};

EXPORT int cuLaunchKernelEx(const Config* c, void* function, void** params, void**) {
  const int result = cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
                                    c->shared_bytes, c->stream, params, nullptr);
  std::lock_guard<std::mutex> lock(record_mutex);
  record_storage.attribute_count = c->count;
  for (uint32_t i = 0; i < c->count && i < 4; ++i) {
    record_storage.attributes[2 * i] = c->attributes[i].id;
    record_storage.attributes[2 * i + 1] = c->attributes[i].words[0];
  }
  return result;
}

EXPORT int cuTensorMapEncodeTiled(void* map, int data_type, uint32_t rank, void* address, const uint64_t* dims,
                                  const uint64_t* strides, const uint32_t* box, const uint32_t*, int, int swizzle, int,
                                  int) {
  if (const int planted = Planted("cuTensorMapEncodeTiled")) return planted;
  memset(map, 0xFF, 128);
  memcpy(map, &address, sizeof address);
  std::lock_guard<std::mutex> lock(record_mutex);
  StandinRecord& r = record_storage;
  ++r.encodes;
  r.map_rank = rank;
  r.map_swizzle = static_cast<uint32_t>(swizzle);
  r.map_data_type = static_cast<uint32_t>(data_type);
  for (uint32_t i = 0; i < rank; ++i) {
    r.map_dims[i] = dims[i];
    r.map_box[i] = box[i];
    if (i + 1 < rank) r.map_strides[i] = strides[i];
  }
  return 0;
}

EXPORT int cuGetErrorName(int, const char** name) {
  *name = "STANDIN_ERROR";
  return 0;
}
EXPORT int cuGetErrorString(int, const char** text) {
  *text = "planted by the stand-in driver";
  return 0;
}
