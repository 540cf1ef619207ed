"""For every operator a table of its problems, and views with flat columns.

The table `family.operator` has one column for every type variable, feature and key: just what dispatch reads,
and UNIQUE over all of them. A record that lacks a column (written before the feature existed, or imported from
a file that doesn't say) has NULL there: a problem of its own, kept and never mixed with others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Column", "Operators", "create_views", "drop_views", "quote"]

RESERVED = frozenset(
    [
        "id",
        "rowid",
        "oid",
        "_rowid_",
        "target",
        "device",
        "plan",
        "config",
        "median_us",
        "spread",
        "status",
        "gate",
        "source",
        "triton",
        "date",
        "importer",
        "problems",
        "rank",
    ]
)
"""Names that the views use themselves; a column of such a name is spelled with its kind."""

SQL_TYPES = {"type": " TEXT", "feature": "", "key": " INTEGER"}
"""Features are integers or text: a column without a type keeps both as they are."""

OUTCOMES = """
CREATE VIEW outcome AS
WITH
  ranked AS (
    SELECT m.*, o.source, o.triton, o.date, o.importer,
      first_value(o.source) OVER newest_first AS newest_source,
      first_value(o.importer) OVER newest_first AS newest_importer,
      row_number() OVER (PARTITION BY m.subject, m.problem_id, m.problem, o.source, o.importer
                         ORDER BY substr(o.date, 1, 19) DESC, m.id) AS age
    FROM measurement m JOIN origin o ON o.id = m.origin
    WINDOW newest_first AS (PARTITION BY m.subject, m.problem_id
                            ORDER BY o.importer = '' DESC, substr(o.date, 1, 19) DESC, m.id)),
  newest AS (  -- sizes that dispatch can't tell apart are averaged below
    SELECT *, status IN ('ok', 'untimed') AS usable FROM ranked
    WHERE age = 1 AND source = newest_source AND importer = newest_importer),
  ranked_evidence AS (
    SELECT e.subject, o.source, e.status, row_number() OVER (
      PARTITION BY e.subject, o.source, e.problem, e.layout ORDER BY substr(o.date, 1, 19) DESC, e.id) AS age
    FROM evidence e JOIN origin o ON o.id = e.origin),
  gate AS (
    SELECT subject, source, CASE
        WHEN max(status NOT IN ('ok', 'unverified', 'out_of_memory')) THEN 'failed'
        WHEN max(status = 'ok') THEN 'passed' ELSE 'unverified' END AS gate
    FROM ranked_evidence WHERE age = 1 GROUP BY subject, source)
SELECT s.operator, n.problem_id, s.target, s.device, s.plan, s.config,
  CASE WHEN min(n.usable) THEN avg(n.median_us) END AS median_us,
  CASE WHEN min(n.usable) THEN max((n.q75_us - n.q25_us) / n.median_us) END AS spread,
  CASE WHEN count(DISTINCT n.status) = 1 THEN max(n.status)
       WHEN min(n.usable) THEN 'ok' ELSE max(CASE WHEN NOT n.usable THEN n.status END) END AS status,
  coalesce(max(g.gate), 'none') AS gate, n.source, max(n.triton) AS triton, max(n.date) AS date, n.importer,
  count(*) AS problems
FROM newest n JOIN subject s ON s.id = n.subject
  LEFT JOIN gate g ON g.subject = n.subject AND g.source = n.source
GROUP BY n.subject, n.problem_id, n.source, n.importer
"""
"""How each config does on each problem that dispatch can tell apart, by its newest measurements and evidence."""

OUTCOME_COLUMNS = "plan, config, median_us, spread, status, gate, source, triton, date, importer, problems"


@dataclass(frozen=True)
class Column:
    """A column of an operator's table: its kind ("type", "feature", "key") and the name in records."""

    kind: str
    name: str


def quote(name: str) -> str:
    """An SQL identifier of any text."""
    return '"' + name.replace('"', '""') + '"'


def drop_views(connection: sqlite3.Connection) -> None:
    """Drops all views."""
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        connection.execute(f"DROP VIEW {quote(name)}")


def create_views(connection: sqlite3.Connection) -> None:
    """Makes all views, as this precast defines them."""
    connection.execute(OUTCOMES)
    for operator, relation in connection.execute("SELECT id, relation FROM operator ORDER BY id").fetchall():
        names = [
            row[0]
            for row in connection.execute(
                "SELECT column_name FROM operator_column WHERE operator = ? ORDER BY position", (operator,)
            )
        ]
        _operator_views(connection, operator, relation, names)


def _operator_views(connection: sqlite3.Connection, operator: int, relation: str, names: Iterable[str]) -> None:
    columns = "".join(f"p.{quote(n)}, " for n in names)
    everything, best = quote(f"{relation}.all"), quote(f"{relation}.best")
    connection.execute(
        f"CREATE VIEW {everything} AS SELECT o.target, o.device, {columns}"
        + ", ".join(f"o.{c.strip()}" for c in OUTCOME_COLUMNS.split(","))
        + f", p.id AS id FROM outcome o JOIN {quote(relation)} p ON p.id = o.problem_id WHERE o.operator = {operator}"
    )
    flat = "".join(f"{quote(n)}, " for n in names)
    connection.execute(
        f"CREATE VIEW {best} AS SELECT target, device, {flat}{OUTCOME_COLUMNS} FROM (SELECT *, row_number() OVER"
        " (PARTITION BY target, device, id ORDER BY median_us IS NULL, median_us, gate <> 'passed', plan, config)"
        f" AS rank FROM {everything} WHERE status IN ('ok', 'untimed') AND gate <> 'failed') WHERE rank = 1"
    )


class Operators:
    """The operators of one database, within one transaction: nothing is remembered across transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ids: dict[tuple[str, str], int] = {}
        self._relations: dict[int, str] = {}
        self._columns: dict[int, dict[Column, str]] = {}
        self._problems: dict[tuple[int, str], int] = {}

    def find(self, family: str, name: str) -> int | None:
        """The operator's id, or None."""
        row = self._connection.execute(
            "SELECT id, relation FROM operator WHERE family = ? AND name = ?", (family, name)
        ).fetchone()
        if row is None:
            return None
        self._ids[family, name], self._relations[row[0]] = row
        return int(row[0])

    def relation(self, operator: int) -> str:
        """The name of the operator's table; its views are `….all` and `….best`."""
        if operator not in self._relations:
            row = self._connection.execute("SELECT relation FROM operator WHERE id = ?", (operator,)).fetchone()
            self._relations[operator] = str(row[0])
        return self._relations[operator]

    def columns(self, operator: int) -> dict[Column, str]:
        """The operator's columns, in order, with their names in the table."""
        if operator not in self._columns:
            rows = self._connection.execute(
                "SELECT kind, name, column_name FROM operator_column WHERE operator = ? ORDER BY position", (operator,)
            )
            self._columns[operator] = {Column(kind, name): column for kind, name, column in rows}
        return self._columns[operator]

    def register(self, family: str, name: str, columns: Iterable[Column]) -> int:
        """The operator's id; its table is made, or given the columns that it lacks."""
        operator = self._ids.get((family, name)) or self.find(family, name)
        created = operator is None
        if operator is None:
            operator = self._create(family, name)
        known = self.columns(operator)
        missing = [c for c in dict.fromkeys(columns) if c not in known]
        if missing or created:
            self._add_columns(operator, missing)
        return operator

    def _create(self, family: str, name: str) -> int:
        relation, taken = f"{family}.{name}", self._taken()
        number = 1
        while any(f"{relation}{end}".lower() in taken for end in ("", ".all", ".best")):
            number += 1
            relation = f"{family}.{name}~{number}"  # names that differ in case only
        cursor = self._connection.execute(
            "INSERT INTO operator (family, name, relation) VALUES (?, ?, ?)", (family, name, relation)
        )
        operator = int(cursor.lastrowid or 0)
        self._ids[family, name] = operator
        self._relations[operator] = relation
        return operator

    def _taken(self) -> set[str]:
        return {str(r[0]).lower() for r in self._connection.execute("SELECT name FROM sqlite_master")}

    def _add_columns(self, operator: int, missing: list[Column]) -> None:
        """The table is made anew, since UNIQUE can't be altered; problems keep their ids."""
        columns = self.columns(operator)
        old = list(columns.values())
        for column in missing:
            name = _free_name(column, {*RESERVED, *(n.lower() for n in columns.values())})
            self._connection.execute(
                "INSERT INTO operator_column (operator, position, kind, name, column_name) VALUES (?, ?, ?, ?, ?)",
                (operator, len(columns), column.kind, column.name, name),
            )
            columns[column] = name
        relation = self.relation(operator)
        for view in ("all", "best"):
            self._connection.execute(f"DROP VIEW IF EXISTS {quote(f'{relation}.{view}')}")
        old_rows: list[Any] = []
        if relation.lower() in self._taken():
            names = ", ".join(["id", *map(quote, old)])
            old_rows = self._connection.execute(f"SELECT {names} FROM {quote(relation)}").fetchall()
            self._connection.execute(f"DROP TABLE {quote(relation)}")
        declared = "".join(f",\n  {quote(n)}{SQL_TYPES[c.kind]}" for c, n in columns.items())
        unique = f",\n  UNIQUE ({', '.join(map(quote, columns.values()))})" if columns else ""
        self._connection.execute(f"CREATE TABLE {quote(relation)} (\n  id INTEGER PRIMARY KEY{declared}{unique}\n)")
        marks = ", ".join("?" * (len(old) + 1))
        names = ", ".join(["id", *map(quote, old)])
        self._connection.executemany(f"INSERT INTO {quote(relation)} ({names}) VALUES ({marks})", old_rows)
        _operator_views(self._connection, operator, relation, columns.values())

    def problem(self, operator: int, given: Mapping[str, Mapping[str, Any]], text: str) -> int:
        """The row of a problem in the operator's table, made if it is new.

        Args:
            operator: its id; all columns are registered.
            given: "type", "feature" and "key" to names and values.
            text: tells problems apart, for the cache.
        """
        if (operator, text) in self._problems:
            return self._problems[operator, text]
        values = {name: given[column.kind].get(column.name) for column, name in self.columns(operator).items()}
        table = quote(self.relation(operator))
        where = " AND ".join(f"{quote(n)} IS ?" for n in values) or "1"
        row = self._connection.execute(f"SELECT id FROM {table} WHERE {where}", tuple(values.values())).fetchone()
        if row is None:
            if values:
                names, marks = ", ".join(map(quote, values)), ", ".join("?" * len(values))
                insert = f"INSERT INTO {table} ({names}) VALUES ({marks})"
            else:
                insert = f"INSERT INTO {table} DEFAULT VALUES"
            row = (self._connection.execute(insert, tuple(values.values())).lastrowid,)
        found = int(row[0])
        self._problems[operator, text] = found
        return found


def _free_name(column: Column, taken: set[str]) -> str:
    name, number = column.name, 1
    while name.lower() in taken:
        suffix = column.kind if number == 1 else f"{column.kind} {number}"
        name, number = f"{column.name} ({suffix})", number + 1
    return name
