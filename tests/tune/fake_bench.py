"""A bench without a GPU: candidates have made-up times, and some of them faults, by their plan's name or number."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from precast.tune.bench import BenchPoisoned, GateResult, Prepared, TimeResult, TimingSettings


class FakeBench:
    """The folder of the pack tells the faults: a file `faults` with lines `what number`."""

    def __init__(self, pack: str, family: str) -> None:
        text = (Path(pack).parent / "faults").read_text()
        self.faults = {int(n): what for what, n in (line.split() for line in text.splitlines())}
        self.log = Path(pack).parent / "log"

    def facts(self) -> Mapping[str, str]:
        return {"device": "Fake GPU", "driver": "1.0"}

    def prepare(self, operator: str, problem: Mapping[str, Any]) -> Prepared:
        if problem["n"] > 1 << 40:
            return Prepared("", refused="the problem does not fit in memory")
        return Prepared("T=float32", {"T": "float32"}, {"n": problem["n"]})

    def _fault(self, candidate: int, where: str) -> None:
        fault = self.faults.get(candidate)
        if fault == f"{where}_crash":
            os._exit(3)
        if fault == f"{where}_hang":
            time.sleep(600)
        if fault == f"{where}_poison":
            raise BenchPoisoned("an illegal memory access")

    def gate(self, operator: str, specialization: str, candidate: int) -> GateResult:
        self._fault(candidate, "gate")
        if self.faults.get(candidate) == "wrong":
            return GateResult("wrong", {"n": 7}, "compact", 1.0, 0.1, 2, "y: error 1")
        return GateResult("ok", {"n": 7}, "compact", 0.01, 0.1, 2, "")

    def time(
        self, operator: str, problem: Mapping[str, Any], candidates: Sequence[int], settings: TimingSettings
    ) -> list[TimeResult]:
        with self.log.open("a") as file:
            file.write(f"{problem['n']} {' '.join(map(str, candidates))}\n")
        for candidate in candidates:
            self._fault(candidate, "time")
        return [TimeResult("ok", (10.0 + c,) * 5) for c in candidates]
