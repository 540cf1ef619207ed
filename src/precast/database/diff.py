"""What two databases don't share, and where their winners differ."""

from __future__ import annotations

from dataclasses import dataclass

from precast.database.database import Best, Database
from precast.database.records import Record, record_id

__all__ = ["Difference", "WinnerChange", "diff"]


@dataclass(frozen=True)
class WinnerChange:
    """A problem whose best config is another one in the other database; None if it has none."""

    first: Best | None
    second: Best | None

    @property
    def either(self) -> Best:
        """One that there is."""
        best = self.first or self.second
        assert best is not None
        return best


@dataclass(frozen=True)
class Difference:
    """Records of one database only, in order, and winners that differ."""

    only_first: list[Record]
    only_second: list[Record]
    winners: list[WinnerChange]

    def __bool__(self) -> bool:
        return bool(self.only_first or self.only_second or self.winners)


def _only(database: Database, ids: set[str], filters: dict[str, str | None]) -> list[Record]:
    return [r for r in database.records(**filters) if record_id(r) in ids] if ids else []


def diff(first: Database, second: Database, **filters: str | None) -> Difference:
    """Compares two databases.

    Args:
        first, second: the databases.
        filters: family, operator, target, device; all if None.
    """
    a, b = first.ids(), second.ids()
    best_a = {x.place: x for x in first.best(**filters)}
    best_b = {x.place: x for x in second.best(**filters)}
    winners = []
    for place in [*best_a, *(p for p in best_b if p not in best_a)]:
        x, y = best_a.get(place), best_b.get(place)
        if x is None or y is None or (x.plan, x.config) != (y.plan, y.config):
            winners.append(WinnerChange(x, y))
    return Difference(_only(first, a - b, filters), _only(second, b - a, filters), winners)
