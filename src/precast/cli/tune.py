"""`precast tune`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from precast.cli.output import console, print_json
from precast.cli.progress import CompileProgress
from precast.cli.tuning import MeasureFlags, TuningProgress, tell

__all__ = ["tune"]

DEFAULTS = MeasureFlags()


def tune(
    family: str,
    /,
    *,
    targets: str,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("candidates"),
    compile_only: bool = False,
    db: Path = Path("tuning.sqlite"),
    features: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    flags: Annotated[MeasureFlags, Parameter(name="*")] = DEFAULTS,
    workers: int = 0,
    timeout: float = 600.0,
    cache: Path | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    json: bool = False,
) -> int:
    """Tune a family: compile every config, measure each on this machine's GPU, store the results.

    With --compile-only it needs no GPU and makes candidate packs, which `precast measure` takes elsewhere.
    Interrupted or killed, the same command goes on where it was; it adds only what is missing.

    Parameters
    ----------
    family
        A folder with a family.py, or the name of a family that precast ships.
    targets
        Comma-separated GPU targets; one, that of this machine's GPU, unless --compile-only.
    output
        Folder for the candidate packs and this machine's results file.
    compile_only
        Make the candidate packs alone.
    db
        The tuning database that results are merged into.
    features
        Tune only these values: NAME=value,value …
    workers
        Compile processes; 0 for one a processor.
    timeout
        Seconds that one compile may take.
    cache
        Folder of the compile cache.
    quiet
        Print nothing but errors.
    json
        Print a summary as JSON.
    """
    from precast.build.build import BuildOptions
    from precast.build.selection import parse_selection
    from precast.database.database import Database
    from precast.database.merge import merge
    from precast.errors import UserError
    from precast.targets import parse_targets
    from precast.tune.compile import compile_candidates
    from precast.tune.session import measure_pack

    chosen = parse_targets(targets)
    if len(chosen) > 1 and not compile_only:
        raise UserError("name the target of this machine's GPU alone, or use --compile-only")
    session = flags.session(family)
    options = BuildOptions(chosen, parse_selection(features or []), workers=workers, timeout=timeout, cache=cache)
    with CompileProgress(quiet=quiet or json) as progress:
        made = compile_candidates(family, options, output, progress.update)
    summary: dict[str, object] = {
        "packs": [str(c.path) for c in made],
        "failed": [{"job": j.label, "status": r.status, "reason": r.reason} for c in made for j, r in c.built.failures],
    }
    if not compile_only:
        results = output / f"{made[0].path.stem}.{os.uname().nodename}.jsonl"
        with TuningProgress(quiet or json) as measuring:
            summary |= measure_pack(made[0].path, results, session, tell, measuring.update)
        with Database.open(db, create=True) as database:
            summary["added"] = merge(database, [results]).added.added
    if json:
        print_json(summary)
    elif not quiet:
        for c in made:
            console.print(f"{c.path}: {c.path.stat().st_size:,} bytes", markup=False)
        if not compile_only:
            console.print(f"{db}: {summary['added']} new rows; build with --db {db}", markup=False)
    return 0
