#include "log.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace precast {
namespace {

std::atomic<int> level_cache{-1};

LogLevel ReadLevel() {
  const char* text = Environment("PRECAST_LOG");
  if (text == nullptr) return LogLevel::kOff;
  const char* names[] = {"off", "error", "warn", "info", "debug"};
  for (int i = 0; i < 5; ++i) {
    if (strcmp(text, names[i]) == 0) return static_cast<LogLevel>(i);
  }
  return LogLevel::kInfo;
}

}  // namespace

const char* Environment(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

bool EnvironmentFlag(const char* name) {
  const char* value = Environment(name);
  return value != nullptr && strcmp(value, "0") != 0 && strcmp(value, "off") != 0 && strcmp(value, "false") != 0;
}

LogLevel CurrentLogLevel() {
  int level = level_cache.load(std::memory_order_relaxed);
  if (level < 0) {
    level = static_cast<int>(ReadLevel());
    level_cache.store(level, std::memory_order_relaxed);
  }
  return static_cast<LogLevel>(level);
}

void Log(LogLevel level, const char* format, ...) {
  if (level > CurrentLogLevel()) return;
  const char* names[] = {"", "error", "warn", "info", "debug"};
  char line[2200];
  int used = snprintf(line, sizeof line, "precast %s: ", names[static_cast<int>(level)]);
  va_list args;
  va_start(args, format);
  used += vsnprintf(line + used, sizeof line - static_cast<size_t>(used), format, args);
  va_end(args);
  if (used > static_cast<int>(sizeof line) - 2) used = sizeof line - 2;
  line[used++] = '\n';
  const char* path = Environment("PRECAST_LOG_FILE");
  const int file = path == nullptr ? STDERR_FILENO : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (write(file, line, static_cast<size_t>(used)) < 0) {
    // Nowhere left to complain to.
  }
  if (file != STDERR_FILENO) close(file);
}

}  // namespace precast
