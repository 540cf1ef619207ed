"""Measurements to dispatch tables: the configs that are kept, and the decision between them, for each device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from precast.build.assemble import trace_grid
from precast.build.configs import PlanChoice, all_choices
from precast.build.enumerate import Specialization, choice_values, why_excluded
from precast.build.interface import key_expressions
from precast.build.sources import plan_source
from precast.database.records import Evidence, Measurement
from precast.describe.bind import BoundFamily, BoundOperator
from precast.describe.expression import Expression, as_expression, evaluate
from precast.dispatch.evaluate import evaluate as evaluate_dispatch
from precast.dispatch.select import select
from precast.dispatch.tables import TunedTable, TunedTables
from precast.dispatch.timings import Gathered, Group, gather
from precast.dispatch.tree import Derived, grow
from precast.pack.model import NO_INDEX, Rung
from precast.targets import TARGETS, Target

__all__ = ["Dispatch", "TableReport", "make_dispatch"]

FEWEST = 9
"""Problems from which on a third is held out to measure regret."""

MAX_DERIVED = 12


@dataclass(frozen=True)
class TableReport:
    """How one table came about.

    Attributes:
        problems, configs: measured.
        kept: configs that the table chooses from.
        mean_regret, worst_regret: on held-out problems; negative if not known.
        note: what the user should know.
    """

    operator: str
    specialization: str
    target: str
    device: str
    rung: Rung
    problems: int = 0
    configs: int = 0
    kept: int = 0
    mean_regret: float = -1.0
    worst_regret: float = -1.0
    note: str = ""


@dataclass
class Dispatch:
    """Tables by operator, then by specialization and target; and how each came about."""

    tuned: dict[str, dict[tuple[int, str], TunedTables]] = field(default_factory=dict)
    reports: list[TableReport] = field(default_factory=list)


def make_dispatch(
    bound: BoundFamily,
    specs: Mapping[str, Iterable[Specialization]],
    targets: Sequence[Target],
    records: Mapping[str, tuple[Iterable[Measurement], Iterable[Evidence]]],
    *,
    max_regret: float = 0.03,
    allow_unverified: bool = False,
) -> Dispatch:
    """Chooses configs by what was measured; deterministic: the same records in any order give the same tables.

    Args:
        specs: by operator: those to be built.
        records: by operator: measurements and evidence, of whatever target.
        max_regret: see `precast.dispatch.select`.
        allow_unverified: use configs that passed no gate here.
    """
    result = Dispatch()
    for operator in bound.operators:
        measurements, evidence = records.get(operator.name, ((), ()))
        sources = {p.name: plan_source(p) for p in operator.plans}
        groups = gather(measurements, evidence, list(operator.key), sources, allow_unverified=allow_unverified)
        for spec in specs[operator.name]:
            for target in targets:
                if why_excluded(operator, spec, target) is not None:
                    continue
                tables = _Chooser(operator, spec, target, groups, max_regret, result.reports).run()
                if tables is not None:
                    result.tuned.setdefault(operator.name, {})[spec.index, target.name] = tables
    return result


class _Chooser:
    """One specialization for one target."""

    def __init__(
        self,
        operator: BoundOperator,
        spec: Specialization,
        target: Target,
        groups: Mapping[Group, Gathered],
        max_regret: float,
        reports: list[TableReport],
    ) -> None:
        self.operator, self.spec, self.target, self.max_regret = operator, spec, target, max_regret
        types = tuple(sorted(spec.types.items()))
        features = tuple(sorted((k, str(v)) for k, v in spec.features.items()))
        self.groups = {g[:2]: found for g, found in groups.items() if g[2:] == (types, features)}
        self.choices = {(c.plan.name, c.text): c for c in all_choices(operator, spec, target)}
        self.reports = reports
        self.configs: list[tuple[str, str]] = []

    def _report(self, device: str, rung: Rung, **more: object) -> None:
        where = (self.operator.name, self.spec.text, self.target.name, device, rung)
        self.reports.append(replace(TableReport(*where), **more))  # type: ignore[arg-type]

    def run(self) -> TunedTables | None:
        """Tables for the devices that were measured, and one for any other."""
        own = {device: g for (target, device), g in self.groups.items() if target == self.target.name}
        tables = []
        for device, found in sorted(own.items()):
            rung = Rung.NEAREST_PROBLEM if found.stale else Rung.MEASURED
            table = self._table(found, device, rung)
            if table is not None:
                tables.append(table)
        if tables:
            widest = max(tables, key=lambda t: (len(own[t.device or ""].timings.keys), t.device))
            tables.append(replace(widest, device=None, rung=Rung.OTHER_DEVICE, measured=()))
            return TunedTables(tuple(self.configs), tuple(tables))
        for (name, device), found in self._siblings():
            table = self._table(found, device, Rung.SIBLING_TARGET, f"measured on {name}")
            if table is not None:
                return TunedTables(tuple(self.configs), (replace(table, device=None, measured=()),))
        self._report("", Rung.STATIC_DEFAULT)
        return None

    def _siblings(self) -> list[tuple[tuple[str, str], Gathered]]:
        """What was measured on other targets of the vendor, the most alike first."""
        near = []
        for place, found in self.groups.items():
            other = TARGETS.get(place[0])
            if other is not None and other.vendor == self.target.vendor and other != self.target:
                near.append((*_distance(self.target.name, other.name), place, found))
        return [(place, found) for *_, place, found in sorted(near, key=lambda n: n[:3])]

    def _table(self, found: Gathered, device: str, rung: Rung, note: str = "") -> TunedTable | None:
        have = [i for i, name in enumerate(found.configs) if name in self.choices]
        notes = [note] if note else []
        if len(have) < len(found.configs):
            notes.append(f"{len(found.configs) - len(have)} measured configs are not in the description")
        if found.stale:
            notes.append("kernel sources have changed since: measure again (precast tune --stale)")
        if found.unverified:
            notes.append(f"{found.unverified} configs not verified here")
        if found.left_out:
            notes.append(f"{found.left_out} configs left out: no proof (--allow-unverified uses them)")
        timings = found.timings
        timings = replace(
            timings, configs=tuple(timings.configs[i] for i in have), times=timings.times[:, have], bytes=None
        )
        usable = [i for i, row in enumerate(timings.times) if (row < float("inf")).any()]
        if not have or not usable:
            return None
        timings = timings.problems(usable)
        names = [found.configs[i] for i in have]
        mean = worst = -1.0

        def derive(kept: tuple[int, ...]) -> Derived | None:
            return self._derived([self.choices[names[j]] for j in kept])[0]

        if len(timings.keys) >= FEWEST:
            held = evaluate_dispatch(timings, max_regret=self.max_regret, derive=derive).held_out["precast"]
            mean, worst = held.mean, held.worst
        selected = select(timings, max_regret=self.max_regret)
        derived, programs = self._derived([self.choices[names[j]] for j in selected.configs])
        tree = grow(timings, selected.configs, derived=derived, max_regret=self.max_regret)
        for j in selected.configs:
            if names[j] not in self.configs:
                self.configs.append(names[j])
        place = {j: self.configs.index(names[j]) for j in selected.configs}
        fields = [*key_expressions(self.operator).values(), *programs]
        used = sorted(tree.used)
        nodes = tuple(n if n.field == NO_INDEX else replace(n, field=used.index(n.field)) for n in tree.nodes)
        self._report(
            device, rung, problems=len(timings.keys), configs=len(found.configs), kept=len(selected.configs),
            mean_regret=mean, worst_regret=worst, note="; ".join(notes),
        )  # fmt: skip
        return TunedTable(
            device,
            rung,
            nodes,
            tuple(tuple(place[j] for j in leaf) for leaf in tree.lists),
            tuple(fields[i] for i in used),
            mean,
            worst,
            tuple(sorted(timings.keys)) if rung == Rung.MEASURED else (),
        )

    def _derived(self, kept: Sequence[PlanChoice]) -> tuple[Derived | None, list[Expression]]:
        """How many programs each kept config starts, as fields to split on, where the key alone tells that."""
        programs: dict[str, Expression] = {}
        for choice in kept:
            kernel, config = choice.plan.kernels[0], choice.configs[0]
            names = choice_values(self.operator, kernel, self.spec, config)
            x, y, z = trace_grid(self.operator, kernel, self.spec, names)
            product = as_expression(x * y * z)
            programs.setdefault(str(product), product)
        key = key_expressions(self.operator)
        known = {str(e) for e in key.values()}
        derived = [e for text, e in sorted(programs.items()) if text not in known][:MAX_DERIVED]
        symbols = {s for e in (*key.values(), *derived) for s in e.symbols()}

        def problem(values: Sequence[int]) -> dict[str, int] | None:
            return _problem_of(key, dict(zip(key, values, strict=True)), symbols)

        if not derived or problem([7 + i for i in range(len(key))]) is None:
            return None, []

        def values(given: tuple[int, ...]) -> list[int]:
            found = problem(given)
            assert found is not None
            return [evaluate(e, found) for e in derived]

        return Derived(tuple(f"programs {i}" for i in range(len(derived))), values), derived


def _problem_of(key: Mapping[str, Expression], values: Mapping[str, int], symbols: set[str]) -> dict[str, int] | None:
    """A call that has a key: each field's value goes to its first symbol that is free, the others are 1."""
    found: dict[str, int] = {}
    for name, expression in sorted(key.items(), key=lambda k: (len(k[1].symbols()), k[0])):
        free = sorted(s for s in expression.symbols() if s not in found)
        found.update(dict.fromkeys(free, 1))
        if free:
            found[free[0]] = values[name]
    found = {**dict.fromkeys(symbols, 1), **found}
    held = all(evaluate(e, found) == values[name] for name, e in key.items())
    return found if held else None


def _distance(one: str, other: str) -> tuple[int, str]:
    """How unlike two targets of a vendor are: by their numbers."""
    return abs(int(one[3:], 16) - int(other[3:], 16)), other
