"""How much slower dispatch is than the best config known, on problems that it has seen and on ones that it hasn't.

Beside our own dispatch stand the rules that others use, worked out from the same measurements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from precast.dispatch.select import FloatArray, Selected, Timings, log_regret, select
from precast.dispatch.tree import Derived, Tree, grow, walk

__all__ = ["RULES", "Regret", "Report", "Rule", "evaluate", "nearest", "one_for_all", "smallest_bin", "split"]

Rule = Callable[[tuple[int, ...]], int]
"""Which config, as an index into the timings', a problem gets."""


@dataclass(frozen=True)
class Regret:
    """Regret (time over best time, minus 1) of the choices for some problems.

    Attributes:
        problems: indices of the problems, in the order of their keys.
        regrets: of each; inf if the choice can't run there; problems whose choice wasn't measured are left out.
        mean: weighted by how often each problem runs.
        worst: the largest.
        unmeasured: how many problems were left out.
    """

    problems: tuple[int, ...]
    regrets: tuple[float, ...]
    mean: float
    worst: float
    unmeasured: int = 0


@dataclass(frozen=True)
class Report:
    """What `evaluate` found.

    Attributes:
        selected: the configs kept, chosen on the training problems.
        tree: grown on the training problems.
        training: regret of each rule, by name, on the problems that it was made from.
        held_out: the same on the others.
    """

    selected: Selected
    tree: Tree
    training: dict[str, Regret]
    held_out: dict[str, Regret]


def split(keys: Sequence[tuple[int, ...]], fraction: float) -> tuple[list[int], list[int]]:
    """Indices to train on, and to hold out: the `fraction` of the keys with the lowest hash, whatever their order."""
    if not 0 <= fraction < 1:
        raise ValueError(f"the fraction held out is {fraction}, but must be at least 0 and below 1")

    def digest(i: int) -> bytes:
        return hashlib.sha256(",".join(map(str, keys[i])).encode()).digest()

    order = sorted(range(len(keys)), key=digest)
    held = set(order[: round(len(keys) * fraction)])
    return [i for i in range(len(keys)) if i not in held], sorted(held)


def _winners(timings: Timings) -> dict[tuple[int, ...], int]:
    """The measured winner of each problem that something ran; of equals, the first by name."""
    plain, columns = timings.canonical()
    times = np.where(np.isnan(plain.times), np.inf, plain.times)
    return {key: columns[int(row.argmin())] for key, row in zip(plain.keys, times)}


def _distance(a: Sequence[int], b: Sequence[int]) -> float:
    """Sum over the fields of how far the logs are apart."""
    return float(np.abs(np.log2(np.maximum(a, 0.5)) - np.log2(np.maximum(b, 0.5))).sum())


def smallest_bin(timings: Timings) -> Rule:
    """AOTriton's rule: each value of the key is rounded up to the smallest one tuned, or down to the largest.

    AOTriton tunes a full grid of bins; where the bin has no measurement here, the nearest problem (in log key) of
    those measured stands for it.
    """
    winners = _winners(timings)
    bins = [sorted({key[field] for key in winners}) for field in range(len(timings.fields))]

    def rule(key: tuple[int, ...]) -> int:
        at = tuple(min((b for b in known if b >= value), default=known[-1]) for value, known in zip(key, bins))
        return winners[at if at in winners else min(winners, key=lambda other: (_distance(at, other), other))]

    return rule


def nearest(timings: Timings) -> Rule:
    """vLLM's rule: the winner of the nearest problem measured.

    vLLM has one key field, and takes the absolute difference. Differences of several fields can't be added up as
    they are, so here the distance is the sum of the differences of their logs, unless there is one field only.
    """
    winners = _winners(timings)

    def distance(a: tuple[int, ...], b: tuple[int, ...]) -> float:
        return abs(a[0] - b[0]) if len(a) == 1 else _distance(a, b)

    return lambda key: winners[min(winners, key=lambda other: (distance(key, other), other))]


def one_for_all(timings: Timings) -> Rule:
    """One config for all problems: of those that run everywhere, the one with the best (weighted) geometric mean."""
    plain, columns = timings.canonical()
    regret = log_regret(plain)
    fails = np.isinf(regret).sum(axis=0)
    means = np.round(plain.weights @ np.where(np.isinf(regret), 0, regret), 9)
    best = columns[min(range(len(columns)), key=lambda j: (fails[j], means[j], j))]
    return lambda key: best


RULES: dict[str, Callable[[Timings], Rule]] = {
    "smallest bin": smallest_bin,
    "nearest": nearest,
    "one config": one_for_all,
}
"""What others do, by name."""


def measure_rule(timings: Timings, problems: Iterable[int], rule: Rule) -> Regret:
    """Regret of a rule's choices for some of the problems; those that nothing could run don't count."""
    best: FloatArray = timings.best()
    order = sorted((i for i in problems if np.isfinite(best[i])), key=timings.keys.__getitem__)
    chosen = [float(timings.times[i, rule(timings.keys[i])]) for i in order]
    known = [(i, time / float(best[i]) - 1) for i, time in zip(order, chosen) if not np.isnan(time)]
    rows, regrets = tuple(i for i, _ in known), tuple(r for _, r in known)
    mean = float(np.average(regrets, weights=timings.weights[list(rows)])) if known else 0.0
    return Regret(rows, regrets, mean, max(regrets, default=0.0), len(order) - len(known))


def evaluate(
    timings: Timings,
    held_out: float | Sequence[int] = 1 / 3,
    *,
    max_regret: float = 0.03,
    max_bytes: float | None = None,
    derive: Callable[[tuple[int, ...]], Derived | None] = lambda kept: None,
) -> Report:
    """Makes dispatch, and what others would do, from a part of the problems, and measures all on both parts.

    Args:
        held_out: indices of the problems to hold out, or which share of them.
        max_regret: see `select`.
        max_bytes: see `select`.
        derive: fields to split on besides the timings' own, for the configs kept (indices).

    Rules in the report: "precast", those of `RULES`, "kept" (the best of the configs kept) and "oracle".
    """
    everything = range(len(timings.keys))
    held = split(timings.keys, held_out)[1] if isinstance(held_out, float | int) else sorted(set(held_out))
    train = [i for i in everything if i not in set(held)]
    seen = timings.problems(train)
    if not np.isfinite(seen.best()).any():
        raise ValueError("none of the problems to train on has a time")
    selected = select(seen, max_regret=max_regret, max_bytes=max_bytes)
    derived = derive(selected.configs)
    tree = grow(seen, selected.configs, derived=derived, max_regret=max_regret)
    times = np.where(np.isnan(timings.times), np.inf, timings.times)
    row = {key: i for i, key in enumerate(timings.keys)}

    def ours(key: tuple[int, ...]) -> int:
        return walk(tree, (*key, *derived.values(key)) if derived else key)[0]

    def kept(key: tuple[int, ...]) -> int:
        return min(selected.configs, key=lambda j: (times[row[key], j], timings.configs[j]))

    rules: dict[str, Rule] = {"precast": ours}
    rules |= {name: make(seen) for name, make in RULES.items()}
    rules |= {"kept": kept, "oracle": lambda key: int(times[row[key]].argmin())}
    return Report(
        selected,
        tree,
        {name: measure_rule(timings, train, rule) for name, rule in rules.items()},
        {name: measure_rule(timings, held, rule) for name, rule in rules.items()},
    )
