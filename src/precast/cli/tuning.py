"""What `precast measure` and `precast tune` share: flags and progress."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from precast.cli.output import errors
from precast.database.records import Evidence, Measurement, Record
from precast.errors import UserError
from precast.tune.bench import TimingSettings
from precast.tune.measure import MeasureOptions, Tally
from precast.tune.session import Session

__all__ = ["MeasureFlags", "TuningProgress", "seconds", "tell"]

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


@dataclass
class MeasureFlags:
    """What `precast measure` and `precast tune` both take.

    Attributes
    ----------
    problems
        File of JSON lines to measure on, instead of the family's own problems.
    record
        Log of what ran (PRECAST_RECORD) to measure on.
    operator
        Measure this operator alone.
    gpus
        Comma-separated numbers of the GPUs to use; the first by default.
    budget
        Begin no new measurement after this time: 90s, 10m, 2h.
    gate
        Prove each config's results before its time counts.
    keep_spills
        Also measure configs that spill much.
    exhaustive
        Measure clear losers to the end too.
    again
        Measure what is measured already once more.
    """

    problems: Path | None = None
    record: Path | None = None
    operator: str | None = None
    gpus: str | None = None
    budget: str | None = None
    gate: bool = True
    keep_spills: bool = False
    exhaustive: bool = False
    again: bool = False

    def session(self, family: str | None) -> Session:
        """As the tuner takes it; raises `UserError` if a flag is wrong."""
        options = MeasureOptions(
            settings=TimingSettings(exhaustive=self.exhaustive),
            gate=self.gate,
            prune_spills=None if self.keep_spills else MeasureOptions.prune_spills,
            budget=seconds(self.budget) if self.budget else None,
        )
        gpus = tuple(self.gpus.split(",")) if self.gpus else ()
        return Session(family, self.problems, self.record, self.operator, gpus, self.again, options)


def tell(line: str) -> None:
    """Something that the user should know."""
    errors.print(line, markup=False, style="yellow")


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
