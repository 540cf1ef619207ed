#include "error.h"

#include <pthread.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "log.h"

namespace precast {
namespace {

// Per-thread texts hang on a pthread key, not on thread_local: no TLS block, no loader symbol in the library.
struct ThreadTexts {
  char error[2048] = "";
  std::string kept;
  int questions = 0;
};

pthread_key_t key;
bool has_key = false;
pthread_once_t once = PTHREAD_ONCE_INIT;

void MakeKey() {
  has_key = pthread_key_create(&key, [](void* texts) { delete static_cast<ThreadTexts*>(texts); }) == 0;
}

ThreadTexts* Texts() {
  pthread_once(&once, MakeKey);
  if (!has_key) return nullptr;  // the process has used up its keys
  void* texts = pthread_getspecific(key);
  if (texts == nullptr) {
    texts = new (std::nothrow) ThreadTexts;
    if (texts != nullptr && pthread_setspecific(key, texts) != 0) {
      delete static_cast<ThreadTexts*>(texts);
      texts = nullptr;
    }
  }
  return static_cast<ThreadTexts*>(texts);
}

}  // namespace

Status Fail(Status status, const char* format, ...) {
  ThreadTexts* texts = Texts();
  if (texts == nullptr) return PRECAST_OUT_OF_MEMORY;
  va_list args;
  va_start(args, format);
  vsnprintf(texts->error, sizeof texts->error, format, args);
  va_end(args);
  Log(texts->questions > 0 ? LogLevel::kDebug : LogLevel::kError, "%s: %s", StatusName(status), texts->error);
  return status;
}

Quietly::Quietly() {
  if (ThreadTexts* texts = Texts()) ++texts->questions;
}

Quietly::~Quietly() {
  if (ThreadTexts* texts = Texts()) --texts->questions;
}

const char* LastError() {
  ThreadTexts* texts = Texts();
  return texts == nullptr ? "out of memory" : texts->error;
}

const char* KeepForThread(std::string text) {
  ThreadTexts* texts = Texts();
  if (texts == nullptr) return "";
  texts->kept = std::move(text);
  return texts->kept.c_str();
}

std::string Format(const char* format, ...) {
  char buffer[1024];
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  if (length < 0) return "";
  if (static_cast<size_t>(length) < sizeof buffer) return std::string(buffer, static_cast<size_t>(length));
  std::string text(static_cast<size_t>(length) + 1, '\0');
  va_start(args, format);
  vsnprintf(text.data(), text.size(), format, args);
  va_end(args);
  text.pop_back();
  return text;
}

const char* StatusName(Status status) {
  switch (status) {
    case PRECAST_OK: return "PRECAST_OK";
    case PRECAST_INVALID_ARGUMENT: return "PRECAST_INVALID_ARGUMENT";
    case PRECAST_UNSUPPORTED: return "PRECAST_UNSUPPORTED";
    case PRECAST_NO_TARGET: return "PRECAST_NO_TARGET";
    case PRECAST_NO_DRIVER: return "PRECAST_NO_DRIVER";
    case PRECAST_DRIVER_ERROR: return "PRECAST_DRIVER_ERROR";
    case PRECAST_BAD_PACK: return "PRECAST_BAD_PACK";
    case PRECAST_VERSION_MISMATCH: return "PRECAST_VERSION_MISMATCH";
    case PRECAST_NO_PACK: return "PRECAST_NO_PACK";
    case PRECAST_OUT_OF_MEMORY: return "PRECAST_OUT_OF_MEMORY";
    case PRECAST_UNTUNED: return "PRECAST_UNTUNED";
    case PRECAST_ARITHMETIC: return "PRECAST_ARITHMETIC";
    case PRECAST_NOT_WARM: return "PRECAST_NOT_WARM";
    case PRECAST_INTERNAL: return "PRECAST_INTERNAL";
    default: return "PRECAST_UNKNOWN_STATUS";
  }
}

}  // namespace precast
