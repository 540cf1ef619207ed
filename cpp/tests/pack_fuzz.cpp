// libFuzzer on the pack reader. The input is raw metadata followed by nothing: checksums and compression, which a
// fuzzer can't guess, are left out. What parses is inspected, and its operators are called without a GPU.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "call.h"
#include "pack.h"
#include "report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  precast::Pack pack;
  std::vector<uint8_t> metadata(data, data + size);
  uint64_t objects = 0;
  // The objects' sizes must add up to the file's; any sum will do here.
  for (int attempt = 0; attempt < 2; ++attempt) {
    precast::Pack probe;
    const precast_status status = precast::ParseMetadata(metadata, 72, 72 + objects, "fuzz", &probe);
    if (status == PRECAST_OK) {
      pack = std::move(probe);
      break;
    }
    for (const auto& o : probe.objects) objects += o.stored_bytes;
    if (attempt == 1) return 0;
  }
  precast::InspectPack(pack);
  int64_t shape[precast::kMaxRank] = {2, 3, 4, 5, 1, 1, 1, 1};
  float memory[256];
  for (const precast::Operator& op : pack.operators) {
    std::vector<precast_tensor> tensors(op.arguments.size());
    std::vector<precast_value> values(op.arguments.size());
    for (size_t i = 0; i < op.arguments.size(); ++i) {
      const precast::Argument& a = op.arguments[i];
      const uint16_t dtype = a.type_variable == precast::kNone ? a.fixed_dtype : op.types[a.type_variable].dtypes[0];
      tensors[i] = precast_tensor{
          memory, {PRECAST_CUDA, 0}, a.rank, {static_cast<uint8_t>(dtype >> 8), static_cast<uint8_t>(dtype & 255), 1},
          shape,  nullptr,           0};
      values[i].kind = a.kind == precast::ArgumentKind::kTensor ? PRECAST_TENSOR : PRECAST_INT;
      if (values[i].kind == PRECAST_TENSOR) values[i].u.tensor = &tensors[i];
    }
    precast::Call call;
    if (precast::Bind(op, values.data(), static_cast<int32_t>(values.size()), precast::Purpose::kAsk, &call) !=
        PRECAST_OK) {
      continue;
    }
    precast::BindDevice(op, 4, &call);
    size_t specialization = 0;
    if (precast::RunChecks(call) == PRECAST_OK) (void)precast::Specialize(call, &specialization);
    const uint64_t conditions = precast::Conditions(call);
    for (uint32_t i = 0; i < op.conditions.size(); ++i) {
      if ((conditions >> i & 1) == 0) precast::DescribeUnmet(call, i);
    }
  }
  return 0;
}
