"""References of the kernels."""

from __future__ import annotations

import numpy as np

from precast.reference import Reference, random_array

SIZES = (1, 2, 127, 4096, 100_003)


def vector(function, name="y"):
    problems = [{"n": n} for n in (0, *SIZES)]
    return Reference(
        problems,
        lambda p, rng: {"x": random_array(rng, (p["n"],), "fp32")},
        lambda args: {name: function(args["x"].astype(np.float64))},
        lambda args: {name: function(args["x"])},
    )


REFERENCES = {
    "cluster_sum": Reference(
        [{"rows": r, "n": n} for r in (0, 1, 3, 31) for n in (1, 127, 8191, 8192)],
        lambda p, rng: {"x": random_array(rng, (p["rows"], p["n"]), "fp32")},
        lambda args: {"y": args["x"].astype(np.float64).sum(1)},
        lambda args: {"y": args["x"].sum(1)},
        lambda args: {"y": float(np.abs(args["x"]).sum(1, initial=0.0).max(initial=0.0))},
    ),
    "dependent": vector(lambda x: x * 2 + 1),
    "device_descriptor": Reference(
        [{"M": m, "N": n} for m in (1, 16, 31, 200) for n in (4, 32, 100)],
        lambda p, rng: {"x": random_array(rng, (p["M"], p["N"]), "fp32")},
        lambda args: {"y": args["x"].astype(np.float64) * 2},
        lambda args: {"y": args["x"] * 2},
    ),
    "few_registers": vector(lambda x: np.sin(x) * np.cos(x)),
}
