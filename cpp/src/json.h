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
    for (size_t i = 0; i < value.size();) {
      const auto c = static_cast<unsigned char>(value[i]);
      const size_t length = Utf8Length(value, i);
      if (length == 0) {
        text_ += "\\ufffd";  // a name in a damaged pack need not be UTF-8
      } else if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += value[i];
      } else if (c < 0x20 || c == 0x7F) {
        char buffer[8];
        snprintf(buffer, sizeof buffer, "\\u%04x", c);
        text_ += buffer;
      } else {
        text_.append(value, i, length);
      }
      i += length == 0 ? 1 : length;
    }
    text_ += '"';
  }

  // Bytes of the UTF-8 character at `at`; 0 if there is none: cut short, overlong, a surrogate, past U+10FFFF.
  static size_t Utf8Length(const std::string& text, size_t at) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned first = byte(at);
    if (first < 0x80) return 1;
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4) return 0;
    for (size_t i = 1; i < length; ++i) {
      if ((byte(at + i) & 0xC0) != 0x80) return 0;
    }
    const unsigned second = byte(at + 1);
    const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return wrong ? 0 : length;
  }

  std::string text_;
  bool fresh_ = true;
};

}  // namespace precast

#endif  // PRECAST_SRC_JSON_H_
