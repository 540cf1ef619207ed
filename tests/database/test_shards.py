"""Text shards rebuild a database exactly, and merging takes everything that holds records."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_records import evidence, measurement
from record_strategies import records as any_record

from precast.database.database import Added, Database, DatabaseError
from precast.database.merge import merge, open_any
from precast.database.records import Record, record_id
from precast.database.results import ResultsFile
from precast.database.shards import export_shards, import_shards

NAME = "flash.attention_forward.sm_90.jsonl"


@pytest.fixture
def shards(tmp_path: Path, records: list[Record]) -> Path:
    with Database.in_memory() as db:
        db.add(records)
        files = export_shards(db, tmp_path / "shards")
    assert [f.name for f in files] == [NAME, "flash.other.sm_90.jsonl"]
    return tmp_path / "shards"


def test_shards_rebuild_the_database_and_are_the_same_bytes_each_time(
    tmp_path: Path, shards: Path, records: list[Record]
) -> None:
    random.Random(1).shuffle(records)
    with Database.in_memory() as db, Database.in_memory() as again:
        db.add(records)
        report = import_shards(again, shards)
        assert report.bad == [] and report.added == Added(len(records), 0) and again.ids() == db.ids()
        assert list(again.records()) == list(db.records())
        for file in export_shards(again, tmp_path / "again"):
            assert file.read_bytes() == (shards / file.name).read_bytes()
    size = (shards / NAME).stat().st_size
    assert size / len(records) < 300, "bytes a record"


@settings(max_examples=50, deadline=None)
@given(st.lists(any_record, max_size=10))
def test_any_records_survive(tmp_path_factory, given_records) -> None:
    folder = tmp_path_factory.mktemp("shards")
    with Database.in_memory() as db, Database.in_memory() as again:
        db.add(given_records)
        export_shards(db, folder)
        # Names that differ in case only are one file on some systems; there the test would be of those systems.
        if given_records:
            assert import_shards(again, folder).bad == []
        assert again.ids() == db.ids()


def test_a_new_record_changes_no_other_line(tmp_path: Path, shards: Path, records: list[Record]) -> None:
    before = (shards / NAME).read_text().splitlines()
    with Database.in_memory() as db:
        db.add([*records, measurement("BLOCK_M=77", size=9)])
        export_shards(db, shards)
    after = (shards / NAME).read_text().splitlines()
    assert set(before) <= set(after) and len(after) == len(before) + 2, "a record and its case"
    assert [line for line in after if line in before] == before


def test_lines_may_come_in_any_order(shards: Path, records: list[Record]) -> None:
    lines = (shards / NAME).read_text().splitlines()
    (shards / NAME).write_text("\n".join([*reversed(lines), *lines]) + "\n")
    with Database.in_memory() as db:
        assert import_shards(db, shards).bad == []
        assert db.ids() == {record_id(r) for r in records}


def test_a_bad_line_names_file_line_and_reason_and_the_rest_loads(shards: Path, records: list[Record]) -> None:
    lines = (shards / NAME).read_text().splitlines()
    lines[60] = lines[60].replace('"plan"', '"plant"')
    lines[62] = "<<<<<<< HEAD"
    lines[64] = lines[64].replace('"case":"c', '"case":"x')
    (shards / NAME).write_text("\n".join(lines) + "\n")
    with Database.in_memory() as db:
        report = import_shards(db, shards)
        assert len(db.ids()) == len(records) - 3
    assert [(Path(b.file).name, b.line) for b in report.bad] == [(NAME, 61), (NAME, 63), (NAME, 65)]
    assert "plan" in report.bad[0].reason and "not JSON" in report.bad[1].reason
    assert "no line defines its case" in report.bad[2].reason and str(report.bad[0]).endswith(report.bad[0].reason)


def test_a_half_written_last_line(shards: Path, records: list[Record]) -> None:
    (shards / NAME).write_bytes((shards / NAME).read_bytes()[:-30])
    with Database.in_memory() as db:
        report = import_shards(db, shards)
        assert [b.reason for b in report.bad] == ["half-written last line"] and len(db.ids()) == len(records) - 1


def test_a_lost_header_is_taken_from_the_name_and_said(shards: Path, records: list[Record]) -> None:
    lines = (shards / NAME).read_text().splitlines()
    (shards / NAME).write_text("\n".join(lines[1:]) + "\n")
    with Database.in_memory() as db:
        report = import_shards(db, shards)
        assert "file's name" in report.bad[0].reason and len(db.ids()) == len(records)


def test_a_newer_shard_and_an_empty_folder_are_refused(tmp_path: Path, shards: Path) -> None:
    text = (shards / NAME).read_text()
    (shards / NAME).write_text(text.replace('"version":1', '"version":9', 1))
    with Database.in_memory() as db:
        with pytest.raises(DatabaseError, match="version 9, newer than 1"):
            import_shards(db, shards)
        (tmp_path / "empty").mkdir()
        with pytest.raises(DatabaseError, match="has no shards"):
            import_shards(db, tmp_path / "empty")


def test_merge_takes_databases_results_and_shards_in_any_order(
    tmp_path: Path, shards: Path, records: list[Record]
) -> None:
    with Database.open(tmp_path / "a.db", create=True) as a, ResultsFile(tmp_path / "r.jsonl") as results:
        a.add([measurement("A=1"), *records[:5]])
        for record in (measurement("R=1"), evidence(measurement("R=1")), records[9]):
            results.append(record)
    files = [tmp_path / "a.db", tmp_path / "r.jsonl", shards]
    expected = {record_id(r) for r in (*records, measurement("A=1"), measurement("R=1"), evidence(measurement("R=1")))}
    for order in (files, files[::-1], files * 2):
        with Database.in_memory() as db:
            report = merge(db, order)
            assert db.ids() == expected and report.added.added == len(expected) and report.bad == ()


def test_a_database_merged_with_itself_is_as_before(tmp_path: Path, records: list[Record]) -> None:
    with Database.open(tmp_path / "a.db", create=True) as db:
        db.add(records)
        assert merge(db, [tmp_path / "a.db"]).added == Added(0, len(records))


def test_what_holds_no_records_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    (tmp_path / "x.json").write_text("{}")
    with Database.in_memory() as db:
        with pytest.raises(DatabaseError, match="no tuning database"):
            merge(db, [tmp_path / "x.txt"])
        with pytest.raises(DatabaseError, match="has no record: line 1"):
            merge(db, [tmp_path / "x.json"])


def test_shards_and_results_open_like_databases(tmp_path: Path, shards: Path, records: list[Record]) -> None:
    with ResultsFile(tmp_path / "r.jsonl") as results:
        results.append(measurement())
    with (tmp_path / "r.jsonl").open("a") as out:
        out.write('{"kind":')
    opened, bad = open_any(tmp_path / "r.jsonl")
    assert len(opened.ids()) == 1 and len(bad) == 1
    opened, bad = open_any(shards)
    assert len(opened.ids()) == len(records) and bad == ()
