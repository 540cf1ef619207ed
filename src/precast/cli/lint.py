"""`precast lint`."""

from __future__ import annotations

from precast.cli.output import console, print_json

__all__ = ["lint"]


def lint(family: str, /, *, json: bool = False) -> int:
    """Report every fault of a family's description at once.

    Parameters
    ----------
    family
        A folder with a family.py, or the name of a family that precast ships.
    json
        Print JSON.
    """
    from precast.build.lint import find_faults

    faults = find_faults(family)
    if json:
        print_json([vars(f) for f in faults])
    else:
        for fault in faults:
            console.print(str(fault), markup=False)
        console.print(f"{len(faults)} fault{'s' if len(faults) != 1 else ''} found" if faults else "no faults found")
    return 1 if faults else 0
