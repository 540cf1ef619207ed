#include "tools.h"

#include <memory>

#include "api.h"
#include "report.h"

using precast::Fail;

extern "C" {

const precast_api* precast_open_pack(const char* path, precast_library** library) {
  std::unique_ptr<precast::Library> opened;
  if (precast::Library::OpenFile(path, &opened) != PRECAST_OK) return nullptr;
  *library = reinterpret_cast<precast_library*>(opened.release());
  return precast::Api();
}

void precast_close_pack(precast_library* library) { delete reinterpret_cast<precast::Library*>(library); }

precast_status precast_inspect(const uint8_t* data, size_t size, const char* where, int32_t verify, const char** json) {
  std::unique_ptr<precast::Pack> pack;
  precast_status status = precast::ParsePack(data, size, where, &pack);
  if (status == PRECAST_OK && verify != 0) status = precast::VerifyObjects(*pack, where);
  if (status == PRECAST_OK) *json = precast::KeepForThread(precast::InspectPack(*pack));
  return status;
}

precast_status precast_evaluate(const uint8_t* code, size_t size, const int64_t* slots, size_t count, int64_t* value) {
  const precast::Expression expression{code, static_cast<uint32_t>(size)};
  if (!precast::VerifyExpression(expression, count)) return Fail(PRECAST_BAD_PACK, "malformed expression");
  const precast::Evaluation outcome = precast::Evaluate(expression, slots, value);
  return outcome == precast::Evaluation::kOk ? PRECAST_OK : Fail(PRECAST_ARITHMETIC, "overflow or division by zero");
}

const char* precast_error(void) { return precast::LastError(); }

}  // extern "C"
