"""The correctness gate: what a candidate must prove before its time counts.

On every problem of the family's reference that has the candidate's specialization, in every memory layout that
the candidate takes: outputs are poisoned with two different values in two runs, so an element that keeps the poison
was not written; the error is at most twice that of a plain implementation, plus rounding; guard zones around every
tensor stay untouched; the runs are bitwise equal, unless the reference says that they need not be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from precast.check.placed import LAYOUTS, Layout, PlacedArray, to_numpy
from precast.reference import Array, Reference, compare
from precast.runtime import Operator
from precast.runtime.errors import InvalidArgumentError, UnsupportedError
from precast.tune.bench import GateResult

__all__ = ["Gate"]

SEED = 22
RACE_RUNS = 6
"""Runs of the largest problem, all of which must give the same bits."""

POISONS = (0xFF, 0x7F)
"""Bytes that outputs are filled with: NaN or a huge number in floating point, and unlikely integers."""


@dataclass
class _Case:
    problem: Mapping[str, Any]
    inputs: dict[str, Any]
    wanted: dict[str, Array]
    plain: dict[str, Array]
    magnitudes: Mapping[str, float]

    @property
    def size(self) -> int:
        """Elements of the outputs."""
        return sum(a.size for a in self.wanted.values())


class Gate:
    """Proves candidates of one operator; references are computed once a specialization."""

    def __init__(self, operator: Operator, reference: Reference, torch: Any) -> None:
        self.operator, self.reference, self.torch = operator, reference, torch
        self._problems: dict[str | None, list[Mapping[str, Any]]] | None = None
        self._cases: tuple[str | None, list[_Case]] = (None, [])

    def _cases_of(self, specialization: str) -> list[_Case]:
        if self._problems is None:
            self._problems = {}
            for problem in self.reference.all_problems:
                self._problems.setdefault(self._specialization(problem), []).append(problem)
        if self._cases[0] != specialization:
            self._cases = (specialization, [self._case(p) for p in self._problems.get(specialization, [])])
        return self._cases[1]

    def _specialization(self, problem: Mapping[str, Any]) -> str | None:
        """The specialization that a problem has; None if the library refuses it."""
        inputs = self.reference.inputs(problem, np.random.default_rng(SEED))
        arrays = {n: a for n, a in inputs.items() if isinstance(a, np.ndarray)}
        tensors = {n: PlacedArray(a, LAYOUTS[0], self.torch).view for n, a in arrays.items()}
        try:
            labels = self.operator.explain(**{**inputs, **tensors})["specialization"]
        except (UnsupportedError, InvalidArgumentError):
            return None
        return " ".join(f"{k}={v}" for k, v in labels.items())

    def _case(self, problem: Mapping[str, Any]) -> _Case:
        inputs = self.reference.inputs(problem, np.random.default_rng(SEED))
        r = self.reference
        return _Case(problem, inputs, r.reference(inputs), r.naive(inputs), r.magnitudes(inputs))

    def prove(self, candidate: Operator, specialization: str) -> GateResult:
        """Runs a candidate on everything; the first failure ends it, else the worst error is given."""
        cases = self._cases_of(specialization)
        if not cases:
            reason = f"no problem of the reference has {specialization}: add one to its `more`"
            return GateResult("unverified", {}, "", reason=reason)
        worst, runs, layouts = GateResult("ok", {}, ""), 0, set()
        largest = max(cases, key=lambda c: c.size)
        for case in cases:
            for layout in LAYOUTS:
                result = self._try(candidate, case, layout, RACE_RUNS if case is largest else len(POISONS))
                if result is None:
                    continue
                runs += result.runs
                layouts.add(layout.name)
                if result.status != "ok":
                    return result
                if not worst.layout or result.error * worst.allowed >= worst.error * result.allowed:
                    worst = result
        if not layouts:
            reason = f"none of {len(cases)} problems is for this config"
            return GateResult("unverified", {}, "", reason=reason)
        tried = f"{len(cases)} problems; layouts: {', '.join(n.name for n in LAYOUTS if n.name in layouts)}"
        return GateResult("ok", worst.problem, worst.layout, worst.error, worst.allowed, runs, tried)

    def _try(self, candidate: Operator, case: _Case, layout: Layout, runs: int) -> GateResult | None:
        """One problem in one layout; None if the candidate does not take it."""
        torch = self.torch
        arrays = {n: a for n, a in case.inputs.items() if isinstance(a, np.ndarray)}
        placed = {n: PlacedArray(a, layout, torch) for n, a in arrays.items()}
        empty = {n: np.empty(w.shape, case.plain[n].dtype) for n, w in case.wanted.items()}
        outputs = {n: PlacedArray(a, layout, torch) for n, a in empty.items()}
        scalars = {n: v for n, v in case.inputs.items() if n not in arrays}
        arguments = {n: p.view for n, p in {**placed, **outputs}.items()} | scalars
        results: list[dict[str, Array]] = []
        for run in range(runs):
            for place in outputs.values():
                place.fill(POISONS[run % len(POISONS)])
            try:
                candidate(**arguments)
            except (UnsupportedError, InvalidArgumentError):
                return None
            torch.cuda.synchronize()
            results.append({n: to_numpy(p.view, case.plain[n].dtype, torch) for n, p in outputs.items()})

        def failed(status: str, reason: str, error: float = -1.0, allowed: float = -1.0) -> GateResult:
            return GateResult(status, case.problem, layout.name, error, allowed, runs, reason)

        for name, place in {**placed, **outputs}.items():
            if not place.untouched():
                return failed("guard", f"bytes around {name} were written")
        for name in outputs:
            if kept := _unwritten(*(r[name] for r in results[:2])):
                return failed("unwritten", f"{kept} elements of {name} were not written")
        worst, allowed = 0.0, 0.0
        for name in outputs:
            for result in results:
                c = compare(result[name], case.wanted[name], case.plain[name], case.magnitudes.get(name, 0.0))
                if not c.ok and self.reference.deterministic and not _all_equal([r[name] for r in results]):
                    return failed("race", f"{name} differs between runs", c.error, c.allowed)
                if not c.ok:
                    return failed("wrong", f"{name}: error {c.error:.3g}, allowed {c.allowed:.3g}", c.error, c.allowed)
                if allowed == 0 or c.error * allowed > worst * c.allowed:
                    worst, allowed = c.error, c.allowed
            if self.reference.deterministic and not _all_equal([r[name] for r in results]):
                return failed("race", f"{name} differs between runs", worst, allowed)
        return GateResult("ok", case.problem, layout.name, worst, allowed, runs)


def _all_equal(arrays: list[Array]) -> bool:
    return all(a.tobytes() == arrays[0].tobytes() for a in arrays[1:])


def _unwritten(first: Array, second: Array) -> int:
    """Elements that kept both poisons."""
    kept = [
        (np.ascontiguousarray(a).view(np.uint8).reshape(a.size, a.itemsize) == poison).all(axis=1)
        for a, poison in zip((first, second), POISONS, strict=True)
    ]
    return int((kept[0] & kept[1]).sum()) if first.size else 0
