"""Measuring with a bench that has no GPU: what crashes, hangs or spoils its context costs itself alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from precast.database.records import Evidence, Measurement, Record
from precast.tune.candidates import Candidate, CandidatePack
from precast.tune.measure import MeasureOptions, Measuring
from precast.tune.pool import LocalPool
from precast.tune.problems import TuningProblem

HERE = Path(__file__).parent


def pack_in(folder: Path, count: int, spills: dict[int, int] | None = None) -> CandidatePack:
    """A candidate pack that only the fake bench reads."""
    (folder / "faults").touch()
    candidates = tuple(
        Candidate(n, "plan", f"BLOCK={n}", "abc", 32, (spills or {}).get(n, 0), 0, 100) for n in range(1, count + 1)
    )
    return CandidatePack(
        folder / "x.pack", "fake", "sm_90", "3.9.0", {"op": {"T=float32": candidates}}, {"op": frozenset(["T"])}
    )


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def run(pack: CandidatePack, sizes: list[int], known: list[Record] | None = None, **options: object):
    stored: list[Record] = []
    settings = MeasureOptions(bench="fake_bench:FakeBench", task_seconds=3.0, run="test", **options)  # type: ignore[arg-type]
    with LocalPool() as pool:
        measuring = Measuring(pack, "fake", pool, settings, stored.append, known or [])
        tally = measuring.run([TuningProblem("op", {"n": n}) for n in sizes])
    return tally, stored


def statuses(stored: list[Record], kind: type) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for r in stored:
        if isinstance(r, kind):
            found.setdefault(r.subject.config, set()).add(r.status)
    return found


def test_each_fault_costs_itself_alone(tmp_path: Path) -> None:
    pack = pack_in(tmp_path, 8)
    (tmp_path / "faults").write_text("gate_crash 2\ngate_hang 3\ngate_poison 4\nwrong 5\ntime_crash 7\ntime_poison 8\n")
    tally, stored = run(pack, [64, 65])
    assert statuses(stored, Evidence) == {
        "BLOCK=1": {"ok"}, "BLOCK=2": {"crash"}, "BLOCK=3": {"timeout"}, "BLOCK=4": {"crash"}, "BLOCK=5": {"wrong"},
        "BLOCK=6": {"ok"}, "BLOCK=7": {"ok"}, "BLOCK=8": {"ok"},
    }  # fmt: skip
    assert statuses(stored, Measurement) == {
        "BLOCK=1": {"ok"}, "BLOCK=6": {"ok"}, "BLOCK=7": {"crash"}, "BLOCK=8": {"crash"},
    }  # fmt: skip
    assert tally.failed == 4 and tally.measured == 8 and tally.done == tally.total


def test_what_is_known_is_not_measured_again(tmp_path: Path) -> None:
    pack = pack_in(tmp_path, 3)
    _, first = run(pack, [64])
    (tmp_path / "log").unlink()
    tally, second = run(pack, [64, 65], first)
    assert tally.known == 3 and tally.measured == 3 and tally.gated == 0
    assert (tmp_path / "log").read_text() == "65 1 2 3\n"
    wider = pack_in(tmp_path, 4)
    (tmp_path / "log").unlink()
    tally, _ = run(wider, [64, 65], [*first, *second])
    assert tally.gated == 1
    assert sorted((tmp_path / "log").read_text().splitlines()) == ["64 4", "65 4"]


def test_other_sources_are_measured_again(tmp_path: Path) -> None:
    from dataclasses import replace

    pack = pack_in(tmp_path, 2)
    _, first = run(pack, [64])
    old = [replace(r, origin=replace(r.origin, source="other")) for r in first]
    tally, _ = run(pack, [64], old)
    assert tally.known == 0 and tally.measured == 2 and tally.gated == 2


def test_spills_are_pruned_unless_asked_for(tmp_path: Path) -> None:
    pack = pack_in(tmp_path, 3, {2: 1000})
    tally, stored = run(pack, [64, 65])
    assert tally.pruned == 1 and statuses(stored, Measurement)["BLOCK=2"] == {"pruned"}
    tally, stored = run(pack, [64], prune_spills=None)
    assert tally.pruned == 0 and statuses(stored, Measurement)["BLOCK=2"] == {"ok"}


def test_a_refused_problem_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    tally, stored = run(pack_in(tmp_path, 2), [1 << 41, 64])
    assert len(tally.refused) == 1 and "memory" in tally.refused[0]
    assert tally.measured == 2 and len(stored) == 4


def test_a_budget_too_small_measures_nothing_and_says_so(tmp_path: Path) -> None:
    tally, stored = run(pack_in(tmp_path, 2), [64], budget=0.0)
    assert tally.out_of_budget and tally.measured == 0 and not stored


def test_without_the_gate_configs_are_unverified(tmp_path: Path) -> None:
    _, stored = run(pack_in(tmp_path, 1), [64], gate=False)
    assert statuses(stored, Evidence) == {"BLOCK=1": {"unverified"}}


def test_a_gate_that_was_overridden_is_asked_the_next_time(tmp_path: Path) -> None:
    pack = pack_in(tmp_path, 2)
    _, first = run(pack, [64], gate=False)
    tally, second = run(pack, [64], first)
    assert tally.gated == 2 and tally.failed == 0 and tally.known == 2
    assert statuses(second, Evidence) == {"BLOCK=1": {"ok"}, "BLOCK=2": {"ok"}}


def test_a_failure_is_not_asked_again(tmp_path: Path) -> None:
    pack = pack_in(tmp_path, 2)
    (tmp_path / "faults").write_text("wrong 2\n")
    _, first = run(pack, [64])
    tally, _ = run(pack, [64], first)
    assert tally.gated == 0 and tally.failed == 1 and tally.known == 1
