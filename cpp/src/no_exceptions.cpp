// The C++ library's ways out of an impossible state, without exceptions: nothing may be thrown across the ABI,
// and without the unwinder the library stays small and needs only the C library. Sizes read from a pack are
// bounded before memory is asked for, so what remains is a process that has no memory left at all.
// Sanitizers bring their own allocation functions: PRECAST_SANITIZED leaves these out.
#ifndef PRECAST_SANITIZED
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace {

[[noreturn]] void Die(const char* what) {
  fputs("precast: ", stderr);
  fputs(what, stderr);
  fputc('\n', stderr);
  abort();
}

void* AllocateOrDie(size_t size) {
  void* memory = malloc(size == 0 ? 1 : size);
  if (memory == nullptr) Die("out of memory");
  return memory;
}

}  // namespace

void* operator new(size_t size) { return AllocateOrDie(size); }
void* operator new[](size_t size) { return AllocateOrDie(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return malloc(size == 0 ? 1 : size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return malloc(size == 0 ? 1 : size); }
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { free(memory); }

extern "C" [[noreturn]] void __cxa_pure_virtual() { Die("pure virtual call"); }

// The C++ library's own copies of these would bring the unwinder with them.
template class std::basic_string<char>;

namespace std {
const nothrow_t nothrow{};
__attribute__((noreturn)) void __throw_length_error(const char* what) { Die(what); }
__attribute__((noreturn)) void __throw_logic_error(const char* what) { Die(what); }
__attribute__((noreturn)) void __throw_out_of_range_fmt(const char* what, ...) { Die(what); }
__attribute__((noreturn)) void __throw_bad_alloc() { Die("out of memory"); }
__attribute__((noreturn)) void __throw_bad_array_new_length() { Die("out of memory"); }
__attribute__((noreturn)) void __throw_system_error(int) { Die("a system call failed"); }
}  // namespace std

#endif  // PRECAST_SANITIZED
