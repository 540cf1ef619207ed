// Two copies of one library in a process, and one that is closed before the thread that used it ends.
//
//   two_copies_test FIRST.so SECOND.so SYMBOL
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "precast/precast.h"

namespace {

const precast_api* Open(const char* path, const char* symbol, void** so, precast_library** library) {
  *so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (*so == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  auto entry = reinterpret_cast<precast_library_function>(dlsym(*so, symbol));
  return entry == nullptr ? nullptr : entry(PRECAST_ABI_VERSION, library);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  bool good = true;
  std::thread([&] {
    void* so[2] = {};
    precast_library* library[2] = {};
    const precast_api* api[2] = {};
    int32_t index = 0;
    for (int i = 0; i < 2; ++i) {
      api[i] = Open(argv[1 + i], argv[3], &so[i], &library[i]);
      good = good && api[i] != nullptr;
    }
    if (!good) return;
    good = api[0] != api[1] && library[0] != library[1];
    // Each copy keeps its own messages.
    api[0]->find_operator(library[0], "first", &index);
    api[1]->find_operator(library[1], "second", &index);
    good = good && std::strstr(api[0]->last_error(), "first") != nullptr;
    good = good && std::strstr(api[1]->last_error(), "second") != nullptr;
    for (int i = 0; i < 2; ++i) {
      good = good && api[i]->release(library[i]) == PRECAST_OK;
      dlclose(so[i]);
    }
  }).join();
  std::puts(good ? "good" : "bad");
  return good ? 0 : 1;
}
