"""Reading what was measured, for a build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from precast.build.assemble import Selection
from precast.build.enumerate import specializations
from precast.build.tuned import Dispatch, make_dispatch
from precast.database.merge import open_any
from precast.describe.bind import BoundFamily
from precast.errors import UserError
from precast.targets import Target

__all__ = ["Tuning", "dispatch_from", "share"]


@dataclass(frozen=True)
class Tuning:
    """Where the measurements are, and how they are used.

    Attributes:
        database: a database, a results file or a folder of shards.
        max_regret: how much slower than the best config known a kept one may be, as a share.
        allow_unverified: use configs that passed no gate here.
    """

    database: Path
    max_regret: float = 0.03
    allow_unverified: bool = False


def share(text: str) -> float:
    """A share such as "3%" or "0.03".

    Raises:
        UserError: if it is none between 0 and 10.
    """
    number = text.strip().removesuffix("%")
    try:
        value = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10:
        raise UserError(f"{text!r} is not a share: write 3% or 0.03")
    return value


def dispatch_from(bound: BoundFamily, targets: tuple[Target, ...], selection: Selection, tuning: Tuning) -> Dispatch:
    """Dispatch tables of a family from what was measured.

    Raises:
        UserError: if the database can't be read.
    """
    database, bad = open_any(tuning.database)
    if bad:
        more = f" and {len(bad) - 1} more bad lines" if len(bad) > 1 else ""
        raise UserError(f"{tuning.database}: {bad[0]}{more}")
    with database:
        records = {
            o.name: (
                list(database.measurements(family=bound.name, operator=o.name)),
                list(database.evidence(family=bound.name, operator=o.name)),
            )
            for o in bound.operators
        }
    specs = {o.name: [s for s in specializations(o) if selection.takes(s)] for o in bound.operators}
    return make_dispatch(
        bound, specs, targets, records, max_regret=tuning.max_regret, allow_unverified=tuning.allow_unverified
    )
