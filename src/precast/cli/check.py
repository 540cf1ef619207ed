"""`precast check`."""

from __future__ import annotations


def check(family: str, /) -> int:
    """Check."""
    return 0
