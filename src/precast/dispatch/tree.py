"""From measured problems to the decision tree that the runtime walks.

Few problems are measured, and they lie far apart, so a tree grown on them alone puts its thresholds anywhere between.
So the log regret of each config is first interpolated by Gaussian process regression over the logs of the key
(Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006: algorithm 2.1, and 5.4.2 for the choice of
length scales by leaving one out), and the tree is grown on the measured problems together with many interpolated ones.
Splits minimise regret, not the number of wrong winners: configs within noise of each other are equally good answers.

What decides is often no field of the key but how many programs a config starts: `Derived` fields bring that in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from precast.dispatch.select import FloatArray, Timings, log_regret
from precast.pack.model import NO_INDEX, Node

__all__ = ["Derived", "Tree", "grow", "walk"]

IntArray = npt.NDArray[np.int64]

FAILS = 50.0
"""Log regret of a config that can't run: more than any that can."""

CAP = 1.0
"""Log regret is interpolated up to this; how slow a slow config is doesn't matter."""

VIRTUAL = 1500
"""Interpolated problems."""

MEASURED_SHARE = 0.3
"""Weight of the measured problems against the interpolated ones, all together."""

FEWEST = 6
"""Measured problems from which interpolation begins."""


@dataclass(frozen=True)
class Derived:
    """Key fields that follow from others, such as the number of programs of a config's grid.

    Attributes:
        names: what the fields are called.
        values: their values for a problem, from the fields of the timings.
    """

    names: tuple[str, ...]
    values: Callable[[tuple[int, ...]], Sequence[int]]


@dataclass(frozen=True)
class Tree:
    """A decision tree as the pack holds it.

    Attributes:
        fields: names of what `Node.field` counts: the timings' fields, then the derived ones.
        nodes: node 0 is the root; children come after their parent; a leaf's `left` is an index into `lists`.
        lists: configs (indices into the timings') in order of preference.
    """

    fields: tuple[str, ...]
    nodes: tuple[Node, ...]
    lists: tuple[tuple[int, ...], ...]

    @property
    def used(self) -> frozenset[int]:
        """The fields that some node reads."""
        return frozenset(node.field for node in self.nodes if node.field != NO_INDEX)

    @property
    def depth(self) -> int:
        """The most comparisons on the way to a leaf."""
        depths = [0] * len(self.nodes)
        for i, node in enumerate(self.nodes):
            if node.field != NO_INDEX:
                depths[node.left] = depths[node.right] = depths[i] + 1
        return max(depths)


def walk(tree: Tree, key: Sequence[int]) -> tuple[int, ...]:
    """The configs for a problem, in order of preference; `key` has the derived fields too."""
    node = tree.nodes[0]
    while node.field != NO_INDEX:
        node = tree.nodes[node.left if key[node.field] <= node.threshold else node.right]
    return tree.lists[node.left]


def _logs(keys: IntArray) -> FloatArray:
    """Positions of problems: logs of the values, 0 half as far below 1 as 1 is below 4."""
    return np.log2(np.maximum(keys, 0.5))


def _kernel(a: FloatArray, b: FloatArray) -> FloatArray:
    """Matérn covariance of smoothness 3/2."""
    distance = np.sqrt(3 * ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))
    return np.asarray((1 + distance) * np.exp(-distance))


class _Interpolation:
    """Gaussian process regression with one length scale a field, shared by all configs."""

    LENGTHS = (2.0, 3.0, 4.0, 6.0, 9.0, 14.0)
    NOISES = (0.003, 0.01, 0.03, 0.1, 0.3)
    BETTER = 0.995  # a change that gains less isn't made; so the last bits of a sum don't decide

    def __init__(self, positions: FloatArray, values: FloatArray) -> None:
        self.positions, self.values = positions, values
        fields = positions.shape[1]
        starts = [(self._left_out(np.full(fields, 1 / x), n), x, n) for x in self.LENGTHS for n in self.NOISES[1:]]
        error, length, noise = min((round(e, 9), x, n) for e, x, n in starts)
        scales = np.full(fields, 1 / length)
        for _ in range(3):
            before = error
            for field in range(fields):
                for factor in (0.25, 0.5, 0.7, 1.4, 2.0, 4.0):
                    trial = scales.copy()
                    trial[field] *= factor
                    found = self._left_out(trial, noise)
                    if found < error * self.BETTER:
                        error, scales = found, trial
            for other in self.NOISES:
                found = self._left_out(scales, other)
                if found < error * self.BETTER:
                    error, noise = found, other
            if error == before:
                break
        self.scales = scales
        inverse, self.mean = self._fit(scales, noise)
        self.coefficients = inverse @ (values - self.mean)

    def _fit(self, scales: FloatArray, noise: float) -> tuple[FloatArray, FloatArray]:
        at = self.positions * scales
        inverse: FloatArray = np.linalg.inv(_kernel(at, at) + noise * np.eye(len(at))).astype(np.float64)
        sums = inverse.sum(axis=0)
        return inverse, np.asarray(sums @ self.values / sums.sum())

    def _left_out(self, scales: FloatArray, noise: float) -> float:
        """Mean squared error of each problem's values, predicted from all others."""
        inverse, mean = self._fit(scales, noise)
        errors = inverse @ (self.values - mean) / np.diag(inverse)[:, None]
        return float((errors**2).mean())

    def __call__(self, positions: FloatArray) -> FloatArray:
        near = _kernel(positions * self.scales, self.positions * self.scales)
        return np.asarray(self.mean + near @ self.coefficients)


def _halton(count: int, fields: int) -> FloatArray:
    """Points spread evenly over the unit cube: J. H. Halton, Numerische Mathematik 2 (1960)."""
    primes = [p for p in range(2, 400) if all(p % q for q in range(2, p))]
    result = np.zeros((count, fields))
    for field in range(fields):
        left, part = np.arange(1, count + 1), 1.0
        while left.any():
            part /= primes[field]
            result[:, field] += part * (left % primes[field])
            left //= primes[field]
    return result


@dataclass(frozen=True)
class _Points:
    """Problems to grow a tree on, measured ones first."""

    keys: IntArray  # (points, fields), with derived fields
    cost: FloatArray  # (points, kept configs) log regret
    weight: FloatArray  # (points,)
    measured: int


def _points(timings: Timings, kept: Sequence[int], derived: Derived | None, virtual: int) -> _Points:
    def extend(keys: IntArray) -> IntArray:
        if derived is None:
            return keys
        more = [tuple(derived.values(tuple(int(v) for v in key))) for key in keys]
        return np.hstack([keys, np.array(more, dtype=np.int64).reshape(len(keys), len(derived.names))])

    fields = len(timings.fields)
    base = np.array(timings.keys, dtype=np.int64).reshape(len(timings.keys), fields)
    keys = extend(base)
    regret = log_regret(timings)[:, list(kept)]
    cost = np.minimum(regret, FAILS)
    weight = timings.weights / timings.weights.sum()
    if len(base) < FEWEST or not fields or not virtual or len(kept) < 2:
        return _Points(keys, cost, weight, len(base))
    interpolate = _Interpolation(_logs(keys), np.minimum(regret, CAP))
    low, high = _logs(base).min(axis=0), _logs(base).max(axis=0)
    spread = np.rint(2 ** (low + _halton(virtual, fields) * (high - low))).astype(np.int64)
    spread = np.unique(spread, axis=0)
    more = extend(spread)
    # Rounded, so that a last bit that another processor computes differently can't change the tree.
    guess = np.round(interpolate(_logs(more)), 5)
    guess -= guess.min(axis=1, keepdims=True)
    nearest = np.abs(_logs(spread)[:, None, :] - _logs(base)[None, :, :]).sum(axis=2).argmin(axis=1)
    share = weight[nearest] / weight[nearest].sum()
    weights = np.concatenate([MEASURED_SHARE * weight, (1 - MEASURED_SHARE) * share])
    return _Points(np.vstack([keys, more]), np.vstack([cost, guess]), weights, len(base))


@dataclass(eq=False)
class _Leaf:
    """A leaf while the tree grows; `split` once it is one no more."""

    rows: IntArray
    split: tuple[int, int] | None = None
    children: tuple[_Leaf, _Leaf] | None = None
    gain: float = 0.0
    best: tuple[int, int] | None = None


def _threshold(low: int, high: int) -> int:
    """Between two values, halfway in log space: low <= threshold < high."""
    return min(max(int(np.sqrt(float(max(low, 0)) * float(max(high, 0)))), low), high - 1)


def _best_split(points: _Points, rows: IntArray) -> tuple[float, tuple[int, int] | None]:
    """The split that lowers the weighted log regret of the best single config a side the most, and by how much."""
    cost = points.cost[rows] * points.weight[rows, None]
    total = cost.sum(axis=0)
    best, found = 1e-9, None
    for field in range(points.keys.shape[1]):
        values = points.keys[rows, field]
        order = np.argsort(values, kind="stable")
        values = values[order]
        left = cost[order].cumsum(axis=0)[:-1]
        gains = total.min() - left.min(axis=1) - (total - left).min(axis=1)
        gains[values[1:] == values[:-1]] = -1
        at = int(gains.argmax()) if len(gains) else 0
        if len(gains) and gains[at] > best + 1e-9:
            best, found = float(gains[at]), (field, _threshold(int(values[at]), int(values[at + 1])))
    return best if found else 0.0, found


class _Growth:
    def __init__(self, points: _Points, max_regret: float) -> None:
        self.points, self.bound = points, np.log1p(max_regret)
        self.leaves = [self.leaf(np.arange(len(points.keys)))]
        self.root = self.leaves[0]

    def leaf(self, rows: IntArray) -> _Leaf:
        leaf = _Leaf(rows)
        leaf.gain, leaf.best = _best_split(self.points, rows)
        return leaf

    def divide(self, leaf: _Leaf, split: tuple[int, int]) -> None:
        goes_left = self.points.keys[:, split[0]] <= split[1]
        left, right = leaf.rows[goes_left[leaf.rows]], leaf.rows[~goes_left[leaf.rows]]
        leaf.split, leaf.children = split, (self.leaf(left), self.leaf(right))
        self.leaves.remove(leaf)
        self.leaves += leaf.children

    def reduce(self, min_gain: float, max_leaves: int) -> None:
        """Splits where it gains most, until there is nothing to gain."""
        while len(self.leaves) < max_leaves:
            leaf = max(self.leaves, key=lambda leaf: leaf.gain)
            if leaf.best is None or leaf.gain < min_gain:
                return
            self.divide(leaf, leaf.best)

    def order(self, rows: IntArray) -> tuple[int, ...]:
        """Configs of a leaf: first those that run on all its measured problems, then by expected time."""
        weight = self.points.weight[rows]
        expected = np.round(weight @ self.points.cost[rows] / weight.sum(), 9)
        fails = self.points.cost[rows].max(axis=0) >= FAILS
        return tuple(sorted(range(len(expected)), key=lambda j: (bool(fails[j]), expected[j], j)))

    def excess(self, leaf: _Leaf) -> tuple[float, int]:
        """By how much the worst measured problem of a leaf breaks the bound, and which it is."""
        rows = leaf.rows[leaf.rows < self.points.measured]
        if not len(rows):
            return 0.0, 0
        cost = self.points.cost[rows]
        over = cost[:, self.order(leaf.rows)[0]] - np.maximum(cost.min(axis=1), self.bound)
        at = int(over.argmax())
        return float(over[at]), int(rows[at])

    def repair(self, max_leaves: int) -> None:
        """Splits leaves in which a measured problem gets a config beyond the bound, though a better one is kept."""
        while len(self.leaves) < max_leaves:
            over, row, leaf = max(((*self.excess(leaf), leaf) for leaf in self.leaves), key=lambda found: found[:2])
            split = self.around(leaf, row) if over > 1e-9 else None
            if split is None:
                return
            self.divide(leaf, split)

    def around(self, leaf: _Leaf, row: int) -> tuple[int, int] | None:
        """The cut between a measured problem and its neighbours that costs the least regret of all points."""
        rows, points = leaf.rows, self.points
        cost = points.cost[rows] * points.weight[rows, None]
        others = rows[(rows < points.measured) & (rows != row)]
        virtual = rows[rows >= points.measured]
        options: list[tuple[float, float, int, int]] = []
        for field in range(points.keys.shape[1]):
            mine = int(points.keys[row, field])
            values = points.keys[others if len(others) else virtual, field]
            cuts = [(int(v), mine) for v in np.sort(values[values < mine])[-1:]]
            cuts += [(mine, int(v)) for v in np.sort(values[values > mine])[:1]]
            for low, high in cuts:
                threshold = _threshold(low, high)
                left = points.keys[rows, field] <= threshold
                both = cost[left].sum(axis=0).min() + cost[~left].sum(axis=0).min()
                gap = float(np.log2(max(high, 1) / max(low, 0.5)))
                options.append((round(float(both), 9), -gap, field, threshold))
        return min(options)[2:] if options else None


def grow(
    timings: Timings,
    kept: Sequence[int],
    *,
    derived: Derived | None = None,
    max_regret: float = 0.03,
    min_gain: float = 0.0003,
    max_leaves: int = 64,
    virtual: int = VIRTUAL,
) -> Tree:
    """A tree over the key whose leaves list all kept configs, best first.

    Args:
        kept: indices of configs, as from `select`.
        derived: further fields to split on.
        max_regret: no measured problem gets a config slower than this over the best time, unless no config kept is
            faster or `max_leaves` is reached.
        min_gain: a split must lower the mean log regret by this.
        max_leaves: the most leaves; repairs for `max_regret` may take as many again.
        virtual: interpolated problems to grow on; 0 for the measured ones alone.
    """
    if not kept:
        raise ValueError("a tree needs at least one config")
    fields = timings.fields + (derived.names if derived else ())
    plain, columns = timings.canonical()
    names = [columns.index(j) for j in sorted(set(kept), key=timings.configs.__getitem__)]
    configs = [columns[j] for j in names]
    if not plain.keys:
        return Tree(fields, (Node(NO_INDEX, 0, 0, 0),), (tuple(configs),))
    growth = _Growth(_points(plain, names, derived, virtual), max_regret)
    growth.reduce(min_gain, max_leaves)
    growth.repair(2 * max_leaves)
    return _tree(fields, growth, configs)


def _tree(fields: tuple[str, ...], growth: _Growth, configs: Sequence[int]) -> Tree:
    """Numbers nodes so that children come after their parent, and merges equal lists and splits that decide nothing."""
    lists: dict[tuple[int, ...], int] = {}
    nodes: list[Node] = []

    def leaf_list(leaf: _Leaf) -> tuple[int, ...] | None:
        if leaf.children is None:
            return growth.order(leaf.rows)
        left, right = (leaf_list(child) for child in leaf.children)
        return left if left == right else None

    def add(leaf: _Leaf) -> int:
        at = len(nodes)
        same = leaf_list(leaf)
        nodes.append(Node(NO_INDEX, 0, 0, 0))
        if same is not None:
            nodes[at] = Node(NO_INDEX, 0, lists.setdefault(tuple(configs[j] for j in same), len(lists)), 0)
        elif leaf.children is not None and leaf.split is not None:
            left, right = add(leaf.children[0]), add(leaf.children[1])
            nodes[at] = Node(*leaf.split, left, right)
        return at

    add(growth.root)
    return Tree(fields, tuple(nodes), tuple(lists))
