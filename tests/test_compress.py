"""Compression against similar objects: reversible, deterministic, and worth it."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from precast.pack.compress import MAX_DEPTH, compress_objects, decompress_object


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=8))
def test_every_object_comes_back_alone(objects: list[bytes]) -> None:
    compressed = compress_objects(objects)
    assert compress_objects(objects) == compressed
    stored, bases = [s for s, _ in compressed], [b for _, b in compressed]
    for i, data in enumerate(objects):
        assert decompress_object(stored, bases, [len(o) for o in objects], i) == data


def test_variants_of_one_thing_are_stored_against_each_other() -> None:
    rng = random.Random(5)
    first = bytes(rng.randrange(256) for _ in range(20000))
    objects = [first]
    for _ in range(11):
        other = bytearray(objects[-1])
        for _ in range(20):
            other[rng.randrange(len(other))] ^= 0xFF
        objects.append(bytes(other))
    compressed = compress_objects(objects)
    assert sum(len(s) for s, _ in compressed) < 0.35 * sum(map(len, objects))
    depth: list[int] = []
    for _, base in compressed:
        depth.append(0 if base is None else depth[base] + 1)
    assert max(depth) <= MAX_DEPTH
