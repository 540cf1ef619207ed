"""Fixtures that the tests of the database share."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable

import pytest
from made_records import evidence, measurement

from precast.database.records import Record


@pytest.fixture
def records() -> list[Record]:
    """A hundred records, in no order."""
    chance = random.Random(0)
    made: list[Record] = []
    for size in (1, 67, 1021):
        for device in ("NVIDIA H100", "NVIDIA H200"):
            for mask in ("none", "causal"):
                for block in (32, 64, 128, 256):
                    time = round(chance.uniform(5, 500), 3)
                    m = measurement(f"BLOCK_M={block} num_warps=4", time, size=size, device=device, mask=mask)
                    made += [m, evidence(m, "wrong" if block == 32 else "ok")]
    made.append(measurement("BLOCK_M=512", None, status="compile_error", reason="too much shared memory"))
    made.append(measurement(operator="other", size=3))
    chance.shuffle(made)
    return made


@pytest.fixture
def precast() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command."""

    def run(*args: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "precast.cli.main", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ}, check=False)

    return run
