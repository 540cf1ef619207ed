"""`precast preview`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from precast.cli.output import console, print_json, print_table

__all__ = ["preview"]


def preview(
    family: str,
    /,
    *,
    targets: str,
    features: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    workers: int = 0,
    json: bool = False,
) -> int:
    """Show what a build would make: specializations, configs, code objects, estimated time and size.

    Parameters
    ----------
    family
        A folder with a family.py, or the name of a family that precast ships.
    targets
        Comma-separated GPU targets, for example sm_90,gfx942.
    features
        Only these values: NAME=value,value …
    workers
        Compile processes; 0 for one a processor.
    json
        Print JSON.
    """
    from precast.build.preview import preview_family
    from precast.build.selection import parse_selection
    from precast.targets import parse_targets

    result = preview_family(family, parse_targets(targets), parse_selection(features or []), workers=workers)
    if json:
        print_json(asdict(result))
        return 0
    columns = ["operator", "target", "specializations", "excluded", "configs", "code objects", "in the cache"]
    print_table(
        f"{result.family}",
        columns,
        [
            (r.operator, r.target, r.specializations, r.excluded, r.configs, r.code_objects, r.cached)
            for r in result.rows
        ],
    )
    console.print(
        f"about {result.seconds:.0f} s to compile {result.code_objects - result.cached} of {result.code_objects} code "
        f"objects on {result.workers} processes; about {result.bytes / 1e6:.1f} MB of packs"
    )
    return 0
