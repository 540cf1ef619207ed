"""`precast inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from precast.cli.output import console, print_json, print_table

__all__ = ["inspect"]


def inspect(file: Path, /, *, verify: bool = False, summary: bool = False, json: bool = False) -> int:
    """Show what is in a pack or a library.

    Parameters
    ----------
    file
        A .pack file or a library.
    verify
        Check every byte; exit with 1 on the first fault.
    summary
        Print totals only.
    json
        Print JSON.
    """
    from precast.pack.inspect import PackError, inspect_file

    try:
        content = inspect_file(file, verify=verify)
    except PackError as error:
        if not verify:
            raise
        console.print(f"{file}: {error}", markup=False)
        return 1
    if json:
        print_json(content)
        return 0
    _print(content, summary)
    if verify:
        console.print("every byte verified")
    return 0


def _print(content: list[dict[str, Any]], summary: bool) -> None:
    for pack in content:
        stored = sum(o["stored"] for o in pack["objects"])
        raw = sum(o["raw"] for o in pack["objects"])
        share = f"{100 * stored / raw:.1f} % of {raw:,}" if raw else "none"
        console.print(
            f"family {pack['family']}, build id {pack['build_id']}, precast {pack['precast_version']}, "
            f"Triton {pack['triton_version']}\ntargets: {', '.join(pack['targets'])}\n"
            f"{len(pack['objects'])} code objects, {stored:,} bytes stored ({share} raw)",
            markup=False,
        )
        if summary:
            continue
        rows = []
        for operator in pack["operators"]:
            for target in operator["targets"]:
                for spec in target["specializations"]:
                    rows += _rows(operator, target, spec)
        columns = ["operator", "target", "specialization", "plan", "config", "rung", "class", "registers", "spills",
                   "shared", "bytes"]  # fmt: skip
        print_table("", columns, rows)
        for note in pack["notes"]:
            console.print(f"note: {note}", markup=False)


def _rung(spec: dict[str, Any], candidate: int) -> str:
    """The best rung on which a candidate can be chosen."""
    for table in spec["tables"]:
        if any(candidate in leaf["choices"][: leaf["tuned"]] for leaf in table["leaves"]):
            return str(table["rung"])
    return "static default"


def _rows(operator: dict[str, Any], target: dict[str, Any], spec: dict[str, Any]) -> list[tuple[Any, ...]]:
    head = (operator["name"], target["target"], spec["name"])
    if spec["status"] != "built":
        return [(*head, spec["status"], spec["reason"], "", "", "", "", "", "")]
    rows: list[tuple[Any, ...]] = []
    for index in spec["candidates"]:
        candidate = target["candidates"][index]
        for launch in candidate["launches"]:
            for entry in launch["variants"]:
                v = target["variants"][entry["variant"]]
                rows.append(
                    (*head, candidate["plan"], candidate["config"], _rung(spec, index), v["class"], v["registers"],
                     v["spills"], v["shared_bytes"], v["code_bytes"])
                )  # fmt: skip
                head = ("", "", "")
    return rows
