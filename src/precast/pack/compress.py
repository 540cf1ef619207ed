"""Compressing code objects: each alone loadable, but most of them against a similar one.

The variants of a kernel resemble each other far more than any resembles a general dictionary. So an object may
name an earlier one as its base: its frame is compressed with the base's raw bytes as a prefix. Chains are at most
`MAX_DEPTH` long, so that loading one object decompresses few others. Measured figures are in docs/pack-format.md.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import zstandard

__all__ = ["MAX_DEPTH", "compress_objects", "decompress_object"]

MAX_DEPTH = 4
"""Bases that an object may have above it."""

WINDOW = 512
"""Earlier objects that may be a base."""

SKETCH = 128
TRIALS = 4
"""Of these, as many of the most similar are tried."""

LEVEL = 19
TRIAL_LEVEL = 3
GAIN = 0.95
"""A base must shrink an object to less than this share of its size alone."""


def _compress(data: bytes, base: bytes | None, level: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level,
        window_log=max(20, (len(data) + len(base or b"")).bit_length() + 1),
        write_content_size=1,
        write_checksum=0,
    )
    dictionary = None
    if base:
        dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(compression_params=parameters, dict_data=dictionary).compress(data)


def _sketch(data: bytes) -> frozenset[int]:
    """The least hashes of the 8-byte words of an object: two sketches share about as much as the objects do.

    Bottom-k sketches: Broder, "On the resemblance and containment of documents" (1997).
    """
    words = np.unique(np.frombuffer(data[: len(data) // 8 * 8], dtype="<u8"))
    hashes = words * np.uint64(0x9E3779B97F4A7C15)  # modulo 2^64
    hashes ^= hashes >> np.uint64(29)
    return frozenset(np.sort(hashes)[:SKETCH].tolist())


def compress_objects(objects: Sequence[bytes], *, level: int = LEVEL) -> list[tuple[bytes, int | None]]:
    """Each object's stored bytes and the index of its base; the same input gives the same output.

    Compression runs on threads: zstd works without Python's lock.
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        sketches = [_sketch(o) for o in objects]

        def trial(pair: tuple[int, int | None]) -> int:
            return len(_compress(objects[pair[0]], _at(objects, pair[1]), TRIAL_LEVEL))

        depth: list[int] = []
        bases: list[int | None] = []
        for i, sketch in enumerate(sketches):
            possible = [b for b in range(max(0, i - WINDOW), i) if depth[b] < MAX_DEPTH and objects[b]]
            nearest = heapq.nlargest(TRIALS, possible, key=lambda b: (len(sketch & sketches[b]), b))
            alone, *sizes = pool.map(trial, [(i, None), *((i, b) for b in nearest)])
            size, base = min(zip(sizes, nearest, strict=True), default=(alone, None))
            bases.append(base if base is not None and size < GAIN * alone else None)
            depth.append(0 if bases[i] is None else depth[bases[i] or 0] + 1)
        stored = pool.map(lambda i: _compress(objects[i], _at(objects, bases[i]), level), range(len(objects)))
        return list(zip(stored, bases, strict=True))


def _at(objects: Sequence[bytes], index: int | None) -> bytes | None:
    return None if index is None else objects[index]


def decompress_object(stored: Sequence[bytes], bases: Sequence[int | None], sizes: Sequence[int], index: int) -> bytes:
    """The raw bytes of one object; the inverse of `compress_objects`."""
    base = bases[index]
    dictionary = None
    if base is not None:
        raw = decompress_object(stored, bases, sizes, base)
        dictionary = zstandard.ZstdCompressionDict(raw, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
    return decompressor.decompress(stored[index], max_output_size=sizes[index])
