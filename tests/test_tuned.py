"""Measurements to a tuned library: which configs it keeps, how it chooses, and that the choice is deterministic."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import precast
from precast.build.build import BuildOptions, bound_family, make_pack
from precast.build.sources import plan_sources
from precast.build.tuning_data import Tuning, dispatch_from, share
from precast.database.records import Evidence, Measurement, Origin, Record, Subject
from precast.database.results import ResultsFile
from precast.errors import UserError
from precast.pack.model import Rung
from precast.pack.writer import dump, write
from precast.targets import parse_targets

SIZES = (1, 64, 256, 1000, 4096, 10_007, 65_536, 1 << 18, 1 << 20, 1 << 22)


def records(family: Path, target: str = "sm_90", status: str = "ok") -> list[Record]:
    """BLOCK=128 is best up to 4096, 256 beyond it."""
    sources, triton = plan_sources(family)
    (_, plan), source = next(iter(sources.items()))
    origin = Origin(source, triton, "580", "2026-12-01T00:00:00Z", "run")
    result: list[Record] = []
    for dtype, block, even in itertools.product(("fp16", "fp32"), (128, 256), (True, False)):
        config = f"BLOCK={block} num_stages=3 num_warps={block // 32} EVEN={even}"
        subject = Subject("autotuned", "scale", target, "Some GPU", {"T": dtype}, {}, plan, config)
        result.append(Evidence(subject, origin, {"n": 7}, "compact", status, 0.0, 1.0, 2))
        for n in SIZES:
            if (n % block == 0) == even:
                time = 10.0 * (1 if (block == 128) == (n <= 4096) else 1.5)
                result.append(Measurement(subject, origin, {"n": n}, {"n": n}, "ok", times=(time,) * 5, repeats=5))
    return result


def store(found: list[Record], path: Path) -> Path:
    path.unlink(missing_ok=True)
    with ResultsFile(path) as file:
        for record in found:
            file.append(record)
    return path


def tuned_pack(family: Path, results: Path, cache: Path, targets: str = "sm_90", **more: object):
    bound, location = bound_family(family)
    options = BuildOptions(parse_targets(targets), cache=cache)
    dispatch = dispatch_from(bound, tuple(options.targets), options.selection, Tuning(results, **more))  # type: ignore[arg-type]
    return make_pack(bound, location, replace(options, tuned=dispatch.tuned)).pack, dispatch.reports


def test_the_measured_winner_is_chosen_on_each_side(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    family = families / "autotuned"
    pack, reports = tuned_pack(family, store(records(family), tmp_path / "r.jsonl"), compile_cache)
    assert {r.rung for r in reports} == {Rung.MEASURED} and all(r.problems == len(SIZES) for r in reports)
    write(pack, tmp_path / "t.pack")
    scale = precast.load(tmp_path / "t.pack").operators["scale"]
    for n, block in ((1, 128), (256, 128), (900, 128), (1 << 20, 256), (5 << 20, 256), (65_537, 256)):
        facts = scale.explain(x=np.zeros(n, np.float32), target="sm_90")
        assert f"BLOCK={block} " in facts["config"], (n, facts)
        assert facts["rung"] == "other device"
    (table, other) = pack.operators[0].targets[0].specializations[0].tables
    assert pack.devices == ("Some GPU",) and table.rung == Rung.MEASURED and other.device > 1 << 31
    assert [k for (k,) in table.measured] == sorted(SIZES)


def test_the_order_of_records_changes_nothing(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    family = families / "autotuned"
    found = records(family)
    first, _ = tuned_pack(family, store(found, tmp_path / "a.jsonl"), compile_cache)
    random.Random(3).shuffle(found)
    second, _ = tuned_pack(family, store(found, tmp_path / "b.jsonl"), compile_cache)
    assert dump(first) == dump(second)


@pytest.mark.parametrize("status", ["wrong", "unverified"])
def test_nothing_ships_without_proof(families: Path, compile_cache: Path, tmp_path: Path, status: str) -> None:
    family = families / "autotuned"
    results = store(records(family, status=status), tmp_path / "r.jsonl")
    pack, reports = tuned_pack(family, results, compile_cache)
    assert {r.rung for r in reports} == {Rung.STATIC_DEFAULT} and pack.devices == ()
    _, reports = tuned_pack(family, results, compile_cache, allow_unverified=True)
    assert ({r.rung for r in reports} == {Rung.MEASURED}) == (status == "unverified")


def test_a_proof_counts_beside_an_overridden_gate_but_not_beside_a_failure(
    families: Path, compile_cache: Path, tmp_path: Path
) -> None:
    family = families / "autotuned"
    for other, rung in (("unverified", Rung.MEASURED), ("race", Rung.STATIC_DEFAULT)):
        both = [*records(family), *(r for r in records(family, status=other) if isinstance(r, Evidence))]
        _, reports = tuned_pack(family, store(both, tmp_path / "r.jsonl"), compile_cache)
        assert {r.rung for r in reports} == {rung}


def test_a_sibling_targets_measurements_are_better_than_none(
    families: Path, compile_cache: Path, tmp_path: Path
) -> None:
    family = families / "autotuned"
    pack, reports = tuned_pack(family, store(records(family, "sm_80"), tmp_path / "r.jsonl"), compile_cache)
    assert {(r.rung, r.note) for r in reports} == {(Rung.SIBLING_TARGET, "measured on sm_80")}
    write(pack, tmp_path / "t.pack")
    facts = (
        precast.load(tmp_path / "t.pack").operators["scale"].explain(x=np.zeros(1 << 20, np.float32), target="sm_90")
    )
    assert facts["rung"] == "sibling target" and "BLOCK=256 " in facts["config"]
    _, reports = tuned_pack(family, tmp_path / "r.jsonl", compile_cache, "gfx942")
    assert {r.rung for r in reports} == {Rung.STATIC_DEFAULT}


def test_rows_of_changed_sources_are_hints_and_said_to_be(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    family = families / "autotuned"
    old = [replace(r, origin=replace(r.origin, source="0123")) for r in records(family)]
    _, reports = tuned_pack(family, store(old, tmp_path / "r.jsonl"), compile_cache)
    assert {r.rung for r in reports} == {Rung.NEAREST_PROBLEM} and all("measure again" in r.note for r in reports)


def test_shares() -> None:
    assert share("3%") == share("0.03") == 0.03
    with pytest.raises(UserError, match="not a share"):
        share("three")
