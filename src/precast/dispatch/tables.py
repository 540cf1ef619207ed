"""Dispatch tables before they know what was compiled: what selection gives to the build."""

from __future__ import annotations

from dataclasses import dataclass

from precast.describe.expression import Expression
from precast.pack.model import Node, Rung

__all__ = ["TunedTable", "TunedTables"]


@dataclass(frozen=True)
class TunedTable:
    """A decision tree over the tuning key for one device.

    Attributes:
        device: the name that its driver gives; None for any device.
        rung: where the measurements come from.
        nodes: the tree; fields are indices into `fields`, leaves into `leaves`.
        leaves: indices into the configs of the specialization, in order of preference.
        fields: what nodes compare: fields of the tuning key, or what follows from them.
        mean_regret: on held-out problems; negative if not known.
        worst_regret: the same.
        measured: keys that were measured, sorted.
    """

    device: str | None
    rung: Rung
    nodes: tuple[Node, ...]
    leaves: tuple[tuple[int, ...], ...]
    fields: tuple[Expression, ...] = ()
    mean_regret: float = -1.0
    worst_regret: float = -1.0
    measured: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class TunedTables:
    """What measurements chose for one specialization and target.

    Attributes:
        configs: plan and config, by name.
        tables: one a device, then one for any.
    """

    configs: tuple[tuple[str, str], ...]
    tables: tuple[TunedTable, ...]
