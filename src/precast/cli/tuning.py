"""What `precast measure` and `precast tune` share: problems, progress, and the run itself."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from precast.cli.output import errors
from precast.database.records import Evidence, Measurement, Record
from precast.errors import UserError
from precast.tune.measure import Tally

__all__ = ["TuningProgress", "choose_problems", "run_measure", "seconds"]

LINE_EVERY = 5.0
ROWS = 8


def seconds(text: str) -> float:
    """A time such as "90s", "10m", "1.5h".

    Raises:
        UserError: if it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if not match:
        raise UserError(f"{text!r} is not a time: write 90s, 10m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def choose_problems(family: str | Path, problems: Path | None, record: Path | None, operator: str | None) -> list[Any]:
    """The problems to tune for, heaviest first where they have weights.

    Raises:
        UserError: if there are none, or a file is wrong.
    """
    from precast.check.problems import load_references
    from precast.tune.problems import problems_of, read_problems, read_record_log

    references, location = load_references(family)
    if operator is not None and operator not in references:
        raise UserError(f"the family has no reference for {operator!r}; it has {', '.join(references)}")
    if problems is not None:
        found = read_problems(problems, references)
    elif record is not None:
        log = read_record_log(record, location.name, references)
        for line in log.skipped:
            errors.print(f"skipped: {line}", markup=False, style="yellow")
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


class TuningProgress:
    """A bar with an ETA and the latest results on terminals; a line now and then elsewhere."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live: Live | None = None
        self.rows: list[tuple[str, ...]] = []
        self.start = self.last = time.monotonic()
        self.bar = Progress(
            TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("ETA"),
            TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=errors,
        )  # fmt: skip
        self.task = self.bar.add_task("measure", total=None, note="")

    def __enter__(self) -> TuningProgress:
        if not self.quiet and errors.is_terminal:
            self.live = Live(console=errors, transient=True, refresh_per_second=4)
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def update(self, tally: Tally, record: Record) -> None:
        """Notes one result."""
        if self.quiet:
            return
        s = record.subject
        bad = record.status not in ("ok", "pruned", "unverified")
        if bad:
            text = f"{record.status}: {s.operator} {s.plan}: {s.config}: {record.reason}"
            errors.print(text, markup=False, style="yellow")
        now = time.monotonic()
        if self.live is None:
            if now - self.last >= LINE_EVERY:
                self.last = now
                left = (tally.total - tally.done) * (now - self.start) / max(1, tally.measured)
                errors.print(f"measured {tally.done} of {tally.total}, about {left:.0f} s left", markup=False)
            return
        time_text = f"{record.times[2]:.1f} µs" if isinstance(record, Measurement) and record.times else record.status
        what = "gate" if isinstance(record, Evidence) else " ".join(f"{k}={v}" for k, v in record.key.items())
        self.rows = [*self.rows[-ROWS + 1 :], (s.operator, what, s.plan, s.config, time_text)]
        table = Table("operator", "problem", "plan", "config", "time", box=None)
        for row in self.rows:
            table.add_row(*row)
        self.bar.update(self.task, total=tally.total, completed=tally.done, note=f"{tally.failed} failed the gate")
        self.live.update(Group(self.bar, table))


def run_measure(
    pack: Path,
    results: Path,
    *,
    family: str | None,
    problems: Path | None,
    record: Path | None,
    operator: str | None,
    gpus: Sequence[str] | None,
    budget: float | None,
    gate: bool,
    keep_spills: bool,
    exhaustive: bool,
    again: bool,
    quiet: bool,
    bench: str = "",
) -> dict[str, Any]:
    """Measures a pack into a results file and gives the counts."""
    from precast.database.results import ResultsFile, read_results
    from precast.tune.bench import GPU_BENCH, TimingSettings
    from precast.tune.candidates import read_candidates
    from precast.tune.measure import MeasureOptions, Measuring
    from precast.tune.pool import LocalPool

    start = time.monotonic()
    candidates = read_candidates(pack)
    where = family or candidates.family
    wanted = choose_problems(where, problems, record, operator)
    known: list[Record] = []
    if results.exists() and not again:
        known, bad = read_results(results)
        for line in bad:
            errors.print(f"{results}:{line.number}: {line.reason}", markup=False, style="yellow")
    options = MeasureOptions(
        settings=TimingSettings(exhaustive=exhaustive),
        gate=gate,
        prune_spills=None if keep_spills else MeasureOptions.prune_spills,
        budget=budget,
        run=uuid.uuid4().hex[:12],
        bench=bench or GPU_BENCH,
    )
    with TuningProgress(quiet) as progress, LocalPool(gpus) as pool, ResultsFile(results, sync_every=16) as file:
        tally = Measuring(candidates, where, pool, options, file.append, known, progress.update).run(wanted)
    return {
        "measured": tally.measured, "known": tally.known, "gated": tally.gated, "failed": tally.failed,
        "pruned": tally.pruned, "refused": tally.refused, "gpu_seconds": round(tally.gpu_seconds, 3),
        "out_of_budget": tally.out_of_budget, "seconds": round(time.monotonic() - start, 3), "run": options.run,
    }  # fmt: skip
