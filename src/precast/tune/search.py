"""Which candidates to measure on which problems, and for how long.

A strategy is asked what to measure and told the results; it never measures. So the tuner, which measures on a GPU, and
`replay`, which looks up recorded measurements, drive the same code, and strategies are compared without a GPU.
A strategy is deterministic: the same seed, problems and candidates, in whatever order, give the same asks.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from precast.dispatch.select import FloatArray, Timings
from precast.errors import UserError, missing_extra

__all__ = ["STRATEGIES", "Ask", "Bayes", "Exhaustive", "Halving", "Overhead", "Random"]
__all__ += ["SearchReport", "Space", "Strategy", "replay"]

Value = int | str | None


@dataclass(frozen=True)
class Space:
    """What may be measured.

    Attributes:
        problems: values of the tuning key; distinct.
        configs: names of the candidates; distinct.
        parameters: of each candidate, by name, the plan among them; empty where a strategy needs none.
    """

    problems: tuple[tuple[int, ...], ...]
    configs: tuple[str, ...]
    parameters: tuple[Mapping[str, Value], ...] = ()


@dataclass(frozen=True)
class Ask:
    """Measure these configs (indices) on one problem (index), interleaved, each `repeats` times more."""

    problem: int
    configs: tuple[int, ...]
    repeats: int


class Strategy(Protocol):
    """What decides on measurements.

    Call `ask` and `tell` in turn: every config of every ask is told before the next `ask`. What an earlier run has
    measured is told before the first, and isn't asked for again.
    """

    @property
    def done(self) -> bool:
        """Whether there is nothing more to ask; known once `ask` has returned an empty list."""

    def ask(self) -> list[Ask]:
        """What to measure next; asks of one list don't depend on each other, so several GPUs may share them."""

    def tell(self, problem: int, config: int, time: float) -> None:
        """The time in microseconds over all repeats so far, or inf if it failed. What is told last stands."""


def _random(*seed: object) -> np.random.Generator:
    """Random numbers that depend on the seed's values only."""
    digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


class _Planned(ABC):
    """A strategy written as a generator of lists of asks, which reads `times` after each."""

    def __init__(self, space: Space, repeats: int = 10, seed: int = 0, workers: int = 1) -> None:
        if repeats < 1 or workers < 1:
            raise ValueError(f"{repeats} repeats and {workers} workers, but there must be at least 1 of each")
        self.space, self.repeats, self.seed, self.workers = space, repeats, seed, workers
        self.times: dict[tuple[int, int], float] = {}
        self.configs = sorted(range(len(space.configs)), key=space.configs.__getitem__)
        self.done = False
        self._steps = self._plan()

    @abstractmethod
    def _plan(self) -> Iterator[list[Ask]]:
        """What to measure, step by step."""

    def ask(self) -> list[Ask]:
        for asks in self._steps:
            asks = [ask for ask in asks if ask.configs]
            if asks:
                return asks
        self.done = True
        return []

    def tell(self, problem: int, config: int, time: float) -> None:
        self.times[problem, config] = time

    def new(self, problem: int) -> list[int]:
        """Configs that nothing is known of, in canonical order."""
        return [j for j in self.configs if (problem, j) not in self.times]

    def nearest(self, problem: int, among: Sequence[int], count: int) -> list[int]:
        """Of some problems, those nearest in log key."""
        at = _positions(self.space.problems)
        distance = np.round(np.abs(at - at[problem]).sum(axis=1), 9)
        return sorted(among, key=lambda i: (distance[i], self.space.problems[i]))[:count]

    def groups(self) -> Iterator[list[int]]:
        """Problems, as many at a time as there are workers."""
        order = _spread(self.space.problems)
        for at in range(0, len(order), self.workers):
            yield order[at : at + self.workers]


def _positions(problems: Sequence[tuple[int, ...]]) -> FloatArray:
    return np.log2(np.maximum(np.array([list(key) for key in problems], dtype=np.float64), 0.5))


def _spread(problems: Sequence[tuple[int, ...]]) -> list[int]:
    """Problems so that the first ones already lie everywhere: each the farthest, in log key, from those before.

    The largest comes first, since what is fast there matters most. T. F. Gonzalez, Theoretical Computer Science 38
    (1985).
    """
    canonical = sorted(range(len(problems)), key=problems.__getitem__)
    if not canonical:
        return []
    at = _positions([problems[i] for i in canonical])
    size = at.sum(axis=1)
    result = [int(np.round(size, 9).argmax())]
    distance = np.full(len(canonical), np.inf)
    while len(result) < len(canonical):
        distance = np.minimum(distance, np.abs(at - at[result[-1]]).sum(axis=1))
        distance[result] = -1
        result.append(int(np.round(distance, 9).argmax()))
    return [canonical[i] for i in result]


class Exhaustive(_Planned):
    """Everything, `repeats` times."""

    def _plan(self) -> Iterator[list[Ask]]:
        for group in self.groups():
            yield [Ask(i, tuple(self.new(i)), self.repeats) for i in group]


class Random(_Planned):
    """A share of the configs, drawn anew for each problem."""

    def __init__(self, space: Space, repeats: int = 10, seed: int = 0, workers: int = 1, share: float = 0.25) -> None:
        super().__init__(space, repeats, seed, workers)
        self.share = share

    def _plan(self) -> Iterator[list[Ask]]:
        count = max(1, math.ceil(self.share * len(self.configs)))
        for group in self.groups():
            yield [Ask(i, self.draw(i, count), self.repeats) for i in group]

    def draw(self, problem: int, count: int) -> tuple[int, ...]:
        drawn = _random(self.seed, self.space.problems[problem]).permutation(len(self.configs))[:count]
        return tuple(j for k in sorted(drawn) if (problem, j := self.configs[k]) not in self.times)


class Halving(_Planned):
    """Few repeats for all, more for those still in the race; and what loses nearby isn't tried at all.

    Successive halving (Jamieson & Talwalkar, AISTATS 2016) with a margin in place of a fixed share: a round drops what
    is slower than the best by more than noise explains. Across problems, a config is tried only if it was within
    `transfer` of the best at one of the `neighbours` nearest problems already measured; of the others, a share is tried
    all the same. The first problems, `scouts`, try all configs.
    """

    ROUNDS = ((1, 0.25), (3, 0.08))
    """Repeats so far, and how much slower than the best a config may be to stay."""

    def __init__(
        self,
        space: Space,
        repeats: int = 10,
        seed: int = 0,
        workers: int = 1,
        transfer: float = 0.25,
        neighbours: int = 6,
        scouts: int = 6,
        explore: float = 0.05,
    ) -> None:
        super().__init__(space, repeats, seed, workers)
        self.transfer, self.neighbours, self.scouts, self.explore = transfer, neighbours, scouts, explore
        self.measured: list[int] = []

    def _plan(self) -> Iterator[list[Ask]]:
        for group in self.groups():
            racing = {i: self.candidates(i) for i in group}
            fresh = {i: set(self.new(i)) for i in group}
            spent = 0
            for total, margin in (*self.ROUNDS, (self.repeats, math.inf)):
                repeats = min(total, self.repeats) - spent
                if repeats > 0:
                    yield [Ask(i, tuple(j for j in racing[i] if j in fresh[i]), repeats) for i in group]
                    spent += repeats
                for i in group:
                    best = min((self.times[i, j] for j in racing[i]), default=math.inf)
                    racing[i] = [j for j in racing[i] if self.times[i, j] <= min(best * (1 + margin), 1e300)]
            self.measured += group

    def candidates(self, problem: int) -> list[int]:
        """What is worth trying on a problem; anything already known comes along, to compare with."""
        known = [j for j in self.configs if (problem, j) in self.times]
        if len(self.measured) < self.scouts:
            return self.configs
        good = {j for i in self.nearest(problem, self.measured, self.neighbours) for j in self.within(i)}
        rest = [j for j in self.configs if j not in good and j not in known]
        # A share of the rest as an expected number, so that few configs are explored as thoroughly as many.
        lucky = _random(self.seed, self.space.problems[problem]).random(len(rest)) < self.explore
        good.update(j for j, chance in zip(rest, lucky) if chance)
        return [j for j in self.configs if j in good or j in known]

    def within(self, problem: int) -> list[int]:
        times = {j: self.times[problem, j] for j in self.configs if (problem, j) in self.times}
        best = min(times.values(), default=math.inf)
        return [j for j, time in times.items() if time <= min(best * (1 + self.transfer), 1e300)]


class Bayes(_Planned):
    """Optuna's tree-structured Parzen estimator over the configs' parameters, for each problem.

    The winners of the nearest problems are tried first. A proposal that no candidate matches is rounded to the nearest
    that does. In the end the best few are measured `repeats` times.
    """

    FINALISTS = 4

    def __init__(self, space: Space, *, repeats: int = 10, seed: int = 0, workers: int = 1, share: float = 0.3) -> None:
        super().__init__(space, repeats, seed, workers)
        if len(space.parameters) != len(space.configs):
            raise ValueError("this search needs the parameters of every config")
        try:
            import optuna
        except ModuleNotFoundError as error:
            raise UserError(f"this search needs optuna: {missing_extra(error) or error}") from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna: Any = optuna
        self.count = max(2, math.ceil(share * len(space.configs)))
        names = sorted({name for parameters in space.parameters for name in parameters})
        self.values: dict[str, list[Value]] = {}
        for name in names:
            values = {parameters.get(name) for parameters in space.parameters}
            self.values[name] = sorted(values, key=lambda v: (isinstance(v, str), v is not None, v))
        self.points = [tuple(self.values[n].index(p.get(n)) for n in names) for p in space.parameters]

    def _plan(self) -> Iterator[list[Ask]]:
        finished: list[int] = []
        for group in self.groups():
            runs = {i: self._run(i, finished) for i in group}
            asks = {i: next(run, None) for i, run in runs.items()}
            while any(asks.values()):
                yield [ask for ask in asks.values() if ask]
                asks = {i: next(runs[i], None) for i, ask in asks.items() if ask}
            finished += group

    def _run(self, problem: int, finished: Sequence[int]) -> Iterator[Ask]:
        seed = int(_random(self.seed, self.space.problems[problem]).integers(2**31))
        study = self.optuna.create_study(sampler=self.optuna.samplers.TPESampler(seed=seed, n_startup_trials=6))
        names = list(self.values)
        for i in self.nearest(problem, finished, self.FINALISTS):
            times = [(self.times[i, j], self.space.configs[j], j) for j in self.configs if (i, j) in self.times]
            if times:
                study.enqueue_trial(dict(zip(names, self.points[min(times)[2]])), skip_if_exists=True)
        tried: set[int] = set()
        earlier = {j for j in self.configs if (problem, j) in self.times}
        for _ in range(4 * self.count):  # proposals may repeat
            if len(tried) >= min(self.count, len(self.configs)):
                break
            trial = study.ask()
            config = self._nearest([trial.suggest_int(n, 0, len(v) - 1) for n, v in self.values.items()])
            if (problem, config) not in self.times:
                yield Ask(problem, (config,), 1)
            tried.add(config)
            time = self.times[problem, config]
            study.tell(trial, math.log(time) if math.isfinite(time) else 50.0)
        order = sorted(tried, key=lambda j: (self.times[problem, j], self.space.configs[j]))[: self.FINALISTS]
        finalists = tuple(j for j in order if j not in earlier and math.isfinite(self.times[problem, j]))
        if self.repeats > 1 and finalists:
            yield Ask(problem, finalists, self.repeats - 1)

    def _nearest(self, point: Sequence[int]) -> int:
        def distance(j: int) -> tuple[int, str]:
            return sum(abs(a - b) for a, b in zip(point, self.points[j])), self.space.configs[j]

        return min(self.configs, key=distance)


STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "exhaustive": Exhaustive,
    "random": Random,
    "halving": Halving,
    "bayes": Bayes,
}
"""By the names of the command line."""


@dataclass(frozen=True)
class Overhead:
    """What a measurement takes on the GPU besides the repeats themselves.

    Attributes:
        flush: microseconds before each run, to flush the L2 cache.
        warmups: runs before a config is first timed on a problem.
        failure: microseconds that a config takes to fail.
    """

    flush: float = 50.0
    warmups: int = 1
    failure: float = 50.0

    def cost(self, time: float, repeats: int, first: bool) -> float:
        """Microseconds for `repeats` of a config that takes `time`."""
        if not math.isfinite(time):
            return self.failure
        return (repeats + (self.warmups if first else 0)) * (time + self.flush)


@dataclass(frozen=True)
class SearchReport:
    """How a strategy did.

    Attributes:
        gpu_seconds: modelled time of its measurements.
        exhaustive_seconds: modelled time of measuring everything.
        regrets: (problems,) of the config that it found best, by the recorded times; nan where nothing runs.
        pairs: how many configs on problems it tried.
        found: the timings as it saw them, nan where it didn't look; dispatch can be made from them.
    """

    gpu_seconds: float
    exhaustive_seconds: float
    regrets: FloatArray
    pairs: int
    found: Timings

    @property
    def share(self) -> float:
        """GPU seconds as a share of those of exhaustive search."""
        return self.gpu_seconds / self.exhaustive_seconds if self.exhaustive_seconds else 0.0


def replay(
    strategy: Strategy,
    timings: Timings,
    *,
    overhead: Overhead | None = None,
    noise: float = 0.02,
    repeats: int = 10,
    seed: int = 0,
) -> SearchReport:
    """Lets a strategy search recorded measurements.

    Args:
        strategy: made for the problems and configs of `timings`, in their order.
        timings: stand for the truth. A pair that wasn't recorded counts as failed, and costs nothing.
        noise: relative standard deviation of one repeat; a config's time is the median of its repeats.
        repeats: what exhaustive search would spend on each pair.
        seed: of the noise; how the repeats are spread over asks doesn't matter to it.
    """
    overhead = overhead or Overhead()
    spent: dict[tuple[int, int], int] = {}
    found = np.full(timings.times.shape, np.nan)
    total = 0.0
    while not strategy.done:
        for ask in strategy.ask():
            for config in ask.configs:
                pair = ask.problem, config
                time = float(timings.times[pair])
                before = spent.get(pair, 0)
                spent[pair] = before + ask.repeats
                if math.isnan(time):
                    strategy.tell(*pair, math.inf)
                    continue
                total += overhead.cost(time, ask.repeats, not before)
                draws = _random(seed, timings.keys[ask.problem], timings.configs[config]).standard_normal(spent[pair])
                found[pair] = time * float(np.exp(noise * np.median(draws)))
                strategy.tell(*pair, found[pair])
    best = timings.best()
    regrets = np.full(len(best), np.nan)
    for i in np.flatnonzero(np.isfinite(best)):
        tried = ((-n, found[i, j], timings.configs[j], j) for (p, j), n in spent.items() if p == i)
        ran = [entry for entry in tried if math.isfinite(entry[1])]
        regrets[i] = timings.times[i, min(ran)[3]] / best[i] - 1 if ran else np.inf
    times = timings.times[~np.isnan(timings.times)]
    everything = sum(overhead.cost(float(time), repeats, True) for time in times)
    seen = Timings(timings.fields, timings.keys, timings.configs, found, timings.weights, timings.bytes)
    return SearchReport(total * 1e-6, everything * 1e-6, regrets, len(spent), seen)
