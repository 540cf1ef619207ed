"""Reference of vector_add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from precast.reference import Array, Reference, random_array

SIZES = (0, 1, 2, 16, 127, 1024, 1031, 4096)


def inputs(problem: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """x and y of n elements."""
    return {k: random_array(rng, (problem["n"],), problem["dtype"]) for k in ("x", "y")}


def reference(args: Mapping[str, Any]) -> dict[str, Array]:
    """In float64."""
    return {"z": args["x"].astype(np.float64) + args["y"].astype(np.float64)}


def naive(args: Mapping[str, Any]) -> dict[str, Array]:
    """In the inputs' dtype."""
    return {"z": args["x"] + args["y"]}


PROBLEMS = [{"n": n, "dtype": d} for d in ("fp16", "bf16", "fp32") for n in SIZES] + [
    {"n": 10_000_019, "dtype": "fp32", "big": True}
]

REFERENCES = {"vector_add": Reference(PROBLEMS, inputs, reference, naive)}
