#include "record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "json.h"
#include "log.h"
#include "pack.h"
#include "report.h"

namespace precast {
namespace {

static_assert(Recorder::kMaxKey == kMaxKeyFields, "every key field is recorded");

std::mutex list_mutex;
Recorder* list_head = nullptr;
bool registered = false;

uint64_t Mix(uint64_t h, uint64_t value) {
  h ^= value + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  h *= 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 29);
}

// Appends whole lines. A line that someone left half written is ended first, so that it spoils only itself.
bool Append(const char* path, std::string text) {
  int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  char last = '\n';
  if (file >= 0) {
    const off_t size = lseek(file, 0, SEEK_END);
    if (size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n') text.insert(0, 1, '\n');
  } else {
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);  // a pipe, or a file that can't be read
  }
  if (file < 0) return false;
  const bool whole = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return whole;
}

}  // namespace

void FlushAllRecorders() {
  std::lock_guard<std::mutex> lock(list_mutex);
  for (Recorder* r = list_head; r != nullptr; r = r->next_) r->Flush();
}

std::unique_ptr<Recorder> Recorder::FromEnvironment(const std::string& family) {
  const char* path = Environment("PRECAST_RECORD");
  if (path == nullptr) return nullptr;
  std::unique_ptr<Recorder> recorder(new (std::nothrow) Recorder);
  if (recorder == nullptr) return nullptr;
  recorder->entries_.reset(new (std::nothrow) Entry[kEntries]);
  if (recorder->entries_ == nullptr) return nullptr;
  recorder->path_ = path;
  recorder->family_ = family;
  std::lock_guard<std::mutex> lock(list_mutex);
  recorder->next_ = list_head;
  list_head = recorder.get();
  if (!registered) registered = atexit(FlushAllRecorders) == 0;
  return recorder;
}

Recorder::~Recorder() {
  Flush();
  std::lock_guard<std::mutex> lock(list_mutex);
  for (Recorder** link = &list_head; *link != nullptr; link = &(*link)->next_) {
    if (*link == this) {
      *link = next_;
      break;
    }
  }
}

void Recorder::Count(const Operator& op, size_t specialization, const int64_t* key, size_t key_count) {
  if (key_count > kMaxKey) key_count = kMaxKey;
  uint64_t hash = Mix(reinterpret_cast<uintptr_t>(&op), specialization);
  for (size_t i = 0; i < key_count; ++i) hash = Mix(hash, static_cast<uint64_t>(key[i]));
  if (hash == 0) hash = 1;
  for (size_t probe = 0; probe < 64; ++probe) {
    Entry& entry = entries_[(hash + probe) % kEntries];
    uint64_t expected = 0;
    if (entry.hash.load(std::memory_order_relaxed) == 0 &&
        entry.hash.compare_exchange_strong(expected, hash, std::memory_order_relaxed)) {
      entry.op = &op;
      entry.specialization = specialization;
      entry.key_count = key_count;
      memcpy(entry.key, key, key_count * sizeof key[0]);
      entry.filled.store(true, std::memory_order_release);
    }
    if (entry.hash.load(std::memory_order_relaxed) != hash) continue;
    entry.count.fetch_add(1, std::memory_order_relaxed);
    break;
  }
  const uint64_t calls = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (calls >= 1024 && (calls & (calls - 1)) == 0) Flush();
}

void Recorder::Flush() {
  if (flushing_.test_and_set(std::memory_order_acquire)) return;
  std::string text;
  for (size_t i = 0; i < kEntries; ++i) {
    Entry& entry = entries_[i];
    if (!entry.filled.load(std::memory_order_acquire)) continue;
    const uint64_t count = entry.count.load(std::memory_order_relaxed);
    if (count == entry.written) continue;
    Json line;
    line.BeginObject();
    line.Key("family").String(family_);
    line.Key("operator").String(entry.op->name);
    line.Key("specialization");
    WriteSpecializationValues(*entry.op, entry.specialization, &line);
    line.Key("key").BeginObject();
    for (size_t k = 0; k < entry.key_count; ++k) line.Key(entry.op->key[k].name.c_str()).Int(entry.key[k]);
    line.EndObject();
    line.Key("count").Int(static_cast<int64_t>(count - entry.written));
    line.EndObject();
    entry.written = count;
    text += line.text();
    text += '\n';
  }
  if (!text.empty() && !Append(path_.c_str(), text)) {
    Log(LogLevel::kWarn, "PRECAST_RECORD: %s can't be written", path_.c_str());
  }
  flushing_.clear(std::memory_order_release);
}

}  // namespace precast
