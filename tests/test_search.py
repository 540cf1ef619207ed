"""Search strategies, replayed over a model of a GPU."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dispatch_select import programs, synthetic

from precast.dispatch.evaluate import evaluate
from precast.dispatch.select import Timings
from precast.errors import UserError
from precast.tune.search import STRATEGIES, Ask, Bayes, Exhaustive, Halving, Overhead, Random, Space, replay

NAMES = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")


def space(t):
    parameters = tuple(dict(zip(NAMES, map(int, name.split()))) for name in t.configs)
    return Space(t.keys, t.configs, parameters)


@pytest.fixture(scope="module")
def recorded():
    return synthetic(60, noise=0)


def test_exhaustive_costs_what_it_says():
    t = Timings(("n",), ((1,), (2,)), ("a", "b"), np.array([[10.0, 20.0], [30.0, np.inf]]))
    report = replay(Exhaustive(space_of(t)), t, overhead=Overhead(flush=50, warmups=1, failure=7), noise=0)
    assert report.gpu_seconds == pytest.approx((11 * (60 + 70 + 80) + 7) * 1e-6)
    assert report.share == pytest.approx(1) and report.pairs == 4
    assert report.regrets.tolist() == [0, 0]


def test_halving_comes_within_two_percent_for_a_quarter_of_the_time():
    for seed in range(3):
        t = synthetic(60, seed, noise=0)
        report = replay(Halving(space(t)), t)
        assert report.share <= 0.25
        assert np.nanmean(report.regrets) <= 0.02
        assert (report.regrets <= 0.02).mean() >= 0.95


def test_halving_beats_drawing_lots_for_less(recorded):
    halving, lots = replay(Halving(space(recorded)), recorded), replay(Random(space(recorded)), recorded)
    assert halving.gpu_seconds < lots.gpu_seconds
    assert halving.regrets.mean() < 0.5 * lots.regrets.mean()


def test_transfer_leaves_out_pairs(recorded):
    alone = replay(Halving(space(recorded), scouts=1000), recorded)
    assert alone.pairs == recorded.times.size
    assert replay(Halving(space(recorded)), recorded).pairs < 0.8 * alone.pairs


def test_dispatch_from_what_halving_saw_is_as_good_as_from_everything(recorded):
    everything = evaluate(recorded, 0.0, derive=programs(recorded))
    report = replay(Halving(space(recorded)), recorded)
    some = evaluate(report.found, 0.0, derive=programs(recorded))
    chosen = some.training["precast"]
    assert chosen.mean <= 0.015 and len(some.selected.configs) <= len(everything.selected.configs) + 3
    assert len(chosen.problems) == len(recorded.keys)


def test_bayes_finds_good_configs_with_few_pairs():
    pytest.importorskip("optuna")
    t = synthetic(16, noise=0)
    report, lots = replay(Bayes(space(t)), t), replay(Random(space(t)), t)
    assert report.share <= 0.25 and report.pairs <= 0.35 * t.times.size
    assert report.regrets.mean() < lots.regrets.mean()
    assert replay(Bayes(space(t)), t).gpu_seconds == report.gpu_seconds


def test_bayes_without_optuna_says_what_to_install(monkeypatch, recorded):
    plain = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "optuna":
            raise ModuleNotFoundError("No module named 'optuna'", name="optuna")
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install .*optuna"):
        Bayes(space(recorded))


def test_bayes_needs_parameters(recorded):
    with pytest.raises(ValueError, match="parameters of every config"):
        Bayes(Space(recorded.keys, recorded.configs))


def run(strategy, t):
    """All asks, answered without noise."""
    asks = []
    while not strategy.done:
        for ask in strategy.ask():
            asks.append(ask)
            for config in ask.configs:
                strategy.tell(ask.problem, config, float(t.times[ask.problem, config]))
    return asks


TIMES = st.one_of(st.floats(1, 100), st.just(np.inf))


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([n for n in STRATEGIES if n != "bayes"]),
    st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), max_size=8, unique=True),
    st.data(),
)
def test_strategies_end_repeat_themselves_and_ignore_order(name, keys, data):
    configs = tuple(f"c{i}" for i in range(data.draw(st.integers(1, 7))))
    times = np.array([[data.draw(TIMES) for _ in configs] for _ in keys]).reshape(len(keys), len(configs))
    t = Timings(("a", "b"), tuple(keys), configs, times)
    workers = data.draw(st.integers(1, 3))
    asks = run(STRATEGIES[name](space_of(t), workers=workers), t)
    assert asks == run(STRATEGIES[name](space_of(t), workers=workers), t)
    assert all(ask.configs and ask.repeats >= 1 for ask in asks)
    rows, columns = np.random.default_rng(0).permutation(len(keys)), np.random.default_rng(1).permutation(len(configs))
    other = Timings(
        t.fields, tuple(keys[i] for i in rows), tuple(configs[j] for j in columns), times[np.ix_(rows, columns)]
    )
    moved = run(STRATEGIES[name](space_of(other), workers=workers), other)
    back = [Ask(int(rows[a.problem]), tuple(int(columns[j]) for j in a.configs), a.repeats) for a in moved]
    assert back == asks
    report = replay(STRATEGIES[name](space_of(t)), t)
    assert report.share <= 1 + 1e-9


def space_of(t):
    return Space(t.keys, t.configs, tuple({} for _ in t.configs))


@pytest.mark.parametrize("name", ["exhaustive", "random", "halving", "bayes"])
def test_what_is_known_is_not_measured_again(name):
    if name == "bayes":
        pytest.importorskip("optuna")
    t = synthetic(6, noise=0)
    strategy = STRATEGIES[name](space(t))
    for i in range(3):
        for j in range(len(t.configs)):
            strategy.tell(i, j, float(t.times[i, j]))
    assert {ask.problem for ask in run(strategy, t)} == {3, 4, 5}


def test_what_was_not_recorded_counts_as_failed():
    t = Timings(("n",), ((1,),), ("a", "b"), np.array([[np.nan, 2.0]]))
    report = replay(Halving(space_of(t)), t)
    assert report.regrets.tolist() == [0]
    assert np.isnan(report.found.times[0, 0])


def test_bad_arguments(recorded):
    with pytest.raises(ValueError, match="at least 1 of each"):
        Halving(space(recorded), repeats=0)
