"""The content-addressed cache of compile results: one file a result, written atomically."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

from precast.compile.job import CompileResult, JobStatus
from precast.errors import UserError

__all__ = ["CacheError", "CompileCache", "default_cache_folder"]

MAGIC = b"PCRESULT"
HEADER = struct.Struct("<8sIIII")
"""magic, bytes of the JSON text, of the code, of the PTX, CRC-32 of all that follows."""


def default_cache_folder() -> Path:
    """`PRECAST_CACHE` if set, else `precast` in the user's cache folder."""
    given = os.environ.get("PRECAST_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "precast"


class CacheError(UserError):
    """The cache can't be written."""


class CompileCache:
    """Results by key. A damaged file is a miss; failures of the compiler are kept, crashes and timeouts not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]

    def get(self, key: str) -> CompileResult | None:
        """The result of that key, or None."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        if len(data) < HEADER.size:
            return None
        magic, text_size, code_size, ptx_size, checksum = HEADER.unpack_from(data)
        body = data[HEADER.size :]
        if magic != MAGIC or len(body) != text_size + code_size + ptx_size or zlib.crc32(body) != checksum:
            return None
        facts = json.loads(body[:text_size])
        code, ptx = body[text_size : text_size + code_size], body[text_size + code_size :]
        return CompileResult(code=code, ptx=ptx, **facts)

    def put(self, key: str, result: CompileResult) -> None:
        """Stores a result, unless it is a crash or a timeout, which may not come again.

        Raises:
            CacheError: if the folder can't be written.
        """
        if result.status not in (JobStatus.OK, JobStatus.ERROR):
            return
        facts = {k: v for k, v in vars(result).items() if k not in ("code", "ptx")}
        text = json.dumps(facts, sort_keys=True).encode()
        body = text + result.code + result.ptx
        header = HEADER.pack(MAGIC, len(text), len(result.code), len(result.ptx), zlib.crc32(body))
        try:
            _write_whole(self._path(key), header + body)
        except OSError as error:
            raise CacheError(
                f"the compile cache {self.folder} can't be written: {error.strerror}: make room there, or give another "
                "folder with --cache or PRECAST_CACHE"
            ) from error

    @staticmethod
    def without_code(result: CompileResult) -> CompileResult:
        """The result's facts alone."""
        return replace(result, code=b"", ptx=b"")


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
