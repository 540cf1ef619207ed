"""Files of other tools' tuning data, recognised by what they contain: their rows, as flat columns.

Nothing in these files is trusted: sizes are bounded, JSON and SQLite are only read.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import sqlite3
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from precast.errors import UserError

__all__ = ["LAYOUTS", "Content", "ImportFileError", "Row", "read_content"]

BYTES_LIMIT = 1 << 30
"""Of a file, unpacked."""


class ImportFileError(UserError):
    """A file that can't be imported; the message says why, and what can be."""


@dataclass(frozen=True)
class Row:
    """One row of a file.

    Attributes:
        number: counted from 1.
        kernel: the other tool's name of what was tuned.
        values: flat columns.
        target: of the GPU, if the row says so.
        device: if the row says so.
        time_us: microseconds, if there is a time.
        failure: why it could not run, if the file says so.
        problem: why it is no row of the layout.
    """

    number: int
    kernel: str
    values: Mapping[str, Any]
    target: str | None = None
    device: str | None = None
    time_us: float | None = None
    failure: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Content:
    """A file: its layout, the importer's name in records, and all its rows."""

    layout: str
    importer: str
    rows: list[Row] = field(default_factory=list)
    triton: str = ""


def _flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{part}${name}": value
        for part, values in entry.items()
        if isinstance(values, dict)
        for name, value in values.items()
    }


def _aotriton_json(name: str, value: Any) -> Content | None:
    if not isinstance(value, dict) or not isinstance(value.get("tune_info"), list):
        return None
    rows = []
    for number, entry in enumerate(value["tune_info"], 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("inputs"), dict):
            rows.append(Row(number, "", {}, problem="the entry has no inputs"))
            continue
        rows.append(Row(number, str(entry.get("kernel_name", "")), _flat(entry), str(value.get("arch", ""))))
    return Content("AOTriton JSON (0.4)", "aotriton-0.4", rows)


def _triton_cache(name: str, value: Any) -> Content | None:
    if not isinstance(value, dict) or not isinstance(value.get("configs_timings"), list):
        return None
    if not isinstance(value.get("key"), list):
        return None
    kernel = name.removesuffix(".json").removesuffix(".autotune")
    key = {f"key${i}": v for i, v in enumerate(value["key"])}
    rows = []
    for number, entry in enumerate(value["configs_timings"], 1):
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], dict):
            rows.append(Row(number, kernel, {}, problem="the entry is no pair of a config and its time"))
            continue
        config = {k: v for k, v in entry[0].items() if k != "kwargs" and v is not None}
        kwargs = entry[0].get("kwargs")
        config |= kwargs if isinstance(kwargs, dict) else {}
        values = key | {f"config${k}": v for k, v in config.items()}
        # do_bench gives milliseconds: quantiles with the median first, or one number.
        time = entry[1][0] if isinstance(entry[1], list) and entry[1] else entry[1]
        if isinstance(time, bool) or not isinstance(time, (int, float)) or math.isnan(time) or time <= 0:
            rows.append(Row(number, kernel, values, problem=f"its time is {time!r:.40}"))
        elif math.isinf(time):
            rows.append(Row(number, kernel, values, failure="Triton's autotuner could not compile or launch it"))
        else:
            rows.append(Row(number, kernel, values, time_us=float(time) * 1000))
    return Content("Triton autotune cache", "triton-autotune", rows)


def _vllm_table(name: str, value: Any) -> Content | None:
    if not isinstance(value, dict):
        return None
    entries = {k: v for k, v in value.items() if k != "triton_version"}
    if not entries or not all(k.isdigit() and isinstance(v, dict) and "num_warps" in v for k, v in entries.items()):
        return None
    facts = _name_facts(name)
    kernel = "fused_moe" if "E" in facts else "scaled_mm"
    device = facts.pop("device_name", "").replace("_", " ") or None
    fixed = {f"name${k}": int(v) if v.isdigit() else v for k, v in facts.items()}
    rows = [
        Row(n, kernel, fixed | {"M": int(m)} | {f"config${k}": v for k, v in config.items()}, None, device)
        for n, (m, config) in enumerate(entries.items(), 1)
    ]
    return Content("vLLM per-device JSON", "vllm", rows, str(value.get("triton_version", "")))


def _name_facts(name: str) -> dict[str, str]:
    """What vLLM's file names say: "E=8,N=14336,device_name=X,block_shape=[128,128].json"."""
    facts: dict[str, str] = {}
    last = ""
    for part in name.removesuffix(".json").split(","):
        key, equals, text = part.partition("=")
        if equals:
            last = key
            facts[key] = text
        elif last:
            facts[last] += "," + part  # a comma within brackets
    return facts


def _aotriton_sqlite(name: str, data: bytes) -> Content | None:
    database = sqlite3.connect(":memory:")
    try:
        database.deserialize(data)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        tables = [
            str(row[0])
            for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
            if not str(row[0]).startswith("sqlite_")
        ]
        rows: list[Row] = []
        seen: set[str] = set()
        for table in tables:
            _sqlite_table(database, table, rows, seen)
    except sqlite3.Error as error:
        raise ImportFileError(f"{name} is a damaged SQLite file: {error}") from error
    finally:
        database.close()
    if "gpu" in seen:
        return Content("AOTriton per-kernel SQLite", "aotriton-kernel", rows)
    return Content("AOTriton SQLite (0.6)", "aotriton-0.6", rows) if seen else None


def _sqlite_table(database: sqlite3.Connection, table: str, rows: list[Row], seen: set[str]) -> None:
    cursor = database.execute(f'SELECT * FROM "{table.replace(chr(34), chr(34) * 2)}"')
    names = [d[0] for d in cursor.description]
    gpu = next((n for n in ("gpu", "arch") if n in names), None)
    fits = gpu is not None and any(n.startswith("inputs$") for n in names)
    if fits and gpu:
        seen.add(gpu)
    kernel = table.rpartition("$")[2]
    for values in cursor:
        number = len(rows) + 1
        if not fits:
            rows.append(Row(number, kernel, {}, problem=f"table {table} has no column gpu or arch, or no inputs"))
            continue
        row = dict(zip(names, values, strict=True))
        target = str(row.pop(gpu)).partition("_mod")[0]  # "gfx942_mod0" is a partition of a gfx942
        rows.append(Row(number, kernel, row, target))


JSON_LAYOUTS: tuple[Callable[[str, Any], Content | None], ...] = (_aotriton_json, _triton_cache, _vllm_table)

LAYOUTS = (
    "AOTriton JSON (0.4)",
    "AOTriton SQLite (0.6)",
    "AOTriton per-kernel SQLite",
    "Triton autotune cache",
    "vLLM per-device JSON",
)
"""All layouts that are known; each may be compressed with xz or gzip, or be one file in a tar archive."""


def _unpack(name: str, data: bytes) -> tuple[str, bytes]:
    """What is inside of compression and archives."""
    for _ in range(4):
        try:
            if data.startswith(b"\xfd7zXZ\0"):
                decompressor = lzma.LZMADecompressor(memlimit=1 << 28)
                data = decompressor.decompress(data, BYTES_LIMIT + 1)
                complete = decompressor.eof or len(data) > BYTES_LIMIT
                if not complete:
                    raise ImportFileError(f"{name} is cut off: its xz data doesn't end")
                name = name.removesuffix(".xz")
            elif data.startswith(b"\x1f\x8b"):
                with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                    data = file.read(BYTES_LIMIT + 1)
                name = name.removesuffix(".gz")
            elif data[257:262] == b"ustar":
                name, data = _only_member(name, data)
            else:
                return name, data
        except (lzma.LZMAError, zlib.error, tarfile.TarError, OSError, EOFError) as error:
            raise ImportFileError(f"{name} is damaged: {error}") from error
        if len(data) > BYTES_LIMIT:
            raise ImportFileError(f"{name} unpacks to more than {BYTES_LIMIT:,} bytes")
    raise ImportFileError(f"{name} is packed more than four times")


def _only_member(name: str, data: bytes) -> tuple[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [m for m in archive.getmembers() if m.isfile()]
        if len(members) != 1:
            raise ImportFileError(f"{name} holds {len(members)} files: unpack it and import each")
        if members[0].size > BYTES_LIMIT:
            raise ImportFileError(f"{name} unpacks to more than {BYTES_LIMIT:,} bytes")
        inner = archive.extractfile(members[0])
        return Path(members[0].name).name, inner.read() if inner else b""


def read_content(path: str | Path) -> tuple[Content, bytes]:
    """The rows of a file, and the file's bytes, unpacked.

    Raises:
        ImportFileError: if its layout is none of `LAYOUTS`, or it is damaged.
        OSError: if it can't be read.
    """
    path = Path(path)
    if path.is_dir():
        raise ImportFileError(f"{path} is a folder; import its files one by one")
    if path.stat().st_size > BYTES_LIMIT:
        raise ImportFileError(f"{path} has more than {BYTES_LIMIT:,} bytes")
    name, data = _unpack(path.name, path.read_bytes())
    content = None
    why = ""
    if data.startswith(b"SQLite format 3\0"):
        content = _aotriton_sqlite(str(path), data)
    elif data.lstrip()[:1] in (b"{", b"["):
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            why = f" (it isn't JSON: {error})"
        else:
            content = next((c for read in JSON_LAYOUTS if (c := read(name, value)) is not None), None)
    if content is None:
        raise ImportFileError(f"{path} has none of the known layouts{why}: {'; '.join(LAYOUTS)}")
    return content, data
