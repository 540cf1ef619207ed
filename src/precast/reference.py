"""References: what a family's operators should compute, in NumPy, and how large an error may be.

Imports neither Triton nor torch, so that a built library can be checked where neither is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["DTYPES", "Array", "Comparison", "Reference", "ShapesOnly", "compare", "grid", "random_array"]

Array = np.ndarray[Any, Any]
Problem = Mapping[str, Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
"""NumPy's dtypes by Triton's names."""


@dataclass(frozen=True)
class Reference:
    """What one operator should compute.

    Attributes:
        problems: sizes, dtypes and features; a problem with "big": True is for GPUs only.
        inputs: arguments by public name, outputs left out, drawn from a random generator.
        reference: outputs by name in float64.
        naive: outputs by name as a plain implementation in the inputs' dtype computes them, rounding where it
            would; its error against the reference says how large ours may be.
        magnitudes: for outputs that are small differences of large terms, the size of these terms: their rounding
            is the floor of the error.
        more: further problems for GPUs, so that every specialization has some that its configs must pass.
        tuning: the problems to tune for, see `grid`.
        from_key: a problem that has given types, features and tuning key, for problems that a library recorded; None
            if there is none.
        deterministic: whether repeated runs must be bitwise equal.
    """

    problems: Sequence[Problem]
    inputs: Callable[[Problem, np.random.Generator], dict[str, Any]]
    reference: Callable[[Mapping[str, Any]], dict[str, Array]]
    naive: Callable[[Mapping[str, Any]], dict[str, Array]]
    magnitudes: Callable[[Mapping[str, Any]], dict[str, float]] = lambda args: {}
    more: Sequence[Problem] = ()
    tuning: Sequence[Problem] = ()
    from_key: Callable[[Mapping[str, Any]], Problem | None] | None = None
    deterministic: bool = True

    @property
    def all_problems(self) -> list[Problem]:
        """What a config must compute rightly."""
        return [*self.problems, *self.more]


class ShapesOnly(np.random.Generator):
    """Given to `Reference.inputs` where only shapes and dtypes matter: what it draws takes no memory.

    `random_array` gives arrays whose strides are 0 from it.
    """

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))


def grid(**values: Sequence[Any] | Any) -> list[dict[str, Any]]:
    """Every combination of the values, in order; single values are for all.

    >>> grid(M=[1, 16], N=64)
    [{'M': 1, 'N': 64}, {'M': 16, 'N': 64}]
    """
    axes = [v if isinstance(v, (list, tuple, range)) else [v] for v in values.values()]
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*axes)]


@dataclass(frozen=True)
class Comparison:
    """An output beside its reference.

    Attributes:
        ok: whether the error is allowed, and nothing is NaN or infinite that should not be.
        error: largest absolute error.
        allowed: twice the plain implementation's largest error, plus a rounding floor.
    """

    ok: bool
    error: float
    allowed: float


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> Array:
    """Normally distributed values of a dtype, by Triton's name."""
    if isinstance(rng, ShapesOnly):
        return np.broadcast_to(np.zeros((), DTYPES[dtype]), shape)
    return (rng.standard_normal(shape) * scale).astype(np.float32).astype(DTYPES[dtype])


def compare(output: Array, reference: Array, naive: Array, magnitude: float = 0.0) -> Comparison:
    """Applies the error rule: at most 2 x the plain implementation's error, plus two units of rounding.

    The unit is that of the largest value of the reference, or of `magnitude` if that is larger.

    Infinities must be where the reference has them, and NaN nowhere that it has none.
    """
    got = output.astype(np.float64)
    if got.shape != reference.shape:
        return Comparison(False, float("inf"), 0.0)
    if got.size == 0:
        return Comparison(True, 0.0, 0.0)
    finite = np.isfinite(reference)
    if not np.array_equal(got[~finite], reference[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return Comparison(False, float("inf"), 0.0)
    plain = naive.astype(np.float64)
    usable = finite & np.isfinite(plain)
    plain_error = float(np.abs(plain[usable] - reference[usable]).max(initial=0.0))
    kind = output.dtype
    unit = float(ml_dtypes.finfo(kind).eps) if kind.kind not in "iu" else 0.0
    largest = max(magnitude, float(np.abs(reference[finite]).max(initial=0.0)))
    allowed = 2 * plain_error + 2 * unit * largest
    error = float(np.abs(got[finite] - reference[finite]).max(initial=0.0))
    return Comparison(error <= allowed, error, allowed)
