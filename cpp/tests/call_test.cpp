// Calls a pack's operator "add" through the stand-in driver: many threads, first calls at once, and a timing loop.
//
//   PRECAST_CUDA_DRIVER=libstandin_cuda.so call_test PACK [time]
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "api.h"

namespace {

constexpr int kThreads = 64;
constexpr int kCalls = 50;

struct Tensors {
  explicit Tensors(int64_t n) : size(n), z(static_cast<size_t>(n)), x(z), y(z) {
    for (int64_t i = 0; i < n; ++i) {
      x[static_cast<size_t>(i)] = static_cast<float>(i);
      y[static_cast<size_t>(i)] = 2;
    }
    float* data[] = {z.data(), x.data(), y.data()};
    for (int i = 0; i < 3; ++i) {
      tensors[i] = precast_tensor{data[i], {PRECAST_CUDA, 0}, 1, {2, 32, 1}, &size, nullptr, 0};
      values[i].kind = PRECAST_TENSOR;
      values[i].u.tensor = &tensors[i];
    }
  }
  bool Right() const {
    for (size_t i = 0; i < z.size(); ++i) {
      if (z[i] != x[i] + y[i]) return false;
    }
    return true;
  }
  int64_t size;
  std::vector<float> z, x, y;
  precast_tensor tensors[3];
  precast_value values[3] = {};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::unique_ptr<precast::Library> library;
  if (precast::Library::OpenFile(argv[1], &library) != PRECAST_OK) {
    std::fprintf(stderr, "%s\n", precast::LastError());
    return 1;
  }
  const precast_api* api = precast::Api();
  auto* handle = reinterpret_cast<precast_library*>(library.get());
  if (argc > 2) {
    Tensors t(64);
    for (int i = 0; i < 1000; ++i) api->run(handle, 0, t.values, 3, nullptr);
    const auto start = std::chrono::steady_clock::now();
    constexpr int kRepeats = 1000000;
    for (int i = 0; i < kRepeats; ++i) api->run(handle, 0, t.values, 3, nullptr);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    std::printf("%.1f ns a call\n", took.count() / kRepeats);
    return 0;
  }
  std::unique_ptr<precast::Library> second;  // half of the threads: libraries share the driver
  if (precast::Library::OpenFile(argv[1], &second) != PRECAST_OK) return 1;
  precast_library* const handles[] = {handle, reinterpret_cast<precast_library*>(second.get())};
  std::atomic<int> waiting{kThreads};
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Tensors tensors(100 + t);
      precast_library* const handle = handles[t % 2];
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      for (int i = 0; i < kCalls; ++i) {
        if (api->run(handle, 0, tensors.values, 3, nullptr) != PRECAST_OK || !tensors.Right()) ++failures;
        tensors.tensors[1].dtype.bits = 64;  // a refusal leaves a message for this thread alone
        if (api->run(handle, 0, tensors.values, 3, nullptr) == PRECAST_OK) ++failures;
        if (std::strstr(api->last_error(), "float64") == nullptr) ++failures;
        tensors.tensors[1].dtype.bits = 32;
        const char* json = nullptr;
        if (api->explain(handle, 0, tensors.values, 3, nullptr, &json) != PRECAST_OK) ++failures;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::printf("%d threads, %d failures\n", kThreads, failures.load());
  return failures == 0 ? 0 : 1;
}
