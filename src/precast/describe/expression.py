"""Integer expressions traced from Python lambdas and evaluated by the runtime.

A lambda such as ``lambda a: (cdiv(a.n_rows, a.BLOCK), )`` is called once with symbols in place of
the runtime values. What it returns is an `Expression`, which is stored in the pack as postfix code
and evaluated on every call, in 64-bit integers with overflow checked. Division and remainder round
as Python's do. Comparisons give 1 or 0; combine them with ``&``, ``|`` and ``~``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Union

__all__ = [
    "Expression",
    "IntLike",
    "Op",
    "Symbol",
    "abs_",
    "as_expression",
    "cdiv",
    "constant",
    "decode",
    "encode",
    "evaluate",
    "maximum",
    "minimum",
    "next_power_of_2",
    "select",
    "symbol",
]

MAX_DEPTH = 64
"""Stack entries that the runtime has for one expression."""

MAX_CODE = 4096
"""Bytes of code of one expression."""


class Op(IntEnum):
    """Opcodes of the postfix code. CONST has an int64 operand, SLOT a uint16; the rest have none."""

    CONST = 0
    SLOT = 1
    ADD = 2
    SUB = 3
    MUL = 4
    FLOORDIV = 5
    MOD = 6
    CDIV = 7
    MIN = 8
    MAX = 9
    EQ = 10
    NE = 11
    LT = 12
    LE = 13
    GT = 14
    GE = 15
    AND = 16
    OR = 17
    NOT = 18
    NEG = 19
    SELECT = 20
    NEXT_POW2 = 21
    ABS = 22


ARITY: dict[Op, int] = dict.fromkeys(Op, 2) | {
    Op.CONST: 0,
    Op.SLOT: 0,
    Op.NOT: 1,
    Op.NEG: 1,
    Op.NEXT_POW2: 1,
    Op.ABS: 1,
    Op.SELECT: 3,
}

IntLike = Union["Expression", int, bool]


class ExpressionError(ValueError):
    """A lambda did something that can't be traced, or an expression can't be evaluated."""


def _next_power_of_2(value: int) -> int:
    return 1 if value <= 1 else 1 << (value - 1).bit_length()


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise ExpressionError("division by zero")
    return a // b


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise ExpressionError("remainder of a division by zero")
    return a % b


_FOLD: dict[Op, Callable[..., int]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.FLOORDIV: _divide,
    Op.MOD: _modulo,
    Op.CDIV: lambda a, b: -_divide(-a, b),
    Op.MIN: min,
    Op.MAX: max,
    Op.EQ: lambda a, b: int(a == b),
    Op.NE: lambda a, b: int(a != b),
    Op.LT: lambda a, b: int(a < b),
    Op.LE: lambda a, b: int(a <= b),
    Op.GT: lambda a, b: int(a > b),
    Op.GE: lambda a, b: int(a >= b),
    Op.AND: lambda a, b: int(bool(a) and bool(b)),
    Op.OR: lambda a, b: int(bool(a) or bool(b)),
    Op.NOT: lambda a: int(not a),
    Op.NEG: lambda a: -a,
    Op.SELECT: lambda c, a, b: a if c else b,
    Op.NEXT_POW2: _next_power_of_2,
    Op.ABS: abs,
}


def _checked(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ExpressionError(f"the value {value} does not fit 64 bits")
    return value


class Expression:
    """An immutable expression tree. Build it with Python's operators and this module's functions."""

    __slots__ = ("args", "op", "value")

    def __init__(self, op: Op, args: tuple[Expression, ...] = (), value: int | str = 0) -> None:
        self.op = op
        self.args = args
        self.value = value  # CONST: the number; SLOT: the symbol's name

    def __bool__(self) -> bool:
        if self.op is Op.CONST:
            return bool(self.value)
        raise ExpressionError(
            f"the truth of `{self}` is known only when the library is called: use `select(condition, a, b)` for a "
            "choice, `&`, `|`, `~` for and, or, not, and two comparisons joined by `&` for a chain"
        )

    def __index__(self) -> int:
        if self.op is Op.CONST:
            return int(self.value)
        raise ExpressionError(f"`{self}` is known only when the library is called; it can't be used as a Python int")

    __int__ = __index__

    def __hash__(self) -> int:
        return hash((self.op, self.args, self.value))

    def same(self, other: Expression) -> bool:
        """Structural equality (``==`` builds a comparison)."""
        return (
            self.op is other.op
            and self.value == other.value
            and len(self.args) == len(other.args)
            and all(a.same(b) for a, b in zip(self.args, other.args, strict=True))
        )

    def symbols(self) -> set[str]:
        """Names of all symbols in it."""
        if self.op is Op.SLOT:
            return {str(self.value)}
        return set().union(*(a.symbols() for a in self.args)) if self.args else set()

    def __repr__(self) -> str:
        return f"Expression({self})"

    def __str__(self) -> str:
        if self.op in (Op.CONST, Op.SLOT):
            return str(self.value)
        infix = {
            Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.FLOORDIV: "//", Op.MOD: "%", Op.EQ: "==", Op.NE: "!=",
            Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">=", Op.AND: "&", Op.OR: "|",
        }  # fmt: skip
        if self.op in infix:
            return f"({self.args[0]} {infix[self.op]} {self.args[1]})"
        return f"{self.op.name.lower()}({', '.join(map(str, self.args))})"

    def __add__(self, other: IntLike) -> Expression:
        return _apply(Op.ADD, self, other)

    def __radd__(self, other: IntLike) -> Expression:
        return _apply(Op.ADD, other, self)

    def __sub__(self, other: IntLike) -> Expression:
        return _apply(Op.SUB, self, other)

    def __rsub__(self, other: IntLike) -> Expression:
        return _apply(Op.SUB, other, self)

    def __mul__(self, other: IntLike) -> Expression:
        return _apply(Op.MUL, self, other)

    def __rmul__(self, other: IntLike) -> Expression:
        return _apply(Op.MUL, other, self)

    def __floordiv__(self, other: IntLike) -> Expression:
        return _apply(Op.FLOORDIV, self, other)

    def __rfloordiv__(self, other: IntLike) -> Expression:
        return _apply(Op.FLOORDIV, other, self)

    def __mod__(self, other: IntLike) -> Expression:
        return _apply(Op.MOD, self, other)

    def __rmod__(self, other: IntLike) -> Expression:
        return _apply(Op.MOD, other, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _apply(Op.EQ, self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _apply(Op.NE, self, other)

    def __lt__(self, other: IntLike) -> Expression:
        return _apply(Op.LT, self, other)

    def __le__(self, other: IntLike) -> Expression:
        return _apply(Op.LE, self, other)

    def __gt__(self, other: IntLike) -> Expression:
        return _apply(Op.GT, self, other)

    def __ge__(self, other: IntLike) -> Expression:
        return _apply(Op.GE, self, other)

    def __and__(self, other: IntLike) -> Expression:
        return _apply(Op.AND, self, other)

    def __rand__(self, other: IntLike) -> Expression:
        return _apply(Op.AND, other, self)

    def __or__(self, other: IntLike) -> Expression:
        return _apply(Op.OR, self, other)

    def __ror__(self, other: IntLike) -> Expression:
        return _apply(Op.OR, other, self)

    def __invert__(self) -> Expression:
        return _apply(Op.NOT, self)

    def __neg__(self) -> Expression:
        return _apply(Op.NEG, self)

    def __abs__(self) -> Expression:
        return _apply(Op.ABS, self)

    def __truediv__(self, other: object) -> Expression:
        raise ExpressionError("`/` gives a float; use `//` or `cdiv(a, b)`")

    __rtruediv__ = __truediv__


Symbol = Expression


def constant(value: int) -> Expression:
    """The integer itself."""
    return Expression(Op.CONST, (), _checked(int(value)))


def symbol(name: str) -> Expression:
    """A value that is known when the library is called."""
    return Expression(Op.SLOT, (), name)


def as_expression(value: object) -> Expression:
    """An expression from an int, a bool or an expression; raises `ExpressionError` on anything else."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, int):
        return constant(value)
    raise ExpressionError(f"{value!r} ({type(value).__name__}) is no integer expression")


def _apply(op: Op, *operands: object) -> Expression:
    args = tuple(as_expression(x) for x in operands)
    if all(a.op is Op.CONST for a in args):
        return constant(_FOLD[op](*(int(a.value) for a in args)))
    return Expression(op, args)


def cdiv(a: IntLike, b: IntLike) -> Expression:
    """a / b rounded up."""
    return _apply(Op.CDIV, a, b)


def minimum(a: IntLike, *more: IntLike) -> Expression:
    """The least of its arguments."""
    result = as_expression(a)
    for other in more:
        result = _apply(Op.MIN, result, other)
    return result


def maximum(a: IntLike, *more: IntLike) -> Expression:
    """The greatest of its arguments."""
    result = as_expression(a)
    for other in more:
        result = _apply(Op.MAX, result, other)
    return result


def select(condition: IntLike, if_true: IntLike, if_false: IntLike) -> Expression:
    """`if_true` where the condition is not 0, else `if_false`; both are evaluated."""
    test = as_expression(condition)
    if test.op is Op.CONST:
        return as_expression(if_true if test.value else if_false)
    return _apply(Op.SELECT, test, if_true, if_false)


def next_power_of_2(a: IntLike) -> Expression:
    """The least power of two that is not less than `a`; 1 for everything below."""
    return _apply(Op.NEXT_POW2, a)


def abs_(a: IntLike) -> Expression:
    """The absolute value."""
    return _apply(Op.ABS, a)


def evaluate(expression: Expression, values: Mapping[str, int]) -> int:
    """The value of an expression, as the runtime computes it.

    Raises `ExpressionError` on overflow of 64 bits, division by zero, or a symbol without a value.
    """
    if expression.op is Op.CONST:
        return int(expression.value)
    if expression.op is Op.SLOT:
        if expression.value not in values:
            raise ExpressionError(f"no value for `{expression.value}`; there are {', '.join(sorted(values))}")
        return _checked(values[str(expression.value)])
    return _checked(_FOLD[expression.op](*(evaluate(a, values) for a in expression.args)))


def _depth(expression: Expression) -> int:
    return max((i + _depth(a) for i, a in enumerate(expression.args)), default=1)


def encode(expression: Expression, slot_of: Mapping[str, int]) -> bytes:
    """Postfix code; `slot_of` gives each symbol's slot."""
    if _depth(expression) > MAX_DEPTH:
        raise ExpressionError(f"`{str(expression)[:200]}` is nested too deeply ({_depth(expression)} > {MAX_DEPTH})")
    code = bytearray()

    def emit(e: Expression) -> None:
        for a in e.args:
            emit(a)
        code.append(e.op)
        if e.op is Op.CONST:
            code.extend(struct.pack("<q", e.value))
        elif e.op is Op.SLOT:
            code.extend(struct.pack("<H", slot_of[str(e.value)]))

    emit(expression)
    if len(code) > MAX_CODE:
        raise ExpressionError(f"`{str(expression)[:200]}…` is too long ({len(code)} bytes > {MAX_CODE})")
    return bytes(code)


def decode(code: bytes, names: Mapping[int, str]) -> Expression:
    """The inverse of `encode`; `names` gives each slot's symbol."""
    stack: list[Expression] = []
    at = 0
    while at < len(code):
        op = Op(code[at])
        at += 1
        if op is Op.CONST:
            stack.append(constant(struct.unpack_from("<q", code, at)[0]))
            at += 8
        elif op is Op.SLOT:
            stack.append(symbol(names[struct.unpack_from("<H", code, at)[0]]))
            at += 2
        else:
            count = ARITY[op]
            if len(stack) < count:
                raise ExpressionError("damaged code: the stack ran empty")
            args = tuple(stack[len(stack) - count :])
            del stack[len(stack) - count :]
            stack.append(Expression(op, args))
    if len(stack) != 1:
        raise ExpressionError("damaged code: it leaves more or less than one value")
    return stack[0]
