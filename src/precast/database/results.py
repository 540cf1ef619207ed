"""Results files: records as JSON lines, appended by one process each; what a killed process wrote is kept.

A line is written by one write(), so a file that several processes append to has whole lines too, on local file
systems. On network file systems give each process its own file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from precast.database.records import Record, RecordError, from_line, to_line

__all__ = ["LINE_LIMIT", "BadLine", "BadRecord", "ResultsFile", "ends_whole", "lines_of", "read_results"]

LINE_LIMIT = 1 << 20
"""Bytes that a line may have."""


@dataclass(frozen=True)
class BadLine:
    """A line that was left out: its number, counted from 1, and why."""

    number: int
    reason: str


@dataclass(frozen=True)
class BadRecord:
    """A line of one of several files that was left out, and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class ResultsFile:
    """A results file, open to append to.

    Args:
        path: the file; it is made if it is missing.
        sync_every: records after which the file is forced to the disk.
    """

    def __init__(self, path: str | Path, *, sync_every: int = 1) -> None:
        self.path = Path(path)
        self._sync_every = max(1, sync_every)
        self._unsynced = 0
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def append(self, record: Record) -> None:
        """Adds a record.

        Raises:
            RecordError: if it can't be a record.
            OSError: if it can't be written.
        """
        data = to_line(record).encode() + b"\n"
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            data = b"\n" + data  # ends what a killed process left half-written, so that only that is lost
        written = os.write(self._file, data)
        if written != len(data):
            raise OSError(f"{self.path}: only {written} of {len(data)} bytes could be written; is the disk full?")
        self._unsynced += 1
        if self._unsynced >= self._sync_every:
            self.sync()

    def sync(self) -> None:
        """Forces what was appended to the disk."""
        os.fsync(self._file)
        self._unsynced = 0

    def close(self) -> None:
        """Syncs and closes it."""
        if self._file >= 0:
            self.sync()
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def lines_of(path: Path) -> Iterator[tuple[int, str | BadLine]]:
    """Lines of a file with their numbers, empty ones left out; those that are too long or no text as `BadLine`.

    A last line without its end is given as it is: whoever parses it finds out whether it is whole.
    """
    with path.open("rb") as file:
        number = 0
        while data := file.readline(LINE_LIMIT + 1):
            number += 1
            if len(data) > LINE_LIMIT:
                while data and not data.endswith(b"\n"):
                    data = file.readline(LINE_LIMIT)
                yield number, BadLine(number, f"longer than {LINE_LIMIT:,} bytes")
                continue
            try:
                text = data.decode().strip()
            except UnicodeDecodeError as error:
                yield number, BadLine(number, f"not UTF-8: {error.reason} at byte {error.start}")
                continue
            if text:
                yield number, text


def ends_whole(path: Path) -> bool:
    """Whether the last line of a file has its end."""
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read_results(path: str | Path) -> tuple[list[Record], list[BadLine]]:
    """Records of a results file, and the lines that are none.

    A half-written last line, which a killed process may leave, is among the bad lines; its reason says so.

    Raises:
        OSError: if the file can't be read.
    """
    path = Path(path)
    records: list[Record] = []
    bad: list[BadLine] = []
    number = 0
    for number, line in lines_of(path):
        if isinstance(line, BadLine):
            bad.append(line)
            continue
        try:
            records.append(from_line(line))
        except RecordError as error:
            bad.append(BadLine(number, str(error)))
    if bad and bad[-1].number == number and not ends_whole(path):
        bad[-1] = BadLine(number, "half-written last line: its writer was stopped")
    return records, bad
