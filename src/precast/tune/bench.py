"""What a bench does: runs candidates of a pack on problems. `gpu_bench` is the real one; tests have others.

A bench lives in a worker process, which loads it by name; what it returns are plain values.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from precast.errors import UserError

__all__ = ["Bench", "BenchPoisoned", "GateResult", "Prepared", "TimeResult", "TimingSettings", "open_bench"]

GPU_BENCH = "precast.tune.gpu_bench:GpuBench"


class BenchPoisoned(Exception):  # noqa: N818
    """The GPU's context can't be used any more: the worker has to be replaced."""


@dataclass(frozen=True)
class TimingSettings:
    """How long to measure.

    Attributes:
        min_repeats: runs of every candidate, before any is given up.
        max_repeats: runs of a candidate, at the most.
        max_seconds: GPU time of one candidate on one problem, about.
        loser: a candidate is given up when its fastest run is slower than the best's median by this factor.
        precision: measuring stops when the median's uncertainty is below this share of it.
        exhaustive: measure every candidate to the end, clear losers too.
    """

    min_repeats: int = 3
    max_repeats: int = 30
    max_seconds: float = 0.2
    loser: float = 1.2
    precision: float = 0.004
    exhaustive: bool = False


@dataclass(frozen=True)
class Prepared:
    """A problem, as the library sees it.

    Attributes:
        specialization: the text by which packs name it.
        labels: type variables and features, as the library names their values.
        key: the tuning key.
        refused: why the library can't do it; empty if it can.
    """

    specialization: str
    labels: Mapping[str, str] = field(default_factory=dict)
    key: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True)
class GateResult:
    """What the correctness gate found for one candidate: the worst of all problems and layouts."""

    status: str
    problem: Mapping[str, Any]
    layout: str
    error: float = -1.0
    allowed: float = -1.0
    runs: int = 0
    reason: str = ""


@dataclass(frozen=True)
class TimeResult:
    """Times of one candidate on one problem, in microseconds, or why there are none."""

    status: str
    times: tuple[float, ...] = ()
    reason: str = ""
    clock_mhz: int = 0
    notes: str = ""


class Bench(Protocol):
    """Runs candidates. Made with the pack's path and the family's folder or name."""

    def facts(self) -> Mapping[str, str]:
        """Device, driver: as they are recorded."""
        ...

    def prepare(self, operator: str, problem: Mapping[str, Any]) -> Prepared:
        """Which specialization and key a problem has; launches nothing."""
        ...

    def gate(self, operator: str, specialization: str, candidate: int) -> GateResult:
        """Proves a candidate, by its number in the specialization, on the family's small problems.

        Raises:
            BenchPoisoned: after an error that the GPU's context does not survive.
        """
        ...

    def time(
        self, operator: str, problem: Mapping[str, Any], candidates: Sequence[int], settings: TimingSettings
    ) -> list[TimeResult]:
        """Times candidates on one problem, interleaved.

        Raises:
            BenchPoisoned: after an error that the GPU's context does not survive.
        """
        ...


def open_bench(name: str, pack: str, family: str) -> Bench:
    """A bench by "module:class"."""
    module, _, attribute = name.partition(":")
    try:
        made: Bench = getattr(importlib.import_module(module), attribute)(pack, family)
    except ImportError as error:
        raise UserError(f"the bench {name} can't be loaded: {error}") from error
    return made
