"""The tables of one operator that candidates refer to by index: slots, expressions, conditions."""

from __future__ import annotations

import re

from precast.describe.bind import BoundOperator
from precast.describe.expression import Expression, IntLike, as_expression, encode
from precast.pack import model as m

__all__ = ["OperatorTables"]

_AXIS = re.compile(r"^(?P<tensor>\w+)\.(?P<what>shape|stride)\[(?P<axis>\d+)\]$")
MAX_CONDITIONS = 64


class OperatorTables:
    """Grows as things are looked up; equal things get one index."""

    def __init__(self, operator: BoundOperator) -> None:
        self.operator = operator
        self.argument_index = {a.name: i for i, a in enumerate(operator.arguments)}
        self.slots: list[m.Slot] = []
        self.slot_index: dict[str, int] = {}
        self.expressions: list[bytes] = []
        self._expression_index: dict[bytes, int] = {}
        self.conditions: list[m.Condition] = []

    def slot(self, symbol: str) -> int:
        """The slot that holds a symbol's value."""
        if symbol not in self.slot_index:
            self.slot_index[symbol] = len(self.slots)
            self.slots.append(self._make_slot(symbol))
        return self.slot_index[symbol]

    def _make_slot(self, symbol: str) -> m.Slot:
        if symbol == "num_sms":
            return m.Slot(m.SlotKind.DEVICE, 0, 0, symbol)
        if found := _AXIS.match(symbol):
            kind = m.SlotKind.DIM if found["what"] == "shape" else m.SlotKind.STRIDE
            return m.Slot(kind, self.argument_index[found["tensor"]], int(found["axis"]), symbol)
        if symbol.endswith(".present"):
            return m.Slot(m.SlotKind.PRESENT, self.argument_index[symbol.removesuffix(".present")], 0, symbol)
        return m.Slot(m.SlotKind.INT, self.argument_index[symbol], 0, symbol)

    def expression(self, value: IntLike) -> int:
        """Index of an expression."""
        expression: Expression = as_expression(value)
        for name in sorted(expression.symbols()):
            self.slot(name)
        code = encode(expression, self.slot_index)
        if code not in self._expression_index:
            self._expression_index[code] = len(self.expressions)
            self.expressions.append(code)
        return self._expression_index[code]

    def condition_mask(self, kind: m.ConditionKind, indices: list[int]) -> int:
        """The bit of a condition, as a mask; 0 if it is about nothing."""
        if not indices:
            return 0
        condition = m.Condition(kind, tuple(sorted(set(indices))))
        if condition not in self.conditions:
            if len(self.conditions) == MAX_CONDITIONS:
                raise ValueError(
                    f"{self.operator.name}: more than {MAX_CONDITIONS} different facts about calls are compiled in; "
                    "give its kernels fewer alignments"
                )
            self.conditions.append(condition)
        return 1 << self.conditions.index(condition)
