"""Registers and spills, read from the compiled code itself."""

from __future__ import annotations

import re
import struct

__all__ = ["amd_resources", "cubin_resources"]

# Attributes of a cubin's .nv.info section, as `cuobjdump -elf` names them.
EIATTR_REGCOUNT = 0x2F
EIATTR_FRAME_SIZE = 0x11
FORMAT_SIZED = 0x04
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")


def _sections(elf: bytes) -> list[tuple[str, int, int]]:
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [SECTION_HEADER.unpack_from(elf, table + i * entry_size) for i in range(count)]
    names_at = headers[names_index][4]
    result = []
    for name, _, _, _, offset, size, *_ in headers:
        start = names_at + name
        result.append((elf[start : elf.index(b"\0", start)].decode(), offset, size))
    return result


def cubin_resources(cubin: bytes) -> tuple[int, int]:
    """Registers per thread and bytes of stack per thread (what spills take) of the one kernel in a cubin."""
    registers = stack = 0
    for name, offset, size in _sections(cubin):
        if name != ".nv.info":
            continue
        at, end = offset, offset + size
        while at + 4 <= end:
            form, attribute, length = struct.unpack_from("<BBH", cubin, at)
            at += 4
            if form != FORMAT_SIZED:
                continue
            if attribute == EIATTR_REGCOUNT:
                registers = max(registers, struct.unpack_from("<II", cubin, at)[1] & 0xFFFF)
            elif attribute == EIATTR_FRAME_SIZE:
                stack = max(stack, struct.unpack_from("<II", cubin, at)[1])
            at += length
    return registers, stack


def amd_resources(assembly: str) -> tuple[int, int]:
    """Vector registers and bytes of scratch per thread, from the metadata of AMD assembly text."""

    def number(key: str) -> int:
        found = re.search(rf"\.{key}:\s+(\d+)", assembly)
        return int(found.group(1)) if found else 0

    return number("vgpr_count") + number("agpr_count"), number("private_segment_fixed_size")
