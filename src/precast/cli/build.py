"""`precast build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from precast.cli.output import console, print_json
from precast.cli.progress import CompileProgress

__all__ = ["build"]


def build(
    family: str,
    /,
    *,
    targets: str,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("out"),
    features: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    split: bool = False,
    ptx: bool = False,
    db: Path | None = None,
    max_regret: str = "3%",
    allow_unverified: bool = False,
    workers: int = 0,
    timeout: float = 600.0,
    cache: Path | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
    json: bool = False,
) -> int:
    """Build a family's library: compile its kernels for the targets, pack them, link the library.

    Needs no GPU. What was compiled before is taken from the cache; interrupted, it goes on where it was.

    Parameters
    ----------
    family
        A folder with a family.py, or the name of a family that precast ships.
    targets
        Comma-separated GPU targets, for example sm_90,gfx942.
    output
        Folder for the library, its headers, CMake and pkg-config files.
    features
        Build only these values: NAME=value,value …
    split
        Write one pack file a target beside the library instead of into it.
    ptx
        Also keep PTX, which newer NVIDIA GPUs than the targets can run.
    db
        What was measured: a tuning database, a results file or a folder of shards; the static default without.
    max_regret
        How much slower than the best config known the kept ones may be on a measured problem.
    allow_unverified
        Also use configs that passed no correctness gate, such as imported ones.
    workers
        Compile processes; 0 for one a processor.
    timeout
        Seconds that one compile may take.
    cache
        Folder of the compile cache.
    quiet
        Print nothing but errors.
    json
        Print what was built as JSON.
    """
    from precast.build.build import BuildOptions
    from precast.build.finish import build_library
    from precast.build.selection import parse_selection
    from precast.build.tuning_data import Tuning, share
    from precast.targets import parse_targets

    options = BuildOptions(
        parse_targets(targets), parse_selection(features or []), workers=workers, timeout=timeout, cache=cache, ptx=ptx
    )
    tuning = Tuning(db, share(max_regret), allow_unverified) if db is not None else None
    with CompileProgress(quiet=quiet or json) as progress:
        built = build_library(family, output, options, split=split, tuning=tuning, progress=progress.update)
    if json:
        print_json(built.summary())
    elif not quiet:
        console.print(built.text(), markup=False)
    return 0
