// Writing JSON, a value at a time.
#ifndef PRECAST_SRC_JSON_H_
#define PRECAST_SRC_JSON_H_

#include <cstdint>
#include <cstdio>
#include <string>

namespace precast {

class Json {
 public:
  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

  Json& BeginObject() { return Open('{'); }
  Json& EndObject() { return Close('}'); }
  Json& BeginArray() { return Open('['); }
  Json& EndArray() { return Close(']'); }

  Json& Key(const char* name) {
    Separate();
    Quote(name);
    text_ += ':';
    fresh_ = true;
    return *this;
  }
  Json& String(const std::string& value) {
    Separate();
    Quote(value);
    return *this;
  }
  Json& Int(int64_t value) {
    Separate();
    text_ += std::to_string(value);
    return *this;
  }
  Json& Bool(bool value) {
    Separate();
    text_ += value ? "true" : "false";
    return *this;
  }
  Json& Number(double value) {
    Separate();
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%.9g", value);
    const bool finite = value - value == 0;
    text_ += finite ? buffer : "null";
    return *this;
  }
  Json& Null() {
    Separate();
    text_ += "null";
    return *this;
  }

 private:
  Json& Open(char bracket) {
    Separate();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  Json& Close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  void Separate() {
    if (!fresh_) text_ += ',';
    fresh_ = false;
  }
  void Quote(const std::string& value) {
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) {
        // Bytes that are not ASCII are escaped one by one: a name in a damaged pack need not be UTF-8.
        char buffer[8];
        snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned char>(c));
        text_ += buffer;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
  bool fresh_ = true;
};

}  // namespace precast

#endif  // PRECAST_SRC_JSON_H_
