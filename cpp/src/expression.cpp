#include "expression.h"

#include <cstring>
#include <limits>

namespace precast {
namespace {

enum Op : uint8_t {
  kConst,
  kSlot,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kMod,
  kCdiv,
  kMin,
  kMax,
  kEq,
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

Evaluation Binary(uint8_t op, int64_t a, int64_t b, int64_t* r) {
  switch (op) {
    case kAdd: return __builtin_add_overflow(a, b, r) ? Evaluation::kOverflow : Evaluation::kOk;
    case kSub: return __builtin_sub_overflow(a, b, r) ? Evaluation::kOverflow : Evaluation::kOk;
    case kMul: return __builtin_mul_overflow(a, b, r) ? Evaluation::kOverflow : Evaluation::kOk;
    case kFloorDiv:
    case kMod:
    case kCdiv: {
      if (b == 0) return Evaluation::kDivisionByZero;
      if (b == -1) {  // the one quotient that can overflow
        if (op == kMod) {
          *r = 0;
          return Evaluation::kOk;
        }
        return __builtin_sub_overflow(int64_t{0}, a, r) ? Evaluation::kOverflow : Evaluation::kOk;
      }
      const int64_t quotient = a / b;
      const int64_t remainder = a % b;
      const bool differ = (remainder != 0) && ((remainder < 0) != (b < 0));
      if (op == kFloorDiv) *r = quotient - (differ ? 1 : 0);
      if (op == kMod) *r = differ ? remainder + b : remainder;
      if (op == kCdiv) *r = quotient + (remainder != 0 && !differ ? 1 : 0);
      return Evaluation::kOk;
    }
    case kMin: *r = a < b ? a : b; break;
    case kMax: *r = a > b ? a : b; break;
    case kEq: *r = a == b; break;
    case kNe: *r = a != b; break;
    case kLt: *r = a < b; break;
    case kLe: *r = a <= b; break;
    case kGt: *r = a > b; break;
    case kGe: *r = a >= b; break;
    case kAnd: *r = a != 0 && b != 0; break;
    case kOr: *r = a != 0 || b != 0; break;
    default: break;
  }
  return Evaluation::kOk;
}

Evaluation Unary(uint8_t op, int64_t* value) {
  switch (op) {
    case kNot: *value = *value == 0; break;
    case kNeg:
    case kAbs:
      if (op == kNeg || *value < 0) {
        if (*value == kLowest) return Evaluation::kOverflow;
        *value = -*value;
      }
      break;
    case kNextPow2:
      if (*value <= 1) {
        *value = 1;
      } else if (*value > (int64_t{1} << 62)) {
        return Evaluation::kOverflow;
      } else {
        *value = int64_t{1} << (64 - __builtin_clzll(static_cast<uint64_t>(*value) - 1));
      }
      break;
    default: break;
  }
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

Evaluation Evaluate(const Expression& expression, const int64_t* slots, int64_t* value) {
  int64_t stack[kMaxExpressionDepth];
  int depth = 0;
  const uint8_t* p = expression.code;
  const uint8_t* const end = p + expression.size;
  while (p < end) {
    const uint8_t op = *p++;
    if (op == kConst) {
      memcpy(&stack[depth++], p, sizeof(int64_t));
      p += sizeof(int64_t);
      continue;
    }
    if (op == kSlot) {
      uint16_t slot;
      memcpy(&slot, p, sizeof slot);
      p += sizeof slot;
      stack[depth++] = slots[slot];
      continue;
    }
    Evaluation outcome = Evaluation::kOk;
    if (op == kSelect) {
      depth -= 2;
      stack[depth - 1] = stack[depth - 1] != 0 ? stack[depth] : stack[depth + 1];
    } else if (Arity(op) == 1) {
      outcome = Unary(op, &stack[depth - 1]);
    } else {
      --depth;
      int64_t result = 0;
      outcome = Binary(op, stack[depth - 1], stack[depth], &result);
      stack[depth - 1] = result;
    }
    if (outcome != Evaluation::kOk) return outcome;
  }
  *value = stack[0];
  return Evaluation::kOk;
}

}  // namespace precast
