"""One measuring session: which problems, what is known already, and where the results go."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from precast.check.problems import load_references
from precast.database.records import Record
from precast.database.results import BadLine, ResultsFile, read_results
from precast.errors import UserError
from precast.tune.candidates import read_candidates
from precast.tune.measure import MeasureOptions, Measuring, Progress
from precast.tune.pool import LocalPool
from precast.tune.problems import TuningProblem, problems_of, read_problems, read_record_log

__all__ = ["Session", "choose_problems", "measure_pack"]


@dataclass(frozen=True)
class Session:
    """What to measure, and how.

    Attributes:
        family: where the references are, folder or name; None for the family that precast ships under the pack's name.
        problems: file of problems instead of the family's own.
        record: log of what ran to measure on.
        operator: this one alone.
        gpus: numbers of the GPUs, a worker process each; the first if there are none.
        again: measure once more what is measured already.
        options: of the measuring itself.
    """

    family: str | None = None
    problems: Path | None = None
    record: Path | None = None
    operator: str | None = None
    gpus: tuple[str, ...] = ()
    again: bool = False
    options: MeasureOptions = field(default_factory=MeasureOptions)


def choose_problems(session: Session, family: str, tell: Callable[[str], None]) -> list[TuningProblem]:
    """The problems to tune for, those that run most first.

    Raises:
        UserError: if there are none, or a file is wrong.
    """
    references, location = load_references(family)
    operator = session.operator
    if operator is not None and operator not in references:
        raise UserError(f"the family has no reference for {operator!r}; it has {', '.join(references)}")
    if session.problems is not None:
        found = read_problems(session.problems, references)
    elif session.record is not None:
        log = read_record_log(session.record, location.name, references)
        for line in log.skipped:
            tell(f"skipped: {line}")
        found = log.problems
    else:
        found = problems_of(references)
    if operator is not None:
        found = [p for p in found if p.operator == operator]
    if not found:
        raise UserError(
            "there is no problem to tune for: give the family's references some (Reference(tuning=…)), or use "
            "--problems or --record"
        )
    return sorted(found, key=lambda p: -p.weight)


def measure_pack(
    pack: Path, results: Path, session: Session, tell: Callable[[str], None], progress: Progress | None = None
) -> dict[str, Any]:
    """Measures a pack's candidates into a results file, and gives the counts.

    Args:
        tell: is given what the user should know, a line each.
        progress: called after each result.

    Raises:
        UserError: if the pack, the family or a file can't be used, or there is no GPU.
    """
    start = time.monotonic()
    candidates = read_candidates(pack)
    family = session.family or candidates.family
    wanted = choose_problems(session, family, tell)
    known: list[Record] = []
    bad: list[BadLine] = []
    if results.exists() and not session.again:
        known, bad = read_results(results)
    for line in bad:
        tell(f"{results}:{line.number}: {line.reason}")
    options = replace(session.options, run=uuid.uuid4().hex[:12])
    with LocalPool(session.gpus) as pool, ResultsFile(results, sync_every=16) as file:
        tally = Measuring(candidates, family, pool, options, file.append, known, progress).run(wanted)
    return {
        "measured": tally.measured, "known": tally.known, "gated": tally.gated, "failed": tally.failed,
        "pruned": tally.pruned, "refused": tally.refused, "gpu_seconds": round(tally.gpu_seconds, 3),
        "out_of_budget": tally.out_of_budget, "seconds": round(time.monotonic() - start, 3), "run": options.run,
    }  # fmt: skip
