// The calling thread's last error: a status and a message.
#ifndef PRECAST_SRC_ERROR_H_
#define PRECAST_SRC_ERROR_H_

#include <string>

#include "precast/precast.h"

namespace precast {

using Status = precast_status;

// Stores a printf-style message for the calling thread and returns `status`.
Status Fail(Status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

// While one lives, the calling thread's failures are answers to a question: they are logged as details, not as errors.
class Quietly {
 public:
  Quietly();
  ~Quietly();
  Quietly(const Quietly&) = delete;
  Quietly& operator=(const Quietly&) = delete;
};

// The message of the calling thread's last failure, or "".
const char* LastError();

const char* StatusName(Status status);

// A text that belongs to the calling thread until its next call; for results such as explanations.
const char* KeepForThread(std::string text);

// printf into a string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace precast

#endif  // PRECAST_SRC_ERROR_H_
