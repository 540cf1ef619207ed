// Attention with queries of zero: every key weighs the same, so each output row is the mean of the values, and the
// log-sum-exp is log(keys). The CUDA driver is opened at run time; nothing of CUDA is needed to build this.
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "flash.hpp"

namespace {

template <typename... Args>
void Cuda(const char* name, Args... args) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto function = reinterpret_cast<int (*)(Args...)>(library == nullptr ? nullptr : dlsym(library, name));
  if (function == nullptr || function(args...) != 0) {
    std::fprintf(stderr, "%s failed\n", name);
    std::exit(1);
  }
}

using Address = unsigned long long;

Address Upload(const void* data, size_t bytes) {
  Address address = 0;
  Cuda("cuMemAlloc_v2", &address, bytes);
  Cuda("cuMemcpyHtoD_v2", address, data, bytes);
  return address;
}

uint16_t ToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

float FromBfloat16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace

int main() {
  constexpr int64_t kHeads = 2, kQueries = 200, kKeys = 331, kDim = 128;
  void* context = nullptr;
  Cuda("cuInit", 0u);
  Cuda("cuDevicePrimaryCtxRetain", &context, 0);
  Cuda("cuCtxSetCurrent", context);
  std::vector<uint16_t> q(kHeads * kQueries * kDim, 0), k(kHeads * kKeys * kDim, ToBfloat16(1)), v(k.size());
  for (size_t i = 0; i < v.size(); ++i) v[i] = ToBfloat16(static_cast<float>(i / kDim % kKeys % 2));
  std::vector<uint16_t> out(q.size(), 0x7FC0);
  std::vector<float> lse(kHeads * kQueries, NAN);
  const Address dq = Upload(q.data(), q.size() * 2), dk = Upload(k.data(), k.size() * 2);
  const Address dv = Upload(v.data(), v.size() * 2), dout = Upload(out.data(), out.size() * 2);
  const Address dlse = Upload(lse.data(), lse.size() * 4);
  using namespace precast::flash;
  const auto view = [](Address a, int64_t rows) {
    return Tensor(reinterpret_cast<void*>(a), kBfloat16, {1, kHeads, rows, kDim});
  };
  const Tensor tlse(reinterpret_cast<void*>(dlse), kFloat32, {1, kHeads, kQueries});
  const Status status = attention_forward(view(dout, kQueries), tlse, view(dq, kQueries), view(dk, kKeys),
                                          view(dv, kKeys), 0.125, flash_attention_forward_mask_none);
  if (status != PRECAST_OK) {
    std::fprintf(stderr, "%s\n", LastError().c_str());
    return 1;
  }
  Cuda("cuCtxSynchronize");
  Cuda("cuMemcpyDtoH_v2", static_cast<void*>(out.data()), dout, out.size() * 2);
  Cuda("cuMemcpyDtoH_v2", static_cast<void*>(lse.data()), dlse, lse.size() * 4);
  const float mean = static_cast<float>(kKeys / 2) / kKeys;
  float worst = 0;
  for (const uint16_t x : out) worst = std::fmax(worst, std::isnan(FromBfloat16(x)) ? 1 : std::fabs(FromBfloat16(x) - mean));
  for (const float x : lse) worst = std::fmax(worst, std::isnan(x) ? 1 : std::fabs(x - std::log(331.0f)));
  std::printf("attention from C++: largest error %.5f\n", static_cast<double>(worst));
  return worst < 0.01f ? 0 : 1;
}
