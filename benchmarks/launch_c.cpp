// Host time of a warm launch from C: raw cuLaunchKernel beside precast, the same kernel.
//
//   g++ -O2 -std=c++17 benchmarks/launch_c.cpp -Iout/vector_add/include -Lout/vector_add -lvector_add -ldl
//       -Wl,-rpath,out/vector_add -o launch_c && ./launch_c add.cubin function
//
// The two take turns, 100 launches each, so that a drift of clocks hits both; the difference is the median over pairs.
// A third taker is cuLaunchKernel after cuCtxGetCurrent, the least that a library can do which may not assume
// that the caller's thread has the tensors' device current.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "vector_add.hpp"

namespace {

void* cuda = dlopen("libcuda.so.1", RTLD_NOW);

template <typename... Args>
void Call(const char* name, Args... args) {
  auto function = reinterpret_cast<int (*)(Args...)>(dlsym(cuda, name));
  const int result = function(args...);
  if (result != 0) {
    std::fprintf(stderr, "%s: %d\n", name, result);
    std::exit(1);
  }
}

template <typename F>
double Microseconds(F call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) call();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  Call("cuCtxSynchronize");
  return took.count() / 100;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  std::string cubin((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Call("cuInit", 0u);
  void* context = nullptr;
  Call("cuDevicePrimaryCtxRetain", &context, 0);
  Call("cuCtxSetCurrent", context);
  void* module = nullptr;
  void* function = nullptr;
  Call("cuModuleLoadData", &module, static_cast<const void*>(cubin.data()));
  Call("cuModuleGetFunction", &function, module, static_cast<const char*>(argv[2]));
  const int n = 4096;
  unsigned long long z = 0, x = 0, y = 0;
  for (auto* p : {&z, &x, &y}) Call("cuMemAlloc_v2", p, static_cast<size_t>(n * 4));
  auto launch = reinterpret_cast<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                         void*, void**, void**)>(dlsym(cuda, "cuLaunchKernel"));
  auto get_current = reinterpret_cast<int (*)(void**)>(dlsym(cuda, "cuCtxGetCurrent"));
  const auto raw = [&] {
    int count = n;
    void* none = nullptr;
    void* params[] = {&z, &x, &y, &count, &none, &none};
    launch(function, 4, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr);
  };
  const auto with_context = [&] {
    void* current = nullptr;
    get_current(&current);
    if (current == context) raw();
  };
  using namespace precast::vector_add;
  const auto start = std::chrono::steady_clock::now();
  const Tensor tz(reinterpret_cast<void*>(z), kFloat32, {n});
  const Tensor tx(reinterpret_cast<void*>(x), kFloat32, {n});
  const Tensor ty(reinterpret_cast<void*>(y), kFloat32, {n});
  const auto ours = [&] {
    if (vector_add(tz, tx, ty) != PRECAST_OK) {
      std::fprintf(stderr, "%s\n", LastError().c_str());
      std::exit(1);
    }
  };
  ours();
  Call("cuCtxSynchronize");
  const std::chrono::duration<double, std::milli> first = std::chrono::steady_clock::now() - start;
  std::printf("first result, with the library's first use: %.2f ms\n", first.count());
  for (int i = 0; i < 20; ++i) Microseconds(raw), Microseconds(ours), Microseconds(with_context);
  for (int round = 0; round < 3; ++round) {
    std::vector<double> raws, contexts, precasts, differences;
    for (int i = 0; i < 400; ++i) {
      raws.push_back(Microseconds(raw));
      precasts.push_back(Microseconds(ours));
      contexts.push_back(Microseconds(with_context));
      differences.push_back(precasts.back() - raws.back());
    }
    std::printf("raw cuLaunchKernel %.3f us, with cuCtxGetCurrent %.3f us, precast %.3f us, difference %.3f us\n",
                Median(raws), Median(contexts), Median(precasts), Median(differences));
  }
  return 0;
}
