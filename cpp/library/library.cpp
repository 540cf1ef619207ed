// The one file that `precast build` compiles for a library: where its packs are, and the function it exports.
// PRECAST_FAMILY, and either PRECAST_PACK (a file to embed) or PRECAST_PACK_FILES and PRECAST_BUILD_IDS (comma
// lists of texts), come from the command line.
#include <atomic>

#include "api.h"

#define PRECAST_JOIN_(a, b) a##b
#define PRECAST_JOIN(a, b) PRECAST_JOIN_(a, b)
#define PRECAST_TEXT_(a) #a
#define PRECAST_TEXT(a) PRECAST_TEXT_(a)

#ifdef PRECAST_PACK
asm(".pushsection .precast_pack,\"a\",@progbits\n"
    ".balign 64\n"
    "precast_pack_begin:\n"
    ".incbin \"" PRECAST_PACK
    "\"\n"
    "precast_pack_end:\n"
    ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) const uint8_t precast_pack_begin[];
extern "C" __attribute__((visibility("hidden"))) const uint8_t precast_pack_end[];
#endif

namespace {

std::atomic<precast::Library*> library_storage{nullptr};

#ifndef PRECAST_PACK
const char* const kPackFiles[] = {PRECAST_PACK_FILES, nullptr};
const char* const kBuildIds[] = {PRECAST_BUILD_IDS, nullptr};
#endif

}  // namespace

extern "C" __attribute__((visibility("default"))) const precast_api* PRECAST_JOIN(precast_library_, PRECAST_FAMILY)(
    uint32_t abi_version, precast_library** library) {
  precast::LibrarySpec spec{};
  spec.family = PRECAST_TEXT(PRECAST_FAMILY);
#ifdef PRECAST_PACK
  spec.pack_begin = precast_pack_begin;
  spec.pack_end = precast_pack_end;
#else
  spec.pack_files = kPackFiles;
  spec.build_ids = kBuildIds;
#endif
  spec.anchor = reinterpret_cast<const void*>(&library_storage);
  return precast::LibraryEntry(spec, &library_storage, abi_version, library);
}
