"""The database: a set of records, views of it, migrations, and files that can't be used."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_records import ORIGIN, evidence, measurement
from record_strategies import records as any_record

from precast.database.check import check_database
from precast.database.database import Added, Database, DatabaseError
from precast.database.diff import diff
from precast.database.operators import Column
from precast.database.records import Origin, Record, record_id
from precast.database.schema import VERSION
from precast.database.stale import find_stale


def _ids(records) -> set[str]:
    return {record_id(r) for r in records}


def test_every_record_comes_back_as_it_was(tmp_path: Path, records: list[Record]) -> None:
    with Database.open(tmp_path / "t.db", create=True) as db:
        assert db.add(records) == Added(len(records), 0)
        assert db.add(records[:7]) == Added(0, 7)
    with Database.open(tmp_path / "t.db", read_only=True) as db:
        found = list(db.records())
        assert _ids(found) == _ids(records) == db.ids() and len(found) == len(records)
        assert check_database(db) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(any_record, max_size=12), st.randoms(use_true_random=False))
def test_adding_is_a_set_union_in_any_order(given_records, chance: random.Random) -> None:
    with Database.in_memory() as first, Database.in_memory() as second:
        first.add(given_records)
        shuffled = [*given_records, *given_records[:3]]
        chance.shuffle(shuffled)
        for record in shuffled:
            second.add([record])
        assert first.ids() == second.ids() == _ids(given_records)
        assert list(first.records()) == list(second.records())
        assert all("units" in w.what or "no repeats" in w.what for w in check_database(first))
        assert not diff(first, second)


def test_order_and_filters(tmp_path: Path, records: list[Record]) -> None:
    with Database.open(tmp_path / "t.db", create=True) as db:
        db.add(records)
        assert {m.subject.device for m in db.measurements(device="NVIDIA H100")} == {"NVIDIA H100"}
        assert len(list(db.measurements(operator="other"))) == 1
        assert [m.status for m in db.measurements(status="compile_error")] == ["compile_error"]
        assert list(db.measurements(family="none")) == []
        assert len(list(db.evidence())) == 48


def test_the_operators_table_has_just_what_dispatch_reads(tmp_path: Path) -> None:
    columns = [Column("type", "T"), Column("feature", "MASK"), Column("feature", "HEAD_DIM"), Column("key", "Sq"),
               Column("key", "heads")]  # fmt: skip
    with Database.open(tmp_path / "t.db", create=True) as db:
        db.register_operator("flash", "attention_forward", columns)
        db.add([measurement(), evidence(measurement())])
        assert db.operators() == {("flash", "attention_forward"): columns}
        table = next(s for s in db.schema() if s.startswith('CREATE TABLE "flash.attention_forward"'))
    assert 'UNIQUE ("T", "MASK", "HEAD_DIM", "Sq", "heads")' in table


def test_the_winner_is_the_quickest_that_the_gate_passed() -> None:
    slow, quick, broken, wrong = (measurement(f"B={n}", t) for n, t in enumerate((30.0, 20.0, 10.0, 1.0)))
    wrong = dataclasses.replace(wrong, status="wrong")
    with Database.in_memory() as db:
        db.add([slow, quick, broken, wrong, evidence(slow), evidence(quick), evidence(broken, "race")])
        (best,) = db.best(operator="attention_forward", device="NVIDIA H200")
        assert (best.config, best.median_us, best.gate, best.status) == ("B=1", 22.0, "passed", "ok")
        assert best.types == {"T": "bf16"} and best.features == {"HEAD_DIM": 128, "MASK": "none"}
        assert best.key == {"Sq": 67, "heads": 4}
        assert db.best(device="NVIDIA H100") == []


def test_newer_measurements_and_evidence_replace_older_ones_in_views() -> None:
    later = dataclasses.replace(ORIGIN, date="2026-02-01T00:00:00+00:00", run="run-2", source="cd34")
    with Database.in_memory() as db:
        db.add([measurement("B=1", 10.0), measurement("B=1", 50.0, origin=later), measurement("B=2", 20.0)])
        db.add([evidence(measurement("B=1"), "wrong"), evidence(measurement("B=1", origin=later), "ok")])
        assert [(b.config, b.median_us, b.gate) for b in db.best()] == [("B=2", 22.0, "none")]
        assert db._connection.execute('SELECT config, gate FROM "flash.attention_forward.all" ORDER BY 1').fetchall() == [
            ("B=1", "passed"), ("B=2", "none"),
        ]  # fmt: skip


def test_imported_winners_count_only_where_nothing_was_measured() -> None:
    imported = measurement("B=9", None, status="untimed", origin=Origin("", "", "", "", "x", "aotriton-0.6"))
    with Database.in_memory() as db:
        db.add([imported])
        assert [(b.config, b.status, b.importer) for b in db.best()] == [("B=9", "untimed", "aotriton-0.6")]
        db.add([measurement("B=1", 100.0)])
        assert [(b.config, b.status) for b in db.best()] == [("B=1", "ok")]


def test_a_new_feature_keeps_old_rows_apart() -> None:
    old = measurement()
    features = {**old.subject.features, "WINDOW": True, 'it\'s "odd"': 1}
    new = dataclasses.replace(old, subject=dataclasses.replace(old.subject, features=features))
    with Database.in_memory() as db:
        db.add([old])
        db.add([new])
        db.add([old, new, measurement(size=5)])
        assert _ids(db.records()) == _ids([old, new, measurement(size=5)])
        assert [b.features.get("WINDOW") for b in db.best() if b.key["Sq"] == 67] == [None, 1]
        assert check_database(db) == []


def test_names_that_sql_confuses_are_told_apart() -> None:
    base = measurement()
    subject = dataclasses.replace(base.subject, types={"t": "fp16", "id": "x"}, features={"T": 1, "device": "y"})
    odd = dataclasses.replace(base, subject=subject, key={"T": 3, 'x"); DROP TABLE measurement; --': 4})
    other = dataclasses.replace(odd, subject=dataclasses.replace(subject, family="FLASH", operator="Attention_forward"))
    with Database.in_memory() as db:
        db.add([odd, other, base])
        assert _ids(db.records()) == _ids([odd, other, base]) and len(db.best()) == 3 and check_database(db) == []


def test_diff_names_rows_and_winners(records: list[Record]) -> None:
    with Database.in_memory() as first, Database.in_memory() as second:
        first.add([measurement("B=1", 10.0), measurement("B=2", 20.0)])
        second.add([measurement("B=2", 20.0), measurement("B=3", 5.0)])
        found = diff(first, second)
        assert [r.subject.config for r in found.only_first] == ["B=1"]
        assert [r.subject.config for r in found.only_second] == ["B=3"]
        (change,) = found.winners
        assert change.first and change.second and (change.first.config, change.second.config) == ("B=1", "B=3")


def test_stale_rows_have_reasons() -> None:
    imported = measurement("B=9", None, status="untimed", origin=Origin("", "", "", "", "x", "aotriton-0.6"))
    with Database.in_memory() as db:
        db.add([measurement(), imported])
        current = {("attention_forward", "tma"): "ab12"}
        assert find_stale(db, "flash", current, "3.9.0") == []
        assert [s.reason for s in find_stale(db, "flash", current, "4.0.0")] == [
            "measured with Triton 3.9.0, now 4.0.0"
        ]
        changed = {("attention_forward", "tma"): "ffff"}
        assert [s.reason for s in find_stale(db, "flash", changed, "3.9.0")] == ["kernel source changed"]
        assert [s.reason for s in find_stale(db, "flash", {}, "3.9.0")] == ["the operator has no such plan"]


def _write(path: Path, worker: int) -> None:
    for batch in range(10):
        with Database.open(path, create=True) as db:
            db.add(measurement(f"W={worker if i % 2 else 'both'}", 1.0, size=batch * 10 + i) for i in range(10))


def test_two_writers_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(path, n)) for n in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert [w.exitcode for w in workers] == [0, 0]
    with Database.open(path) as db:
        assert len(db.ids()) == 150 and check_database(db) == []


def test_a_failed_addition_leaves_nothing_half_done() -> None:
    with Database.in_memory() as db:
        with pytest.raises(ValueError, match="status"):
            db.add([measurement(), dataclasses.replace(measurement(), status="?")])
        assert db.ids() == set()
        assert db.add([measurement()]) == Added(1, 0)


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_1.sql").read_text())
    connection.close()
    return path


def test_version_1_is_migrated(version_1: Path) -> None:
    with Database.open(version_1) as db:
        assert db.select("PRAGMA user_version") == [(VERSION,)]
        assert len(db.ids()) == 4 and check_database(db) == [] and len(db.best()) == 1
        assert db.add([measurement(clock_mhz=1980, notes="throttled")]) == Added(1, 0)
        fresh = Database.in_memory()
        fresh.add(db.records())
        assert sorted(fresh.schema()) == sorted(db.schema()), "a migrated database is as a new one"
        fresh.close()


def test_reading_an_older_schema_leaves_the_file_as_it_is(version_1: Path) -> None:
    before = version_1.read_bytes()
    version_1.chmod(0o444)
    with Database.open(version_1, read_only=True) as db:
        assert len(list(db.measurements())) == 3 and len(db.best()) == 1
    assert version_1.read_bytes() == before


def test_a_newer_schema_is_refused_naming_both(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    Database.open(path, create=True).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    for read_only in (False, True):
        with pytest.raises(DatabaseError, match=f"schema 99, newer than schema {VERSION}"):
            Database.open(path, read_only=read_only)


def test_other_sqlite_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE x (y)")
    with pytest.raises(DatabaseError, match="not a tuning database"):
        Database.open(path)


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="there is no database"):
        Database.open(tmp_path / "no.db")
    with pytest.raises(DatabaseError, match="is a folder"):
        Database.open(tmp_path)
    with pytest.raises(DatabaseError, match="can't be used"):
        Database.open(tmp_path / "no" / "such.db", create=True)


def _read_all(path: Path) -> None:
    with Database.open(path, read_only=True) as db:
        if found := check_database(db):
            raise DatabaseError(str(found[0]))
        list(db.records())
        db.best()


def test_no_sqlite_and_truncated_files_are_refused(tmp_path: Path, records: list[Record]) -> None:
    path = tmp_path / "t.db"
    path.write_text("hello " * 100)
    with pytest.raises(DatabaseError, match="is damaged"):
        Database.open(path)
    path.unlink()
    with Database.open(path, create=True) as db:
        db.add(records)
    data = path.read_bytes()
    for length in (10, 99, 100, 5000, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(DatabaseError, match="is damaged"):
            _read_all(path)


def test_damage_is_an_error_never_a_traceback(tmp_path: Path, records: list[Record]) -> None:
    path = tmp_path / "t.db"
    with Database.open(path, create=True) as db:
        db.add(records)
    whole, chance, refused = path.read_bytes(), random.Random(0), 0
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 5, 200))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        with contextlib.suppress(DatabaseError):
            _read_all(path)
            continue
        refused += 1
    assert refused > 50


def test_check_finds_changed_rows_and_wrong_units(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with Database.open(path, create=True) as db:
        db.add([measurement("B=1"), measurement("B=2"), measurement("B=3", 0.001), measurement("B=4", size=99)])
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE measurement SET registers = 7 WHERE subject = 1")
        connection.execute("UPDATE measurement SET status = 'great' WHERE subject = 2")
    with Database.open(path) as db:
        text = " ".join(map(str, check_database(db)))
        assert "it was changed" in text and "'great'" in text and "other units" in text
        with pytest.raises(DatabaseError, match="damaged"):
            list(db.measurements())
    with sqlite3.connect(path) as connection:
        connection.execute('DELETE FROM "flash.attention_forward"')
    with Database.open(path) as db:
        assert "lacks the problems of 4 measurements" in str(check_database(db)[0])
