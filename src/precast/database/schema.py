"""The schema of the database file, its versions, and what opens a file safely.

`STEPS[i]` takes a database from version i to version i + 1; steps are never edited once released. Tables and
views of single operators are made by `operators`, from what these tables say; views are made anew after a
migration, so a change of a view alone is an empty step.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from precast.database.operators import create_views, drop_views
from precast.errors import UserError

__all__ = [
    "APPLICATION_ID",
    "VERSION",
    "DatabaseError",
    "connect",
    "connect_memory",
    "guarded",
    "migrate",
    "transaction",
]

APPLICATION_ID = 0x70726563  # "prec"

BUSY_SECONDS = 300.0
"""How long a writer waits for another one."""


class DatabaseError(UserError):
    """A database that can't be used; the message says why and what to do."""


STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE operator (id INTEGER PRIMARY KEY, family TEXT NOT NULL, name TEXT NOT NULL,"
        " relation TEXT NOT NULL UNIQUE, UNIQUE (family, name))",
        "CREATE TABLE operator_column (operator INTEGER NOT NULL REFERENCES operator, position INTEGER NOT NULL,"
        " kind TEXT NOT NULL CHECK (kind IN ('type', 'feature', 'key')), name TEXT NOT NULL,"
        " column_name TEXT NOT NULL, PRIMARY KEY (operator, kind, name))",
        "CREATE TABLE subject (id INTEGER PRIMARY KEY, operator INTEGER NOT NULL REFERENCES operator,"
        " target TEXT NOT NULL, device TEXT NOT NULL, types TEXT NOT NULL, features TEXT NOT NULL,"
        " plan TEXT NOT NULL, config TEXT NOT NULL,"
        " UNIQUE (operator, target, device, types, features, plan, config))",
        "CREATE TABLE origin (id INTEGER PRIMARY KEY, source TEXT NOT NULL, triton TEXT NOT NULL, driver TEXT NOT NULL,"
        " date TEXT NOT NULL, run TEXT NOT NULL, importer TEXT NOT NULL,"
        " UNIQUE (source, triton, driver, date, run, importer))",
        "CREATE TABLE measurement (id TEXT PRIMARY KEY, subject INTEGER NOT NULL REFERENCES subject,"
        " origin INTEGER NOT NULL REFERENCES origin, problem_id INTEGER NOT NULL, key TEXT NOT NULL,"
        " problem TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,"
        " min_us REAL, q25_us REAL, median_us REAL, q75_us REAL, max_us REAL, repeats INTEGER NOT NULL,"
        " registers INTEGER NOT NULL, spills INTEGER NOT NULL, shared INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE evidence (id TEXT PRIMARY KEY, subject INTEGER NOT NULL REFERENCES subject,"
        " origin INTEGER NOT NULL REFERENCES origin, problem TEXT NOT NULL, layout TEXT NOT NULL,"
        " status TEXT NOT NULL, error REAL NOT NULL, allowed REAL NOT NULL, runs INTEGER NOT NULL,"
        " reason TEXT NOT NULL) WITHOUT ROWID",
    ),
    (  # clocks and remarks of a measurement; what was measured and checked of a subject is found without a scan
        "ALTER TABLE measurement ADD COLUMN clock_mhz INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE measurement ADD COLUMN notes TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX measurement_of_subject ON measurement (subject, problem_id)",
        "CREATE INDEX evidence_of_subject ON evidence (subject)",
    ),
)

VERSION = len(STEPS)
"""The schema that this precast writes: `PRAGMA user_version`."""


def _damaged(path: Path | str, error: object) -> DatabaseError:
    return DatabaseError(
        f"{path} is damaged, or no database: {error}; rebuild it from its text shards with "
        "`precast db import FOLDER --db NEW`, or from results files with `precast db merge NEW FILE…`"
    )


@contextlib.contextmanager
def guarded(path: Path | str) -> Iterator[None]:
    """Turns SQLite's errors into a `DatabaseError` that names the file and says what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise DatabaseError(f"{path} was locked by another process for {BUSY_SECONDS:.0f} s") from error
        if any(word in text for word in ("readonly", "unable to open", "disk I/O", "full")):
            raise DatabaseError(f"{path} can't be used: {text}") from error
        raise _damaged(path, error) from error
    except (sqlite3.DatabaseError, sqlite3.InterfaceError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A write transaction: all of it or nothing. Waits for other writers."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _identify(connection: sqlite3.Connection, path: Path | str) -> int:
    """The schema version of a database; 0 for an empty one."""
    version = _number(connection, "user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _number(connection, "application_id") != APPLICATION_ID:
        raise DatabaseError(
            f"{path} is an SQLite file, but not a tuning database of precast; "
            "`precast db import` reads tuning data of other tools"
        )
    if version > VERSION:
        raise DatabaseError(
            f"{path} has schema {version}, newer than schema {VERSION}, the newest that this precast knows: "
            "use the precast that wrote it, or a newer one"
        )
    return version


def migrate(connection: sqlite3.Connection, path: Path | str) -> bool:
    """Brings a database to the newest schema; whether there was anything to do."""
    if _identify(connection, path) == VERSION:
        return False
    with transaction(connection):
        version = _identify(connection, path)  # another process may have been quicker
        if version == VERSION:
            return False
        drop_views(connection)
        for number in range(version, VERSION):
            for statement in STEPS[number]:
                connection.execute(statement)
        create_views(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    return True


def _check_length(connection: sqlite3.Connection, path: Path) -> None:
    """Finds a copy that ended early before a page of it is missed.

    SQLite itself takes a file of less than a page for an empty database, and would overwrite it. The lock of a
    transaction keeps writers away; the file isn't opened here, since closing it would drop SQLite's locks.
    """
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    expected, size = _number(connection, "page_count") * _number(connection, "page_size"), path.stat().st_size
    connection.execute("COMMIT")
    if size < expected or (size and not expected):
        should = f"should have {expected:,}" if expected else "that is less than a page"
        raise _damaged(path, f"it has {size:,} bytes, {should}")


def connect(path: Path, *, create: bool, read_only: bool) -> sqlite3.Connection:
    """A connection to a database of the newest schema, whose transactions are explicit.

    A database of an older schema is migrated; opened for reading, it stays as it is and a copy in memory is migrated.

    Raises:
        DatabaseError: if it is missing, damaged, of a newer schema, or no database of precast.
    """
    if not path.exists() and (read_only or not create):
        raise DatabaseError(f"there is no database {path}; `precast db merge` and `precast db import` make one")
    if path.is_dir():
        raise DatabaseError(f"{path} is a folder, not a database; text shards are read by `precast db import {path}`")
    with guarded(path):
        mode = "ro" if read_only else "rwc" if create else "rw"
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            _check_length(connection, path)
            if read_only and _identify(connection, path) != VERSION:
                memory = sqlite3.connect(":memory:", isolation_level=None)
                connection.backup(memory)
                connection.close()
                connection = memory
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")
            if not (read_only and _identify(connection, path) == VERSION):
                migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def connect_memory() -> sqlite3.Connection:
    """A connection to an empty database in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection, "memory")
    return connection
