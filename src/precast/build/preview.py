"""What a build would make, and an estimate of its time and size, before anything is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from precast.build.assemble import OperatorAssembly, Selection
from precast.build.build import bound_family, check_selection
from precast.build.enumerate import specializations, why_excluded
from precast.compile.cache import CompileCache, default_cache_folder
from precast.compile.job import CompileJob, CompileResult, cache_key
from precast.compile.pool import default_workers
from precast.compile.triton_compile import triton_version
from precast.targets import Target

__all__ = ["OperatorPreview", "Preview", "preview_family"]

TYPICAL_SECONDS = 0.5
TYPICAL_BYTES = 14_000
STORED_SHARE = 0.25
"""Where nothing like it is in the cache: a compile's seconds, a code object's bytes, and the share that
compression leaves."""


@dataclass(frozen=True)
class OperatorPreview:
    """One operator for one target."""

    operator: str
    target: str
    specializations: int
    excluded: int
    configs: int
    code_objects: int
    cached: int
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Preview:
    """All operators, and the sums."""

    family: str
    rows: tuple[OperatorPreview, ...]
    seconds: float
    bytes: int
    code_objects: int
    cached: int
    workers: int


def preview_family(
    family: str | Path,
    targets: tuple[Target, ...],
    selection: Selection | None = None,
    *,
    workers: int = 0,
    cache: Path | None = None,
) -> Preview:
    """Enumerates a build. Times and sizes of what is in the cache are known, the others are estimated from
    those of the same kernel, or from typical ones.

    Raises:
        FamilyError, DescriptionError, BuildError: as a build would.
    """
    selection = selection or Selection()
    bound, location = bound_family(family)
    check_selection(bound, selection)
    store = CompileCache(cache or default_cache_folder())
    known: dict[str, CompileResult | None] = {}

    def lookup(job: CompileJob) -> CompileResult | None:
        key = cache_key(job)
        if key not in known:
            known[key] = store.get(key)
        return known[key]

    rows = []
    version = triton_version()
    workers = workers or default_workers()
    for operator in bound.operators:
        assembly = OperatorAssembly(operator, location, version, selection)
        specs = [s for s in specializations(operator) if selection.takes(s)]
        for target in targets:
            built = [s for s in specs if why_excluded(operator, s, target) is None]
            jobs = {cache_key(v.job): v.job for v in assembly.jobs(built, target, lookup)}
            configs = {(j.kernel.qualname, j.options, tuple(c for c in j.constants)) for j in jobs.values()}
            found = {k: r for k in jobs if (r := known.get(k)) is not None}
            seconds = [r.seconds for r in found.values()]
            sizes = [len(r.code) for r in found.values() if r.ok]
            mean_seconds = sum(seconds) / len(seconds) if seconds else TYPICAL_SECONDS
            mean_bytes = sum(sizes) / len(sizes) if sizes else TYPICAL_BYTES
            missing = len(jobs) - len(found)
            rows.append(
                OperatorPreview(
                    operator.name, target.name, len(built), len(specs) - len(built), len(configs), len(jobs),
                    len(found), missing * mean_seconds / workers,
                    int((sum(sizes) + missing * mean_bytes) * STORED_SHARE),
                )
            )  # fmt: skip
    return Preview(
        bound.name, tuple(rows), sum(r.seconds for r in rows), sum(r.bytes for r in rows),
        sum(r.code_objects for r in rows), sum(r.cached for r in rows), workers,
    )  # fmt: skip
