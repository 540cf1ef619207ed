"""Assembling: bound operators and compile results to the pack's tables."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from precast.build.configs import BuildError, PlanChoice, all_choices, plan_choices, static_choices
from precast.build.enumerate import Choice, Specialization, choice_values, why_excluded
from precast.build.interface import make_arguments, make_checks, make_features, make_key, make_types
from precast.build.lower import LoweredKernel, lower, workspace_bytes
from precast.build.sources import plan_source
from precast.build.tables import OperatorTables
from precast.build.variants import class_mask, make_variant
from precast.compile.job import CompileJob, CompileResult
from precast.describe.alignment import alignments_of
from precast.describe.bind import BoundKernel, BoundOperator
from precast.describe.expression import Expression, as_expression
from precast.describe.load import FamilyLocation
from precast.describe.namespace import TRACE_ERRORS, call
from precast.dispatch.tables import TunedTable, TunedTables
from precast.pack import model as m
from precast.targets import Target

__all__ = ["BuildError", "DeviceNames", "ObjectPool", "OperatorAssembly", "Selection"]


@dataclass(frozen=True)
class Selection:
    """Which part of a family is built: features and types by name to the allowed values; all others whole."""

    allowed: dict[str, frozenset[str]] = field(default_factory=dict)

    def takes(self, spec: Specialization) -> bool:
        """Whether a specialization is in the selection."""
        values = {**spec.types, **spec.features}
        return all(str(values[n]) in allowed for n, allowed in self.allowed.items() if n in values)


class ObjectPool:
    """Code objects by content: identical ones once."""

    def __init__(self) -> None:
        self.objects: list[m.CodeObject] = []
        self._index: dict[tuple[m.CodeKind, bytes], int] = {}

    def add(self, kind: m.CodeKind, code: bytes) -> int:
        """Index of a code object."""
        digest = hashlib.sha256(code).digest()
        if (kind, digest) not in self._index:
            self._index[kind, digest] = len(self.objects)
            self.objects.append(m.CodeObject(digest, kind, code))
        return self._index[kind, digest]


class DeviceNames:
    """Names of the devices that tables are for, each once."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def add(self, name: str) -> int:
        """Index of a device."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)


def _kernels(wanted: Iterable[PlanChoice]) -> Iterator[tuple[BoundKernel, Choice]]:
    """Each kernel with each of its configs, once."""
    seen = set()
    for choice in wanted:
        for kernel, config in zip(choice.plan.kernels, choice.configs, strict=True):
            if (id(kernel), config.text) not in seen:
                seen.add((id(kernel), config.text))
                yield kernel, config


Lookup = Callable[[CompileJob], CompileResult | None]


class OperatorAssembly:
    """One operator: asks for compile jobs until every specialization is settled, then makes its tables."""

    def __init__(
        self,
        operator: BoundOperator,
        location: FamilyLocation,
        triton_version: str,
        selection: Selection,
        ptx_target: Target | None = None,
        tuned: Mapping[tuple[int, str], TunedTables] | None = None,
        all_configs: bool = False,
    ) -> None:
        self.operator = operator
        self.location = location
        self.triton_version = triton_version
        self.selection = selection
        self.ptx_target = ptx_target
        self.tuned = tuned or {}
        self.all_configs = all_configs
        self._all: dict[tuple[int, str], list[PlanChoice]] = {}
        self._lowered: dict[tuple[int, int, str, str], tuple[LoweredKernel, ...]] = {}

    def _variants(
        self, kernel: BoundKernel, spec: Specialization, choice: Choice, target: Target
    ) -> tuple[LoweredKernel, ...]:
        """All alignment classes of one kernel for one specialization and config."""
        key = (id(kernel), spec.index, choice.text, target.name)
        if key not in self._lowered:
            try:
                where = (target, self.location, self.triton_version, target == self.ptx_target)
                self._lowered[key] = tuple(
                    lower(self.operator, kernel, spec, choice, alignment, *where)
                    for alignment in alignments_of(self.operator, kernel)
                )
            except TRACE_ERRORS as error:
                raise BuildError(f"{self.operator.name}.{kernel.label} ({spec.text} {choice.text}): {error}") from error
        return self._lowered[key]

    def _complete(
        self, spec: Specialization, target: Target, lookup: Lookup, kernel: BoundKernel, choice: Choice
    ) -> bool | None:
        results = [lookup(v.job) for v in self._variants(kernel, spec, choice, target)]
        if any(r is not None and not r.ok for r in results):
            return False
        return None if any(r is None for r in results) else True

    def _wanted(self, spec: Specialization, target: Target, lookup: Lookup) -> list[PlanChoice]:
        """Configs to build: those that measurements chose, then the static default's; or all, for tuning."""
        if self.all_configs:
            return all_choices(self.operator, spec, target)
        complete = functools.partial(self._complete, spec, target, lookup)
        return [*self._tuned(spec, target), *static_choices(self.operator, spec, target, complete)]

    def _tuned(self, spec: Specialization, target: Target) -> list[PlanChoice]:
        tuned = self.tuned.get((spec.index, target.name))
        return [] if tuned is None else [c for c in self._known(spec, target, tuned) if c is not None]

    def _known(self, spec: Specialization, target: Target, tuned: TunedTables) -> list[PlanChoice | None]:
        place = (spec.index, target.name)
        if place not in self._all:
            self._all[place] = all_choices(self.operator, spec, target)
        return plan_choices(self._all[place], tuned.configs)

    def trace(self, spec: Specialization, target: Target) -> None:
        """Traces every lambda that a specialization needs, compiling nothing.

        Raises:
            BuildError: naming the operator, the kernel and what is wrong.
        """
        if why_excluded(self.operator, spec, target) is not None:
            return
        for kernel, choice in _kernels(self._wanted(spec, target, lambda job: None)):
            values = choice_values(self.operator, kernel, spec, choice)
            trace_grid(self.operator, kernel, spec, values)
            for b in kernel.bindings:
                if b.kind == "workspace":
                    self._workspace(kernel, b, values, spec)
            self._variants(kernel, spec, choice, target)

    def _workspace(self, kernel: BoundKernel, b: Any, values: dict[str, Any], spec: Specialization) -> Expression:
        try:
            return as_expression(workspace_bytes(b.declaration, values, spec))
        except TRACE_ERRORS as error:
            where = f"{self.operator.name}.{kernel.label}.{b.parameter.name}"
            raise BuildError(f"{where} ({spec.text}): {error}") from error

    def jobs(self, specs: Iterable[Specialization], target: Target, lookup: Lookup) -> list[LoweredKernel]:
        """What must be compiled as far as is known now; ask again when the results are there."""
        needed: list[LoweredKernel] = []
        for spec in specs:
            if not self.selection.takes(spec) or why_excluded(self.operator, spec, target) is not None:
                continue
            for kernel, choice in _kernels(self._wanted(spec, target, lookup)):
                needed += self._variants(kernel, spec, choice, target)
        return needed

    def assemble(
        self,
        specs: list[Specialization],
        targets: list[Target],
        lookup: Lookup,
        objects: ObjectPool,
        devices: DeviceNames,
    ) -> m.Operator:
        """The operator's part of the pack."""
        tables = OperatorTables(self.operator)
        arguments = make_arguments(self.operator, tables)
        checks = make_checks(self.operator, tables)
        types = make_types(self.operator, tables)
        features = make_features(self.operator, tables)
        key = make_key(self.operator, tables)
        made = []
        for i, target in enumerate([*targets, *([] if self.ptx_target is None else [self.ptx_target])]):
            assembly = _TargetAssembly(self, tables, target, lookup, objects, devices, ptx=i == len(targets))
            made.append(assembly.make(i, specs))
        return m.Operator(
            self.operator.name, self.operator.doc, arguments, tuple(tables.slots), tuple(tables.expressions), checks,
            types, features, key, tuple(tables.conditions), tuple(made),
        )  # fmt: skip


def trace_grid(
    operator: BoundOperator, kernel: BoundKernel, spec: Specialization, values: dict[str, Any]
) -> tuple[Expression, Expression, Expression]:
    """The three sizes of a kernel's grid; raises `BuildError` if its function is wrong."""
    try:
        grid = call(kernel.kernel.grid, values)
        sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        if not 1 <= len(sizes) <= 3:
            raise BuildError(f"the grid has {len(sizes)} sizes; one to three are possible")
        x, y, z = (as_expression(size) for size in (*sizes, 1, 1)[:3])
        return x, y, z
    except TRACE_ERRORS as error:
        raise BuildError(f"{operator.name}.{kernel.label}.grid ({spec.text}): {error}") from error


class _TargetAssembly:
    def __init__(
        self,
        parent: OperatorAssembly,
        tables: OperatorTables,
        target: Target,
        lookup: Lookup,
        objects: ObjectPool,
        devices: DeviceNames,
        ptx: bool = False,
    ) -> None:
        self.parent, self.tables, self.target, self.lookup, self.objects = parent, tables, target, lookup, objects
        self.ptx = ptx
        self.devices = devices
        self.candidates: list[m.Candidate] = []
        self._candidate_index: dict[m.Candidate, int] = {}
        self.variants: list[m.Variant] = []
        self._variant_index: dict[m.Variant, int] = {}
        self.reasons: list[str] = []

    def make(self, target_index: int, specs: list[Specialization]) -> m.Target:
        made = tuple(self._specialization(spec) for spec in specs)
        return m.Target(target_index, tuple(self.candidates), tuple(self.variants), made)

    def _specialization(self, spec: Specialization) -> m.Specialization:
        operator, status = self.parent.operator, m.SpecializationStatus
        reason = why_excluded(operator, spec, self.target)
        if reason is not None:
            return m.Specialization(status.EXCLUDED, reason)
        if not self.parent.selection.takes(spec):
            return m.Specialization(status.NOT_BUILT, "left out of this build")
        self.reasons = []
        wanted = self.parent._wanted(spec, self.target, self.lookup)
        made = {i: c for i, choice in enumerate(wanted) if (c := self._candidate(choice, spec)) is not None}
        if not made:
            why = "; ".join(dict.fromkeys(self.reasons)) or "no config is for it"
            return m.Specialization(status.FAILED, why)
        index = {i: self._intern_candidate(c) for i, c in made.items()}
        tuned = self.parent.tuned.get((spec.index, self.target.name))
        chosen = len(self.parent._tuned(spec, self.target))
        static = tuple(dict.fromkeys(index[i] for i in made if i >= chosen))
        tables: list[m.Table] = []
        if tuned is not None and not self.parent.all_configs:
            position = (i for i, c in enumerate(self.parent._known(spec, self.target, tuned)) if c is not None)
            places = {number: index[i] for i, number in enumerate(position) if i in made}
            found = (self._table(t, places, static) for t in tuned.tables)
            tables = [t for t in found if t is not None]
        if not tables or tables[-1].device != m.NO_INDEX:
            leaf = m.Node(m.NO_INDEX, 0, 0, 0)
            tables.append(m.Table((leaf,), (m.Leaf(static or tuple(index.values())),)))
        return m.Specialization(status.BUILT, "", tuple(dict.fromkeys(index.values())), tuple(tables))

    def _intern_candidate(self, candidate: m.Candidate) -> int:
        if candidate not in self._candidate_index:
            self._candidate_index[candidate] = len(self.candidates)
            self.candidates.append(candidate)
        return self._candidate_index[candidate]

    def _table(self, tuned: TunedTable, places: dict[int, int], static: tuple[int, ...]) -> m.Table | None:
        """A dispatch table with candidates by their place in this pack; None if none of its configs compiled."""
        leaves = []
        for choices in tuned.leaves:
            first = tuple(places[c] for c in choices if c in places)
            if not first:
                return None
            leaves.append(m.Leaf((*first, *static), len(first)))
        device = m.NO_INDEX if tuned.device is None else self.devices.add(tuned.device)
        fields = tuple(self.tables.expression(e) for e in tuned.fields)
        return m.Table(
            tuned.nodes,
            tuple(leaves),
            fields,
            device,
            tuned.rung,
            tuned.mean_regret,
            tuned.worst_regret,
            tuned.measured,
        )

    def _candidate(self, choice: PlanChoice, spec: Specialization) -> m.Candidate | None:
        operator, plan = self.parent.operator, choice.plan
        workspaces: dict[str, m.Workspace] = {}
        values_of: list[dict[str, Any]] = []
        for kernel, config in zip(plan.kernels, choice.configs, strict=True):
            values = choice_values(operator, kernel, spec, config)
            values_of.append(values)
            for b in kernel.bindings:
                if b.kind == "workspace":
                    size = self.tables.expression(self.parent._workspace(kernel, b, values, spec))
                    known = workspaces.setdefault(b.source, m.Workspace(b.source, size, b.declaration.zero))
                    if known.bytes != size:
                        raise BuildError(
                            f"{operator.name}.{plan.name}: workspace {b.source!r} has another size in {kernel.label}"
                        )
        index = {name: i for i, name in enumerate(workspaces)}
        launches = []
        for kernel, config, values in zip(plan.kernels, choice.configs, values_of, strict=True):
            launch = self._launch(kernel, config, spec, values, index)
            if launch is None:
                return None
            launches.append(launch)
        return m.Candidate(
            plan.name,
            choice.text,
            m.ALWAYS if choice.condition is None else self.tables.expression(choice.condition),
            plan_source(plan),
            tuple(workspaces.values()),
            tuple(launches),
        )

    def _launch(
        self, kernel: BoundKernel, choice: Choice, spec: Specialization, values: dict[str, Any], index: dict[str, int]
    ) -> m.Launch | None:
        sizes = trace_grid(self.parent.operator, kernel, spec, values)
        x, y, z = (self.tables.expression(size) for size in sizes)
        found: list[tuple[int, m.Variant]] = []
        for lowered in self.parent._variants(kernel, spec, choice, self.target):
            result = self.lookup(lowered.job)
            if result is None or not result.ok:
                if result is not None:
                    self.reasons.append(f"{kernel.label} {choice.text}: {result.status}: {result.reason}")
                continue
            kind = m.CodeKind.CUBIN if self.target.vendor == "nvidia" else m.CodeKind.HSACO
            code = self.objects.add(*((m.CodeKind.PTX, result.ptx) if self.ptx else (kind, result.code)))
            variant = make_variant(lowered, result, code, self.tables, index, kernel.label, values)
            found.append((class_mask(lowered, self.tables), variant))
        kept = [v for i, v in enumerate(found) if not _covered(v, found[:i], found[i + 1 :])]
        return m.Launch(tuple(m.LaunchVariant(mask, self._intern(v)) for mask, v in kept), (x, y, z)) if kept else None

    def _intern(self, variant: m.Variant) -> int:
        if variant not in self._variant_index:
            self._variant_index[variant] = len(self.variants)
            self.variants.append(variant)
        return self._variant_index[variant]


def _covered(
    one: tuple[int, m.Variant], before: list[tuple[int, m.Variant]], after: list[tuple[int, m.Variant]]
) -> bool:
    """Whether a variant is never needed: an earlier one asks no more, or a later one is the same code."""
    mask, variant = one
    if any(other & ~mask == 0 for other, _ in before):
        return True
    code = replace(variant, class_name="")
    return any(other != mask and other & ~mask == 0 and replace(v, class_name="") == code for other, v in after)
