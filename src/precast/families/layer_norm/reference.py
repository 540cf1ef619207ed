"""References of layer normalization, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from precast.reference import Array, Reference, random_array

EPS = 1e-5


def inputs(problem: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """x of n_rows x n_cols, weight and bias of n_cols."""
    rows, cols, dtype = problem["n_rows"], problem["n_cols"], problem["dtype"]
    return {
        "x": random_array(rng, (rows, cols), dtype, 2.0),
        "weight": random_array(rng, (cols,), dtype),
        "bias": random_array(rng, (cols,), dtype),
        "eps": EPS,
    }


def _forward(args: Mapping[str, Any], dtype: Any) -> tuple[Array, Array, Array]:
    x = args["x"].astype(dtype)
    cols = max(1, x.shape[1])
    mean = x.sum(axis=1, dtype=dtype) / dtype(cols)
    variance = ((x - mean[:, None]) ** 2).sum(axis=1, dtype=dtype) / dtype(cols)
    rstd = 1 / np.sqrt(variance + dtype(EPS))
    y = (x - mean[:, None]) * rstd[:, None] * args["weight"].astype(dtype) + args["bias"].astype(dtype)
    return y, mean, rstd


def reference(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float64."""
    y, mean, rstd = _forward(args, np.float64)
    return {"y": y, "mean": mean, "rstd": rstd}


def naive(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float32, y rounded to the inputs' dtype."""
    y, mean, rstd = _forward(args, np.float32)
    return {"y": y.astype(args["x"].dtype), "mean": mean, "rstd": rstd}


def backward_inputs(problem: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """dy and the forward's inputs and row statistics."""
    args = inputs(problem, rng)
    _, mean, rstd = _forward(args, np.float32)
    return {
        "dy": random_array(rng, args["x"].shape, problem["dtype"]), "x": args["x"], "weight": args["weight"],
        "mean": mean.astype(np.float32), "rstd": rstd.astype(np.float32),
    }  # fmt: skip


def _backward(args: Mapping[str, Any], dtype: Any) -> tuple[Array, Array, Array]:
    x, dy, weight = (args[k].astype(dtype) for k in ("x", "dy", "weight"))
    mean, rstd = args["mean"].astype(dtype)[:, None], args["rstd"].astype(dtype)[:, None]
    cols = dtype(max(1, x.shape[1]))
    xhat = (x - mean) * rstd
    g = dy * weight
    along = (g * xhat).sum(axis=1, keepdims=True, dtype=dtype) / cols
    center = g.sum(axis=1, keepdims=True, dtype=dtype) / cols
    dx = (g - center - xhat * along) * rstd
    return dx, (dy * xhat).sum(axis=0, dtype=dtype), dy.sum(axis=0, dtype=dtype)


def backward_reference(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float64."""
    return dict(zip(("dx", "dweight", "dbias"), _backward(args, np.float64), strict=True))


def backward_naive(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float32, rounded to the inputs' dtype."""
    kind = args["x"].dtype
    return {k: v.astype(kind) for k, v in zip(("dx", "dweight", "dbias"), _backward(args, np.float32), strict=True)}


def magnitudes(args: Mapping[str, Any]) -> dict[str, float]:
    """dx is a difference of terms as large as dy * weight * rstd."""
    g = np.abs(args["dy"].astype(np.float64) * args["weight"].astype(np.float64) * args["rstd"][:, None])
    return {"dx": float(g.max(initial=0.0))}


SHAPES = [(0, 5), (1, 1), (2, 16), (7, 127), (33, 256), (5, 1031), (17, 257)]
PROBLEMS = [{"n_rows": r, "n_cols": c, "dtype": d} for d in ("fp16", "bf16", "fp32") for r, c in SHAPES] + [
    {"n_rows": 1009, "n_cols": 8192, "dtype": "bf16", "big": True},
    {"n_rows": 4096, "n_cols": 1024, "dtype": "fp16", "big": True},
]

REFERENCES = {
    "layer_norm": Reference(PROBLEMS, inputs, reference, naive),
    "layer_norm_backward": Reference(
        [p for p in PROBLEMS if p["n_rows"] != 0], backward_inputs, backward_reference, backward_naive, magnitudes
    ),
}
