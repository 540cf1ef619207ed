"""`precast measure`."""

from __future__ import annotations

from pathlib import Path

from precast.cli.output import console, print_json

__all__ = ["measure"]


def measure(
    pack: Path,
    /,
    *,
    results: Path,
    family: str | None = None,
    problems: Path | None = None,
    record: Path | None = None,
    operator: str | None = None,
    gpus: str | None = None,
    budget: str | None = None,
    gate: bool = True,
    keep_spills: bool = False,
    exhaustive: bool = False,
    again: bool = False,
    quiet: bool = False,
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
    problems
        File of JSON lines to measure on, instead of the family's own problems.
    record
        Log of what ran (PRECAST_RECORD) to measure on.
    operator
        Measure this operator alone.
    gpus
        Comma-separated numbers of the GPUs to use; the first by default.
    budget
        Begin nothing new after this time: 90s, 10m, 2h.
    gate
        Prove each config's results before its time counts.
    keep_spills
        Also measure configs that spill much.
    exhaustive
        Measure clear losers to the end too.
    again
        Measure what is measured already once more.
    quiet
        Print nothing but errors.
    json
        Print a summary as JSON.
    """
    from precast.cli.tuning import run_measure, seconds

    summary = run_measure(
        pack, results, family=family, problems=problems, record=record, operator=operator,
        gpus=gpus.split(",") if gpus else None, budget=seconds(budget) if budget else None, gate=gate,
        keep_spills=keep_spills, exhaustive=exhaustive, again=again, quiet=quiet or json,
    )  # fmt: skip
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
