"""What a description's lambdas receive: names to values, some known now, some at the call."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from precast.describe.expression import Expression, constant, symbol

__all__ = ["TRACE_ERRORS", "Namespace", "TensorSymbol", "call"]

TRACE_ERRORS = (ValueError, AttributeError, TypeError, LookupError, ArithmeticError)
"""What a mistaken lambda raises when it is traced."""


class Namespace:
    """Attributes (or items) by name; an unknown name raises with the nearest known one."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        near = difflib.get_close_matches(name, self._values, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise AttributeError(f"there is no {name!r} here: {hint}known are {', '.join(sorted(self._values))}")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str, default: Any = None) -> Any:
        """The value of that name, or the default."""
        return self._values.get(name, default)


class _Axes:
    def __init__(self, tensor: str, what: str, rank: int) -> None:
        self._tensor, self._what, self._rank = tensor, what, rank

    def __len__(self) -> int:
        return self._rank

    def __getitem__(self, axis: int) -> Expression:
        if not -self._rank <= axis < self._rank:
            raise IndexError(f"{self._tensor} has {self._rank} dims; there is no {self._what}[{axis}]")
        return symbol(f"{self._tensor}.{self._what}[{axis % self._rank}]")

    def __call__(self, axis: int) -> Expression:
        return self[axis]


class TensorSymbol:
    """A tensor argument at the call: `shape[i]`, `stride[i]` (elements) and `present`."""

    def __init__(self, name: str, rank: int, itemsize: int | None = None) -> None:
        self.shape = _Axes(name, "shape", rank)
        self.stride = _Axes(name, "stride", rank)
        self.present = symbol(f"{name}.present")
        self.ndim = rank
        self.itemsize = itemsize

    def numel(self) -> Expression:
        """Number of elements."""
        count = constant(1)
        for axis in range(self.ndim):
            count = self.shape[axis] * count
        return count


def call(function: Callable[[Any], Any] | None, values: Mapping[str, Any], default: Any = True) -> Any:
    """Calls a description's lambda with a namespace; without one, gives the default."""
    return default if function is None else function(Namespace(values))
