"""Binding arguments of an operator from Python: outputs given or left out, names, choices."""

from __future__ import annotations

from typing import Any

import pytest

from precast.runtime.arguments import Arguments
from precast.runtime.errors import InvalidArgumentError


def operator(*arguments: dict[str, Any]) -> Arguments:
    return Arguments("op", [{"optional": False, "kind": "tensor", **a} for a in arguments])


def test_outputs_are_left_out_given_or_named() -> None:
    op = operator({"name": "z", "output": True}, {"name": "x"}, {"name": "y"})
    assert op.bind("x", "y") == [None, "x", "y"]
    assert op.bind("z", "x", "y") == ["z", "x", "y"]
    assert op.bind("x", "y", z="z") == ["z", "x", "y"]
    assert op.bind("x", y="y") == [None, "x", "y"]
    assert op.bind(z="z", x="x", y="y") == ["z", "x", "y"]


def test_a_call_that_could_be_either_is_refused() -> None:
    op = operator({"name": "z", "output": True}, {"name": "x"}, {"name": "y"}, {"name": "bias", "optional": True})
    with pytest.raises(InvalidArgumentError, match="name the outputs"):
        op.bind("a", "b", "c")
    assert op.bind("x", "y") == [None, "x", "y", None]
    assert op.bind("x", "y", bias="b") == [None, "x", "y", "b"]
    assert op.bind("z", "x", "y", "b") == ["z", "x", "y", "b"]


def test_wrong_names_and_counts() -> None:
    op = operator({"name": "z", "output": True}, {"name": "x"})
    with pytest.raises(InvalidArgumentError, match="no argument 'w'"):
        op.bind("x", w=1)
    with pytest.raises(InvalidArgumentError, match="3 arguments were given"):
        op.bind(1, 2, 3)


def test_choices_by_label() -> None:
    op = operator(
        {"name": "z", "output": True},
        {"name": "x"},
        {"name": "mask", "kind": "choice", "optional": True, "labels": ["none", "causal"]},
    )
    assert op.bind("x", mask="causal") == [None, "x", 1]
    with pytest.raises(InvalidArgumentError, match="one of none, causal"):
        op.bind("x", mask="casual")
    with pytest.raises(InvalidArgumentError, match="one of none, causal"):
        op.bind("z", "x", "casual")


def test_an_argument_given_twice() -> None:
    op = operator({"name": "x"}, {"name": "y"})
    for _ in range(2):  # nothing of a refused call is kept
        with pytest.raises(InvalidArgumentError, match="'x' is given twice"):
            op.bind("x", "y", x="x")
        with pytest.raises(InvalidArgumentError, match="'x' is given twice"):
            op.bind("x", x="x")
