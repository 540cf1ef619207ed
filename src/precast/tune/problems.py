"""What to tune for: a family's own grid, a file, or the log of what ran."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.describe.dtypes import DTYPES
from precast.errors import UserError
from precast.reference import Reference

__all__ = ["TuningProblem", "problem_key", "problems_of", "read_problems", "read_record_log"]


@dataclass(frozen=True)
class TuningProblem:
    """One problem of one operator, and how often it runs."""

    operator: str
    problem: Mapping[str, Any]
    weight: float = 1.0


def problem_key(problem: Mapping[str, Any]) -> str:
    """One text for equal problems."""
    return json.dumps(dict(problem), sort_keys=True)


def problems_of(references: Mapping[str, Reference]) -> list[TuningProblem]:
    """The problems that a family's description says it should be tuned for."""
    return [TuningProblem(name, p) for name, r in references.items() for p in r.tuning]


def _lines(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    """JSON objects, one a line; a last line without its end is left out if it is no whole one."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}") from error
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                continue  # half written
            raise UserError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise UserError(f"{path}:{number}: not an object but {line[:40]!r}")
        yield number, value


def read_problems(path: Path, references: Mapping[str, Reference]) -> list[TuningProblem]:
    """Problems of a file of JSON lines: `{"operator": "matmul", "weight": 3, "M": 128, …}`.

    "operator" may be left out where the family has one; "weight" is 1 unless given; all else is the problem, by the
    names of the family's reference.

    Raises:
        UserError: with file and line.
    """
    result = []
    for number, line in _lines(path):
        name = line.pop("operator", next(iter(references)) if len(references) == 1 else None)
        weight = line.pop("weight", 1.0)
        if name not in references:
            raise UserError(f"{path}:{number}: operator {name!r}: the family has {', '.join(references)}")
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not weight > 0:
            raise UserError(f"{path}:{number}: weight {weight!r} is not a positive number")
        bad = [k for k, v in line.items() if not isinstance(v, (int, float, str, bool))]
        if bad:
            raise UserError(f"{path}:{number}: {', '.join(bad)} must be numbers, texts or true and false")
        result.append(TuningProblem(name, line, float(weight)))
    return result


@dataclass(frozen=True)
class RecordLog:
    """What a log gave: problems, and keys that no problem has, with the reason."""

    problems: list[TuningProblem]
    skipped: list[str]


def read_record_log(path: Path, family: str, references: Mapping[str, Reference]) -> RecordLog:
    """Problems that a library recorded (`PRECAST_RECORD`), weighted by how often each ran.

    Lines of other families are passed over. `Reference.from_key` makes a problem of a recorded key.

    Raises:
        UserError: with file and line.
    """
    counts: dict[tuple[str, str], float] = {}
    problems: dict[tuple[str, str], Mapping[str, Any]] = {}
    skipped: dict[str, None] = {}
    short = {d.long_name: d.name for d in DTYPES.values()}
    for number, line in _lines(path):
        values = {k: line.get(k) for k in ("operator", "specialization", "key", "count")}
        shapes = (str, dict, dict, int)
        if not all(isinstance(v, t) for v, t in zip(values.values(), shapes, strict=True)):
            raise UserError(f"{path}:{number}: not a line that PRECAST_RECORD writes")
        name = line["operator"]
        if line.get("family") != family or name not in references:
            continue
        reference = references[name]
        if reference.from_key is None:
            skipped[f"{name}: its reference has no from_key, which makes problems of recorded keys"] = None
            continue
        known = {k: short.get(str(v), v) for k, v in line["specialization"].items()}
        problem = reference.from_key({**known, **line["key"]})
        if problem is None:
            skipped[f"{name}: no problem has {known} {line['key']}"] = None
            continue
        place = (name, problem_key(problem))
        counts[place] = counts.get(place, 0.0) + line["count"]
        problems[place] = problem
    return RecordLog([TuningProblem(p[0], problems[p], counts[p]) for p in problems], list(skipped))
