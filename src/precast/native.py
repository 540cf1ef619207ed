"""Where the native files of the wheel are: runtime libraries, headers, and what a library is linked from."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from precast.errors import UserError

__all__ = ["NativeError", "native_file", "native_folder", "runtime_library"]


class NativeError(UserError):
    """A native file is missing: precast is not installed whole."""


def native_folder() -> Path:
    """The folder of native files."""
    return Path(__file__).resolve().parent / "_native"


def native_file(name: str) -> Path:
    """A native file; raises `NativeError` if it isn't there."""
    path = native_folder() / name
    if not path.exists():
        raise NativeError(f"{path} is missing: install precast with pip, so that its C++ part is built")
    return path


@functools.cache
def runtime_library() -> ctypes.CDLL:
    """`libprecast.so`, the runtime for tools, with its functions' types declared."""
    library = ctypes.CDLL(str(native_file("libprecast.so")))
    library.precast_error.restype = ctypes.c_char_p
    library.precast_open_pack.restype = ctypes.c_void_p
    library.precast_open_pack.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    library.precast_inspect.restype = ctypes.c_int32
    library.precast_inspect.argtypes = [
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_char_p),
    ]  # fmt: skip
    library.precast_evaluate.restype = ctypes.c_int32
    library.precast_evaluate.argtypes = [
        ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_int64),
    ]  # fmt: skip
    return library
