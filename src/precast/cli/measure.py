"""`precast measure`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from precast.cli.output import console, print_json
from precast.cli.tuning import MeasureFlags, TuningProgress, tell

__all__ = ["measure"]

DEFAULTS = MeasureFlags()


def measure(
    pack: Path,
    /,
    *,
    results: Path,
    family: str | None = None,
    flags: Annotated[MeasureFlags, Parameter(name="*")] = DEFAULTS,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    json: bool = False,
) -> int:
    """Measure a pack of candidates on this machine's GPU; needs torch, but no Triton.

    Each result is appended to the results file at once: interrupted or killed, the same command goes on where it
    was. `precast db merge DB RESULTS` brings the results home.

    Parameters
    ----------
    pack
        What `precast tune --compile-only` made.
    results
        File of JSON lines to append to; one a process.
    family
        Where the references are: a folder, or the name of a family that precast ships; by default the pack's.
    quiet
        Print nothing but errors.
    json
        Print a summary as JSON.
    """
    from precast.tune.session import measure_pack

    with TuningProgress(quiet or json) as progress:
        summary = measure_pack(pack, results, flags.session(family), tell, progress.update)
    if json:
        print_json(summary)
    elif not quiet:
        console.print(
            f"measured {summary['measured']}, known {summary['known']}, {summary['gated']} gated, "
            f"{summary['failed']} failed the gate, {summary['pruned']} pruned; {summary['seconds']:.0f} s"
            + ("; the budget ran out: run the same command to go on" if summary["out_of_budget"] else ""),
            markup=False,
        )
        for line in summary["refused"]:
            console.print(f"refused: {line}", markup=False)
    return 0
