"""`precast check`."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from precast.check.problems import Outcome
from precast.cli.output import console, print_json

__all__ = ["check"]


def check(
    subject: str,
    /,
    *,
    library: Path | None = None,
    family: str | None = None,
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative="")] = False,
    json: bool = False,
) -> int:
    """Check kernels or a built library against the family's references.

    A family is run in Triton's interpreter on the CPU; a library (or `--library`) on the GPU that is here.

    Parameters
    ----------
    subject
        A family (folder or name), or a library that was built of one.
    library
        With a family: check this library instead if there is a GPU.
    family
        With a library: where its references are, if precast doesn't ship the family.
    verbose
        List every problem, not only the bad ones.
    json
        Print JSON.
    """
    is_library = subject.endswith((".so", ".pack"))
    path = Path(subject) if is_library else library if library is not None and _gpu_is_here() else None
    if path is not None:
        from precast.check.library import check_library

        outcomes = check_library(path, family if is_library else subject)
        where = f"{path} on the GPU"
    else:
        from precast.check.family import check_family

        outcomes = check_family(subject)
        where = f"{subject} on the CPU, in Triton's interpreter"
    return _report(outcomes, where, verbose, json)


def _gpu_is_here() -> bool:
    """Whether torch is installed and sees a GPU; asked in another process, since torch is slow to import."""
    script = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    return done.returncode == 0


def _report(outcomes: Iterator[Outcome], where: str, verbose: bool, json: bool) -> int:
    found = []
    for outcome in outcomes:
        found.append(outcome)
        if not json and (verbose or not outcome.ok):
            text = f"{outcome.status}: {outcome.operator} [{outcome.problem}] {outcome.way}: {outcome.detail}"
            console.print(text, markup=False)
    bad = [o for o in found if not o.ok]
    if json:
        print_json([vars(o) for o in found])
    else:
        counts = Counter(o.status for o in found)
        console.print(f"checked {where}: " + ", ".join(f"{n} {status}" for status, n in counts.items()), markup=False)
    return 1 if bad or not found else 0
