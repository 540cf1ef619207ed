"""What runs in a worker process: one bench, opened once, and the tasks that it is given.

An error that spoils the GPU's context is reported, and the process ends itself at its next task: whoever gave the
task sees it die with `POISONED` and gives it to the process that takes its place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from precast.errors import UserError
from precast.tune.bench import Bench, BenchPoisoned, GateResult, Prepared, TimeResult, TimingSettings, open_bench

__all__ = ["POISONED", "GateTask", "PrepareTask", "Source", "TimeTask", "run_task", "start_worker"]

POISONED = 70
"""Exit code of a worker whose context was spoilt by the task before."""


@dataclass(frozen=True)
class Source:
    """Where candidates come from: a pack, its family, and the bench that runs them, "module:class"."""

    pack: str
    family: str
    bench: str


@dataclass(frozen=True)
class PrepareTask:
    """Which specializations and keys problems have; and what the device is."""

    source: Source
    operator: str
    problems: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class GateTask:
    """Proves one candidate."""

    source: Source
    operator: str
    specialization: str
    candidate: int


@dataclass(frozen=True)
class TimeTask:
    """Times candidates on one problem."""

    source: Source
    operator: str
    problem: Mapping[str, Any]
    candidates: tuple[int, ...]
    settings: TimingSettings


@dataclass(frozen=True)
class Done:
    """A task's result, the seconds that it took, and the device's facts."""

    result: Any
    seconds: float
    facts: Mapping[str, str]


_benches: dict[Source, Bench] = {}
_poisoned = False


def start_worker(device: str | None = None) -> None:
    """Initializer of a worker: which GPU it sees; it leaves Ctrl-C to its parent."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
        os.environ["HIP_VISIBLE_DEVICES"] = device


def _bench(source: Source) -> Bench:
    if source not in _benches:
        _benches.clear()  # one pack's modules in the GPU's memory at a time
        _benches[source] = open_bench(source.bench, source.pack, source.family)
    return _benches[source]


def run_task(task: PrepareTask | GateTask | TimeTask) -> Done:
    """Does a task; never raises what its process survives."""
    global _poisoned
    if _poisoned:
        os._exit(POISONED)
    start = time.monotonic()
    bench = _bench(task.source)
    facts = bench.facts()
    result: list[Prepared] | GateResult | list[TimeResult]
    try:
        if isinstance(task, PrepareTask):
            result = [bench.prepare(task.operator, p) for p in task.problems]
        elif isinstance(task, GateTask):
            result = bench.gate(task.operator, task.specialization, task.candidate)
        else:
            result = bench.time(task.operator, task.problem, task.candidates, task.settings)
    except BenchPoisoned as error:
        _poisoned = True
        if isinstance(task, TimeTask):
            result = [TimeResult("crash", reason=str(error)) for _ in task.candidates]
        elif isinstance(task, GateTask):
            result = GateResult("crash", {}, "", reason=str(error))
        else:
            raise UserError(f"the GPU can't be used: {error}") from error
    return Done(result, time.monotonic() - start, facts)
