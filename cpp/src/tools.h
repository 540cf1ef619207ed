/* What libprecast.so, the runtime as a shared library for Python and tools, exports. */
#ifndef PRECAST_SRC_TOOLS_H_
#define PRECAST_SRC_TOOLS_H_

#include "precast/precast.h"

#define PRECAST_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a pack file as a library; NULL on failure (see precast_error). */
PRECAST_EXPORT const precast_api* precast_open_pack(const char* path, precast_library** library);
PRECAST_EXPORT void precast_close_pack(precast_library* library);

/* Everything in the pack at `data` as JSON, valid until the thread's next call; with `verify` every byte is
 * checked first. */
PRECAST_EXPORT precast_status precast_inspect(const uint8_t* data, size_t size, const char* where, int32_t verify,
                                              const char** json);

/* Evaluates an expression's code; the status is PRECAST_BAD_PACK if it is malformed. */
PRECAST_EXPORT precast_status precast_evaluate(const uint8_t* code, size_t size, const int64_t* slots, size_t count,
                                               int64_t* value);

PRECAST_EXPORT const char* precast_error(void);

#ifdef __cplusplus
}
#endif

#endif /* PRECAST_SRC_TOOLS_H_ */
