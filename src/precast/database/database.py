"""The tuning database: a set of records in an SQLite file. Winners are views of it.

Adding is a set union: a record that is there already changes nothing, and order doesn't matter. Several
processes may add at once (they wait for each other); on a network file system, let each write a results file
of its own instead and merge them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from precast.database.operators import Column, Operators, quote
from precast.database.records import Evidence, Measurement, Record, RecordError, record_id
from precast.database.rows import EVIDENCE_QUERY, MEASUREMENT_QUERY, Inserter, read_evidence, read_measurement
from precast.database.schema import DatabaseError, connect, connect_memory, guarded, transaction

__all__ = ["Added", "Best", "Database", "DatabaseError"]

R = TypeVar("R", bound=Record)

BATCH = 5000
"""Records added in one transaction."""

FILTERS = {
    "family": "p.family",
    "operator": "p.name",
    "target": "s.target",
    "device": "s.device",
    "plan": "s.plan",
    "status": "r.status",
}


@dataclass(frozen=True)
class Added:
    """How many records were new, and how many were there already."""

    added: int
    known: int

    def __add__(self, other: Added) -> Added:
        return Added(self.added + other.added, self.known + other.known)


@dataclass(frozen=True)
class Best:
    """The best config of a problem that dispatch can tell apart.

    Attributes:
        family, operator, target, device, plan, config: by name.
        types, features, key: the problem, as dispatch sees it; what records don't say is left out, and bools are
            integers.
        median_us: microseconds; None for an imported winner without a time.
        spread: (75 % quantile - 25 % quantile) / median, the worst of the problem's sizes.
        status: "ok" or "untimed".
        gate: "passed", "unverified" or "none".
        source, triton, date, importer: of its newest measurement.
    """

    family: str
    operator: str
    target: str
    device: str
    types: Mapping[str, str]
    features: Mapping[str, int | str]
    key: Mapping[str, int]
    plan: str
    config: str
    median_us: float | None
    spread: float | None
    status: str
    gate: str
    source: str
    triton: str
    date: str
    importer: str

    @property
    def place(self) -> tuple[Any, ...]:
        """What it is the best of."""
        problem = (tuple(sorted(part.items())) for part in (self.types, self.features, self.key))
        return (self.family, self.operator, self.target, self.device, *problem)


class Database:
    """A tuning database, open. Use it as a context manager."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False, read_only: bool = False) -> Database:
        """Opens a database; one of an older schema is migrated first.

        Args:
            path: the file.
            create: make it if it is missing.
            read_only: never write to the file.

        Raises:
            DatabaseError: if it is missing, damaged, of a newer schema, or no database of precast.
        """
        return cls(connect(Path(path), create=create, read_only=read_only), Path(path))

    @classmethod
    def in_memory(cls) -> Database:
        """An empty database that is gone when it is closed."""
        return cls(connect_memory(), Path("memory"))

    def close(self) -> None:
        """Closes it; what was added is kept."""
        self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def add(self, records: Iterable[Record]) -> Added:
        """Adds records, those that are there already aside.

        Raises:
            RecordError: if one can't be; those of batches before it are kept.
            DatabaseError: if the file can't be written.
        """
        rest, total = iter(records), Added(0, 0)
        while given := list(islice(rest, BATCH)):
            batch = {record_id(r): r for r in given}
            with guarded(self.path), transaction(self._connection):
                inserter = Inserter(self._connection)
                new = sum(inserter.insert(record, identity) for identity, record in batch.items())
            total += Added(new, len(given) - new)
        return total

    def register_operator(self, family: str, operator: str, columns: Iterable[Column]) -> None:
        """Makes an operator's table, its columns in the order given, or adds columns that it lacks."""
        with guarded(self.path), transaction(self._connection):
            Operators(self._connection).register(family, operator, columns)

    def measurements(self, **filters: str | None) -> Iterator[Measurement]:
        """Measurements in a fixed order: by subject, key and problem, then date.

        Args:
            filters: family, operator, target, device, plan, status; all if None.

        Raises:
            DatabaseError: if a row is damaged; the message has its id.
        """
        order = "r.key, r.problem, s.plan, s.config"
        return self._records(MEASUREMENT_QUERY, order, filters, read_measurement)

    def evidence(self, **filters: str | None) -> Iterator[Evidence]:
        """Evidence in a fixed order; arguments and errors as of `measurements`."""
        order = "s.plan, s.config, r.problem, r.layout"
        return self._records(EVIDENCE_QUERY, order, filters, read_evidence)

    def records(self, **filters: str | None) -> Iterator[Record]:
        """All measurements, then all evidence."""
        yield from self.measurements(**filters)
        yield from self.evidence(**filters)

    def ids(self) -> set[str]:
        """Identities of all records."""
        with guarded(self.path):
            rows = self._connection.execute("SELECT id FROM measurement UNION ALL SELECT id FROM evidence")
            return {str(row[0]) for row in rows}

    def _records(
        self, query: str, order: str, filters: Mapping[str, str | None], read: Callable[[tuple[Any, ...]], R]
    ) -> Iterator[R]:
        for row in self.rows(query, order, filters):
            try:
                record = read(row)
            except (RecordError, ValueError, TypeError, RecursionError) as error:
                raise DatabaseError(
                    f"{self.path}: record {row[0]} is damaged: {error}; `precast db check` lists all such"
                ) from error
            yield record

    def rows(self, query: str, order: str, filters: Mapping[str, str | None]) -> Iterator[tuple[Any, ...]]:
        """Rows of one of the queries of `precast.database.rows`, not checked."""
        given = {FILTERS[name]: value for name, value in filters.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in given) or "1"
        text = (
            f"{query} WHERE {where} ORDER BY p.family, p.name, s.target, s.device, s.types, s.features, {order},"
            " substr(o.date, 1, 19), r.id"
        )
        with guarded(self.path):
            cursor = self._connection.execute(text, tuple(given.values()))
        while True:
            with guarded(self.path):
                found = cursor.fetchmany(1000)
            if not found:
                return
            yield from found

    def best(self, **filters: str | None) -> list[Best]:
        """The best config of each target, device and problem, in a fixed order.

        Args:
            filters: family, operator, target, device; all if None.
        """
        found = []
        with guarded(self.path):
            operators = Operators(self._connection)
            for number, family, name in self._operators(filters.get("family"), filters.get("operator")):
                columns = operators.columns(number)
                flat = "".join(f"{quote(c)}, " for c in columns.values())
                places = [(n, v) for n in ("target", "device") if (v := filters.get(n)) is not None]
                where = " AND ".join(f"{n} = ?" for n, _ in places) or "1"
                rows = self._connection.execute(
                    f"SELECT target, device, {flat}plan, config, median_us, spread, status, gate, source, triton, date,"
                    f" importer FROM {quote(f'{operators.relation(number)}.best')} WHERE {where}"
                    f" ORDER BY target, device, {flat}plan, config",
                    tuple(v for _, v in places),
                )
                count = len(columns)
                for row in rows:
                    problem: dict[str, dict[str, Any]] = {"type": {}, "feature": {}, "key": {}}
                    for column, value in zip(columns, row[2 : 2 + count], strict=True):
                        if value is not None:
                            problem[column.kind][column.name] = value
                    types, features, key = problem["type"], problem["feature"], problem["key"]
                    found.append(Best(family, name, row[0], row[1], types, features, key, *row[2 + count :]))
        return found

    def operators(self) -> dict[tuple[str, str], list[Column]]:
        """The columns of every operator, by (family, operator)."""
        with guarded(self.path):
            operators = Operators(self._connection)
            return {(f, n): list(operators.columns(i)) for i, f, n in self._operators(None, None)}

    def _operators(self, family: str | None, operator: str | None) -> list[tuple[int, str, str]]:
        rows = self._connection.execute("SELECT id, family, name FROM operator ORDER BY family, name").fetchall()
        return [r for r in rows if family in (None, r[1]) and operator in (None, r[2])]

    def schema(self) -> list[str]:
        """SQL of every table, index and view: tables first, then by name."""
        query = (
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
            " ORDER BY type = 'view', type = 'index', instr(name, '.') = 0, name"
        )
        with guarded(self.path):
            return [str(row[0]) for row in self._connection.execute(query)]

    def select(self, text: str) -> list[tuple[Any, ...]]:
        """Rows of a query or pragma."""
        with guarded(self.path):
            return self._connection.execute(text).fetchall()

    def relations(self) -> list[tuple[str, int, list[str]]]:
        """Of every operator: its table, its id there, and the table's columns."""
        with guarded(self.path):
            operators = Operators(self._connection)
            return [
                (operators.relation(i), i, list(operators.columns(i).values()))
                for i, _, _ in self._operators(None, None)
            ]
