"""Reading a selection of features and types from texts such as ``HEAD_DIM=64,128``."""

from __future__ import annotations

from collections.abc import Sequence

from precast.build.assemble import BuildError, Selection
from precast.describe.dtypes import DTYPES

__all__ = ["parse_selection"]


def parse_selection(texts: Sequence[str]) -> Selection:
    """A selection from ``NAME=value,value`` texts, each of which may hold several, separated by spaces.

    Raises:
        BuildError: if one has another form.
    """
    short = {d.long_name: d.name for d in DTYPES.values()}
    allowed: dict[str, frozenset[str]] = {}
    for text in (part for given in texts for part in given.split()):
        name, equals, values = text.partition("=")
        listed = [v.strip() for v in values.split(",") if v.strip()]
        if not equals or not name or not listed:
            raise BuildError(f"{text!r} selects nothing: write NAME=value,value, for example HEAD_DIM=64,128")
        allowed[name] = frozenset(short.get(v, v) for v in listed)
    return Selection(allowed)
