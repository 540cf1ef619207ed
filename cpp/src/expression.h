// Integer expressions: postfix code, verified once, evaluated on each call (see describe/expression.py).
#ifndef PRECAST_SRC_EXPRESSION_H_
#define PRECAST_SRC_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace precast {

constexpr int kMaxExpressionDepth = 64;
constexpr size_t kMaxExpressionBytes = 4096;

// The code of most expressions: one constant; one slot; two slots compared. A byte of operation, then the operand.
constexpr uint8_t kConstantOp = 0;
constexpr uint8_t kEqualOp = 10;
constexpr uint32_t kConstantBytes = 9;
constexpr uint32_t kSlotBytes = 3;  // nothing else is as short
constexpr uint32_t kTwoSlotBytes = 2 * kSlotBytes + 1;

struct Expression {
  const uint8_t* code = nullptr;
  uint32_t size = 0;
};

enum class Evaluation { kOk, kOverflow, kDivisionByZero };

// Whether the code is well formed: known operations, slots below `slots`, a stack that neither runs empty nor
// grows past kMaxExpressionDepth, one value left.
bool VerifyExpression(const Expression& expression, size_t slots);

// Evaluates verified code. Never allocates or throws. Reads only slots that it was verified for.
Evaluation EvaluateCode(const Expression& expression, const int64_t* slots, int64_t* value);

// The same, quickly where the code is of the kinds above.
inline Evaluation Evaluate(const Expression& expression, const int64_t* slots, int64_t* value) {
  const uint8_t* const code = expression.code;
  const auto slot_at = [slots](const uint8_t* operand) {
    uint16_t slot;
    memcpy(&slot, operand, sizeof slot);
    return slots[slot];
  };
  if (expression.size == kConstantBytes && code[0] == kConstantOp) {
    memcpy(value, code + 1, sizeof *value);
  } else if (expression.size == kSlotBytes) {
    *value = slot_at(code + 1);
  } else if (expression.size == kTwoSlotBytes && code[kTwoSlotBytes - 1] == kEqualOp && code[kSlotBytes] == code[0]) {
    *value = slot_at(code + 1) == slot_at(code + kSlotBytes + 1);
  } else {
    return EvaluateCode(expression, slots, value);
  }
  return Evaluation::kOk;
}

}  // namespace precast

#endif  // PRECAST_SRC_EXPRESSION_H_
