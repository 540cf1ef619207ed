"""What is in a pack or a library. The reader is the runtime's; no code of an inspected library is run."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

from precast.errors import UserError
from precast.native import runtime_library
from precast.pack.compress import decompress_object

__all__ = ["PACK_SECTION", "PackError", "code_object", "inspect_bytes", "inspect_file", "packs_of"]

PACK_SECTION = ".precast_pack"
"""The ELF section of a library that holds its pack."""

HEADER_BYTES = 72


class PackError(UserError):
    """A file is no pack, or a damaged one."""


def packs_of(path: Path) -> list[tuple[str, bytes]]:
    """The packs of a file, each with its name: the file itself, the one inside a library, or those beside it.

    Raises:
        PackError: if the file holds none.
        OSError: if it can't be read.
    """
    data = path.read_bytes()
    if not data.startswith(b"\x7fELF"):
        return [(str(path), data)]
    from elftools.elf.elffile import ELFFile

    try:
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(PACK_SECTION)
            inside = section.data() if section is not None else None
    except Exception as error:  # a damaged file can make the ELF reader fail in any way
        raise PackError(f"{path}: the library is damaged: {error}") from error
    if inside is not None:
        return [(str(path), inside)]
    beside = sorted(path.parent.glob(f"{path.stem}.*.pack"))
    if not beside:
        raise PackError(
            f"{path}: no precast library: it has no pack inside, and none named {path.stem}.*.pack beside it"
        )
    return [(str(p), p.read_bytes()) for p in beside]


def inspect_bytes(data: bytes, where: str, *, verify: bool = False) -> dict[str, Any]:
    """The content of a pack; with `verify`, after a check of every byte.

    Raises:
        PackError: naming the first fault.
    """
    library = runtime_library()
    text = ctypes.c_char_p()
    if library.precast_inspect(data, len(data), where.encode(), int(verify), ctypes.byref(text)) != 0:
        raise PackError(library.precast_error().decode(errors="replace"))
    assert text.value is not None
    content: dict[str, Any] = json.loads(text.value)
    return content


def inspect_file(path: Path, *, verify: bool = False) -> list[dict[str, Any]]:
    """The contents of all packs of a file; see `packs_of`."""
    return [inspect_bytes(data, name, verify=verify) for name, data in packs_of(path)]


def code_object(data: bytes, facts: dict[str, Any], index: int) -> bytes:
    """The raw bytes of one code object of a pack; `facts` are what `inspect_bytes` gave for it."""
    objects = facts["objects"]
    stored = []
    at = HEADER_BYTES + facts["metadata_bytes"]
    for o in objects:
        stored.append(data[at : at + o["stored"]])
        at += o["stored"]
    return decompress_object(stored, [o["base"] for o in objects], [o["raw"] for o in objects], index)
