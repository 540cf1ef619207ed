"""From the records of a database to the times that selection reads."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from precast.database.records import Evidence, Measurement, Subject
from precast.dispatch.select import Timings

__all__ = ["Gathered", "Group", "gather"]

FAILED = ("wrong", "unwritten", "guard", "race", "launch_error", "compile_error", "timeout", "out_of_memory", "crash")

Group = tuple[str, str, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
"""Target, device, types and features (as texts), sorted by name."""


@dataclass(frozen=True)
class Gathered:
    """What was measured of one operator and specialization on one device.

    Attributes:
        configs: plan and config of each column of the timings.
        stale: whether the rows are of other kernel sources than would be built now: hints, no measurements.
        unverified: configs that passed no gate here, imported ones among them.
        left_out: configs that were measured, but have no proof.
    """

    timings: Timings
    configs: tuple[tuple[str, str], ...]
    stale: bool = False
    unverified: int = 0
    left_out: int = 0


def group_of(subject: Subject) -> Group:
    """What dispatch tells apart before it reads the key."""
    types = tuple(sorted(subject.types.items()))
    features = tuple(sorted((k, str(v)) for k, v in subject.features.items()))
    return subject.target, subject.device, types, features


def gather(
    measurements: Iterable[Measurement],
    evidence: Iterable[Evidence],
    fields: Sequence[str],
    sources: Mapping[str, str],
    *,
    allow_unverified: bool = False,
) -> dict[Group, Gathered]:
    """Times of one operator by target, device, types and features.

    Where rows of today's kernel sources are there, others don't count. A config needs proof (evidence of the same
    source that is "ok", and none of a failure) unless `allow_unverified`. Times of one config on problems with equal
    keys are averaged (geometrically), of repeated runs the median is taken. An imported winner without a time
    counts as the only one that was measured on its problem.

    Args:
        fields: names of the tuning key's fields.
        sources: digest of the kernel sources that would be built now, by plan.
    """
    rows: dict[Group, list[Measurement]] = {}
    for m in measurements:
        if m.status in ("ok", "untimed") and all(f in m.key for f in fields):
            rows.setdefault(group_of(m.subject), []).append(m)
    proofs: dict[tuple[Group, str, str, str], set[str]] = {}
    for e in evidence:
        place = (group_of(e.subject), e.subject.plan, e.subject.config, e.origin.source)
        proofs.setdefault(place, set()).add(e.status)
    result = {}
    for group, found in sorted(rows.items()):
        fresh = [m for m in found if sources.get(m.subject.plan) == m.origin.source]
        used = fresh or found
        proven: list[Measurement] = []
        unproven: list[Measurement] = []
        for m in used:
            statuses = proofs.get((group, m.subject.plan, m.subject.config, m.origin.source), set())
            (proven if "ok" in statuses and not statuses & set(FAILED) else unproven).append(m)
        failed = {(g, p, c) for (g, p, c, _), statuses in proofs.items() if statuses & set(FAILED)}
        usable = [m for m in unproven if (group, m.subject.plan, m.subject.config) not in failed]
        names = {(m.subject.plan, m.subject.config) for m in unproven}
        taken = [*proven, *usable] if allow_unverified else proven
        if taken:
            unverified = len({(m.subject.plan, m.subject.config) for m in usable}) if allow_unverified else 0
            left_out = len(names) - unverified
            timings, configs = _timings(taken, fields)
            result[group] = Gathered(timings, configs, not fresh, unverified, left_out)
    return result


def _timings(rows: Sequence[Measurement], fields: Sequence[str]) -> tuple[Timings, tuple[tuple[str, str], ...]]:
    runs: dict[tuple[tuple[int, ...], tuple[str, str]], dict[str, list[float]]] = {}
    for m in rows:
        key = tuple(m.key[f] for f in fields)
        problem = repr(sorted(m.problem.items(), key=str))
        place = (key, (m.subject.plan, m.subject.config))
        runs.setdefault(place, {}).setdefault(problem, []).append(m.median if m.median is not None else 1.0)
    keys = sorted({k for k, _ in runs})
    configs = sorted({c for _, c in runs})
    times = np.full((len(keys), len(configs)), np.nan)
    for (key, config), by_problem in runs.items():
        medians = [statistics.median(sorted(v)) for v in by_problem.values()]
        times[keys.index(key), configs.index(config)] = statistics.geometric_mean(sorted(medians))
    names = tuple(f"{plan}: {config}" for plan, config in configs)
    return Timings(tuple(fields), tuple(keys), names, times), tuple(configs)
