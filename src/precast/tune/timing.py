"""Interleaved timing: every candidate takes its turn in each round, so that drift hits all alike.

The device is behind a `Clock`, so that the statistics are tested without a GPU.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Protocol

from precast.tune.bench import TimingSettings

__all__ = ["Clock", "interleaved", "uncertainty"]


class Clock(Protocol):
    """Times launches on a device."""

    def round(self, launches: Sequence[Callable[[], None]]) -> list[float]:
        """Launches each once with a cold cache, waits, and gives the device's time of each in microseconds."""
        ...


def uncertainty(times: Sequence[float]) -> float:
    """Standard error of the median over the median, from the quartiles: robust against single slow runs.

    For a normal distribution the interquartile range is 1.349 sigma and the median's standard error
    1.253 sigma / sqrt(n).
    """
    if len(times) < 3:
        return float("inf")
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    middle = statistics.median(times)
    return 1.253 * (high - low) / 1.349 / len(times) ** 0.5 / middle if middle > 0 else 0.0


def interleaved(clock: Clock, launches: Sequence[Callable[[], None]], settings: TimingSettings) -> list[list[float]]:
    """Times of each launch in microseconds, as many as the choice between them needs.

    Rounds start with another candidate each. After `min_repeats` rounds, candidates whose fastest run is clearly
    slower than the best median are given up; the others go on until their medians are known to `precision`, or
    are told apart.
    """
    times: list[list[float]] = [[] for _ in launches]
    alive = list(range(len(launches)))
    spent = 0.0
    for number in range(settings.max_repeats if launches else 0):
        turn = number % len(alive)
        order = alive[turn:] + alive[:turn]
        for index, taken in zip(order, clock.round([launches[i] for i in order]), strict=True):
            times[index].append(taken)
            spent += taken
        if number + 1 < settings.min_repeats:
            continue
        best = min(statistics.median(times[i]) for i in alive)
        if not settings.exhaustive:
            alive = [i for i in alive if not _lost(times[i], best, settings.loser, number + 1)]
        if all(uncertainty(times[i]) <= settings.precision for i in alive):
            break
        if not settings.exhaustive and len(alive) == 1 and number + 1 >= 2 * settings.min_repeats:
            break
        if spent / max(1, len(alive)) > settings.max_seconds * 1e6:
            break
    return times


def _lost(times: Sequence[float], best: float, factor: float, rounds: int) -> bool:
    """The more runs there are, the smaller the gap that tells."""
    needed = 1 + (factor - 1) * max(0.25, 3 / rounds)
    return min(times) > best * needed
