"""Reference of matmul."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from precast.reference import DTYPES, Array, Reference, random_array


def inputs(problem: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """a of M x K, b of K x N; as views of transposed memory where the problem says so."""
    m, n, k, dtype = (problem[x] for x in ("M", "N", "K", "dtype"))
    a = random_array(rng, (k, m), dtype).T if problem.get("a_transposed") else random_array(rng, (m, k), dtype)
    b = random_array(rng, (n, k), dtype).T if problem.get("b_transposed") else random_array(rng, (k, n), dtype)
    return {"a": a, "b": b}


def reference(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float64."""
    return {"c": args["a"].astype(np.float64) @ args["b"].astype(np.float64)}


def naive(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float32, rounded to the output's dtype."""
    kind = DTYPES["fp16"] if args["a"].dtype == DTYPES["fp16"] else DTYPES["bf16"]
    return {"c": (args["a"].astype(np.float32) @ args["b"].astype(np.float32)).astype(kind)}


SHAPES = [(0, 4, 4), (1, 1, 1), (4, 4, 0), (16, 16, 16), (17, 31, 13), (64, 64, 64), (127, 65, 33), (1, 257, 64)]
PROBLEMS = (
    [{"M": m, "N": n, "K": k, "dtype": d} for d in ("fp16", "bf16") for m, n, k in SHAPES]
    + [{"M": 48, "N": 64, "K": 32, "dtype": "fp16", "a_transposed": True, "b_transposed": True}]
    + [{"M": m, "N": n, "K": k, "dtype": "fp8e4nv", "needs": "fp8e4nv"} for m, n, k in SHAPES[3:6]]
    + [
        {"M": 2048, "N": 1024, "K": 512, "dtype": "bf16", "big": True},
        {"M": 1999, "N": 2048, "K": 1024, "dtype": "fp16", "big": True},
        {"M": 2048, "N": 2048, "K": 1000, "dtype": "fp16", "b_transposed": True, "big": True},
        {"M": 2048, "N": 2048, "K": 512, "dtype": "fp8e4nv", "needs": "fp8e4nv", "big": True},
    ]
)

# Every type needs problems that all configs take, whole tiles and parts of tiles.
MORE = [
    {"M": m, "N": n, "K": k, "dtype": d}
    for d in ("fp16", "bf16")
    for m, n, k in ((3, 520, 264), (200, 136, 1032), (509, 760, 320), (1024, 512, 256))
]
LARGEST = 1.2e12
"""Multiplications and additions of the largest problem that is tuned for."""

WEIGHTS = (
    (512, 512), (1024, 4096), (4096, 1024), (4096, 4096), (2048, 8192), (14336, 4096), (4096, 14336), (8192, 8192),
)  # fmt: skip
TUNING = [
    {"M": m, "N": n, "K": k, "dtype": "bf16"}
    for m in (1, 16, 64, 200, 512, 1024, 2048, 4096, 8192)
    for n, k in WEIGHTS
    if 2 * m * n * k <= LARGEST
]


def from_key(values: Mapping[str, Any]) -> dict[str, Any]:
    """The problem that a call with these types and sizes was."""
    return {"M": values["M"], "N": values["N"], "K": values["K"], "dtype": values["T"]}


REFERENCES = {"matmul": Reference(PROBLEMS, inputs, reference, naive, more=MORE, tuning=TUNING, from_key=from_key)}
