"""`precast db`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from made_records import measurement

from precast.database.database import Database
from precast.database.records import Record
from precast.database.results import ResultsFile

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def file(tmp_path: Path, records: list[Record]) -> Path:
    with Database.open(tmp_path / "t.db", create=True) as db:
        db.add(records)
    return tmp_path / "t.db"


def test_schema_show_best_and_check(precast: Run, file: Path) -> None:
    assert 'UNIQUE ("T", ' in precast("db", "schema", file).stdout
    shown = precast("db", "show", file, "--device", "NVIDIA H100", "--json")
    assert shown.returncode == 0 and len(json.loads(shown.stdout)) == 24
    assert "too much shared memory" in precast("db", "show", file, "--status", "compile_error").stdout
    assert "wrong" in precast("db", "show", file, "--evidence").stdout
    best = json.loads(precast("db", "best", file, "--operator", "attention_forward", "--json").stdout)
    assert len(best) == 12 and all("BLOCK_M=32 " not in b["config"] for b in best)
    checked = precast("db", "check", file)
    assert checked.returncode == 0 and "nothing found" in checked.stdout


def test_export_import_merge_and_diff(precast: Run, file: Path, tmp_path: Path, records: list[Record]) -> None:
    assert precast("db", "export", file, tmp_path / "shards").returncode == 0
    done = precast("db", "import", tmp_path / "shards", "--db", tmp_path / "new.db", "--json")
    assert json.loads(done.stdout) == {"added": len(records), "known": 0, "bad": []}
    assert precast("db", "diff", file, tmp_path / "new.db").returncode == 0
    with ResultsFile(tmp_path / "r.jsonl") as results:
        results.append(measurement("BLOCK_M=99 num_warps=4", 0.5))
    merged = precast("db", "merge", tmp_path / "new.db", tmp_path / "r.jsonl", tmp_path / "shards")
    assert merged.returncode == 0 and f"1 records added, {len(records)} known" in merged.stdout
    differ = precast("db", "diff", file, tmp_path / "new.db")
    assert differ.returncode == 1 and "1 winners differ" in differ.stdout and "BLOCK_M=99" in differ.stdout
    assert len(json.loads(precast("db", "diff", file, tmp_path / "new.db", "--json").stdout)["only_second"]) == 1


def test_a_bad_shard_line_loads_the_rest_and_exits_with_1(precast: Run, file: Path, tmp_path: Path) -> None:
    precast("db", "export", file, tmp_path / "shards")
    shard = tmp_path / "shards" / "flash.attention_forward.sm_90.jsonl"
    shard.write_text(shard.read_text() + "rubbish\n")
    count = len(shard.read_text().splitlines())
    done = precast("db", "import", tmp_path / "shards", "--db", tmp_path / "new.db")
    assert done.returncode == 1 and f"{shard}:{count}: not JSON" in done.stderr and "1 lines left out" in done.stdout
    assert precast("db", "show", shard).returncode == 1


def test_import_counts_add_up(precast: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"arch": "gfx90a", "tune_info": [{"inputs": {}, "kernel_name": "other"}, 3]}))
    done = precast("db", "import", path, "--family", "flash", "--db", tmp_path / "t.db", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 1 and (result["imported"], result["rejected"]) == (0, 2)
    assert result["layout"] == "AOTriton JSON (0.4)" and len(result["rejections"]) == 2
    assert (
        "1 rejected: kernel other has no counterpart"
        in precast("db", "import", path, "--family", "flash", "--db", tmp_path / "t.db").stdout
    )


def test_stale_exits_with_1(precast: Run, file: Path) -> None:
    done = precast("db", "stale", file, "--family", "flash")
    assert done.returncode == 1 and "kernel source changed" in done.stdout
    assert "the operator has no such plan" in done.stdout


def test_bad_input_is_one_line_without_a_traceback(precast: Run, file: Path, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    (tmp_path / "cut.db").write_bytes(file.read_bytes()[:5000])
    for args, says in (
        (("check", tmp_path / "no.db"), "there is no database"),
        (("show", tmp_path / "x.txt"), "is damaged"),
        (("best", tmp_path / "cut.db"), "is damaged"),
        (("merge", file), "nothing to merge"),
        (("merge", file, tmp_path / "no.db"), "there is no"),
        (("import", tmp_path / "x.txt", "--db", tmp_path / "n.db"), "--family"),
        (("import", tmp_path / "x.txt", "--db", tmp_path / "n.db", "--family", "flash"), "known layouts"),
        (("import", tmp_path / "x.txt", "--db", tmp_path / "n.db", "--family", "softmax"), "has no imports.py"),
    ):
        done = precast("db", *args)
        text = done.stdout + done.stderr
        assert done.returncode == 2 and says in text and "Traceback" not in text and len(text.splitlines()) < 5, text
    assert not (tmp_path / "n.db").exists(), "a file that can't be imported makes no database"
