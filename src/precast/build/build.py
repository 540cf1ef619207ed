"""Building a family: enumerate, compile, assemble, write the pack, link the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

import precast
from precast.build.assemble import BuildError, DeviceNames, ObjectPool, OperatorAssembly, Selection
from precast.build.enumerate import specializations
from precast.compile.cache import CompileCache, default_cache_folder
from precast.compile.job import CompileJob, CompileResult, cache_key
from precast.compile.pool import DEFAULT_TIMEOUT, CompileTally, compile_all
from precast.compile.triton_compile import scrub_environment, triton_version
from precast.describe.bind import BoundFamily, bind_family
from precast.describe.load import FamilyLocation, load_family
from precast.dispatch.tables import TunedTables
from precast.pack import model as m
from precast.targets import Target

__all__ = ["BuildOptions", "BuiltPack", "bound_family", "check_selection", "make_pack"]

Progress = Callable[[CompileTally, CompileJob, CompileResult], None]


@dataclass
class BuildOptions:
    """How to build.

    Attributes:
        targets: what to compile for.
        selection: which features and types; all by default.
        workers: compile processes; 0 for one a processor.
        timeout: seconds that one compile may take.
        cache: folder of the compile cache; the user's by default.
        ptx: also keep PTX.
        executor: any executor for the compiles instead of local processes.
        tuned: what measurements chose: by operator, then by specialization and target.
        all_configs: build every config of every plan, for tuning.
    """

    targets: Sequence[Target]
    selection: Selection = field(default_factory=Selection)
    workers: int = 0
    timeout: float = DEFAULT_TIMEOUT
    cache: Path | None = None
    ptx: bool = False
    executor: Executor | None = None
    tuned: Mapping[str, Mapping[tuple[int, str], TunedTables]] = field(default_factory=dict)
    all_configs: bool = False


@dataclass
class BuiltPack:
    """A pack, and what came of its compiles."""

    pack: m.Pack
    tally: CompileTally
    failures: list[tuple[CompileJob, CompileResult]]


def bound_family(family: str | Path, *, interpret: bool = False) -> tuple[BoundFamily, FamilyLocation]:
    """Loads and binds a family by folder or name; raises `FamilyError` or `DescriptionError`.

    With `interpret`, its kernels are for Triton's interpreter instead of its compiler.
    """
    scrub_environment()
    if interpret:
        os.environ["TRITON_INTERPRET"] = "1"
    described, location = load_family(family)
    return bind_family(described, str(location.folder / "family.py")), location


def check_selection(bound: BoundFamily, selection: Selection) -> None:
    """Raises `BuildError` if a selection names what the family doesn't have."""
    known: dict[str, set[str]] = {}
    for operator in bound.operators:
        for name, values in operator.types.items():
            known.setdefault(name, set()).update(values)
        for name, f in operator.features.items():
            known.setdefault(name, set()).update(str(v) for v in f.values)
    for name, allowed in selection.allowed.items():
        if name not in known:
            raise BuildError(f"{bound.name} has no feature or type {name!r}; it has {', '.join(sorted(known))}")
        if unknown := sorted(allowed - known[name]):
            raise BuildError(f"{name} is never {', '.join(unknown)}; it may be {', '.join(sorted(known[name]))}")


def ptx_target(targets: Sequence[Target]) -> Target:
    """The target whose PTX newer GPUs can run: the newest that is not architecture-specific.

    Raises:
        BuildError: if there is none.
    """
    portable = [t for t in targets if t.vendor == "nvidia" and not t.arch_specific]
    if not portable:
        raise BuildError(
            "none of the targets has PTX that newer GPUs can run (from sm_90 on, Triton compiles for one architecture "
            "alone): add sm_80, sm_86 or sm_89"
        )
    return max(portable, key=lambda t: t.capability)


def make_pack(
    bound: BoundFamily, location: FamilyLocation, options: BuildOptions, progress: Progress | None = None
) -> BuiltPack:
    """Compiles what a family needs for its targets and assembles the pack.

    A config that fails to compile is left out, the next one takes its place, and the failure is reported in
    the result. Interrupted, it goes on where it was, since each result is cached.

    Raises:
        BuildError: if an expression of the description is wrong, or nothing compiled.
    """
    version = triton_version()
    check_selection(bound, options.selection)
    cache = CompileCache(options.cache or default_cache_folder())
    results: dict[str, CompileResult] = {}
    job_of: dict[str, CompileJob] = {}

    def lookup(job: CompileJob) -> CompileResult | None:
        return results.get(cache_key(job))

    ptx = ptx_target(options.targets) if options.ptx else None
    assemblies = [
        OperatorAssembly(o, location, version, options.selection, ptx, options.tuned.get(o.name), options.all_configs)
        for o in bound.operators
    ]
    specs = [specializations(o) for o in bound.operators]
    tally = CompileTally()
    while True:
        pending: dict[str, CompileJob] = {}
        for assembly, spec_list in zip(assemblies, specs, strict=True):
            for target in options.targets:
                for lowered in assembly.jobs(spec_list, target, lookup):
                    key = cache_key(lowered.job)
                    if key not in results:
                        pending[key] = lowered.job
        if not pending:
            break
        before = CompileTally(tally.total, tally.cached, tally.compiled, tally.failed, tally.compile_seconds)

        def report(part: CompileTally, job: CompileJob, result: CompileResult, base: CompileTally = before) -> None:
            tally.total = base.total + part.total
            tally.cached = base.cached + part.cached
            tally.compiled = base.compiled + part.compiled
            tally.failed = base.failed + part.failed
            tally.compile_seconds = base.compile_seconds + part.compile_seconds
            if progress:
                progress(tally, job, result)

        jobs = list(pending.values())
        done = compile_all(
            jobs, cache, workers=options.workers, timeout=options.timeout, executor=options.executor, progress=report
        )
        results.update(zip(pending, done, strict=True))
        job_of.update(pending)
    failures = [(job_of[k], r) for k, r in results.items() if not r.ok]
    objects, devices = ObjectPool(), DeviceNames()
    operators = tuple(
        a.assemble(s, list(options.targets), lookup, objects, devices) for a, s in zip(assemblies, specs, strict=True)
    )
    _refuse_empty(operators, failures)
    notes = tuple(f"{r.status}: {j.label}: {r.reason.splitlines()[0] if r.reason else ''}" for j, r in failures)
    names = [t.name for t in options.targets]
    if ptx is not None:
        names.append(ptx.name.replace("sm_", "compute_"))
    pack = m.Pack(
        bound.name,
        precast.__version__,
        version,
        tuple(names),
        tuple(devices.names),
        tuple(objects.objects),
        operators,
        notes,
    )
    return BuiltPack(pack, tally, failures)


def _refuse_empty(operators: Iterable[m.Operator], failures: list[tuple[CompileJob, CompileResult]]) -> None:
    built = m.SpecializationStatus.BUILT
    if any(s.status == built for o in operators for t in o.targets for s in t.specializations):
        return
    first = failures[0][1].reason if failures else "every combination is excluded for these targets"
    raise BuildError(f"nothing could be built: {first}")
