"""Checking a family's kernels on the CPU, in Triton's interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from precast.check.problems import Outcome, load_references, problem_text
from precast.errors import UserError
from precast.reference import compare
from precast.targets import find_target

__all__ = ["check_family"]

SEED = 20
TARGET = "sm_90"
"""Its configs and plans are the ones interpreted: it has the most plans."""


def check_family(family: str | Path) -> Iterator[Outcome]:
    """Runs every plan of every operator on every small problem and compares with the reference.

    Raises:
        FamilyError: if the family has no references.
        UserError: if Triton is already imported in compiling mode, which can't be undone.
    """
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        raise UserError("Triton was imported to compile; check a family in a process of its own")
    os.environ["TRITON_INTERPRET"] = "1"
    from precast.build.build import bound_family
    from precast.check.cpu_tensor import allocate
    from precast.check.interpret import Unsupported, plans_for, run_plan

    references, _ = load_references(family)
    bound, _ = bound_family(family, interpret=True)
    target = find_target(TARGET)
    for operator in bound.operators:
        if operator.name not in references:
            yield Outcome(operator.name, "", "", "error", "it has no reference")
            continue
        reference = references[operator.name]
        for problem in reference.problems:
            if problem.get("big"):
                continue
            text = problem_text(problem)
            inputs = reference.inputs(problem, np.random.default_rng(SEED))
            wanted, plain = reference.reference(inputs), reference.naive(inputs)
            magnitudes = reference.magnitudes(inputs)
            outputs = {name: allocate(wanted[name].shape, plain[name].dtype) for name in wanted}
            arguments = {**inputs, **outputs}
            try:
                plans = plans_for(operator, arguments, target)
                for plan in plans:
                    for array in outputs.values():
                        array[...] = np.nan
                    with np.errstate(all="ignore"):
                        run_plan(operator, plan, arguments, target)
                    for name, array in outputs.items():
                        c = compare(array, wanted[name], plain[name], magnitudes.get(name, 0.0))
                        detail = f"{name}: error {c.error:.3g}, allowed {c.allowed:.3g}"
                        yield Outcome(operator.name, text, plan.name, "ok" if c.ok else "wrong", detail)
            except Unsupported as reason:
                yield Outcome(operator.name, text, "", "refused", str(reason))
            except Exception as error:  # a kernel that fails is this problem's outcome
                yield Outcome(operator.name, text, "", "error", f"{type(error).__name__}: {error}")
