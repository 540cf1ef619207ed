"""Expressions: tracing, folding, evaluating, encoding."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precast.describe import expression as ex

INT64 = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-1000, 1000)
NAMES = ("a", "b", "c")


def expressions() -> st.SearchStrategy[ex.Expression]:
    leaves = st.one_of(st.sampled_from(NAMES).map(ex.symbol), SMALL.map(ex.constant))
    binary: list[Callable[..., ex.Expression]] = [
        operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lt, operator.eq,
        operator.and_, operator.or_, ex.cdiv, ex.minimum, ex.maximum,
    ]  # fmt: skip

    def safe(f: Callable[..., ex.Expression], a: ex.Expression, b: ex.Expression) -> ex.Expression:
        try:
            return f(a, b)
        except ex.ExpressionError:  # a constant division by zero is refused while tracing
            return a

    def grow(inner: st.SearchStrategy[ex.Expression]) -> st.SearchStrategy[ex.Expression]:
        return st.one_of(
            st.builds(safe, st.sampled_from(binary), inner, inner),
            st.builds(lambda a: ex.next_power_of_2(ex.minimum(a, 1 << 40)), inner),
            st.builds(ex.select, inner, inner, inner),
            inner.map(lambda a: ~a),
        )

    return st.recursive(leaves, grow, max_leaves=12)


@given(expressions(), SMALL, SMALL, SMALL)
def test_decode_inverts_encode(e: ex.Expression, a: int, b: int, c: int) -> None:
    slots = {name: i for i, name in enumerate(NAMES)}
    again = ex.decode(ex.encode(e, slots), {i: n for n, i in slots.items()})
    assert again.same(e)
    values = {"a": a, "b": b, "c": c}
    try:
        expected = ex.evaluate(e, values)
    except ex.ExpressionError:
        with pytest.raises(ex.ExpressionError):
            ex.evaluate(again, values)
    else:
        assert ex.evaluate(again, values) == expected


@given(INT64, INT64)
def test_division_rounds_as_python_does(a: int, b: int) -> None:
    n, d = ex.symbol("n"), ex.symbol("d")
    values = {"n": a, "d": b}
    if b == 0:
        for e in (n // d, n % d, ex.cdiv(n, d)):
            with pytest.raises(ex.ExpressionError, match="zero"):
                ex.evaluate(e, values)
        return
    if not (a == -(2**63) and b == -1):
        assert ex.evaluate(n // d, values) == a // b
        assert ex.evaluate(ex.cdiv(n, d), values) == -(-a // b)
    assert ex.evaluate(n % d, values) == a % b


@pytest.mark.parametrize(
    ("value", "power"), [(-5, 1), (0, 1), (1, 1), (2, 2), (3, 4), (17, 32), (1024, 1024), (1025, 2048)]
)
def test_next_power_of_2(value: int, power: int) -> None:
    assert ex.evaluate(ex.next_power_of_2(ex.symbol("n")), {"n": value}) == power


def test_overflow_is_an_error() -> None:
    with pytest.raises(ex.ExpressionError, match="64 bits"):
        ex.evaluate(ex.symbol("n") * 4, {"n": 2**62})


def test_truth_of_a_symbol_is_refused_with_a_remedy() -> None:
    with pytest.raises(ex.ExpressionError, match="select"):
        bool(ex.symbol("n") > 3)
    with pytest.raises(ex.ExpressionError, match="select"):
        1 < ex.symbol("n") < 3  # type: ignore[operator]  # noqa: B015


def test_true_division_is_refused_with_a_remedy() -> None:
    with pytest.raises(ex.ExpressionError, match="cdiv"):
        ex.symbol("n") / 2


def test_constants_fold() -> None:
    assert int(ex.cdiv(10, 3)) == 4
    assert ex.select(True, ex.symbol("a"), 3).same(ex.symbol("a"))


def test_deep_nesting_is_refused() -> None:
    e: ex.Expression = ex.symbol("n")
    for _ in range(ex.MAX_DEPTH + 1):
        e = 1 + ex.symbol("n") * e
    with pytest.raises(ex.ExpressionError, match="nested"):
        ex.encode(e, {"n": 0})
