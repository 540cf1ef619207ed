#include "expression.h"

#include <cstring>
#include <limits>

namespace precast {
namespace {

enum Op : uint8_t {
  kConst = kConstantOp,
  kSlot,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kMod,
  kCdiv,
  kMin,
  kMax,
  kEq = kEqualOp,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kNot,
  kNeg,
  kSelect,
  kNextPow2,
  kAbs,
  kOpCount
};

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

int Arity(uint8_t op) {
  switch (op) {
    case kConst:
    case kSlot: return 0;
    case kNot:
    case kNeg:
    case kNextPow2:
    case kAbs: return 1;
    case kSelect: return 3;
    default: return 2;
  }
}

size_t OperandBytes(uint8_t op) { return op == kConst ? 8 : op == kSlot ? 2 : 0; }

// Quotient and remainder, rounded toward zero. Most fit 32 bits, where division is several times faster.
void Divide(int64_t a, int64_t b, int64_t* quotient, int64_t* remainder) {
  if (((a | b) >> 32) == 0) {
    *quotient = static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    *remainder = static_cast<uint32_t>(a) % static_cast<uint32_t>(b);
  } else {
    *quotient = a / b;
    *remainder = a % b;
  }
}

Evaluation Division(uint8_t op, int64_t a, int64_t b, int64_t* r) {
  if (b == 0) return Evaluation::kDivisionByZero;
  if (b == -1) {  // the one quotient that can overflow
    if (op == kMod) {
      *r = 0;
      return Evaluation::kOk;
    }
    return __builtin_sub_overflow(int64_t{0}, a, r) ? Evaluation::kOverflow : Evaluation::kOk;
  }
  int64_t quotient = 0;
  int64_t remainder = 0;
  Divide(a, b, &quotient, &remainder);
  const bool differ = (remainder != 0) && ((remainder < 0) != (b < 0));
  if (op == kFloorDiv) *r = quotient - (differ ? 1 : 0);
  if (op == kMod) *r = differ ? remainder + b : remainder;
  if (op == kCdiv) *r = quotient + (remainder != 0 && !differ ? 1 : 0);
  return Evaluation::kOk;
}

Evaluation NextPow2(int64_t* value) {
  if (*value > (int64_t{1} << 62)) return Evaluation::kOverflow;
  *value = *value <= 1 ? 1 : int64_t{1} << (64 - __builtin_clzll(static_cast<uint64_t>(*value) - 1));
  return Evaluation::kOk;
}

}  // namespace

bool VerifyExpression(const Expression& expression, size_t slots) {
  if (expression.size > kMaxExpressionBytes) return false;
  int depth = 0;
  size_t at = 0;
  while (at < expression.size) {
    const uint8_t op = expression.code[at++];
    if (op >= kOpCount || expression.size - at < OperandBytes(op)) return false;
    if (op == kSlot) {
      uint16_t slot;
      memcpy(&slot, expression.code + at, sizeof slot);
      if (slot >= slots) return false;
    }
    at += OperandBytes(op);
    depth -= Arity(op);
    if (depth < 0) return false;
    if (++depth > kMaxExpressionDepth) return false;
  }
  return depth == 1;
}

Evaluation EvaluateCode(const Expression& expression, const int64_t* slots, int64_t* value) {
  int64_t stack[kMaxExpressionDepth + 1];  // the operand that a unary operation lacks may be read
  int64_t* next = stack;                   // one past the top
  const uint8_t* p = expression.code;
  const uint8_t* const end = p + expression.size;
  while (p < end) {
    const uint8_t op = *p++;
    if (op == kConst) {
      memcpy(next++, p, sizeof(int64_t));
      p += sizeof(int64_t);
      continue;
    }
    if (op == kSlot) {
      uint16_t slot;
      memcpy(&slot, p, sizeof slot);
      p += sizeof slot;
      *next++ = slots[slot];
      continue;
    }
    next -= Arity(op) - 1;
    int64_t& a = next[-1];
    const int64_t b = *next;
    bool overflow = false;
    Evaluation outcome = Evaluation::kOk;
    switch (op) {
      case kAdd: overflow = __builtin_add_overflow(a, b, &a); break;
      case kSub: overflow = __builtin_sub_overflow(a, b, &a); break;
      case kMul: overflow = __builtin_mul_overflow(a, b, &a); break;
      case kFloorDiv:
      case kMod:
      case kCdiv: outcome = Division(op, a, b, &a); break;
      case kMin: a = a < b ? a : b; break;
      case kMax: a = a > b ? a : b; break;
      case kEq: a = a == b; break;
      case kNe: a = a != b; break;
      case kLt: a = a < b; break;
      case kLe: a = a <= b; break;
      case kGt: a = a > b; break;
      case kGe: a = a >= b; break;
      case kAnd: a = a != 0 && b != 0; break;
      case kOr: a = a != 0 || b != 0; break;
      case kNot: a = a == 0; break;
      case kNeg: overflow = __builtin_sub_overflow(int64_t{0}, a, &a); break;
      case kAbs: overflow = a < 0 && __builtin_sub_overflow(int64_t{0}, a, &a); break;
      case kSelect: a = a != 0 ? b : next[1]; break;
      case kNextPow2: outcome = NextPow2(&a); break;
      default: break;
    }
    if (overflow) return Evaluation::kOverflow;
    if (outcome != Evaluation::kOk) return outcome;
  }
  *value = stack[0];
  return Evaluation::kOk;
}

}  // namespace precast
