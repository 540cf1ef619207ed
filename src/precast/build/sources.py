"""Digests of the kernel sources that measurements speak for."""

from __future__ import annotations

import hashlib
from pathlib import Path

from precast.compile.triton_compile import source_hash, triton_version
from precast.describe.bind import BoundPlan

__all__ = ["plan_source", "plan_sources"]


def plan_source(plan: BoundPlan) -> str:
    """Digest of a plan's kernels, in the order of their launches, with all that they call."""
    digest = hashlib.sha256()
    for kernel in plan.kernels:
        digest.update(source_hash(kernel.function.jit).encode() + b"\n")
    return digest.hexdigest()[:16]


def plan_sources(family: str | Path) -> tuple[dict[tuple[str, str], str], str]:
    """What a family's plans would be built from now: digest by operator and plan, and the Triton version."""
    from precast.build.build import bound_family

    bound, _ = bound_family(family)
    sources = {(o.name, p.name): plan_source(p) for o in bound.operators for p in o.plans}
    return sources, triton_version()
