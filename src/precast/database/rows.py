"""Records as rows of the database, and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from precast.database.operators import Column, Operators
from precast.database.records import Evidence, Measurement, Origin, Record, canonical_json, from_dict, record_id

__all__ = ["EVIDENCE_QUERY", "MEASUREMENT_QUERY", "Inserter", "read_evidence", "read_measurement"]

SUBJECT_COLUMNS = "p.family, p.name, s.target, s.device, s.types, s.features, s.plan, s.config"
ORIGIN_COLUMNS = "o.source, o.triton, o.driver, o.date, o.run, o.importer"
JOINS = "JOIN subject s ON s.id = r.subject JOIN operator p ON p.id = s.operator JOIN origin o ON o.id = r.origin"

MEASUREMENT_QUERY = (
    f"SELECT r.id, {SUBJECT_COLUMNS}, {ORIGIN_COLUMNS}, r.problem, r.key, r.status, r.reason, r.min_us, r.q25_us,"
    " r.median_us, r.q75_us, r.max_us, r.repeats, r.registers, r.spills, r.shared, r.clock_mhz, r.notes"
    f" FROM measurement r {JOINS}"
)
"""Selects what `read_measurement` reads."""

EVIDENCE_QUERY = (
    f"SELECT r.id, {SUBJECT_COLUMNS}, {ORIGIN_COLUMNS}, r.problem, r.layout, r.status, r.error, r.allowed, r.runs,"
    f" r.reason FROM evidence r {JOINS}"
)
"""Selects what `read_evidence` reads."""


def _common(row: tuple[Any, ...]) -> dict[str, Any]:
    family, operator, target, device, types, features, plan, config = row[1:9]
    source, triton, driver, date, run, importer, problem = row[9:16]
    return {
        "subject": {
            "family": family, "operator": operator, "target": target, "device": device, "types": json.loads(types),
            "features": json.loads(features), "plan": plan, "config": config,
        },
        "origin": {
            "source": source, "triton": triton, "driver": driver, "date": date, "run": run, "importer": importer,
        },
        "problem": json.loads(problem),
    }  # fmt: skip


def read_measurement(row: tuple[Any, ...]) -> Measurement:
    """The measurement of a row.

    Raises:
        RecordError: if the row can't be one.
        ValueError: if JSON in it is none.
    """
    key, status, reason, *times, repeats, registers, spills, shared, clock, notes = row[16:]
    given = _common(row) | {
        "kind": "measurement", "key": json.loads(key), "status": status, "reason": reason,
        "times": [] if times == [None] * 5 else times, "repeats": repeats, "registers": registers, "spills": spills,
        "shared": shared, "clock_mhz": clock, "notes": notes,
    }  # fmt: skip
    record = from_dict(given)
    assert isinstance(record, Measurement)
    return record


def read_evidence(row: tuple[Any, ...]) -> Evidence:
    """The evidence of a row; raises as `read_measurement` does."""
    layout, status, error, allowed, runs, reason = row[16:]
    given = _common(row) | {
        "kind": "evidence", "layout": layout, "status": status, "error": error, "allowed": allowed, "runs": runs,
        "reason": reason,
    }  # fmt: skip
    record = from_dict(given)
    assert isinstance(record, Evidence)
    return record


class Inserter:
    """Inserts records within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._operators = Operators(connection)
        self._subjects: dict[tuple[Any, ...], int] = {}
        self._origins: dict[Origin, int] = {}

    def insert(self, record: Record, identity: str | None = None) -> bool:
        """Adds a record; whether it is new."""
        identity = identity or record_id(record)
        table = "measurement" if isinstance(record, Measurement) else "evidence"
        if self._connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (identity,)).fetchone():
            return False
        s = record.subject
        columns = [
            *(Column("type", name) for name in sorted(s.types)),
            *(Column("feature", name) for name in sorted(s.features)),
        ]
        if isinstance(record, Measurement):
            columns += [Column("key", name) for name in sorted(record.key)]
        operator = self._operators.register(s.family, s.operator, columns)
        types, features = canonical_json(dict(s.types)), canonical_json(dict(s.features))
        subject = self._subject((operator, s.target, s.device, types, features, s.plan, s.config))
        origin, problem = self._origin(record.origin), canonical_json(dict(record.problem))
        if isinstance(record, Measurement):
            key = canonical_json(dict(record.key))
            given: Mapping[str, Mapping[str, Any]] = {"type": s.types, "feature": s.features, "key": record.key}
            row = self._operators.problem(operator, given, f"{types}{features}{key}")
            values: tuple[Any, ...] = (
                identity, subject, origin, row, key, problem, record.status, record.reason,
                *(record.times or (None,) * 5), record.repeats, record.registers, record.spills, record.shared,
                record.clock_mhz, record.notes,
            )  # fmt: skip
        else:
            values = (
                identity, subject, origin, problem, record.layout, record.status, float(record.error),
                float(record.allowed), record.runs, record.reason,
            )  # fmt: skip
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        return True

    def _subject(self, values: tuple[Any, ...]) -> int:
        if values not in self._subjects:
            names = "operator, target, device, types, features, plan, config"
            self._subjects[values] = self._row("subject", names, values)
        return self._subjects[values]

    def _origin(self, o: Origin) -> int:
        if o not in self._origins:
            values = (o.source, o.triton, o.driver, o.date, o.run, o.importer)
            self._origins[o] = self._row("origin", "source, triton, driver, date, run, importer", values)
        return self._origins[o]

    def _row(self, table: str, names: str, values: tuple[Any, ...]) -> int:
        where = " AND ".join(f"{n} = ?" for n in names.split(", "))
        row = self._connection.execute(f"SELECT id FROM {table} WHERE {where}", values).fetchone()
        if row is None:
            marks = ", ".join("?" * len(values))
            row = (self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values).lastrowid,)
        return int(row[0])
