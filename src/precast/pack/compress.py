"""Compressing code objects: each alone loadable, but most of them against a similar one.

The variants of a kernel resemble each other far more than any resembles a general dictionary. So an object may
name an earlier one as its base: its frame is compressed with the base's raw bytes as a prefix. Chains are at most
`MAX_DEPTH` long, so that loading one object decompresses few others. Measured figures are in docs/pack-format.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import zstandard

__all__ = ["MAX_DEPTH", "compress_objects", "decompress_object"]

MAX_DEPTH = 4
"""Bases that an object may have above it."""

WINDOW = 96
"""Earlier objects that are tried as a base."""

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


def compress_objects(objects: Sequence[bytes], *, level: int = LEVEL) -> list[tuple[bytes, int | None]]:
    """Each object's stored bytes and the index of its base; the same input gives the same output."""
    depth: list[int] = []
    result: list[tuple[bytes, int | None]] = []
    for i, data in enumerate(objects):
        alone = len(_compress(data, None, TRIAL_LEVEL))
        trials = [
            (len(_compress(data, objects[b], TRIAL_LEVEL)), b)
            for b in range(max(0, i - WINDOW), i)
            if depth[b] < MAX_DEPTH and objects[b]
        ]
        size, base = min(trials, default=(alone, None))
        if base is not None and size >= GAIN * alone:
            base = None
        depth.append(0 if base is None else depth[base] + 1)
        result.append((_compress(data, None if base is None else objects[base], level), base))
    return result


def decompress_object(stored: Sequence[bytes], bases: Sequence[int | None], sizes: Sequence[int], index: int) -> bytes:
    """The raw bytes of one object; the inverse of `compress_objects`."""
    base = bases[index]
    dictionary = None
    if base is not None:
        raw = decompress_object(stored, bases, sizes, base)
        dictionary = zstandard.ZstdCompressionDict(raw, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
    return decompressor.decompress(stored[index], max_output_size=sizes[index])
