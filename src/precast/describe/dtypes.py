"""Data types by Triton's names, with their DLPack codes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DTYPES", "Dtype", "find_dtype"]


@dataclass(frozen=True)
class Dtype:
    """A tensor element type.

    Attributes:
        name: Triton's name.
        code: DLPack's type code.
        bits: width in bits.
        long_name: as frameworks spell it.
    """

    name: str
    code: int
    bits: int
    long_name: str

    @property
    def packed(self) -> int:
        """The form stored in packs: code << 8 | bits."""
        return self.code << 8 | self.bits

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return max(1, self.bits // 8)


DTYPES: dict[str, Dtype] = {
    d.name: d
    for d in (
        Dtype("fp16", 2, 16, "float16"),
        Dtype("bf16", 4, 16, "bfloat16"),
        Dtype("fp32", 2, 32, "float32"),
        Dtype("fp64", 2, 64, "float64"),
        Dtype("fp8e4nv", 10, 8, "float8_e4m3fn"),
        Dtype("fp8e4b8", 11, 8, "float8_e4m3fnuz"),
        Dtype("fp8e5", 12, 8, "float8_e5m2"),
        Dtype("fp8e5b16", 13, 8, "float8_e5m2fnuz"),
        Dtype("i1", 6, 8, "bool"),
        Dtype("i8", 0, 8, "int8"),
        Dtype("i16", 0, 16, "int16"),
        Dtype("i32", 0, 32, "int32"),
        Dtype("i64", 0, 64, "int64"),
        Dtype("u8", 1, 8, "uint8"),
        Dtype("u16", 1, 16, "uint16"),
        Dtype("u32", 1, 32, "uint32"),
        Dtype("u64", 1, 64, "uint64"),
    )
}
"""Every data type, by Triton's name."""


def find_dtype(name: str) -> Dtype:
    """The data type of that Triton name; raises `ValueError` listing the known ones."""
    if name not in DTYPES:
        by_long_name = {d.long_name: d.name for d in DTYPES.values()}
        hint = f": write {by_long_name[name]!r}" if name in by_long_name else f"; known: {', '.join(DTYPES)}"
        raise ValueError(f"unknown dtype {name!r}{hint}")
    return DTYPES[name]
