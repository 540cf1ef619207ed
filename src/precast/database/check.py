"""Checking a database: the file, every row, every identity, and whether figures can be what they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from precast.database.database import Database
from precast.database.operators import quote
from precast.database.records import Measurement, Record, record_id
from precast.database.rows import EVIDENCE_QUERY, MEASUREMENT_QUERY, read_evidence, read_measurement
from precast.errors import UserError

__all__ = ["Problem", "check_database"]

FASTEST = 0.1
"""Microseconds; no launch takes less, so such a time was given in another unit."""

SLOWEST = 600e6
"""Microseconds; ten minutes for one launch."""


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where: a record's id, a table, or the file."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def check_database(database: Database) -> list[Problem]:
    """All that is wrong with a database; empty if nothing is."""
    found = list(_file(database))
    if found:
        return found  # rows of a damaged file say nothing
    for query, read in ((MEASUREMENT_QUERY, read_measurement), (EVIDENCE_QUERY, read_evidence)):
        for row in database.rows(query, "r.problem", {}):
            where = f"record {row[0]}"
            try:
                record: Record = read(row)
                identity = record_id(record)
            except (UserError, ValueError, TypeError, RecursionError) as error:
                found.append(Problem(where, str(error)))
                continue
            if identity != row[0]:
                found.append(Problem(where, f"its content has the id {identity}: it was changed"))
            found += [Problem(where, what) for what in _doubts(record)]
    return found


def _file(database: Database) -> Iterator[Problem]:
    where = str(database.path)
    try:
        for (text,) in database.select("PRAGMA integrity_check(100)"):
            if text != "ok":
                yield Problem(where, str(text))
        for table, row, other, _ in database.select("PRAGMA foreign_key_check"):
            yield Problem(f"table {table}, row {row}", f"refers to a row that {other} lacks")
        yield from _problem_rows(database)
    except UserError as error:
        yield Problem(where, str(error))


def _problem_rows(database: Database) -> Iterator[Problem]:
    """Measurements whose problem is missing from the operator's table, and problems that are there twice."""
    for relation, number, columns in database.relations():
        table = quote(relation)
        missing = database.select(
            f"SELECT count(*) FROM measurement m JOIN subject s ON s.id = m.subject WHERE s.operator = {number}"
            f" AND NOT EXISTS (SELECT 1 FROM {table} p WHERE p.id = m.problem_id)"
        )
        if missing[0][0]:
            yield Problem(f"table {relation}", f"lacks the problems of {missing[0][0]} measurements")
        if columns:
            names = ", ".join(map(quote, columns))
            for row in database.select(f"SELECT min(id), count(*) FROM {table} GROUP BY {names} HAVING count(*) > 1"):
                yield Problem(f"table {relation}, row {row[0]}", f"the same problem is there {row[1]} times")


def _doubts(record: Record) -> Iterator[str]:
    if not isinstance(record, Measurement) or not record.times:
        return
    if record.times[0] < FASTEST:
        yield f"a time of {record.times[0]:g} µs is too short for a launch: were other units meant?"
    if record.times[-1] > SLOWEST:
        yield f"a time of {record.times[-1]:g} µs is longer than ten minutes: were other units meant?"
    if record.repeats == 0 and not record.origin.importer:
        yield "has times, but no repeats"
