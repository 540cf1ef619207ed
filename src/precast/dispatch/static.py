"""The static default: which configs to build, and in what order to try them, when nothing was measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["combinations", "reachable"]

T = TypeVar("T")


def reachable(configs: Iterable[tuple[bool, Sequence[T]]], complete: Callable[[T], bool | None]) -> list[T]:
    """The choices that a static dispatch can come to: all up to the first config that always applies and is whole.

    Args:
        configs: in order of preference: whether it is for all problems, and its choices.
        complete: whether every alignment class of a choice compiled; None while that isn't known.

    >>> reachable([(False, "a"), (True, "bc"), (True, "d")], lambda c: None)
    ['a', 'b', 'c']
    >>> reachable([(True, "a"), (True, "b"), (True, "c")], lambda c: c != "a")
    ['a', 'b']
    """
    result: list[T] = []
    for for_all, choices in configs:
        result += choices
        if for_all and all(complete(c) is not False for c in choices):
            break
    return result


def combinations(kernels: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """One choice of each kernel of a plan: all combinations, the first kernel's preference first."""
    return list(itertools.product(*kernels))
