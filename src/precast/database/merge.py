"""Merging: databases, results files and text shards into one database, as a union of sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from precast.database.database import Added, Database, DatabaseError
from precast.database.results import BadRecord, read_results
from precast.database.shards import import_shards, is_shard

__all__ = ["MergeReport", "merge", "open_any"]

SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class MergeReport:
    """What a merge did: how many records were new or known, and the lines left out."""

    added: Added
    bad: tuple[BadRecord, ...] = field(default=())


def merge(database: Database, files: Iterable[str | Path]) -> MergeReport:
    """Adds all records of files: databases, results files, shards, folders of shards. Bad lines are left out.

    Raises:
        DatabaseError: if a file is none of these; what was merged before it is kept.
        OSError: if a file can't be read.
    """
    added, bad = Added(0, 0), list[BadRecord]()
    for path in map(Path, files):
        report = _merge_one(database, path)
        added += report.added
        bad += report.bad
    return MergeReport(added, tuple(bad))


def _merge_one(database: Database, path: Path) -> MergeReport:
    if path.is_dir():
        imported = import_shards(database, path)
        return MergeReport(imported.added, tuple(imported.bad))
    with path.open("rb") as file:
        head = file.read(len(SQLITE))
    if head == SQLITE:
        with Database.open(path, read_only=True) as other:
            # All of it first, so that no database is locked for reading while another is written: they may be one.
            return MergeReport(database.add(list(other.records())))
    if head.strip() and head.lstrip()[:1] != b"{":
        raise DatabaseError(
            f"{path} is no tuning database, results file, shard or folder of shards; "
            "`precast db import` reads tuning data of other tools"
        )
    if is_shard(path):
        imported = import_shards(database, path)
        return MergeReport(imported.added, tuple(imported.bad))
    records, lines = read_results(path)
    if lines and not records:
        raise DatabaseError(f"{path} has no record: line {lines[0].number}: {lines[0].reason}")
    return MergeReport(database.add(records), tuple(BadRecord(str(path), b.number, b.reason) for b in lines))


def open_any(path: str | Path) -> tuple[Database, tuple[BadRecord, ...]]:
    """A database to read from, of a database, results file, shard or folder of shards; and the lines left out.

    Raises:
        DatabaseError: if it is none of these, or damaged.
    """
    path = Path(path)
    if path.is_file():
        with path.open("rb") as file:
            text = file.read(64).lstrip()[:1] == b"{"
    else:
        text = path.is_dir()
    if not text:
        return Database.open(path, read_only=True), ()
    database = Database.in_memory()
    return database, merge(database, [path]).bad
