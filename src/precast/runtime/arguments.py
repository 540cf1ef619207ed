"""Binding the arguments of a call: positional or by name, outputs given or left out, choices by label."""

from __future__ import annotations

from typing import Any

from precast.runtime import errors

__all__ = ["Arguments"]


class Arguments:
    """The arguments that an operator takes, as a library describes them.

    Attributes:
        names: in the declared order.
        outputs: indices of outputs.
        choices: indices of arguments with named values, each with its values by label.
    """

    def __init__(self, operator: str, facts: list[dict[str, Any]]) -> None:
        self.operator = operator
        self.names = [a["name"] for a in facts]
        self.outputs = [i for i, a in enumerate(facts) if a.get("output")]
        self.choices = [
            (i, {label: k for k, label in enumerate(a["labels"])}) for i, a in enumerate(facts) if a["kind"] == "choice"
        ]
        self._inputs = [i for i in range(len(facts)) if i not in self.outputs]
        self._optional = [bool(a["optional"]) for a in facts]
        self._orders: dict[tuple[Any, ...], list[int]] = {}

    @property
    def signature(self) -> str:
        """As a text."""
        return f"({', '.join(self.names)})"

    def bind(self, *args: Any, **named: Any) -> list[Any]:
        """All arguments in order, None for those left out, named choices as their index.

        Raises:
            InvalidArgumentError: if a name is unknown or given twice, there are too many arguments, or a choice
                has no such name.
        """
        key = (len(args), *named)
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = self._order(len(args), named)
        values: list[Any] = [None] * len(self.names)
        for i, value in zip(order, (*args, *named.values()), strict=True):
            values[i] = value
        for i, indices in self.choices:
            if isinstance(values[i], str):
                if values[i] not in indices:
                    raise errors.InvalidArgumentError(
                        f"{self.operator}: {self.names[i]} is {values[i]!r}, it must be one of {', '.join(indices)}"
                    )
                values[i] = indices[values[i]]
        return values

    def _order(self, count: int, named: dict[str, Any]) -> list[int]:
        """Which argument each value is: `count` positional ones, then those given by name."""
        for name in named:
            if name not in self.names:
                raise errors.InvalidArgumentError(
                    f"{self.operator} has no argument {name!r}; it takes {self.signature}"
                )
        order = self._positional(count, named)
        if count > len(order):
            raise errors.InvalidArgumentError(f"{self.operator} takes {self.signature}; {count} arguments were given")
        positions = [self.names.index(name) for name in named]
        twice = set(order[:count]) & set(positions)
        if twice:
            raise errors.InvalidArgumentError(f"{self.operator}: argument {self.names[min(twice)]!r} is given twice")
        return [*order[:count], *positions]

    def _positional(self, count: int, named: dict[str, Any]) -> list[int]:
        """Which arguments so many positional values are: all of them, or the inputs alone.

        Raises:
            InvalidArgumentError: if it could be either.
        """
        if any(self.names[i] in named for i in self.outputs):
            return self._inputs
        free = [i for i in self._inputs if self.names[i] not in named]
        needed = sum(not self._optional[i] for i in free)
        outputs = len(self.outputs)
        alone = needed <= count <= len(free)
        with_outputs = needed + outputs <= count <= len(free) + outputs
        if alone and with_outputs and outputs:
            raise errors.InvalidArgumentError(
                f"{self.operator}{self.signature}: {count} positional arguments may or may not include the outputs "
                f"({', '.join(self.names[i] for i in self.outputs)}): name the outputs, or the optional arguments"
            )
        return list(range(len(self.names))) if count > len(free) or with_outputs else self._inputs
