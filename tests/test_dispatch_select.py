"""Selection, the decision tree and their regret, on random timings and on an analytical model of a GPU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precast.dispatch.evaluate import evaluate, nearest, one_for_all, smallest_bin, split
from precast.dispatch.select import Timings, log_regret, select
from precast.dispatch.tree import Derived, grow, walk
from precast.pack.model import NO_INDEX

# ---- a model of a GPU: tiles, waves, occupancy, pipelining, memory bandwidth, launch overhead ----

SMS = 132


def matmul_configs():
    """(BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages) that fit, 40 of them."""
    fits = []
    for bm, bn, bk, warps, stages in itertools.product(
        (32, 64, 128, 256), (32, 64, 128, 256), (32, 64, 128), (4, 8), (2, 3, 4, 5)
    ):
        accumulators = bm * bn / (warps * 32)
        shared = (bm + bn) * bk * 2 * stages
        if shared <= 227 * 1024 and 16 <= accumulators <= 128 and not (bm * bn < 4096 and warps == 8):
            fits.append((bm, bn, bk, warps, stages))
    return [fits[i] for i in sorted(np.random.default_rng(7).choice(len(fits), 40, replace=False))]


def matmul_time(problem, config):
    """Microseconds of a bf16 matmul (M, N, K)."""
    m, n, k = problem
    bm, bn, bk, warps, stages = config
    programs, steps = -(-m // bm) * -(-n // bn), -(-k // bk)
    registers = (bm * bn / (warps * 32) + 40) * warps * 32
    occupancy = max(1, min(227 * 1024 // ((bm + bn) * bk * 2 * stages), 65536 // int(registers), 64 // warps))
    per_sm = -(-programs // SMS)
    together = min(occupancy, per_sm)
    quirk = 1 + 0.06 * np.random.default_rng(config).standard_normal()  # what no model knows of a config
    efficiency = 0.85 * (1 - np.exp(-1.1 * bm * bn / 4096)) * min(1, warps * together / 6) ** 0.35 * quirk
    compute = 2 * bm * bn * bk / (7.5e6 * efficiency)
    cache = (bm + bn) * bk * 2 / (5.5e6 / SMS)
    step = max(0.7 / (stages - 0.3), together * max(compute, cache))
    memory = 2 * (m * k + k * n + m * n) / 4.2e6
    return 2.5 + max(-(-per_sm // together) * (steps * step + 1.2), memory)


def matmul_problems(count, seed):
    rng = np.random.default_rng(seed)
    result = set()
    while len(result) < count:
        key = []
        for low in (0, 6, 6):
            exponent = rng.uniform(low, 14)
            key.append(round(2 ** (round(exponent) if rng.random() < 0.6 else exponent)))
        if key[0] * key[1] * key[2] <= 2**40:
            result.add(tuple(key))
    return tuple(sorted(result))


def name(config):
    return " ".join(map(str, config))


def synthetic(count=60, seed=0, noise=0.012):
    configs = matmul_configs()
    keys = matmul_problems(count, seed)
    times = np.array([[matmul_time(key, config) for config in configs] for key in keys])
    times *= np.exp(noise * np.random.default_rng(seed + 1000).standard_normal(times.shape))
    return Timings(("M", "N", "K"), keys, tuple(map(name, configs)), times)


def programs(timings):
    """How many programs each kept config starts."""

    def derive(kept):
        blocks = sorted({tuple(map(int, timings.configs[j].split()[:2])) for j in kept})
        return Derived(
            tuple(f"programs of {m}x{n}" for m, n in blocks),
            lambda key: [-(-key[0] // m) * -(-key[1] // n) for m, n in blocks],
        )

    return derive


# ---- random timings ----

TIME = st.one_of(st.floats(1, 100), st.floats(1, 1.1), st.just(np.inf), st.just(np.nan))


@st.composite
def timings(draw, time=TIME, most=9, least=0):
    fields = draw(st.integers(1, 3))
    key = st.tuples(*[st.integers(0, 5000)] * fields)
    keys = draw(st.lists(key, min_size=least, max_size=most, unique=True))
    configs = [f"c{i}" for i in range(draw(st.integers(1, 6)))]
    times = [[draw(time) for _ in configs] for _ in keys]
    weights = [draw(st.integers(1, 9)) for _ in keys]
    sizes = [float(draw(st.integers(1, 9))) for _ in configs]
    shape = (len(keys), len(configs))
    return Timings(
        tuple("abc"[:fields]),
        tuple(keys),
        tuple(configs),
        np.array(times).reshape(shape),
        np.array(weights),
        np.array(sizes),
    )


def shuffled(t, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(t.keys)), rng.permutation(len(t.configs))
    return Timings(
        t.fields,
        tuple(t.keys[i] for i in rows),
        tuple(t.configs[i] for i in columns),
        t.times[np.ix_(rows, columns)],
        t.weights[rows],
        t.bytes[columns],
    )


def ran(t):
    return np.isfinite(t.best())


def covers(t, chosen, bound):
    times = np.where(np.isnan(t.times), np.inf, t.times)[ran(t)][:, list(chosen)]
    return bool(np.all(times.min(axis=1, initial=np.inf) / t.best()[ran(t)] - 1 <= bound))


@given(timings(), st.sampled_from([0.0, 0.03, 0.5]))
def test_selection_keeps_the_bound_with_the_fewest_configs(t, bound):
    selected = select(t, max_regret=bound)
    assert selected.exact and not selected.reason
    assert selected.worst <= bound
    assert covers(t, selected.configs, bound)
    for fewer in range(len(selected.configs)):
        assert not any(covers(t, some, bound) for some in itertools.combinations(range(len(t.configs)), fewer))


@given(timings(), st.integers(0, 30), st.sets(st.integers(0, 0), max_size=1))
def test_a_limit_of_bytes_is_kept_or_explained(t, room, fixed):
    selected = select(t, max_bytes=room, fixed=fixed)
    assert fixed <= set(selected.configs)
    kept = selected.worst <= 0.03 and t.bytes[list(selected.configs)].sum() <= room
    assert kept == (not selected.reason)
    if not fixed:
        assert t.bytes[list(selected.configs)].sum() <= room


def test_under_a_limit_of_bytes_the_weighted_regret_decides():
    t = Timings(
        ("n",), ((1,), (2,)), ("a", "b"), np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1, 5]), np.array([4, 4])
    )
    selected = select(t, max_bytes=4)
    assert selected.configs == (1,)
    assert selected.reason == "a regret of at most 3.0% takes 8 bytes of code, but 4 are allowed"
    assert select(t, max_bytes=8).reason == ""
    assert "kept in any case takes 4" in select(t, max_bytes=3, fixed=[0]).reason


def test_among_the_smallest_sets_the_lowest_mean_regret_wins():
    t = Timings(("n",), ((1,), (2,)), ("a", "b", "c"), np.array([[1.0, 1.02, 1.01], [1.02, 1.0, 1.005]]))
    assert select(t).configs == (2,)
    assert select(t, worth=0.004).configs == (0, 2)
    with pytest.raises(ValueError, match="must not be below 0"):
        select(t, max_regret=-1)


def test_beyond_the_node_limit_the_cover_stands_but_is_not_called_exact():
    t = synthetic()
    quick = select(t, node_limit=1)
    assert not quick.exact and quick.worst <= 0.03
    assert len(quick.configs) >= len(select(t).configs)


@given(timings(), st.integers(0, 9))
def test_order_does_not_matter(t, seed):
    other = shuffled(t, seed)
    one, two = select(t), select(other)
    assert [t.configs[j] for j in one.configs] == [other.configs[j] for j in two.configs]
    assert (one.worst, one.mean) == (two.worst, two.mean)
    if one.configs:
        a, b = grow(t, one.configs), grow(other, two.configs)
        assert a.nodes == b.nodes
        assert [[t.configs[j] for j in x] for x in a.lists] == [[other.configs[j] for j in x] for x in b.lists]


def test_timings_say_what_is_wrong_with_them():
    for arguments, message in [
        ((("n",), ((1,), (1,)), ("a",), np.ones((2, 1))), "distinct"),
        ((("n",), ((1, 2),), ("a",), np.ones((1, 1))), "1 values: n"),
        ((("n",), ((1,),), ("a",), np.ones((2, 1))), "shape"),
        ((("n",), ((1,),), ("a",), np.zeros((1, 1))), "above 0"),
        ((("n",), ((1,),), ("a",), np.ones((1, 1)), np.zeros(1)), "weight"),
        ((("n",), ((1,),), ("a",), np.ones((1, 1)), np.ones(1), np.ones(2)), "bytes"),
    ]:
        with pytest.raises(ValueError, match=message):
            Timings(*arguments)


def test_what_was_not_measured_is_guessed_to_be_worse_than_nearby():
    t = Timings(("n",), ((1,), (2,), (4,)), ("a", "b"), np.array([[1.0, 1.2], [1.0, np.nan], [1.0, np.inf]]))
    guess = log_regret(t)
    assert guess[1, 1] == pytest.approx(np.log(1.2) + 0.05)
    assert guess[2, 1] == np.inf


# ---- the tree ----


def leaf_of(tree, key):
    """Found the slow way: the one leaf whose box holds the key."""
    boxes = [(0, [(-(2**70), 2**70)] * len(key))]
    found = []
    while boxes:
        at, box = boxes.pop()
        node = tree.nodes[at]
        if node.field == NO_INDEX:
            found += [at] if all(low < value <= high for value, (low, high) in zip(key, box)) else []
            continue
        low, high = box[node.field]
        left, right = list(box), list(box)
        left[node.field], right[node.field] = (low, min(high, node.threshold)), (max(low, node.threshold), high)
        boxes += [(node.left, left), (node.right, right)]
    (leaf,) = found
    return leaf


@settings(deadline=None)
@given(timings(most=14), st.data())
def test_a_tree_is_valid_and_walks_as_its_boxes_say(t, data):
    kept = sorted(data.draw(st.sets(st.integers(0, len(t.configs) - 1), min_size=1)))
    tree = grow(t, kept, virtual=data.draw(st.sampled_from([0, 50])), max_leaves=data.draw(st.sampled_from([1, 3, 64])))
    seen = {0}
    for at, node in enumerate(tree.nodes):
        if node.field == NO_INDEX:
            assert 0 <= node.left < len(tree.lists)
        else:
            assert 0 <= node.field < len(t.fields)
            assert at < node.left < len(tree.nodes) and at < node.right < len(tree.nodes)
            assert not {node.left, node.right} & seen
            seen |= {node.left, node.right}
    assert seen == set(range(len(tree.nodes)))
    assert all(sorted(choices) == kept for choices in tree.lists)
    for key in [*t.keys, data.draw(st.tuples(*[st.integers(0, 9000)] * len(t.fields)))]:
        assert walk(tree, key) == tree.lists[tree.nodes[leaf_of(tree, key)].left]


@settings(deadline=None)
@given(timings(least=1, time=st.floats(1, 9)))
def test_leaves_order_configs_by_expected_time(t):
    tree = grow(t, range(len(t.configs)), virtual=0)
    regret = np.log(t.times / t.best()[:, None])
    leaves = [leaf_of(tree, key) for key in t.keys]
    for leaf in set(leaves):
        rows = [i for i, other in enumerate(leaves) if other == leaf]
        expected = np.average(regret[rows], axis=0, weights=t.weights[rows])
        assert np.all(np.diff(expected[list(tree.lists[tree.nodes[leaf].left])]) >= -1e-8)


@settings(deadline=None)
@given(timings(most=14))
def test_measured_problems_get_a_config_within_the_bound_of_the_best_kept(t):
    kept = select(t, max_regret=0.1).configs
    if not kept:
        return
    tree = grow(t, kept, max_regret=0.1, virtual=50)
    guess = log_regret(t)
    for i in np.flatnonzero(ran(t)):
        best = max(guess[i, list(kept)].min(), np.log(1.1))
        first = walk(tree, t.keys[i])[0]
        assert guess[i, first] <= best + 1e-6


def test_a_config_that_fails_somewhere_in_a_leaf_comes_last():
    t = Timings(("n",), ((1,), (2,)), ("a", "b"), np.array([[1.0, 5.0], [np.inf, 5.0]]))
    tree = grow(t, [0, 1], max_leaves=1)
    assert walk(tree, (1,)) == (0, 1)  # a repair may split further
    assert walk(tree, (2,)) == (1, 0)


def test_no_problem_one_problem_and_no_config():
    none = Timings(("n",), (), ("b", "a"), np.zeros((0, 2)))
    assert select(none).configs == ()
    assert select(none, fixed=[0]).configs == (0,)
    assert walk(grow(none, [0, 1]), (5,)) == (1, 0)
    one = Timings(("n",), ((4,),), ("b", "a"), np.array([[1.0, 2.0]]))
    assert walk(grow(one, [0, 1]), (5,)) == (0, 1)
    assert grow(one, [0, 1]).depth == 0
    failed = Timings(("n",), ((4,),), ("b", "a"), np.full((1, 2), np.inf))
    assert select(failed).configs == ()
    assert walk(grow(failed, [1]), (5,)) == (1,)
    with pytest.raises(ValueError, match="at least one config"):
        grow(one, [])
    nothing = Timings((), ((),), ("a",), np.ones((1, 1)))
    assert walk(grow(nothing, [0]), ()) == (0,)


def test_derived_fields_follow_the_timings_own():
    t = synthetic()
    kept = select(t).configs
    derived = programs(t)(kept)
    tree = grow(t, kept, derived=derived)
    assert tree.fields == (*t.fields, *derived.names)
    assert max(tree.used) >= len(t.fields)


# ---- evaluation ----


def test_the_split_follows_the_keys_only():
    keys = [(i, i * i) for i in range(30)]
    train, held = split(keys, 1 / 3)
    assert len(held) == 10 and sorted(train + held) == list(range(30))
    backwards = split(keys[::-1], 1 / 3)
    assert {keys[i] for i in held} == {keys[::-1][i] for i in backwards[1]}
    with pytest.raises(ValueError, match="below 1"):
        split(keys, 1)


def test_what_others_do():
    times = np.array([[1.0, 2.0, 1.5], [2.0, 1.0, 1.5], [3.0, 1.0, 1.1]])
    t = Timings(("n",), ((10,), (100,), (1000,)), ("a", "b", "c"), times)
    assert [smallest_bin(t)((n,)) for n in (5, 10, 11, 2000)] == [0, 0, 1, 1]
    assert [nearest(t)((n,)) for n in (54, 56)] == [0, 1]
    assert one_for_all(t)((7,)) == 1
    two = Timings(("m", "n"), ((1, 1), (64, 64)), ("a", "b"), np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert nearest(two)((2, 4)) == 0 and nearest(two)((16, 16)) == 1
    assert smallest_bin(two)((1, 64)) == 0  # that bin is absent, and both neighbours are as far: the smaller key


def test_evaluation_leaves_out_what_was_not_measured():
    t = Timings(("n",), ((1,), (2,)), ("a", "b"), np.array([[1.0, 2.0], [np.nan, 2.0]]))
    report = evaluate(t, [1])
    assert report.held_out["precast"].unmeasured == 1
    assert report.held_out["oracle"].regrets == (0.0,)
    with pytest.raises(ValueError, match="none of the problems"):
        evaluate(Timings(("n",), ((1,),), ("a",), np.full((1, 1), np.inf)), 0)


def test_dispatch_beats_what_others_do_on_problems_not_seen():
    """Means over several sets of problems: what is promised of tuned ones, and the order on held-out ones."""
    reports = []
    for seed in range(4):
        t = synthetic(90, seed)
        reports.append(evaluate(t, derive=programs(t)))
    training = [report.training["precast"] for report in reports]
    assert np.mean([regret.mean for regret in training]) <= 0.01
    assert max(regret.worst for regret in training) <= 0.05
    assert max(len(report.selected.configs) for report in reports) <= 0.25 * 40
    held = {rule: np.mean([r.held_out[rule].mean for r in reports]) for rule in reports[0].held_out}
    assert held["oracle"] == 0
    assert held["precast"] < 0.06
    assert held["precast"] < 0.5 * min(held["smallest bin"], held["nearest"], held["one config"])
