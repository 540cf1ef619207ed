"""Which configs to keep: the fewest whose best is never much slower than the best that was measured.

`select` is a weighted set cover: a config covers a problem if its regret there is within the bound. Small instances
are solved exactly by branch and bound, with a limit on the number of nodes rather than on time, so that the result
is the same on every machine; beyond the limit the best cover found so far stands, and says so.
All functions here give the same result whatever the order of problems and configs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "Selected", "Timings", "log_regret", "select"]

FloatArray = npt.NDArray[np.float64]

NODE_LIMIT = 20_000
"""Nodes that the exact search may visit: about a second."""

UNMEASURED_PENALTY = 0.05
"""What not having been measured costs a config, in log time, on top of its neighbours' regret."""


@dataclass(frozen=True)
class Timings:
    """What was measured of one operator, specialization and target.

    Attributes:
        fields: names of the tuning key's fields.
        keys: problems, as values of the fields; distinct.
        configs: names of the candidates, each a plan with a config; distinct.
        times: (problems, configs) in microseconds; inf where a config failed or can't run, nan where not measured.
        weights: (problems,) how often each problem runs; 1 if left out.
        bytes: (configs,) size of each config's code; None if it isn't known.
    """

    fields: tuple[str, ...]
    keys: tuple[tuple[int, ...], ...]
    configs: tuple[str, ...]
    times: FloatArray
    weights: FloatArray = field(default_factory=lambda: np.ones(0))
    bytes: FloatArray | None = None

    def __post_init__(self) -> None:
        problems, configs = len(self.keys), len(self.configs)
        times = np.asarray(self.times, dtype=np.float64).reshape(-1, configs) if configs else np.zeros((problems, 0))
        weights = np.asarray(self.weights, dtype=np.float64)
        if not weights.size:
            weights = np.ones(problems)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "weights", weights)
        if times.shape != (problems, configs):
            raise ValueError(f"{problems} problems and {configs} configs, but times of shape {self.times.shape}")
        if len(set(self.keys)) != problems or len(set(self.configs)) != configs:
            raise ValueError("problems and configs must be distinct")
        if any(len(key) != len(self.fields) for key in self.keys):
            raise ValueError(f"every problem must have {len(self.fields)} values: {', '.join(self.fields)}")
        if weights.shape != (problems,) or not np.all(np.isfinite(weights) & (weights > 0)):
            raise ValueError("every problem needs a weight above 0")
        if np.any(times <= 0):
            raise ValueError("times must be above 0")
        if self.bytes is not None:
            object.__setattr__(self, "bytes", np.asarray(self.bytes, dtype=np.float64))
            if self.bytes.shape != (configs,):
                raise ValueError("every config needs its bytes")

    def problems(self, chosen: Iterable[int]) -> Timings:
        """Only some of the problems, in the order given."""
        rows = np.array(list(chosen), dtype=np.intp)
        keys = tuple(self.keys[i] for i in rows)
        return Timings(self.fields, keys, self.configs, self.times[rows], self.weights[rows], self.bytes)

    def best(self) -> FloatArray:
        """(problems,) the best time measured of each problem; inf if no config ran."""
        times = np.where(np.isnan(self.times), np.inf, self.times)
        return np.asarray(times.min(axis=1, initial=np.inf))

    def order(self) -> tuple[list[int], list[int]]:
        """Canonical order of problems (by key) and of configs (by name)."""
        keys, names = self.keys, self.configs
        return sorted(range(len(keys)), key=keys.__getitem__), sorted(range(len(names)), key=names.__getitem__)

    def canonical(self) -> tuple[Timings, list[int]]:
        """The same in canonical order, without problems that nothing could run; where each config was before."""
        rows, columns = self.order()
        best = self.best()
        rows = [i for i in rows if np.isfinite(best[i])]
        sizes = None if self.bytes is None else self.bytes[columns]
        keys, names = tuple(self.keys[i] for i in rows), tuple(self.configs[i] for i in columns)
        times = self.times[np.ix_(rows, columns)]
        return Timings(self.fields, keys, names, times, self.weights[rows], sizes), columns


def log_regret(timings: Timings) -> FloatArray:
    """(problems, configs) log of time over best time; what wasn't measured is estimated, what fails stays inf.

    The estimate is the config's mean log regret at measured problems, the nearer (in log key) the more it counts,
    plus a penalty; a config with no time at all gets inf. Search leaves out what it expects to lose, so that a
    missing time speaks against a config.
    """
    with np.errstate(invalid="ignore"):
        result = np.log(timings.times) - np.log(timings.best())[:, None]
    missing = np.isnan(timings.times)
    if missing.any():
        position = np.log2(np.maximum(np.array(timings.keys, dtype=np.float64), 0) + 1)
        distance = np.abs(position[:, None, :] - position[None, :, :]).sum(axis=2)
        near = 1 / (0.5 + distance) ** 2
        known = np.isfinite(timings.times)
        total = near @ known
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (near @ np.where(known, result, 0)) / total
        result = np.where(missing, np.where(total > 0, mean + UNMEASURED_PENALTY, np.inf), result)
    return np.asarray(result)


@dataclass(frozen=True)
class Selected:
    """The configs kept.

    Attributes:
        configs: indices into the timings' configs, in the order of their names.
        regrets: (problems,) regret of the best config kept; nan where nothing ran.
        worst: the largest regret.
        mean: the weighted mean regret.
        exact: whether no smaller set could do, rather than that none was found.
        reason: why a bound, of regret or of bytes, isn't kept; empty if both are.
    """

    configs: tuple[int, ...]
    regrets: FloatArray
    worst: float
    mean: float
    exact: bool
    reason: str = ""


def _result(timings: Timings, chosen: Iterable[int], exact: bool) -> Selected:
    """Figures of a choice, computed from the caller's own timings."""
    configs = tuple(sorted(chosen, key=timings.configs.__getitem__))
    best = timings.best()
    ran = np.isfinite(best)
    times = np.where(np.isnan(timings.times), np.inf, timings.times)[:, list(configs)].min(axis=1, initial=np.inf)
    regrets = np.full(len(best), np.nan)
    regrets[ran] = times[ran] / best[ran] - 1
    rows = [i for i in timings.order()[0] if ran[i]]  # sums don't depend on the caller's order
    worst = float(max((regrets[i] for i in rows), default=0.0))
    mean = float(np.average(regrets[rows], weights=timings.weights[rows])) if rows else 0.0
    return Selected(configs, regrets, worst, mean, exact)


class _Cover:
    """Smallest set of columns that covers all rows; among the smallest, the one with the least cost.

    Branch and bound: branch on the row that the fewest columns cover; bound by how many rows the best columns could
    still cover. Rows and columns are bits of integers.
    """

    def __init__(self, covers: npt.NDArray[np.bool_], regret: FloatArray, weights: FloatArray, limit: int) -> None:
        self.columns = [sum(1 << int(i) for i in np.flatnonzero(covers[:, j])) for j in range(covers.shape[1])]
        self.rows = [tuple(int(j) for j in np.flatnonzero(covers[i])) for i in range(covers.shape[0])]
        self.regret, self.weights = regret, weights
        self.limit, self.nodes = limit, 0
        self.best: tuple[int, ...] | None = None
        self.cost = np.inf

    def price(self, chosen: Sequence[int]) -> float:
        """Weighted mean log regret of the best of a set; rounded, so that how a processor adds decides nothing."""
        return round(float(self.weights @ self.regret[:, sorted(chosen)].min(axis=1)), 12)

    def greedy(self, start: tuple[int, ...], left: int) -> tuple[int, ...]:
        """Takes the column that covers the most, then drops what the others made superfluous."""
        chosen = list(start)
        whole = left
        while left:
            counts = [(column & left).bit_count() for column in self.columns]
            most = max(counts)
            ties = [j for j, count in enumerate(counts) if count == most]
            pick = min(ties, key=lambda j: (self.price([*chosen, j]), j))
            chosen.append(pick)
            left &= ~self.columns[pick]
        for j in reversed(chosen[len(start) :]):
            rest = [k for k in chosen if k != j]
            covered = 0
            for k in rest:
                covered |= self.columns[k]
            if not whole & ~covered:
                chosen = rest
        return tuple(sorted(chosen))

    def solve(self, fixed: tuple[int, ...]) -> bool:
        """Whether the search came to its end; the cover is in `best`."""
        left = (1 << len(self.rows)) - 1
        for j in fixed:
            left &= ~self.columns[j]
        self._offer(self.greedy(fixed, left))
        self._branch(fixed, left, frozenset())
        return self.nodes < self.limit

    def _offer(self, chosen: tuple[int, ...]) -> None:
        chosen = tuple(sorted(chosen))
        cost = self.price(chosen) if self.rows else 0.0
        if self.best is None or (len(chosen), cost, chosen) < (len(self.best), self.cost, self.best):
            self.best, self.cost = chosen, cost

    def _branch(self, chosen: tuple[int, ...], left: int, banned: frozenset[int]) -> None:
        self.nodes += 1
        if not left:
            self._offer(chosen)
            return
        assert self.best is not None
        allowed = len(self.best) - len(chosen)
        counts = sorted(((c & left).bit_count() for j, c in enumerate(self.columns) if j not in banned), reverse=True)
        if self.nodes >= self.limit or sum(counts[:allowed]) < left.bit_count():
            return
        open_rows = [i for i in range(len(self.rows)) if left >> i & 1]
        options = min(([j for j in self.rows[i] if j not in banned] for i in open_rows), key=len)
        for j in sorted(options, key=lambda j: (-(self.columns[j] & left).bit_count(), j)):
            self._branch((*chosen, j), left & ~self.columns[j], banned)
            banned |= {j}  # sets with j have been seen


def _affordable(
    regret: FloatArray, weights: FloatArray, sizes: FloatArray, fixed: tuple[int, ...], room: float
) -> tuple[int, ...]:
    """The set that fits in `room` bytes with the least weighted mean log regret: greedy, then swaps while they help.

    Regret without any config that runs counts as that of a very slow one, so that running comes first.
    """
    capped = np.where(np.isfinite(regret), regret, 1e6)

    def price(chosen: Iterable[int]) -> float:
        return round(float(weights @ capped[:, sorted(chosen)].min(axis=1, initial=1e6)), 12)

    def fits(chosen: Iterable[int]) -> bool:
        return float(sum(sizes[j] for j in sorted(chosen))) <= room

    chosen = frozenset(fixed)
    cost = price(chosen)
    while True:
        free = [j for j in range(len(sizes)) if j not in chosen]
        moves = [chosen | {j} for j in free]
        moves += [chosen - {k} | {j} for k in sorted(chosen - set(fixed)) for j in free]
        offers = [(price(move), sorted(move)) for move in moves if fits(move)]
        if not offers or min(offers)[0] >= cost - 1e-12:
            return tuple(sorted(chosen))
        cost, best = min(offers)
        chosen = frozenset(best)


def select(
    timings: Timings,
    *,
    max_regret: float = 0.03,
    max_bytes: float | None = None,
    fixed: Iterable[int] = (),
    worth: float = 0.0,
    node_limit: int = NODE_LIMIT,
) -> Selected:
    """The smallest set of configs of which, on every problem, one is within (1 + max_regret) of the best time.

    Args:
        max_bytes: the most that the kept configs' code may take together; if the smallest set takes more, the set
            that fits and has the least weighted regret is taken, and `reason` says so.
        fixed: configs that are kept in any case.
        worth: take more configs than the bound asks for, as long as each lowers the weighted mean log regret by at
            least this much.
        node_limit: nodes that the exact search may visit.
    """
    if max_regret < 0:
        raise ValueError(f"max_regret is {max_regret}, but must not be below 0")
    plain, columns = timings.canonical()
    back = {before: now for now, before in enumerate(columns)}
    keep = tuple(sorted(back[j] for j in set(fixed)))
    best = plain.best()
    measured = np.where(np.isnan(plain.times), np.inf, plain.times)
    regret = np.log(measured) - np.log(best)[:, None]
    weights = plain.weights / plain.weights.sum() if len(best) else plain.weights
    # Compared as in the figures that are reported, not as logs, so that both agree to the last bit.
    cover = _Cover(measured / best[:, None] - 1 <= max_regret, regret, weights, node_limit)
    exact = cover.solve(keep)
    assert cover.best is not None
    chosen = set(cover.best)
    if worth > 0 and len(best):
        cost = cover.price(sorted(chosen))
        while len(chosen) < len(columns):
            gain, j = min((cover.price([*chosen, j]), j) for j in range(len(columns)) if j not in chosen)
            if cost - gain < worth:
                break
            cost = gain
            chosen.add(j)
    need = 0.0 if plain.bytes is None else float(plain.bytes[sorted(chosen)].sum())
    if max_bytes is None or plain.bytes is None or need <= max_bytes:
        return _result(timings, (columns[j] for j in chosen), exact)
    chosen = set(_affordable(regret, weights, plain.bytes, keep, max_bytes))
    result = _result(timings, (columns[j] for j in chosen), False)
    taken = float(plain.bytes[sorted(chosen)].sum())
    if result.worst <= max_regret and taken <= max_bytes:
        return result
    reason = f"a regret of at most {max_regret:.1%} takes {need:.0f} bytes of code, but {max_bytes:.0f} are allowed"
    if taken > max_bytes:
        reason += f"; what is kept in any case takes {taken:.0f}"
    return replace(result, reason=reason)
