"""Which records no longer speak for what would be built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from precast.database.database import Database
from precast.database.records import Measurement, Origin

__all__ = ["StaleMeasurement", "find_stale", "why_stale"]


@dataclass(frozen=True)
class StaleMeasurement:
    """A measurement, and why it is stale."""

    measurement: Measurement
    reason: str


def why_stale(
    operator: str, plan: str, origin: Origin, sources: Mapping[tuple[str, str], str], triton: str
) -> str | None:
    """Why a record is stale, or None.

    | what changed | reason |
    |---|---|
    | the plan is no longer there | "the operator has no such plan" |
    | the source of the plan's kernels | "kernel source changed" |
    | the version of Triton | "measured with Triton 3.6.0, now 3.9.0" |

    An imported record was never measured here: it can't become stale.

    Args:
        operator, plan: what was measured.
        origin: where the record came from.
        sources: (operator, plan) to the hash of its kernel sources now.
        triton: version of Triton now.
    """
    if origin.importer:
        return None
    current = sources.get((operator, plan))
    if current is None:
        return "the operator has no such plan"
    if origin.source != current:
        return "kernel source changed"
    if origin.triton != triton:
        return f"measured with Triton {origin.triton}, now {triton}"
    return None


def find_stale(
    database: Database, family: str, sources: Mapping[tuple[str, str], str], triton: str, **filters: str | None
) -> list[StaleMeasurement]:
    """Stale measurements of a family, in the database's order; arguments as of `why_stale`."""
    found = []
    for m in database.measurements(family=family, **filters):
        reason = why_stale(m.subject.operator, m.subject.plan, m.origin, sources, triton)
        if reason is not None:
            found.append(StaleMeasurement(m, reason))
    return found
