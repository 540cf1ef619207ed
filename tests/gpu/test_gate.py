"""The correctness gate on a real GPU: planted bad kernels. Needs their candidate pack.

PRECAST_TEST_BAD_KERNELS   the pack: precast's `compile_candidates` of tests/data/families/bad_kernels for sm_90
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from precast.database.records import Evidence, Measurement, Record
from precast.tune.candidates import read_candidates
from precast.tune.measure import MeasureOptions, Measuring
from precast.tune.pool import LocalPool
from precast.tune.problems import TuningProblem

FAMILY = Path(__file__).parents[1] / "data" / "families" / "bad_kernels"


@pytest.mark.skipif("PRECAST_TEST_BAD_KERNELS" not in os.environ, reason="PRECAST_TEST_BAD_KERNELS names no pack")
def test_every_planted_fault_is_caught_and_the_right_kernel_is_measured() -> None:
    pack = read_candidates(Path(os.environ["PRECAST_TEST_BAD_KERNELS"]))
    stored: list[Record] = []
    options = MeasureOptions(task_seconds=10.0, run="test")
    with LocalPool() as pool:
        Measuring(pack, str(FAMILY), pool, options, stored.append).run([TuningProblem("twice", {"n": 1 << 16})])
    found = {r.subject.plan: r.status for r in stored if isinstance(r, Evidence)}
    assert found.pop("race") in ("race", "wrong")
    assert found == {
        "right": "ok", "out_of_bounds": "guard", "far_out_of_bounds": "crash", "whole_blocks": "wrong",
        "endless": "timeout", "unwritten": "unwritten",
    }  # fmt: skip
    assert {r.subject.plan for r in stored if isinstance(r, Measurement) and r.status == "ok"} == {"right"}
