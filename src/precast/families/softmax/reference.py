"""Reference of softmax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from precast.reference import Array, Reference, random_array


def inputs(problem: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """x of n_rows x n_cols."""
    return {"x": random_array(rng, (problem["n_rows"], problem["n_cols"]), problem["dtype"], 3.0)}


def _softmax(x: Array) -> Array:
    if x.size == 0:
        return x
    e = np.exp(x - x.max(axis=1, keepdims=True))
    result: Array = e / e.sum(axis=1, keepdims=True)
    return result


def reference(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float64."""
    return {"y": _softmax(args["x"].astype(np.float64))}


def naive(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float32, rounded to the inputs' dtype, as frameworks do."""
    return {"y": _softmax(args["x"].astype(np.float32)).astype(args["x"].dtype)}


SHAPES = [(0, 5), (3, 0), (1, 1), (2, 2), (7, 16), (5, 127), (3, 128), (2, 1000), (3, 1031), (1, 4099)]
PROBLEMS = [{"n_rows": r, "n_cols": c, "dtype": d} for d in ("fp16", "bf16", "fp32") for r, c in SHAPES] + [
    {"n_rows": 1, "n_cols": 17001, "dtype": "fp16"},
    {"n_rows": 4099, "n_cols": 8192, "dtype": "bf16", "big": True},
    {"n_rows": 131, "n_cols": 65537, "dtype": "fp32", "big": True},
]

REFERENCES = {"softmax": Reference(PROBLEMS, inputs, reference, naive)}
