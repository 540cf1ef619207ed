"""Checking a built library on the GPU that is here, against the references; needs torch, and no Triton.

Outputs are poisoned with NaN before each call and lie between guard zones that must stay untouched. Each problem
runs with compact tensors, with padded rows and with addresses that are not 16-byte aligned, so that every
alignment class is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from precast.check.placed import LAYOUTS, PlacedArray, to_numpy
from precast.check.problems import Outcome, load_references, problem_text
from precast.errors import UserError
from precast.reference import Reference, compare
from precast.runtime import Library, Operator, load
from precast.runtime.errors import InvalidArgumentError, UnsupportedError

__all__ = ["check_library"]

SEED = 21


def check_library(path: str | Path, family: str | Path | None = None) -> Iterator[Outcome]:
    """Calls every operator on every problem on this machine's GPU and compares with the references.

    Args:
        path: the library, or a pack.
        family: where its references are; by default the family that precast ships under the library's name.

    Raises:
        UserError: if there is no torch or no GPU.
    """
    try:
        import torch
    except ImportError as error:
        raise UserError("checking a library on a GPU needs torch") from error
    if not torch.cuda.is_available():
        raise UserError("torch sees no GPU here; `precast check FAMILY` checks kernels on the CPU")
    library = load(path)
    references, _ = load_references(family or library.family)
    for name, operator in library.operators.items():
        if name not in references:
            yield Outcome(name, "", "", "error", "it has no reference")
            continue
        for problem in references[name].problems:
            yield from _check_problem(library, operator, references[name], problem, torch)


def _check_problem(
    library: Library, operator: Operator, reference: Reference, problem: Mapping[str, Any], torch: Any
) -> Iterator[Outcome]:
    inputs = reference.inputs(problem, np.random.default_rng(SEED))
    wanted, plain = reference.reference(inputs), reference.naive(inputs)
    magnitudes = reference.magnitudes(inputs)
    text = problem_text(problem)
    for layout in LAYOUTS[: 1 if problem.get("big") and problem.get("dtype") == "fp32" else None]:
        placed = {n: PlacedArray(a, layout, torch) for n, a in inputs.items() if isinstance(a, np.ndarray)}
        outputs = {n: PlacedArray(np.full(wanted[n].shape, np.nan, plain[n].dtype), layout, torch) for n in wanted}
        scalars = {n: v for n, v in inputs.items() if n not in placed}
        arguments = {n: p.view for n, p in {**placed, **outputs}.items()} | scalars
        try:
            operator(**arguments)
            torch.cuda.synchronize()
        except (UnsupportedError, InvalidArgumentError) as error:
            compact = layout is LAYOUTS[0]
            expected = not compact or problem.get("needs")
            yield Outcome(operator.name, text, layout.name, "refused" if expected else "error", str(error))
            continue
        for name, place in outputs.items():
            got = to_numpy(place.view, plain[name].dtype, torch)
            c = compare(got, wanted[name], plain[name], magnitudes.get(name, 0.0))
            detail = f"{name}: error {c.error:.3g}, allowed {c.allowed:.3g}"
            yield Outcome(operator.name, text, layout.name, "ok" if c.ok else "wrong", detail)
        for name, place in {**placed, **outputs}.items():
            if not place.untouched():
                yield Outcome(operator.name, text, layout.name, "guard", f"bytes around {name} were written")
