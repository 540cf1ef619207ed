"""`precast targets`."""

from __future__ import annotations

from precast.cli.output import print_json, print_table
from precast.targets import TARGETS

__all__ = ["targets"]


def targets(*, json: bool = False) -> int:
    """List the GPU targets, their limits, and whose code they run.

    Parameters
    ----------
    json
        Print JSON.
    """
    rows = [
        {
            "target": t.name,
            "vendor": t.vendor,
            "warp_size": t.warp_size,
            "shared_bytes": t.shared_bytes,
            "runs_code_of": [o.name for o in TARGETS.values() if t.runs_code_of(o)],
            "fp8": list(t.fp8),
            "example": t.example,
        }
        for t in TARGETS.values()
    ]
    if json:
        print_json(rows)
    else:
        columns = ["target", "vendor", "warp size", "shared memory a block", "runs code of", "for example"]
        print_table(
            "",
            columns,
            [
                (r["target"], r["vendor"], r["warp_size"], f"{r['shared_bytes'] // 1024} KiB",  # type: ignore[operator]
                 " ".join(r["runs_code_of"]), r["example"])  # type: ignore[arg-type]
                for r in rows
            ],
        )  # fmt: skip
    return 0
