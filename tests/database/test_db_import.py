"""Importing other tools' tuning data: hand-made files of each layout, a few rows each."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest

from precast.database.check import check_database
from precast.database.database import Database
from precast.database.importer import ImportReport, family_mappings, import_file
from precast.database.layouts import LAYOUTS, ImportFileError
from precast.database.records import Measurement

CUSTOM = """
from precast.database.imports import ImportMapping, column

IMPORTS = (
    ImportMapping(
        kernels=("fused_moe",), operator="moe", plan="only",
        types={"T": column("name$dtype", values={"fp8_w8a8": "fp8e4nv"})},
        key={"M": column("M"), "E": column("name$E"), "N": column("name$N")},
        parameters={"BLOCK_M": column("config$BLOCK_SIZE_M")},
        options={"num_warps": column("config$num_warps"), "num_stages": column("config$num_stages")},
    ),
    ImportMapping(
        kernels=("scale_kernel",), operator="scale", plan="only",
        types={"T": column("key$1", values={"torch.float16": "fp16"})}, key={"n": column("key$0")},
        parameters={"BLOCK": column("config$BLOCK")},
        options={"num_warps": column("config$num_warps"), "num_stages": column("config$num_stages")},
        unused=("config$num_ctas", "config$minRegAutoWS"),
    ),
)
"""


def _import(path: Path, family: object = "flash", **options: Any) -> tuple[ImportReport, list[Measurement]]:
    with Database.in_memory() as db:
        report = import_file(db, path, str(family), **options)
        assert check_database(db) == [] and report.imported == report.added.added + report.added.known
        summary = report.summary()
        assert summary["rejected"] == len(summary["rejections"])
        return report, list(db.measurements())


@pytest.fixture
def custom(tmp_path: Path) -> Path:
    folder = tmp_path / "custom"
    folder.mkdir()
    (folder / "family.py").write_text("")
    (folder / "imports.py").write_text(CUSTOM)
    return folder


def _entry(
    kernel: str = "attn_fwd", head: int = 64, stage: int = 3, dropout: bool = False, **more: Any
) -> dict[str, Any]:
    return {
        "kernel_name": kernel,
        "inputs": {
            "Q.shape": [2, 3, 67, head], "Q.dtype": "torch.bfloat16", "N_HEADS": 3, "D_HEAD": head, "seqlen_q": 67,
            "seqlen_k": 131, "STAGE": stage, "RETURN_ENCODED_SOFTMAX": False, "BLOCK_DMODEL": head,
            "ENABLE_DROPOUT": dropout, **more,
        },
        "tuned_kernel": {"BLOCK_M": 128, "BLOCK_N": 64, "waves_per_eu": 2, "pre_load_v": True},
        "compiler_options": {"num_warps": 4, "num_stages": 1},
    }  # fmt: skip


@pytest.fixture
def old_json(tmp_path: Path) -> Path:
    entries = [_entry(), _entry(stage=1, head=128), _entry(dropout=True), _entry(head=48), _entry("bwd_kernel_dq"),
               _entry(stage=7), _entry(**{"Q.dtype": "torch.float32"}), _entry(NEW_OPTION=1), {"nothing": 1}]  # fmt: skip
    path = tmp_path / "any-name.bin.xz"
    path.write_bytes(lzma.compress(json.dumps({"arch": "gfx90a", "tune_info": entries}).encode()))
    return path


def test_aotriton_json(old_json: Path) -> None:
    report, found = _import(old_json)
    assert report.layout == "AOTriton JSON (0.4)" and (report.imported, report.rejected) == (2, 7)
    record = next(m for m in found if m.subject.features["HEAD_DIM"] == 64)
    s = record.subject
    assert (s.target, s.device, s.plan) == ("gfx90a", "gfx90a (imported)", "pointers")
    assert s.types == {"T": "bf16"} and s.features == {"MASK": "causal_top_left", "HEAD_DIM": 64}
    assert s.config == "BLOCK_M=128 BLOCK_N=64 num_stages=1 num_warps=4 waves_per_eu=2"
    assert record.key == {"Sq": 67, "Sk": 131, "heads": 6}
    assert record.problem == {"B": 2, "H": 3, "Sq": 67, "Sk": 131, "D": 64}
    assert record.status == "untimed" and "no time, not verified here" in record.notes
    assert "pre_load_v=True" in record.notes and record.origin.importer == "aotriton-0.4"
    reasons = {r.row: r.reason for r in report.rejections}
    assert list(reasons) == [3, 4, 5, 6, 7, 8, 9]
    for row, says in ((3, "dropout"), (4, "HEAD_DIM 48"), (5, "bwd_kernel_dq has no counterpart"), (6, "MASK 7"),
                      (7, "torch.float32"), (8, "NEW_OPTION"), (9, "no inputs")):  # fmt: skip
        assert says in reasons[row]


def _sqlite(path: Path, tables: dict[str, list[dict[str, Any]]]) -> Path:
    with sqlite3.connect(path) as connection:
        for table, rows in tables.items():
            names = ", ".join(f'"{n}"' for n in rows[0])
            connection.execute(f'CREATE TABLE "{table}" ({names})')
            for row in rows:
                connection.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', tuple(row.values()))
    connection.close()
    return path


def _row_06(**more: Any) -> dict[str, Any]:
    return {
        "id": 1, "arch": "gfx942", "inputs$Q_dtype": "torch.float16", "inputs$N_HEADS": 16, "inputs$D_HEAD": 64,
        "inputs$seqlen_q": 64, "inputs$seqlen_k": 128, "inputs$CAUSAL": 1, "inputs$RETURN_ENCODED_SOFTMAX": 0,
        "inputs$BLOCK_DMODEL": 64, "inputs$ENABLE_DROPOUT": 0, "inputs$PADDED_HEAD": 0, "inputs$BIAS_TYPE": 0,
        "tuned_kernel$BLOCK_M": 64, "tuned_kernel$BLOCK_N": 32, "tuned_kernel$waves_per_eu": 0,
        "tuned_kernel$pre_load_v": 0, "compiler_options$num_warps": 4, "compiler_options$num_stages": 1, **more,
    }  # fmt: skip


def test_aotriton_sqlite_0_6(tmp_path: Path) -> None:
    forward = [_row_06(), _row_06(**{"inputs$BIAS_TYPE": 1}), _row_06(**{"arch": "gfx000"}),
               _row_06(**{"tuned_kernel$BLOCK_M": "64 num_warps=9"}), _row_06(**{"inputs$seqlen_q": "x"})]  # fmt: skip
    path = _sqlite(tmp_path / "x", {"FLASH$attn_fwd": forward, "FLASH$bwd_kernel_dq": [_row_06()], "notes": [{"a": 1}]})
    report, found = _import(path)
    assert report.layout == "AOTriton SQLite (0.6)" and (report.imported, report.rejected) == (1, 6)
    assert found[0].key == {"Sq": 64, "Sk": 128}, "the batch size isn't said, so the heads are unknown"
    assert found[0].problem["H"] == 16 and found[0].subject.target == "gfx942"
    text = " ".join(r.reason for r in report.rejections)
    for says in ("bias", "gfx000", "no number or word", "bwd_kernel_dq", "table notes", "key['Sq']"):
        assert says in text


def test_aotriton_per_kernel_sqlite_in_a_tar(tmp_path: Path) -> None:
    row = {
        "gpu": "gfx942_mod0", "inputs$Q_dtype": "torch.float16", "inputs$Max_seqlen_q": 16, "inputs$Max_seqlen_k": 32,
        "inputs$CAUSAL_TYPE": 3, "inputs$BLOCK_DMODEL": 128, "inputs$ENABLE_DROPOUT": 0, "inputs$PADDED_HEAD": 0,
        "inputs$BIAS_TYPE": 0, "inputs$USE_ALIBI": 0, "inputs$INT8": 0, "inputs$INT8_KV": 0, "inputs$USE_P_SCALE": 0,
        "tuned_kernel$PERSISTENT_TYPE": 2, "tuned_kernel$GRID_CU_MULTIP": 2, "tuned_kernel$BLOCK_M": 64,
        "tuned_kernel$BLOCK_N": 16, "tuned_kernel$PRE_LOAD_V": 1, "compiler_options$waves_per_eu": 1,
        "compiler_options$num_warps": 2, "compiler_options$num_stages": 1,
    }  # fmt: skip
    rows = [row, row | {"inputs$CAUSAL_TYPE": 0}, row | {"inputs$INT8": 1}, row | {"inputs$BLOCK_DMODEL": 512}]
    inner = _sqlite(tmp_path / "attn_fwd.sqlite3", {"FLASH$attn_fwd": rows})
    path = tmp_path / "x.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        archive.add(inner, "attn_fwd.sqlite3")
    report, found = _import(path)
    assert report.layout == "AOTriton per-kernel SQLite" and (report.imported, report.rejected) == (2, 2)
    causal = next(m for m in found if m.subject.features["MASK"] != "none")
    assert "taken as causal" in causal.notes and "PERSISTENT_TYPE=2" in causal.notes
    assert causal.subject.target == "gfx942"
    assert all("taken as causal" not in m.notes for m in found if m is not causal)


def test_triton_autotune_cache(tmp_path: Path, custom: Path) -> None:
    def config(block: int, time: object) -> list[object]:
        fixed = {"num_warps": 4, "num_ctas": 1, "num_stages": 2, "maxnreg": None, "pre_hook": None, "ir_override": None}
        return [{"kwargs": {"BLOCK": block}, **fixed}, time]

    timings = [config(64, [0.5, 0.4, 0.6]), config(128, 0.25), config(256, [float("inf")] * 3), config(512, "soon"), 7]
    path = tmp_path / "scale_kernel.autotune.json"
    path.write_text(json.dumps({"key": [4099, "torch.float16"], "configs_timings": timings}))
    with pytest.raises(ImportFileError, match="give --target and --device"):
        _import(path, custom)
    report, found = _import(path, custom, target="sm_90", device="NVIDIA H200")
    assert report.layout == "Triton autotune cache" and (report.imported, report.rejected) == (3, 2)
    by_config = {m.subject.config: m for m in found}
    timed = by_config["BLOCK=64 num_stages=2 num_warps=4"]
    assert timed.status == "ok" and timed.times == (500.0,) * 5 and "not verified here" in timed.notes
    assert timed.key == {"n": 4099} and timed.subject.device == "NVIDIA H200"
    assert by_config["BLOCK=128 num_stages=2 num_warps=4"].median == 250.0
    assert by_config["BLOCK=256 num_stages=2 num_warps=4"].status == "launch_error"


def test_vllm_tables(tmp_path: Path, custom: Path) -> None:
    config = {"BLOCK_SIZE_M": 16, "num_warps": 4, "num_stages": 3}
    table = {
        "triton_version": "3.5.1",
        "1": config,
        "64": config | {"BLOCK_SIZE_M": 64},
        "128": config | {"SPLIT_K": 2},
    }
    path = tmp_path / "E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json"
    path.write_text(json.dumps(table))
    report, found = _import(path, custom)
    assert report.layout == "vLLM per-device JSON" and (report.imported, report.rejected) == (2, 1)
    assert "config$SPLIT_K" in report.rejections[0].reason
    assert {m.subject.device for m in found} == {"NVIDIA H100 80GB HBM3"} and found[0].subject.target == "sm_90"
    assert found[0].key == {"M": 1, "E": 8, "N": 14336} and found[0].origin.triton == "3.5.1"
    block = tmp_path / "N=1,K=2,device_name=Abacus,dtype=fp8_w8a8,block_shape=[128,128].json"
    block.write_text(json.dumps({"1": config}))
    assert "scaled_mm has no counterpart" in _import(block, custom)[0].rejections[0].reason
    strange = tmp_path / "E=8,N=1,device_name=Abacus,dtype=fp8_w8a8.json"
    strange.write_text(json.dumps({"1": config}))
    assert "give --target" in _import(strange, custom)[0].rejections[0].reason
    assert _import(strange, custom, target="sm_80")[1][0].subject.target == "sm_80"


def test_importing_twice_adds_nothing(old_json: Path) -> None:
    with Database.in_memory() as db:
        import_file(db, old_json, "flash")
        again = import_file(db, old_json, "flash")
        assert (again.imported, again.added.added, again.added.known) == (2, 0, 2)


def _tar_of_two() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in "ab":
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "none of the known layouts"),
        (b"hello", "none of the known layouts"),
        (b"{}", "none of the known layouts"),
        (b'{"a": 1', "isn't JSON"),
        (b"[" * 100_000, "isn't JSON"),
        (b'{"tune_info": 3}', "none of the known layouts"),
        (b'{"key": 1, "configs_timings": []}', "none of the known layouts"),
        (lzma.compress(b"x" * 1000)[:-20], "cut off|damaged"),
        (b"\xfd7zXZ\0rubbish", "damaged"),
        (gzip.compress(b"x" * 1000)[:-10], "damaged"),
        (b"SQLite format 3\0" + b"rubbish" * 100, "damaged SQLite"),
        (_tar_of_two(), "holds 2 files"),
        (lzma.compress(lzma.compress(lzma.compress(lzma.compress(lzma.compress(b"{}"))))), "more than four times"),
    ],
)  # fmt: skip
def test_files_of_no_known_layout(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ImportFileError, match=says) as caught:
        _import(path)
    if says == "none of the known layouts":
        assert all(layout in str(caught.value) for layout in LAYOUTS)


def test_an_sqlite_file_of_something_else(tmp_path: Path) -> None:
    path = _sqlite(tmp_path / "x.db", {"people": [{"name": "x"}]})
    with pytest.raises(ImportFileError, match="none of the known layouts"):
        _import(path)


def test_what_flash_maps_is_what_it_declares() -> None:
    from precast.build.build import bound_family

    bound, _ = bound_family("flash")
    operators = {o.name: o for o in bound.operators}
    for mapping in family_mappings("flash")[1]:
        operator = operators[mapping.operator]
        plan = next(p for p in operator.plans if p.name == mapping.plan)
        assert set(mapping.types) == set(operator.types) and set(mapping.features) == set(operator.features)
        assert set(mapping.key) == set(operator.key)
        assert set(mapping.parameters) == {name for k in plan.kernels for name in k.tuning}


DATA = os.environ.get("PRECAST_AOTRITON_DATA")
ROWS = {
    "tune-flash-gfx90a-0.4.json.xz": 1920,
    "tuning_database-0.6.sqlite3.xz": 25920,
    "gfx942-attn_fwd.sqlite3.tar.xz": 21600,
    "gfx942-bwd_kernel_dk_dv.sqlite3.tar.xz": 21600,
}


@pytest.mark.skipif(not DATA, reason="PRECAST_AOTRITON_DATA names no folder of AOTriton's tuning data")
@pytest.mark.parametrize("name", ROWS)
def test_real_files(name: str) -> None:
    report, found = _import(Path(DATA or "") / name)
    assert report.imported + report.rejected == ROWS[name]
    assert ("bwd" in name) == (report.imported == 0) and all(m.status == "untimed" for m in found)
