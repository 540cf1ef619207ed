"""Packs as bytes. The layout is described in docs/pack-format.md and read by cpp/src/pack.cpp.

All numbers are little-endian. A list is a uint32 count and its elements; a text or bytes field is
a uint32 length and its bytes. Writing is deterministic: the same `Pack` gives the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import zstandard

from precast.pack import model as m
from precast.pack.compress import compress_objects

__all__ = ["FORMAT_VERSION", "MAGIC", "dump", "write"]

MAGIC = b"PRECAST\0"
FORMAT_VERSION = 2
HEADER = struct.Struct("<8sIIQ16sQQQII")
"""magic, format version, header bytes, file bytes, build id, metadata offset, metadata stored bytes,
metadata raw bytes, CRC-32 of the stored metadata, CRC-32 of the header before this field."""

ALIGNMENT = 16
LEVEL = 19
T = TypeVar("T")


class _Stream:
    def __init__(self) -> None:
        self.data = bytearray()

    def u8(self, value: int) -> None:
        self.data += struct.pack("<B", value)

    def u16(self, value: int) -> None:
        self.data += struct.pack("<H", value)

    def u32(self, value: int) -> None:
        self.data += struct.pack("<I", value)

    def u64(self, value: int) -> None:
        self.data += struct.pack("<Q", value)

    def i64(self, value: int) -> None:
        self.data += struct.pack("<q", value)

    def f32(self, value: float) -> None:
        self.data += struct.pack("<f", value)

    def f64(self, value: float) -> None:
        self.data += struct.pack("<d", value)

    def bytes(self, value: bytes) -> None:
        self.u32(len(value))
        self.data += value

    def text(self, value: str) -> None:
        self.bytes(value.encode())

    def list(self, values: Iterable[T], write: Callable[[T], None]) -> None:
        items = list(values)
        self.u32(len(items))
        for item in items:
            write(item)


def _operator(s: _Stream, op: m.Operator) -> None:
    def argument(a: m.Argument) -> None:
        s.text(a.name)
        s.u8(a.kind)
        s.u8(a.optional)
        s.u8(a.output)
        s.u32(a.in_place_with)
        s.u8(a.rank)
        s.u32(a.type_variable)
        s.u16(a.fixed_dtype)
        s.list(a.labels, s.text)
        s.i64(a.default_int)
        s.f64(a.default_float)
        s.list(a.shape, s.u32)
        s.text(a.shape_text)

    def slot(x: m.Slot) -> None:
        s.u8(x.kind)
        s.u16(x.argument)
        s.u8(x.axis)
        s.text(x.name)

    def check(c: m.Check) -> None:
        s.u32(c.expression)
        s.u32(c.status)
        s.text(c.message)

    def type_variable(t: m.TypeVariable) -> None:
        s.text(t.name)
        s.u32(t.argument)
        s.list(t.dtypes, s.u16)
        s.list(t.names, s.text)

    def feature(f: m.Feature) -> None:
        s.text(f.name)
        s.u32(f.expression)
        s.list(f.values, s.i64)
        s.list(f.labels, s.text)

    def key_field(k: m.KeyField) -> None:
        s.text(k.name)
        s.u32(k.expression)

    def condition(c: m.Condition) -> None:
        s.u8(c.kind)
        s.list(c.indices, s.u32)

    s.text(op.name)
    s.text(op.doc)
    s.list(op.arguments, argument)
    s.list(op.slots, slot)
    s.list(op.expressions, s.bytes)
    s.list(op.checks, check)
    s.list(op.type_variables, type_variable)
    s.list(op.features, feature)
    s.list(op.key, key_field)
    s.list(op.conditions, condition)
    s.list(op.targets, lambda t: _target(s, t))


def _target(s: _Stream, target: m.Target) -> None:
    def launch_variant(v: m.LaunchVariant) -> None:
        s.u64(v.class_mask)
        s.u32(v.variant)

    def node(n: m.Node) -> None:
        s.u32(n.field)
        s.i64(n.threshold)
        s.u32(n.left)
        s.u32(n.right)

    def leaf(x: m.Leaf) -> None:
        s.list(x.choices, s.u32)
        s.u32(x.tuned)

    def table(t: m.Table) -> None:
        s.u32(t.device)
        s.u8(t.rung)
        s.f32(t.mean_regret)
        s.f32(t.worst_regret)
        s.list(t.fields, s.u32)
        s.list(t.nodes, node)
        s.list(t.leaves, leaf)
        s.list([value for key in t.measured for value in key], s.i64)

    def launch(x: m.Launch) -> None:
        s.list(x.variants, launch_variant)
        for expression in x.grid:
            s.u32(expression)

    def workspace(w: m.Workspace) -> None:
        s.text(w.name)
        s.u32(w.bytes)
        s.u8(w.zero)

    def candidate(c: m.Candidate) -> None:
        s.text(c.plan)
        s.text(c.config)
        s.u32(c.condition)
        s.text(c.source)
        s.list(c.workspaces, workspace)
        s.list(c.launches, launch)

    def specialization(x: m.Specialization) -> None:
        s.u8(x.status)
        s.text(x.reason)
        s.list(x.candidates, s.u32)
        s.list(x.tables, table)

    s.u32(target.target)
    s.list(target.candidates, candidate)
    s.list(target.variants, lambda v: _variant(s, v))
    s.list(target.specializations, specialization)


def _variant(s: _Stream, v: m.Variant) -> None:
    def param(p: m.Param) -> None:
        s.u8(p.kind)
        s.u8(p.type)
        s.u32(p.index)

    def tensor_map(t: m.TensorMap) -> None:
        s.u32(t.argument)
        s.u8(t.data_type)
        s.u8(t.element_bytes)
        s.u8(t.swizzle)
        s.u8(t.fill_nan)
        s.u8(t.fp4_padded)
        s.list(t.box, s.u32)
        s.list(t.shape, s.u32)
        s.list(t.strides, s.u32)

    s.u32(v.object)
    s.text(v.function)
    s.text(v.kernel)
    s.u32(v.threads)
    s.u32(v.shared_bytes)
    s.u32(v.cluster)
    s.u32(v.flags)
    s.u32(v.global_scratch_bytes)
    s.u32(v.global_scratch_align)
    s.u32(v.profile_scratch_bytes)
    s.u32(v.profile_scratch_align)
    s.u32(v.registers)
    s.u32(v.spills)
    s.list(v.params, param)
    s.list(v.tensor_maps, tensor_map)
    s.text(v.class_name)


def dump(pack: m.Pack, *, level: int = LEVEL) -> bytes:
    """The bytes of a pack: header, stored metadata and code objects, with no gaps.

    Every byte is covered by a checksum. The build id is a digest of the metadata, which names every code
    object by its digest.
    """
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=False, write_content_size=True)
    blobs: list[bytes] = []
    meta = _Stream()
    meta.text(pack.family)
    meta.text(pack.precast_version)
    meta.text(pack.triton_version)
    meta.list(pack.notes, meta.text)
    meta.list(pack.targets, meta.text)
    meta.list(pack.devices, meta.text)
    compressed = compress_objects([o.data for o in pack.objects], level=level)

    def code_object(entry: tuple[m.CodeObject, tuple[bytes, int | None]]) -> None:
        o, (stored, base) = entry
        blobs.append(stored)
        meta.data += o.sha256
        meta.u8(o.kind)
        meta.u32(len(o.data))
        meta.u32(len(stored))
        meta.u32(zlib.crc32(stored))
        meta.u32(m.NO_INDEX if base is None else base)

    meta.list(zip(pack.objects, compressed, strict=True), code_object)
    meta.list(pack.operators, lambda op: _operator(meta, op))
    raw = bytes(meta.data)
    digest = hashlib.sha256(raw)
    for o in pack.objects:
        digest.update(o.sha256)
    stored = compressor.compress(raw)
    size = HEADER.size + len(stored) + sum(map(len, blobs))
    header = HEADER.pack(
        MAGIC, FORMAT_VERSION, HEADER.size, size, digest.digest()[:16], HEADER.size, len(stored), len(raw),
        zlib.crc32(stored), 0,
    )  # fmt: skip
    header = header[:-4] + struct.pack("<I", zlib.crc32(header[:-4]))
    return b"".join((header, stored, *blobs))


def write(pack: m.Pack, path: Path, *, level: int = LEVEL) -> int:
    """Writes a pack atomically (a whole file or none) and returns its size in bytes."""
    data = dump(pack, level=level)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return len(data)
