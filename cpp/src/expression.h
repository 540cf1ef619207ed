// Integer expressions: postfix code, verified once, evaluated on each call (see describe/expression.py).
#ifndef PRECAST_SRC_EXPRESSION_H_
#define PRECAST_SRC_EXPRESSION_H_

#include <cstddef>
#include <cstdint>

namespace precast {

constexpr int kMaxExpressionDepth = 64;
constexpr size_t kMaxExpressionBytes = 4096;

struct Expression {
  const uint8_t* code = nullptr;
  uint32_t size = 0;
};

enum class Evaluation { kOk, kOverflow, kDivisionByZero };

// Whether the code is well formed: known operations, slots below `slots`, a stack that neither runs empty nor
// grows past kMaxExpressionDepth, one value left.
bool VerifyExpression(const Expression& expression, size_t slots);

// Evaluates verified code. Never allocates or throws. Reads only slots that the code was verified for.
Evaluation Evaluate(const Expression& expression, const int64_t* slots, int64_t* value);

}  // namespace precast

#endif  // PRECAST_SRC_EXPRESSION_H_
