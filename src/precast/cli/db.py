"""`precast db`: looking at the tuning database, merging, importing and exporting it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from precast.cli.output import console, errors, print_json, print_table
from precast.database.database import Database
from precast.database.records import to_dict
from precast.database.results import BadRecord
from precast.database.table_rows import best_row, choice_row, evidence_row, measurement_row
from precast.errors import UserError

__all__ = ["db"]

EXIT_FOUND = 1

db = cyclopts.App(
    name="db",
    help="Show, compare, merge, import and export tuning databases.",
    result_action="return_value",
)


@db.command
def schema(database: Path, /, *, json: bool = False) -> int:
    """Show the tables and views; an operator's table has just the columns that dispatch reads.

    Parameters
    ----------
    database
        A database.
    json
        Print the operators and their columns as JSON.
    """
    with Database.open(database, read_only=True) as opened:
        if json:
            operators = opened.operators().items()
            print_json(
                [{"family": f, "operator": n, "columns": [vars(c) for c in columns]} for (f, n), columns in operators]
            )
        else:
            for text in opened.schema():
                console.print(text + ";", markup=False)
    return 0


@db.command
def show(
    database: Path,
    /,
    *,
    family: str | None = None,
    operator: str | None = None,
    target: str | None = None,
    device: str | None = None,
    status: str | None = None,
    evidence: bool = False,
    json: bool = False,
) -> int:
    """List measurements.

    Parameters
    ----------
    database
        A database, a results file or text shards.
    family, operator, target, device, status
        Only those.
    evidence
        List what the correctness gate found instead.
    json
        Print whole records as JSON.
    """
    filters = {"family": family, "operator": operator, "target": target, "device": device, "status": status}
    opened, bad = _open(database)
    with opened:
        if json:
            print_json([to_dict(r) for r in (opened.evidence if evidence else opened.measurements)(**filters)])
        elif evidence:
            columns = ["operator", "target", "device", "specialization", "problem", "layout", "plan", "config",
                       "status", "error", "allowed", "reason"]  # fmt: skip
            print_table("", columns, [evidence_row(r) for r in opened.evidence(**filters)])
        else:
            columns = ["operator", "target", "device", "specialization", "key", "plan", "config", "status",
                       "median µs", "registers", "spills", "shared", "reason", "notes"]  # fmt: skip
            print_table("", columns, [measurement_row(r) for r in opened.measurements(**filters)])
    return _report_bad(bad)


@db.command
def best(
    database: Path,
    /,
    *,
    family: str | None = None,
    operator: str | None = None,
    target: str | None = None,
    device: str | None = None,
    json: bool = False,
) -> int:
    """Show the best config of each problem on each device.

    Parameters
    ----------
    database
        A database, a results file or text shards.
    family, operator, target, device
        Only those.
    json
        Print JSON.
    """
    opened, bad = _open(database)
    with opened:
        found = opened.best(family=family, operator=operator, target=target, device=device)
        if json:
            print_json([vars(b) for b in found])
        else:
            columns = ["operator", "target", "device", "problem", "plan", "config", "median µs", "gate", "from"]
            print_table("", columns, [best_row(b) for b in found])
    return _report_bad(bad)


@db.command
def merge(database: Path, /, *files: Path, json: bool = False) -> int:
    """Add all records of files to a database, which is made if it is missing.

    A set union: no record is lost or doubled, order doesn't matter. Exits with 1 if lines had to be left out.

    Parameters
    ----------
    database
        The database.
    files
        Databases, results files, text shards or folders of them.
    json
        Print JSON.
    """
    from precast.database.merge import merge as merge_files

    if not files:
        raise UserError("nothing to merge: name databases, results files, or folders of text shards")
    _check_there(files)
    with Database.open(database, create=True) as opened:
        report = merge_files(opened, files)
    return _print_added("merged", report.added.added, report.added.known, report.bad, json)


@db.command
def diff(
    first: Path,
    second: Path,
    /,
    *,
    family: str | None = None,
    operator: str | None = None,
    target: str | None = None,
    device: str | None = None,
    json: bool = False,
) -> int:
    """Compare two databases: rows of one only, and where the best config differs. Exits with 1 if they differ.

    Parameters
    ----------
    first, second
        Databases, results files or text shards.
    family, operator, target, device
        Only those.
    json
        Print JSON.
    """
    from precast.database.diff import diff as compare

    filters = {"family": family, "operator": operator, "target": target, "device": device}
    (a, bad_a), (b, bad_b) = _open(first), _open(second)
    with a, b:
        found = compare(a, b, **filters)
    if json:
        print_json(
            {
                "only_first": [to_dict(r) for r in found.only_first],
                "only_second": [to_dict(r) for r in found.only_second],
                "winners": [
                    {"first": w.first and vars(w.first), "second": w.second and vars(w.second)} for w in found.winners
                ],
            }
        )
    else:
        for path, only in ((first, found.only_first), (second, found.only_second)):
            counts = Counter((r.subject.operator, r.subject.target, r.subject.device) for r in only)
            console.print(f"{len(only)} records in {path} only", markup=False)
            for place, count in sorted(counts.items()):
                console.print(f"  {count} of {' '.join(place)}", markup=False)
        rows = [
            (*best_row(w.either)[:4], *(x for best in (w.first, w.second) for x in choice_row(best)))
            for w in found.winners
        ]
        console.print(f"{len(rows)} winners differ")
        if rows:
            columns = ["operator", "target", "device", "problem", "first", "µs", "second", "µs"]
            print_table("", columns, rows)
    return max(_report_bad([*bad_a, *bad_b]), EXIT_FOUND if found else 0)


@db.command
def export(database: Path, folder: Path, /, *, json: bool = False) -> int:
    """Write a database as text shards, one file for each operator and target: the form to keep in git.

    Parameters
    ----------
    database
        The database.
    folder
        Where to; it is made if it is missing.
    json
        Print JSON.
    """
    from precast.database.shards import export_shards

    with Database.open(database, read_only=True) as opened:
        files = export_shards(opened, folder)
    if json:
        print_json({"files": list(map(str, files))})
    else:
        console.print("\n".join(map(str, files)) or "the database is empty: nothing was written", markup=False)
    return 0


@db.command(name="import")
def import_(
    file: Path,
    /,
    *,
    database: Annotated[Path, Parameter(name=["--db"])],
    family: str | None = None,
    target: str | None = None,
    device: str | None = None,
    json: bool = False,
) -> int:
    """Add text shards, or another tool's tuning data, to a database, which is made if it is missing.

    Known are AOTriton's JSON and SQLite files, Triton's autotune cache files and vLLM's per-device JSON tables;
    the family's imports.py says which column is which. Exits with 1 if lines of shards had to be left out, or if
    no row of a file fits.

    Parameters
    ----------
    file
        A file, or a folder of text shards.
    database
        The database.
    family
        The family that another tool's data is for: a folder or a name.
    target, device
        The GPU, for files that don't say.
    json
        Print JSON, with every rejected row.
    """
    from precast.database.importer import add_rows, read_rows
    from precast.database.shards import import_shards, is_shard

    _check_there([file])
    if family is None:
        if not file.is_dir() and not is_shard(file):
            raise UserError(f"{file} isn't a text shard: --family says whose tuning data another tool's file is")
        with Database.open(database, create=True) as opened:
            shards = import_shards(opened, file)
        return _print_added("imported", shards.added.added, shards.added.known, shards.bad, json)
    rows = read_rows(file, family, target=target, device=device)  # first, so that a bad file makes no database
    with Database.open(database, create=True) as opened:
        report = add_rows(opened, rows)
    if json:
        print_json(report.summary())
    else:
        console.print(
            f"{report.layout}: {report.imported} rows imported ({report.added.known} known before), "
            f"{report.rejected} rejected",
            markup=False,
        )
        for reason, count in report.reasons():
            console.print(f"  {count} rejected: {reason}", markup=False)
    return 0 if report.imported or not report.rejected else EXIT_FOUND


@db.command
def stale(database: Path, /, *, family: str, json: bool = False) -> int:
    """List measurements that no longer speak for what would be built. Exits with 1 if there are any.

    Parameters
    ----------
    database
        A database, a results file or text shards.
    family
        The family as it is now: a folder or a name.
    json
        Print JSON.
    """
    from precast.build.sources import plan_sources
    from precast.database.stale import find_stale
    from precast.describe.load import load_family

    sources, triton = plan_sources(family)
    opened, bad = _open(database)
    with opened:
        found = find_stale(opened, load_family(family)[0].name, sources, triton)
    if json:
        print_json([{"reason": s.reason, "measurement": to_dict(s.measurement)} for s in found])
    else:
        counts = Counter((s.measurement.subject.operator, s.measurement.subject.plan,
                          s.measurement.subject.target, s.measurement.subject.device, s.reason)
                         for s in found)  # fmt: skip
        console.print(f"{len(found)} measurements are stale")
        if counts:
            columns = ["operator", "plan", "target", "device", "why", "measurements"]
            print_table("", columns, [(*place, count) for place, count in sorted(counts.items())])
    return max(_report_bad(bad), EXIT_FOUND if found else 0)


@db.command
def check(database: Path, /, *, json: bool = False) -> int:
    """Check a database: the file, every row, every identity, units. Exits with 1 if anything is wrong.

    Parameters
    ----------
    database
        A database, a results file or text shards.
    json
        Print JSON.
    """
    from precast.database.check import check_database

    opened, bad = _open(database)
    with opened:
        count = len(opened.ids())
        found = check_database(opened)
    if json:
        print_json([*(vars(p) for p in found), *({"where": f"{b.file}:{b.line}", "what": b.reason} for b in bad)])
        return EXIT_FOUND if found or bad else 0
    for problem in found:
        console.print(str(problem), markup=False)
    if not found:
        console.print(f"{count} records checked, nothing found")
    return max(_report_bad(bad), EXIT_FOUND if found else 0)


def _open(path: Path) -> tuple[Database, tuple[BadRecord, ...]]:
    from precast.database.merge import open_any

    return open_any(path)


def _check_there(files: Iterable[Path]) -> None:
    for file in files:
        if not file.exists():
            raise UserError(f"there is no {file}")


def _report_bad(bad: Iterable[BadRecord]) -> int:
    """Lines left out, on standard error; the exit code."""
    found = list(bad)
    for line in found:
        errors.print(str(line), markup=False)
    return EXIT_FOUND if found else 0


def _print_added(verb: str, added: int, known: int, bad: Iterable[BadRecord], json: bool) -> int:
    left_out = list(bad)
    if json:
        print_json({"added": added, "known": known, "bad": [vars(b) for b in left_out]})
        return EXIT_FOUND if left_out else 0
    console.print(f"{verb}: {added} records added, {known} known before, {len(left_out)} lines left out")
    return _report_bad(left_out)
