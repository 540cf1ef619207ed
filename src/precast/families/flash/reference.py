"""Reference of attention forward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from precast.reference import Array, Reference, random_array


def inputs(problem: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """q of (B, H, Sq, D), k and v of (B, Hk, Sk, D), scale 1/sqrt(D)."""
    b, h, hk, sq, sk, d = (problem[x] for x in ("B", "H", "Hk", "Sq", "Sk", "D"))
    dtype = problem["dtype"]
    return {
        "q": random_array(rng, (b, h, sq, d), dtype), "k": random_array(rng, (b, hk, sk, d), dtype),
        "v": random_array(rng, (b, hk, sk, d), dtype), "scale": 1 / math.sqrt(d), "mask": problem["mask"],
    }  # fmt: skip


def _seen(mask: str, sq: int, sk: int) -> Array:
    rows, cols = np.arange(sq)[:, None], np.arange(sk)[None, :]
    if mask == "none":
        return np.ones((sq, sk), bool)
    return cols <= rows + (sk - sq if mask == "causal_bottom_right" else 0)


def _attention(args: Mapping[str, Any], dtype: Any, round_weights: bool) -> tuple[Array, Array]:
    q, k, v = (args[x].astype(dtype) for x in ("q", "k", "v"))
    group = q.shape[1] // max(1, k.shape[1])
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * dtype(args["scale"])
    scores = np.where(_seen(args["mask"], q.shape[2], k.shape[2]), scores, -np.inf)
    top = scores.max(axis=3, keepdims=True, initial=-np.inf)
    base = np.where(np.isfinite(top), top, 0).astype(dtype)
    weights = np.exp(scores - base)
    total = weights.sum(axis=3, keepdims=True)
    normal = weights / np.where(total == 0, 1, total)
    if round_weights:
        normal = normal.astype(args["q"].dtype).astype(dtype)
    with np.errstate(divide="ignore"):
        lse = (base + np.log(total))[..., 0]
    return np.einsum("bhqk,bhkd->bhqd", normal, v), lse


def reference(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float64."""
    out, lse = _attention(args, np.float64, False)
    return {"out": out, "lse": lse}


def naive(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float32, with weights and output rounded to the inputs' dtype."""
    out, lse = _attention(args, np.float32, True)
    return {"out": out.astype(args["q"].dtype), "lse": lse}


def _problem(
    b: int, h: int, hk: int, sq: int, sk: int, d: int, mask: str, dtype: str = "bf16", **more: Any
) -> dict[str, Any]:
    return {"B": b, "H": h, "Hk": hk, "Sq": sq, "Sk": sk, "D": d, "mask": mask, "dtype": dtype, **more}


MASKS = ("none", "causal_top_left", "causal_bottom_right")
SIZES = [(1, 1), (2, 7), (17, 17), (64, 64), (67, 131), (131, 67), (129, 257)]
PROBLEMS = (
    [_problem(1, 2, 1, sq, sk, 64, mask, "fp16") for sq, sk in SIZES for mask in MASKS]
    + [_problem(1, 1, 1, 67, 131, 128, mask, "bf16") for mask in MASKS]
    + [
        _problem(0, 2, 1, 16, 16, 64, "none"),
        _problem(1, 2, 1, 0, 16, 64, "none"),
        _problem(1, 2, 2, 80, 0, 64, "none"),
    ]
    + [_problem(2, 4, 2, 1021, 1021, 128, mask, big=True) for mask in MASKS]
    + [_problem(1, 8, 8, 2048, 2048, 64, "causal_bottom_right", "fp16", big=True)]
    + [_problem(2, 4, 4, 511, 1536, 128, mask, "fp16", big=True) for mask in MASKS]
)

# Every specialization needs problems that all configs take.
MORE = [
    _problem(b, 2, 1, sq, sk, d, mask, dtype)
    for dtype in ("fp16", "bf16")
    for d in (64, 128)
    for mask in MASKS
    for b, sq, sk in ((1, 1, 67), (2, 131, 67), (1, 257, 509))
]
LARGEST = 2.3e12
"""Multiplications and additions of the largest problem that is tuned for, masked ones included."""

SHAPES = ((1, 8), (1, 32), (4, 16), (8, 32))
SQUARE = [(b, h, s, s) for s in (128, 384, 1024, 1531, 2048, 4096, 8192, 16384) for b, h in SHAPES]
DECODING = [(b, h, sq, sk) for sq in (1, 16, 64, 300) for sk in (509, 4096, 32768) for b, h in ((1, 16), (8, 16))]
TUNING = [
    _problem(b, h, h, sq, sk, d, mask)
    for d in (64, 128)
    for mask in ("none", "causal_bottom_right")
    for b, h, sq, sk in SQUARE + DECODING
    if 4 * b * h * sq * sk * d <= LARGEST
]


def from_key(values: Mapping[str, Any]) -> dict[str, Any]:
    """A problem with this tuning key: all heads in one batch, each with keys of its own."""
    heads = values["heads"]
    return _problem(1, heads, heads, values["Sq"], values["Sk"], values["HEAD_DIM"], values["MASK"], values["T"])


REFERENCES = {
    "attention_forward": Reference(PROBLEMS, inputs, reference, naive, more=MORE, tuning=TUNING, from_key=from_key)
}
