"""Interleaved timing, with a clock that makes times up."""

from __future__ import annotations

import random

from precast.tune.bench import TimingSettings
from precast.tune.timing import interleaved, uncertainty


class Clock:
    """Times by candidate with noise and a drift that hits all alike."""

    def __init__(self, means: list[float], noise: float = 0.01) -> None:
        self.means, self.noise, self.random, self.rounds = means, noise, random.Random(5), 0

    def round(self, launches):
        self.rounds += 1
        drift = 1 + 0.02 * self.rounds
        return [self.means[launch()] * drift * (1 + self.random.gauss(0, self.noise)) for launch in launches]


def launches(count: int):
    return [lambda i=i: i for i in range(count)]


def test_losers_are_given_up_and_the_best_measured_on() -> None:
    clock = Clock([10.0, 30.0, 10.2, 11.0])
    times = interleaved(clock, launches(4), TimingSettings(max_repeats=20, precision=1e-9))
    assert len(times[1]) == 3
    assert len(times[0]) == len(times[2]) == 20


def test_exhaustive_measures_all_alike() -> None:
    times = interleaved(Clock([10.0, 30.0]), launches(2), TimingSettings(max_repeats=7, precision=0, exhaustive=True))
    assert [len(t) for t in times] == [7, 7]


def test_none_and_one() -> None:
    assert interleaved(Clock([]), [], TimingSettings(max_repeats=4)) == []
    (only,) = interleaved(Clock([5.0]), launches(1), TimingSettings())
    assert 3 <= len(only) <= 30


def test_uncertainty_shrinks_with_runs() -> None:
    noise = random.Random(1)
    few = [10 + noise.gauss(0, 1) for _ in range(10)]
    many = [10 + noise.gauss(0, 1) for _ in range(1000)]
    assert uncertainty(many) < uncertainty(few)
    assert uncertainty([1.0]) == float("inf")
