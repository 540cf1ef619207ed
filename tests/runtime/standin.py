"""Driving the runtime through the stand-in driver: packs made by hand, calls through ctypes, what the driver saw.

The stand-in is no GPU: its memory is the host's and its kernels are functions of its own. Each call runs in a
process of its own, since a driver is opened once a process.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from precast.describe.expression import Expression, as_expression, encode, symbol
from precast.native import runtime_library
from precast.pack import model as m

FP32 = 2 << 8 | 32
FP16 = 2 << 8 | 16


class Builder:
    """An operator `add(z, x, y)` over vectors, whose parts tests replace."""

    def __init__(self) -> None:
        self.slots = {"x.shape[0]": 0, "y.shape[0]": 1, "z.shape[0]": 2, "num_sms": 3, "x.stride[0]": 4}
        self.expressions: list[bytes] = []

    def expression(self, value: Expression | int) -> int:
        code = encode(as_expression(value), self.slots)
        if code not in self.expressions:
            self.expressions.append(code)
        return self.expressions.index(code)


def code(text: str) -> m.CodeObject:
    data = text.encode()
    return m.CodeObject(hashlib.sha256(data).digest(), m.CodeKind.CUBIN, data)


def add_pack(**changes: Any) -> m.Pack:
    """The pack; `changes` may set variant, candidate, key, conditions, masks, targets, objects, checks, grid."""
    b = Builder()
    n = symbol("x.shape[0]")
    dim = b.expression(n)
    arguments = (
        m.Argument(
            "z",
            m.ArgumentKind.TENSOR,
            output=True,
            in_place_with=1,
            rank=1,
            type_variable=0,
            shape=(dim,),
            shape_text="(n,)",
        ),
        m.Argument("x", m.ArgumentKind.TENSOR, rank=1, type_variable=0, shape_text="(n,)"),
        m.Argument("y", m.ArgumentKind.TENSOR, rank=1, type_variable=0, shape_text="(n,)"),
    )
    slots = (
        m.Slot(m.SlotKind.DIM, 1, 0, "x.shape[0]"), m.Slot(m.SlotKind.DIM, 2, 0, "y.shape[0]"),
        m.Slot(m.SlotKind.DIM, 0, 0, "z.shape[0]"), m.Slot(m.SlotKind.DEVICE, 0, 0, "num_sms"),
        m.Slot(m.SlotKind.STRIDE, 1, 0, "x.stride[0]"),
    )  # fmt: skip
    checks = (m.Check(b.expression(symbol("y.shape[0]") == n), 1, "y.shape[0] must be x.shape[0] (n)"),)
    conditions = changes.get(
        "conditions",
        (m.Condition(m.ConditionKind.POINTERS_DIV16, (0, 1, 2)), m.Condition(m.ConditionKind.OFFSETS_INT32, (0, 1, 2))),
    )
    params = changes.get("params") or (
        *(m.Param(m.ParamKind.POINTER, m.ScalarType.POINTER, i) for i in range(3)),
        m.Param(m.ParamKind.SLOT, m.ScalarType.I32, 0),
        m.Param(m.ParamKind.GLOBAL_SCRATCH, m.ScalarType.POINTER),
        m.Param(m.ParamKind.PROFILE_SCRATCH, m.ScalarType.POINTER),
    )
    base = m.Variant(0, "add_kernel", "add", 128, 0, 1, 0, 0, 1, 0, 1, 16, 0, params, (), "full")
    variants = (
        replace(base, **changes.get("variant", {})),
        replace(base, **{**changes.get("variant", {}), "class_name": "none"}),
    )
    grid = changes.get("grid") or (lambda b: ((symbol("x.shape[0]") + 127) // 128, 1, 1))
    x, y, z = (b.expression(s) for s in grid(b))
    masks = changes.get("masks", (3, 2))
    launch = m.Launch(tuple(m.LaunchVariant(mask, i) for i, mask in enumerate(masks)), (x, y, z))
    workspaces = tuple(
        m.Workspace(name, b.expression(size), zero) for name, size, zero in changes.get("workspaces", ())
    )
    candidate = m.Candidate("default", "BLOCK=128", m.ALWAYS, "", workspaces, (launch,))
    leaf = m.Node(m.NO_INDEX, 0, 0, 0)
    tables = changes.get("tables") or (m.Table((leaf,), (m.Leaf((0,)),)),)
    built = m.Specialization(m.SpecializationStatus.BUILT, "", (0,), tables)
    excluded = m.Specialization(m.SpecializationStatus.EXCLUDED, "half is excluded for this test")
    targets = changes.get("targets", ("sm_90",))
    made = tuple(m.Target(i, (candidate,), variants, (built, excluded)) for i in range(len(targets)))
    operator = m.Operator(
        "add", "z = x + y", arguments, slots, (), checks, (m.TypeVariable("T", 1, (FP32, FP16), ("float32", "float16")),),
        (), (m.KeyField("n", dim),), conditions, made,
    )  # fmt: skip
    operator = replace(operator, expressions=tuple(b.expressions))
    return m.Pack(
        "standin",
        "0.1.0",
        "3.9.0",
        targets,
        changes.get("devices", ()),
        changes.get("objects", (code("standin:add"),)),
        (operator,),
    )


class Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("dtype", Dtype),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Value(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("tensor", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("stream", ctypes.c_void_p), ("target", ctypes.c_char_p),
        ("device_type", ctypes.c_int32), ("candidate", ctypes.c_int32),
    ]  # fmt: skip


class Record(ctypes.Structure):
    """What the stand-in driver saw; as in cpp/tests/standin_cuda.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("launches", "loads", "unloads", "allocations", "frees", "memsets", "live_bytes", "encodes")),
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared_bytes", ctypes.c_uint32),
        ("attribute_count", ctypes.c_uint32), ("attributes", ctypes.c_uint32 * 8), ("stream", ctypes.c_void_p),
        ("params", ctypes.c_uint64 * 16), ("map_dims", ctypes.c_uint64 * 5), ("map_strides", ctypes.c_uint64 * 5),
        ("map_box", ctypes.c_uint32 * 5), ("map_rank", ctypes.c_uint32), ("map_swizzle", ctypes.c_uint32),
        ("map_data_type", ctypes.c_uint32),
    ]  # fmt: skip


SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(Value), ctypes.c_int32, ctypes.POINTER(Options)
)
EXPLAIN = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.POINTER(Value),
    ctypes.c_int32,
    ctypes.POINTER(Options),
    ctypes.POINTER(ctypes.c_char_p),
)
WARMUP = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.POINTER(Options),
)


class Api(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("abi_version", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("describe", ctypes.c_void_p),
        ("find_operator", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int32))),
        ("run", SIGNATURE), ("supports", SIGNATURE), ("explain", EXPLAIN), ("warmup", WARMUP), ("output_shape", ctypes.c_void_p),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("status_name", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int32)),
        ("release", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)),
    ]  # fmt: skip


class Opened:
    """A pack opened as a library."""

    def __init__(self, path: Path) -> None:
        self.handle = ctypes.c_void_p()
        runtime = runtime_library()
        address = runtime.precast_open_pack(str(path).encode(), ctypes.byref(self.handle))
        self.error = "" if address else runtime.precast_error().decode()
        self.api = Api.from_address(address) if address else None

    def call(
        self, *tensors: Tensor | None, function: str = "run", stream: int = 0, target: bytes | None = None
    ) -> tuple[str, str]:
        """The status' name and the message."""
        assert self.api is not None
        values = (Value * len(tensors))()
        for value, tensor in zip(values, tensors, strict=True):
            if tensor is not None:
                value.kind, value.tensor = 1, ctypes.addressof(tensor)
        options = Options(ctypes.sizeof(Options), stream, target)
        arguments = (self.handle, 0, values, len(tensors), ctypes.byref(options))
        text = ctypes.c_char_p()
        more = (ctypes.byref(text),) if function == "explain" else ()
        status = getattr(self.api, function)(*arguments, *more)
        name = self.api.status_name(status).decode()
        if status != 0:
            return name, self.api.last_error().decode()
        return name, (text.value or b"").decode()


def tensor(
    array: np.ndarray[Any, Any],
    *,
    device: tuple[int, int] = (2, 0),
    dtype: tuple[int, int] | None = None,
    offset: int = 0,
) -> Tensor:
    """A view of host memory that claims to be on a GPU."""
    shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    strides = (ctypes.c_int64 * max(1, array.ndim))(*(s // array.itemsize for s in array.strides))
    kind = dtype or (2, array.itemsize * 8)
    made = Tensor(array.ctypes.data, Device(*device), array.ndim, Dtype(*kind, 1), shape, strides, offset)
    made.keep = (array, shape, strides)
    return made


def aligned(n: int, dtype: Any = np.float32, misalign: int = 0) -> np.ndarray[Any, Any]:
    """n elements at an address that is `misalign` bytes past a multiple of 64."""
    size = n * np.dtype(dtype).itemsize
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 64 + misalign
    array = raw[start : start + size].view(dtype)
    array[:] = np.arange(n)
    return array
