"""Loading a library and calling its operators from Python, with tensors of any framework that speaks DLPack."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from precast.native import runtime_library
from precast.runtime import errors
from precast.runtime.operator import Operator, glue

__all__ = ["Library", "load"]

ABI_VERSION = 1


class _Api(ctypes.Structure):
    """The head of precast.h's function table."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("abi_version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("describe", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p))),
        ("find_operator", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
        ("supports", ctypes.c_void_p),
        ("explain", ctypes.c_void_p),
        (
            "warmup",
            ctypes.CFUNCTYPE(
                ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32,
                ctypes.c_void_p,
            ),
        ),
        ("output_shape", ctypes.c_void_p),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("status_name", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)),
    )  # fmt: skip


class Library:
    """A loaded library; its operators are attributes, as functions. See `load`."""

    def __init__(self, path: Path, api_address: int, handle: int, keep: object) -> None:
        self.path = path
        self._api_address = api_address
        self._handle = handle
        self._keep = keep
        self._api = _Api.from_address(api_address)
        text = ctypes.c_char_p()
        self._check(self._api.describe(handle, ctypes.byref(text)))
        assert text.value is not None
        self.facts: dict[str, Any] = json.loads(text.value)
        self.operators: dict[str, Operator] = {}
        for index, facts in enumerate(self.facts["operators"]):
            operator = Operator(api_address, handle, index, facts)
            self.operators[operator.name] = operator
            setattr(self, operator.name, operator.function)

    def _check(self, status: int) -> None:
        if status != 0:
            message = self._api.last_error().decode(errors="replace")
            raise errors.error_of_status(status)(message)

    @property
    def family(self) -> str:
        """The family's name."""
        return str(self.facts["family"])

    @property
    def targets(self) -> list[str]:
        """Targets that the library has code for."""
        return list(self.facts["targets"])

    @property
    def build_id(self) -> str:
        """What tells this build from others."""
        return "+".join(self.facts["build_ids"])

    def warmup(self, device: int = 0) -> None:
        """Loads every kernel of the library on a device."""
        self._check(self._api.warmup(self._handle, -1, device, None, 0, None))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or "operators" not in self.__dict__:
            raise AttributeError(name)
        raise AttributeError(f"{self.path} has no operator {name!r}; it has {', '.join(self.operators)}")

    def __repr__(self) -> str:
        return f"<precast library {self.family} at {self.path}: {', '.join(self.operators)}>"


def _entry(path: Path, library: ctypes.CDLL) -> Any:
    """The library's one exported function: named by its file, or found in its symbol table."""
    name = path.name.removeprefix("lib").partition(".")[0]
    try:
        return getattr(library, f"precast_library_{name}")
    except AttributeError:
        return getattr(library, _family_symbol(path))


def _family_symbol(path: Path) -> str:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    prefix = "precast_library_"
    try:
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            names = [s.name for s in table.iter_symbols() if s.name.startswith(prefix)] if table else []
    except ELFError as error:
        raise errors.BadPackError(f"{path} is no library: {error}") from error
    if not names:
        raise errors.BadPackError(f"{path} is no precast library: it exports no {prefix}…")
    return str(names[0])


def load(path: str | Path) -> Library:
    """Loads a library, or a pack by itself.

    Raises:
        FileNotFoundError: if there is no such file.
        PrecastError: if it is no precast library, damaged, or of another build than its packs.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no library {path}")
    glue()
    handle = ctypes.c_void_p()
    with path.open("rb") as file:
        is_elf = file.read(4) == b"\x7fELF"
    if not is_elf:
        runtime = runtime_library()
        api = runtime.precast_open_pack(str(path).encode(), ctypes.byref(handle))
        if not api:
            raise errors.BadPackError(runtime.precast_error().decode(errors="replace"))
        return Library(path, api, handle.value or 0, runtime)
    try:
        library = ctypes.CDLL(str(path.resolve()))
    except OSError as error:
        raise errors.BadPackError(f"{path} can't be loaded: {error}") from error
    entry = _entry(path, library)
    entry.restype = ctypes.c_void_p
    entry.argtypes = [ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p)]
    api = entry(ABI_VERSION, ctypes.byref(handle))
    if not api:
        raise errors.VersionMismatchError(
            f"{path} does not know ABI version {ABI_VERSION}; load it with its own precast"
        )
    return Library(path, api, handle.value or 0, library)
