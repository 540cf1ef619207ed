"""The static default's choice of configs."""

from __future__ import annotations

import doctest

from precast.dispatch import static


def test_examples() -> None:
    assert doctest.testmod(static).failed == 0


def test_every_choice_of_a_config_is_kept_together() -> None:
    assert static.reachable([(True, "ab"), (True, "c")], lambda c: True) == ["a", "b"]
    assert static.reachable([(False, "a")], lambda c: None) == ["a"]
    assert static.reachable([], lambda c: None) == []
    assert static.combinations([["a"], ["x", "y"]]) == [("a", "x"), ("a", "y")]
