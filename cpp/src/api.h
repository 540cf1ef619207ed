// The table of functions behind precast.h.
#ifndef PRECAST_SRC_API_H_
#define PRECAST_SRC_API_H_

#include <atomic>

#include "library.h"

namespace precast {

const precast_api* Api();

// For the generated file of a library: the table and the library, made at the first call.
const precast_api* LibraryEntry(const LibrarySpec& spec, std::atomic<Library*>* storage, uint32_t abi_version,
                                precast_library** library);

}  // namespace precast

#endif  // PRECAST_SRC_API_H_
