"""The pack reader: every byte matters, and no damage gets past it."""

from __future__ import annotations

import ctypes
import struct
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from standin import add_pack

from precast.describe import expression as ex
from precast.native import runtime_library
from precast.pack.inspect import PackError, code_object, inspect_bytes
from precast.pack.writer import FORMAT_VERSION, dump

PACK = dump(add_pack())


def test_inspect_shows_what_was_written() -> None:
    facts = inspect_bytes(PACK, "test", verify=True)
    assert facts["family"] == "standin" and facts["targets"] == ["sm_90"]
    operator = facts["operators"][0]
    assert [a["name"] for a in operator["arguments"]] == ["z", "x", "y"]
    statuses = [s["status"] for s in operator["targets"][0]["specializations"]]
    assert statuses == ["built", "excluded"]
    assert operator["targets"][0]["variants"][0]["registers"] == 16
    assert code_object(PACK, facts, 0) == b"standin:add"


def test_writing_is_deterministic() -> None:
    assert dump(add_pack()) == PACK


def test_every_flipped_bit_of_every_byte_is_found() -> None:
    for position in range(len(PACK)):
        damaged = bytearray(PACK)
        damaged[position] ^= 1 << (position % 8)
        with pytest.raises(PackError):
            inspect_bytes(bytes(damaged), "damaged", verify=True)


def test_every_truncation_is_found() -> None:
    for size in range(len(PACK)):
        with pytest.raises(PackError):
            inspect_bytes(PACK[:size], "short", verify=True)
    with pytest.raises(PackError):
        inspect_bytes(PACK + b"\0", "long", verify=True)


def test_another_format_version_names_both() -> None:
    other = bytearray(PACK[:72])
    struct.pack_into("<I", other, 8, FORMAT_VERSION + 1)
    struct.pack_into("<I", other, 68, zlib.crc32(bytes(other[:68])))
    with pytest.raises(PackError, match=rf"version {FORMAT_VERSION + 1}, this runtime reads version {FORMAT_VERSION}"):
        inspect_bytes(bytes(other) + PACK[72:], "newer")


def test_no_pack_at_all() -> None:
    for data in (b"", b"hello", b"\0" * 200):
        with pytest.raises(PackError, match="no precast pack"):
            inspect_bytes(data, "other")


NAMES = ("a", "b", "c")


def runtime_value(code: bytes, values: list[int]) -> int | None:
    """What the runtime computes; None if it refuses."""
    slots = (ctypes.c_int64 * len(values))(*values)
    result = ctypes.c_int64()
    status = runtime_library().precast_evaluate(code, len(code), slots, len(values), ctypes.byref(result))
    assert status in (0, 6, 11)
    return result.value if status == 0 else None


def operands() -> st.SearchStrategy[int]:
    return st.one_of(
        st.integers(-20, 20),
        st.integers(-(2**63), 2**63 - 1),
        st.sampled_from([-(2**63), 2**63 - 1, 2**31, 2**62, 0, -1]),
    )


@st.composite
def programs(draw: st.DrawFn) -> ex.Expression:
    def grow(depth: int) -> ex.Expression:
        if depth == 0 or draw(st.booleans()):
            return ex.symbol(draw(st.sampled_from(NAMES))) if draw(st.booleans()) else ex.constant(draw(operands()))
        op = draw(st.sampled_from([o for o in ex.Op if ex.ARITY[o] > 0]))
        return ex.Expression(op, tuple(grow(depth - 1) for _ in range(ex.ARITY[op])))

    return grow(4)


@settings(max_examples=1500, deadline=None)
@given(programs(), st.lists(operands(), min_size=3, max_size=3))
def test_the_runtime_computes_what_python_does(program: ex.Expression, values: list[int]) -> None:
    code = ex.encode(program, {n: i for i, n in enumerate(NAMES)})
    try:
        expected: int | None = ex.evaluate(program, dict(zip(NAMES, values, strict=True)))
    except ex.ExpressionError:
        expected = None
    assert runtime_value(code, values) == expected


@settings(max_examples=1500, deadline=None)
@given(st.binary(max_size=40))
def test_malformed_code_is_refused_not_run(code: bytes) -> None:
    runtime_value(code, [1, 2, 3])
