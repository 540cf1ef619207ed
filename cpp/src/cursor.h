// Reading untrusted bytes: a read past the end gives zeros and marks the cursor as bad.
#ifndef PRECAST_SRC_CURSOR_H_
#define PRECAST_SRC_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace precast {

class Cursor {
 public:
  Cursor(const uint8_t* data, size_t size) : at_(data), left_(size) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && left_ == 0; }

  template <typename T>
  T Read() {
    T value{};
    if (!Take(sizeof(T))) return value;
    memcpy(&value, at_ - sizeof(T), sizeof(T));
    return value;
  }

  // `size` bytes, or nullptr.
  const uint8_t* Bytes(size_t size) { return Take(size) ? at_ - size : nullptr; }

  std::string Text() {
    const uint32_t size = Read<uint32_t>();
    const uint8_t* bytes = Bytes(size);
    return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(bytes), size);
  }

  // A list whose elements take at least `least` bytes each in the file: its count can't ask for more memory
  // than the file could fill.
  template <typename T, typename F>
  void List(std::vector<T>* out, size_t least, F read) {
    const uint32_t count = Read<uint32_t>();
    if (!ok_ || count > left_ / least) {
      ok_ = false;
      return;
    }
    out->reserve(count);
    for (uint32_t i = 0; i < count && ok_; ++i) out->push_back(read());
  }

  template <typename T>
  void Numbers(std::vector<T>* out) {
    List(out, sizeof(T), [this] { return Read<T>(); });
  }

  void Texts(std::vector<std::string>* out) {
    List(out, sizeof(uint32_t), [this] { return Text(); });
  }

 private:
  bool Take(size_t size) {
    if (!ok_ || size > left_) {
      ok_ = false;
      return false;
    }
    at_ += size;
    left_ -= size;
    return true;
  }

  const uint8_t* at_;
  size_t left_;
  bool ok_ = true;
};

}  // namespace precast

#endif  // PRECAST_SRC_CURSOR_H_
