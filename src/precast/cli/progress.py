"""Progress of compiles: a bar with an ETA on terminals, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from precast.cli.output import errors
from precast.compile.job import CompileJob, CompileResult
from precast.compile.pool import CompileTally

__all__ = ["CompileProgress"]

LINE_EVERY = 5.0
"""Seconds between lines where there is no terminal."""


class CompileProgress:
    """Shows how far a build is; a context manager whose `update` the build calls."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.bar: Progress | None = None
        self.task = None
        self.start = self.last = time.monotonic()

    def __enter__(self) -> CompileProgress:
        if not self.quiet and errors.is_terminal:
            columns = (
                TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("ETA"),
                TimeRemainingColumn(), TextColumn("{task.fields[note]}"),
            )  # fmt: skip
            self.bar = Progress(*columns, console=errors, transient=True)
            self.bar.start()
            self.task = self.bar.add_task("compile", total=None, note="")  # type: ignore[assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def update(self, tally: CompileTally, job: CompileJob, result: CompileResult) -> None:
        """Notes one result."""
        if self.quiet:
            return
        if not result.ok:
            reason = result.reason.splitlines()[0] if result.reason else ""
            errors.print(f"{result.status}: {job.label}: {reason}", markup=False, style="yellow")
        if self.bar is not None and self.task is not None:
            note = f"{tally.cached} from the cache" if tally.cached else ""
            self.bar.update(self.task, total=tally.total, completed=tally.done, note=note)
            return
        now = time.monotonic()
        if now - self.last >= LINE_EVERY:
            self.last = now
            fresh = tally.compiled + tally.failed
            left = (tally.total - tally.done) * (now - self.start) / max(1, fresh)
            errors.print(f"compiled {tally.done} of {tally.total}, about {left:.0f} s left")
