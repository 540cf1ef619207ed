// PRECAST_LOG=error|warn|info|debug: what the runtime does, on stderr or appended to PRECAST_LOG_FILE.
#ifndef PRECAST_SRC_LOG_H_
#define PRECAST_SRC_LOG_H_

namespace precast {

enum class LogLevel { kOff = 0, kError = 1, kWarn = 2, kInfo = 3, kDebug = 4 };

// Read from the environment once, at the first call.
LogLevel CurrentLogLevel();

void Log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Value of an environment variable that is set and not empty, else nullptr.
const char* Environment(const char* name);

// Whether an environment variable is set to anything but "", "0", "off" or "false".
bool EnvironmentFlag(const char* name);

}  // namespace precast

#endif  // PRECAST_SRC_LOG_H_
