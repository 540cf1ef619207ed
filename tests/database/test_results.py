"""Results files: whole lines whatever happens to their writers."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from made_records import measurement

from precast.database.results import LINE_LIMIT, ResultsFile, read_results


def test_append_and_read(tmp_path: Path, records) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path, sync_every=10) as file:
        for record in records:
            file.append(record)
    assert read_results(path) == (records, [])


def test_a_half_written_last_line_is_reported_and_ended(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path) as file:
        file.append(measurement(size=1))
        file.append(measurement(size=2))
    path.write_bytes(path.read_bytes()[:-40])
    found, bad = read_results(path)
    assert found == [measurement(size=1)]
    assert bad[0].number == 2 and "half-written last line" in bad[0].reason
    with ResultsFile(path) as file:
        file.append(measurement(size=3))
    found, bad = read_results(path)
    assert found == [measurement(size=1), measurement(size=3)] and [b.number for b in bad] == [2]


def test_a_last_line_that_only_lacks_its_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path) as file:
        file.append(measurement())
    path.write_bytes(path.read_bytes()[:-1])
    assert read_results(path) == ([measurement()], [])


def test_bad_lines_are_left_out_with_their_reasons(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsFile(path) as file:
        file.append(measurement(size=1))
    with path.open("ab") as out:
        out.write(b"\n\xff\xfe\n" + b"x" * (LINE_LIMIT + 10) + b"\n{}\n")
    with ResultsFile(path) as file:
        file.append(measurement(size=2))
    found, bad = read_results(path)
    assert found == [measurement(size=1), measurement(size=2)]
    assert [b.number for b in bad] == [3, 4, 5]
    assert "UTF-8" in bad[0].reason and "longer" in bad[1].reason and "kind" in bad[2].reason


def _append(path: Path, worker: int) -> None:
    with ResultsFile(path, sync_every=100) as file:
        for i in range(100):
            file.append(measurement(f"W={worker}", 1.0, size=i))


def test_several_processes_append_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append, args=(path, n)) for n in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    found, bad = read_results(path)
    assert len(found) == 300 and not bad
