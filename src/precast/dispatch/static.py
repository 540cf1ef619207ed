"""The static default: which configs to build, and in what order to try them, when nothing was measured."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["combinations", "reachable"]

T = TypeVar("T")


def reachable(
    choices: Sequence[T], conditional: Callable[[T], bool], complete: Callable[[T], bool | None]
) -> list[T]:
    """The choices that a static dispatch can come to: all up to the first that always applies and is whole.

    Args:
        choices: configs in order of preference.
        conditional: whether a choice is for some problems only.
        complete: whether every alignment class of it compiled; None while that isn't known.

    >>> reachable("abc", lambda c: c == "a", lambda c: None)
    ['a', 'b']
    >>> reachable("abc", lambda c: False, lambda c: c != "a")
    ['a', 'b']
    """
    result = []
    for choice in choices:
        result.append(choice)
        if not conditional(choice) and complete(choice) is not False:
            break
    return result


def combinations(kernels: Sequence[Sequence[T]]) -> list[tuple[T, ...]]:
    """One choice of each kernel of a plan: all combinations, the first kernel's preference first."""
    return list(itertools.product(*kernels))
