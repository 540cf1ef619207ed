"""Measuring a pack's candidates: gate, then time, each result stored as soon as it is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from precast.database.records import QUANTILES, Evidence, Measurement, Origin, Record, Subject, canonical_json
from precast.errors import UserError
from precast.tune.bench import GPU_BENCH, GateResult, Prepared, TimeResult, TimingSettings
from precast.tune.candidates import Candidate, CandidatePack, subject_values
from precast.tune.pool import Died, TimedOut, WorkerPool, outcome
from precast.tune.problems import TuningProblem, problem_key
from precast.tune.worker import GateTask, PrepareTask, Source, TimeTask, run_task

__all__ = ["MeasureOptions", "Measuring", "Progress", "Tally"]

RESTARTS = 3
"""Times that a task is given again because its worker died of the task before."""

PREPARED_AT_A_TIME = 16


@dataclass(frozen=True)
class MeasureOptions:
    """How to measure.

    Attributes:
        settings: of the timing.
        gate: prove each candidate first; without, it is recorded as unverified.
        prune_spills: leave out candidates that spill more bytes a thread than this; None for none.
        budget: seconds after which nothing new is begun.
        task_seconds: that a worker may take for one candidate's gate, or for one problem's times.
        run: names this run in the records.
        bench: what runs candidates, "module:class".
    """

    settings: TimingSettings = field(default_factory=TimingSettings)
    gate: bool = True
    prune_spills: int | None = 256
    budget: float | None = None
    task_seconds: float = 120.0
    run: str = ""
    bench: str = GPU_BENCH


@dataclass
class Tally:
    """How far measuring is. Counts are of (candidate, problem) pairs but for `gated` and `failed`."""

    total: int = 0
    measured: int = 0
    known: int = 0
    gated: int = 0
    failed: int = 0
    pruned: int = 0
    refused: list[str] = field(default_factory=list)
    gpu_seconds: float = 0.0
    out_of_budget: bool = False

    @property
    def done(self) -> int:
        """Pairs that need nothing more."""
        return self.measured + self.known


Progress = Callable[[Tally, Record], None]


def _identity(subject: Subject, source: str) -> str:
    """One text for records of the same code on the same device."""
    return canonical_json({**asdict(subject), "source": source})


@dataclass
class _Group:
    """Problems of one specialization."""

    operator: str
    specialization: str
    problems: list[tuple[TuningProblem, Mapping[str, int]]] = field(default_factory=list)


class Measuring:
    """Measures one pack. `store` is called with each record as soon as it is there."""

    def __init__(
        self,
        pack: CandidatePack,
        family: str,
        pool: WorkerPool,
        options: MeasureOptions,
        store: Callable[[Record], None],
        known: Sequence[Record] = (),
        progress: Progress | None = None,
    ) -> None:
        self.pack, self.pool, self.options, self.store, self.progress = pack, pool, options, store, progress
        self.source = Source(str(pack.path), family, options.bench)
        self.tally = Tally()
        self.facts: Mapping[str, str] = {}
        self._proofs: dict[str, set[str]] = {}
        self._times: dict[str, set[str]] = {}
        for record in known:
            if record.origin.triton == pack.triton and not record.origin.importer:
                place = _identity(record.subject, record.origin.source)
                if isinstance(record, Evidence):
                    self._proofs.setdefault(place, set()).add(record.status)
                elif record.status != "pruned":
                    self._times.setdefault(place, set()).add(problem_key(record.problem))
        self._start = time.monotonic()

    def run(self, problems: Sequence[TuningProblem]) -> Tally:
        """Measures every candidate on every problem that is not measured yet."""
        for group in self._groups(problems):
            if self._over():
                break
            candidates = self._prune(group, self.pack.specializations[group.operator][group.specialization])
            proven = self._gate(group, candidates) if self.options.gate else self._unproven(group, candidates)
            self._time(group, proven)
        return self.tally

    def _over(self) -> bool:
        budget = self.options.budget
        if budget is not None and time.monotonic() - self._start > budget:
            self.tally.out_of_budget = True
        return self.tally.out_of_budget

    def _put(self, record: Record) -> None:
        self.store(record)
        if self.progress:
            self.progress(self.tally, record)

    def _do(self, tasks: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        """Each task with its result or the exception that ended it, a few at a time, in no order."""
        running: dict[Future[Any], tuple[Any, int]] = {}
        exhausted = False
        while True:
            while not exhausted and len(running) < 2 * self.pool.width:
                task = None if self._over() else next(tasks, None)
                if task is None:
                    exhausted = True
                else:
                    running[self._submit(task)] = (task, 0)
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task, tries = running.pop(future)
                try:
                    done = outcome(future)
                except Died as error:
                    if error.poisoned and tries < RESTARTS:
                        running[self._submit(task)] = (task, tries + 1)
                        continue
                    yield task, error
                except TimedOut as error:
                    yield task, error
                else:
                    self.facts = done.facts
                    self.tally.gpu_seconds += done.seconds
                    yield task, done.result

    def _submit(self, task: Any) -> Future[Any]:
        return self.pool.submit(run_task, task, timeout=self.options.task_seconds)

    def _groups(self, problems: Sequence[TuningProblem]) -> list[_Group]:
        """Problems by specialization, those that the library refuses reported."""
        by_operator: dict[str, list[TuningProblem]] = {}
        for problem in problems:
            if problem.operator not in self.pack.specializations:
                raise UserError(
                    f"the pack has no operator {problem.operator}; it has {', '.join(self.pack.specializations)}"
                )
            by_operator.setdefault(problem.operator, []).append(problem)
        groups: dict[tuple[str, str], _Group] = {}
        tasks = []
        for operator, wanted in by_operator.items():
            for i in range(0, len(wanted), PREPARED_AT_A_TIME):
                tasks.append((operator, wanted[i : i + PREPARED_AT_A_TIME]))
        order = {id(p): i for i, p in enumerate(problems)}
        found: list[tuple[int, TuningProblem, Prepared]] = []
        given = {}
        for operator, part in tasks:
            task = PrepareTask(self.source, operator, tuple(p.problem for p in part))
            given[id(task)] = (task, part)
        for task, result in self._do(t for t, _ in given.values()):
            if isinstance(result, Exception):
                raise UserError(f"the bench can't prepare problems: {result}")
            found += [(order[id(p)], p, r) for p, r in zip(given[id(task)][1], result, strict=True)]
        for _, problem, prepared in sorted(found, key=lambda f: f[0]):
            known = self.pack.specializations[problem.operator]
            if prepared.refused or prepared.specialization not in known:
                text = problem_key(problem.problem)
                self.tally.refused.append(
                    f"{problem.operator} {text}: {prepared.refused or prepared.specialization + ' is not in the pack'}"
                )
                continue
            place = (problem.operator, prepared.specialization)
            groups.setdefault(place, _Group(*place)).problems.append((problem, prepared.key))
        for place, group in groups.items():
            self.tally.total += len(group.problems) * len(self.pack.specializations[place[0]][place[1]])
        return [groups[p] for p in sorted(groups)]

    def _subject(self, group: _Group, candidate: Candidate) -> Subject:
        types, features = subject_values(self.pack, group.operator, group.specialization)
        device = self.facts.get("device", "")
        return Subject(
            self.pack.family,
            group.operator,
            self.pack.target,
            device,
            types,
            features,
            candidate.plan,
            candidate.config,
        )

    def _origin(self, candidate: Candidate) -> Origin:
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Origin(candidate.source, self.pack.triton, self.facts.get("driver", ""), date, self.options.run)

    def _prune(self, group: _Group, candidates: Sequence[Candidate]) -> list[Candidate]:
        limit = self.options.prune_spills
        kept = [c for c in candidates if limit is None or c.spills <= limit]
        if not kept:
            return list(candidates)
        for candidate in candidates:
            if candidate not in kept:
                self.tally.pruned += 1
                self.tally.total -= len(group.problems)
                reason = (
                    f"spills {candidate.spills} bytes a thread; at most {limit} are tried (--keep-spills tries all)"
                )
                for problem, key in group.problems[:1]:
                    self._put(self._measurement(group, candidate, problem, key, TimeResult("pruned", reason=reason)))
        return kept

    def _unproven(self, group: _Group, candidates: Sequence[Candidate]) -> list[Candidate]:
        for candidate in candidates:
            result = GateResult("unverified", {}, "", reason="the gate was overridden")
            self._put(self._evidence(group, candidate, result))
        return list(candidates)

    def _gate(self, group: _Group, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates that pass, in their order."""
        known = {c.number: self._known_evidence(group, c) for c in candidates}
        passed = {n for n, status in known.items() if status == "ok"}
        by_number = {c.number: c for c in candidates}
        tasks = (
            GateTask(self.source, group.operator, group.specialization, c.number)
            for c in candidates
            if known[c.number] is None
        )
        failed = {n for n, status in known.items() if status not in (None, "ok")}
        for task, result in self._do(tasks):
            candidate = by_number[task.candidate]
            if isinstance(result, Exception):
                status = "timeout" if isinstance(result, TimedOut) else "crash"
                seconds = f" in {self.options.task_seconds:g} s" if status == "timeout" else ""
                result = GateResult(status, {}, "", reason=f"not done{seconds}" if seconds else str(result))
            self.tally.gated += 1
            self._put(self._evidence(group, candidate, result))
            (passed if result.status == "ok" else failed).add(candidate.number)
        self.tally.failed += len(failed)
        self.tally.total -= len(failed) * len(group.problems)
        return [c for c in candidates if c.number in passed]

    def _known_evidence(self, group: _Group, candidate: Candidate) -> str | None:
        """What the gate found before; None if it was not asked, or overridden."""
        place = _identity(self._subject(group, candidate), candidate.source)
        found = self._proofs.get(place, set()) - {"unverified"}
        return min(found - {"ok"}, default="ok") if found else None

    def _time(self, group: _Group, candidates: Sequence[Candidate]) -> None:
        by_number = {c.number: c for c in candidates}
        measured = {c.number: self._times.get(_identity(self._subject(group, c), c.source), set()) for c in candidates}
        given: dict[str, tuple[TuningProblem, Mapping[str, int]]] = {}

        def tasks() -> Iterator[TimeTask]:
            for problem, key in group.problems:
                text = problem_key(problem.problem)
                given[text] = (problem, key)
                missing = tuple(c.number for c in candidates if text not in measured[c.number])
                self.tally.known += len(candidates) - len(missing)
                if missing:
                    settings = self.options.settings
                    yield TimeTask(self.source, group.operator, problem.problem, missing, settings)

        waiting = [tasks()]
        while waiting:
            again: list[TimeTask] = []
            for task, result in self._do(waiting.pop()):
                problem, key = given[problem_key(task.problem)]
                lost = isinstance(result, Exception) or all(r.status == "crash" for r in result)
                if lost and len(task.candidates) > 1:
                    # One of them is at fault: halves tell which.
                    middle = len(task.candidates) // 2
                    halves = (task.candidates[:middle], task.candidates[middle:])
                    again += [replace(task, candidates=half) for half in halves]
                    continue
                if isinstance(result, Exception):
                    status = "timeout" if isinstance(result, TimedOut) else "crash"
                    result = [TimeResult(status, reason=str(result) or f"not done in {self.options.task_seconds:g} s")]
                for number, one in zip(task.candidates, result, strict=True):
                    self.tally.measured += 1
                    self._put(self._measurement(group, by_number[number], problem, key, one))
            if again:
                waiting.append(iter(again))

    def _measurement(
        self, group: _Group, candidate: Candidate, problem: TuningProblem, key: Mapping[str, int], result: TimeResult
    ) -> Measurement:
        times = tuple(round(float(q), 3) for q in np.quantile(result.times, QUANTILES)) if result.times else ()
        return Measurement(
            self._subject(group, candidate),
            self._origin(candidate),
            dict(key),
            dict(problem.problem),
            result.status,
            result.reason,
            times,
            len(result.times),
            candidate.registers,
            candidate.spills,
            candidate.shared,
            result.clock_mhz,
            result.notes,
        )

    def _evidence(self, group: _Group, candidate: Candidate, result: GateResult) -> Evidence:
        return Evidence(
            self._subject(group, candidate),
            self._origin(candidate),
            {k: v for k, v in result.problem.items() if isinstance(v, (int, float, str, bool))},
            result.layout,
            result.status,
            result.error,
            result.allowed,
            result.runs,
            result.reason,
        )
