"""y = 2 x."""

from precast.reference import Reference, random_array


def inputs(problem, rng):
    """x of n elements."""
    return {"x": random_array(rng, (problem["n"],), "fp32")}


def reference(args):
    """In float64."""
    return {"y": 2 * args["x"].astype("float64")}


def naive(args):
    """In float32."""
    return {"y": 2 * args["x"]}


PROBLEMS = [{"n": n} for n in (1, 127, 128, 131, 4096, 100_003)]
TUNING = [{"n": n} for n in (256, 1 << 16, 1 << 20)]
REFERENCES = {"twice": Reference(PROBLEMS, inputs, reference, naive, tuning=TUNING, from_key=lambda v: {"n": v["n"]})}
