// PRECAST_RECORD=file: which problems ran, and how often, for the tuner.
#ifndef PRECAST_SRC_RECORD_H_
#define PRECAST_SRC_RECORD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace precast {

struct Operator;

// A fixed table of counters, filled without locks. Counts are appended to the file as JSON lines, each a
// difference to what was written before, so that lines of many processes add up: at exit, on release, and
// whenever the number of calls doubles.
class Recorder {
 public:
  static constexpr size_t kEntries = 8192;
  static constexpr size_t kMaxKey = 32;

  // nullptr if PRECAST_RECORD is not set.
  static std::unique_ptr<Recorder> FromEnvironment(const std::string& family);
  ~Recorder();

  void Count(const Operator& op, size_t specialization, const int64_t* key, size_t key_count);
  void Flush();

 private:
  struct Entry {
    std::atomic<uint64_t> hash{0};
    std::atomic<bool> filled{false};
    std::atomic<uint64_t> count{0};
    uint64_t written = 0;
    const Operator* op = nullptr;
    size_t specialization = 0;
    size_t key_count = 0;
    int64_t key[kMaxKey] = {};
  };

  std::string path_;
  std::string family_;
  std::unique_ptr<Entry[]> entries_;
  std::atomic<uint64_t> calls_{0};
  std::atomic_flag flushing_ = ATOMIC_FLAG_INIT;
  Recorder* next_ = nullptr;
  friend void FlushAllRecorders();
};

}  // namespace precast

#endif  // PRECAST_SRC_RECORD_H_
