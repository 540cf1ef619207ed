"""A tuned library beside one with the static default, on a family's tuning problems, in one run on a GPU.

    python benchmarks/tuned_dispatch.py FAMILY OPERATOR TUNED.so STATIC.so

Prints, for every specialization, the geometric mean of static time over tuned time and the worst, and how often the
tuned library's choice stood on which rung.
"""

from __future__ import annotations

import collections
import functools
import math
import statistics
import sys

import torch

import precast
from precast.check.problems import load_references
from precast.reference import ShapesOnly
from precast.tune.gpu_bench import FLUSH_BYTES, EventClock


def main(family: str, name: str, tuned_path: str, static_path: str) -> None:
    reference = load_references(family)[0][name]
    tuned, static = (precast.load(p).operators[name] for p in (tuned_path, static_path))
    clock = EventClock(torch, torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda"))
    ratios: dict[str, list[float]] = {}
    rungs: collections.Counter[str] = collections.Counter()
    for problem in reference.tuning:
        drawn = reference.inputs(problem, ShapesOnly())
        inputs = {
            n: torch.randn(a.shape, dtype=torch.bfloat16, device="cuda") if hasattr(a, "shape") else a
            for n, a in drawn.items()
        }
        made = tuned(**inputs)
        outputs = [a["name"] for a in tuned.facts["arguments"] if a.get("output")]
        given = inputs | dict(zip(outputs, [made] if len(outputs) == 1 else list(made), strict=True))
        facts = tuned.explain(**given)
        rungs[facts["rung"]] += 1
        calls = [functools.partial(f.function, *f.bind(**given)) for f in (tuned, static)]
        rounds = [clock.round(calls if i % 2 else calls[::-1]) for i in range(12)]
        times = [r if i % 2 else r[::-1] for i, r in enumerate(rounds)][2:]
        one, other = (statistics.median(t[i] for t in times) for i in range(2))
        key = " ".join(f"{k}={v}" for k, v in facts["specialization"].items())
        ratios.setdefault(key, []).append(other / one)
    for key, values in ratios.items():
        mean = math.exp(statistics.fmean(map(math.log, values)))
        print(f"{key}: {len(values)} problems, static over tuned {mean:.3f} (geometric mean), {max(values):.2f} worst, "
              f"{min(values):.2f} least")  # fmt: skip
    print(dict(rungs))


if __name__ == "__main__":
    main(*sys.argv[1:])
