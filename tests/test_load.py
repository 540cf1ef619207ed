"""Binding arguments of an operator from Python: outputs given or left out, names, choices."""

from __future__ import annotations

from typing import Any

import pytest

from precast.runtime.errors import InvalidArgumentError
from precast.runtime.library import Operator


def operator(*arguments: dict[str, Any]) -> Operator:
    """An operator without a library behind it."""
    made = Operator.__new__(Operator)
    facts = [{"optional": False, "kind": "tensor", **a} for a in arguments]
    made.name, made.facts = "op", {"arguments": facts}
    made._names = [a["name"] for a in facts]
    made._count = len(facts)
    made._outputs = [i for i, a in enumerate(facts) if a.get("output")]
    made._inputs = [i for i in range(made._count) if i not in made._outputs]
    made._labels = {a["name"]: a["labels"] for a in facts if a["kind"] == "choice"}
    return made


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
