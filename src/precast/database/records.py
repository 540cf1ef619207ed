"""What the database keeps, as plain values, and their text form: one canonical JSON line a record.

A record's identity is the hash of its line. Fields that have their default are left out of the line, so a
field that a later version adds changes no identity. Lines come from files that others wrote: `from_line`
checks everything and never evaluates anything.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeAlias

from precast.errors import UserError

__all__ = [
    "EVIDENCE_STATUSES",
    "QUANTILES",
    "STATUSES",
    "TEXT_LIMIT",
    "Evidence",
    "Measurement",
    "Origin",
    "Record",
    "RecordError",
    "Subject",
    "Value",
    "canonical_json",
    "from_dict",
    "from_line",
    "record_id",
    "to_dict",
    "to_line",
]

Value: TypeAlias = int | str | bool
"""A feature's value."""

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Those of `Measurement.times`."""

STATUSES = (
    "ok",
    "wrong",
    "unwritten",
    "guard",
    "race",
    "compile_error",
    "launch_error",
    "timeout",
    "out_of_memory",
    "crash",
    "pruned",
    "untimed",  # an imported winner without a time
)

EVIDENCE_STATUSES = (
    "ok",
    "wrong",
    "unwritten",
    "guard",
    "race",
    "launch_error",
    "timeout",
    "crash",
    "out_of_memory",
    "unverified",  # the gate was overridden
)

TEXT_LIMIT = 4000
"""Characters that a reason or note may have; longer ones are cut."""


class RecordError(UserError):
    """A record that can't be: the message says which field, and what is wrong with it."""


@dataclass(frozen=True)
class Subject:
    """What was run.

    Attributes:
        family, operator: by name.
        target: what the code was compiled for, "sm_90".
        device: the product that ran it, "NVIDIA H200".
        types: type variables, Triton's names: {"T": "bf16"}.
        features: {"MASK": "none", "HEAD_DIM": 128}.
        plan: by name.
        config: canonical text, "BLOCK_M=128 num_warps=4".
    """

    family: str
    operator: str
    target: str
    device: str
    types: Mapping[str, str]
    features: Mapping[str, Value]
    plan: str
    config: str


@dataclass(frozen=True)
class Origin:
    """Where a record came from.

    Attributes:
        source: hash of the plan's kernel sources; empty if imported.
        triton: version of the compiler; empty if unknown.
        driver: version of the GPU's driver; empty if unknown.
        date: ISO 8601, UTC, to the second; empty if unknown, which only imports may have.
        run: names the tuning run; for imports, a hash of the file.
        importer: empty if precast measured it, else the layout of the file, "aotriton-0.6".
    """

    source: str
    triton: str
    driver: str
    date: str
    run: str
    importer: str = ""


def _cut(text: str) -> str:
    """Text that every file and database can hold: bounded, no lone surrogates."""
    if not isinstance(text, str):
        return text
    clean = text.encode("utf-8", "replace").decode()
    return clean if len(clean) <= TEXT_LIMIT else clean[: TEXT_LIMIT - 2] + " …"


@dataclass(frozen=True)
class Measurement:
    """One config on one problem on one device: a time, or the reason why there is none.

    Attributes:
        subject: what was run.
        origin: where the record came from.
        key: the tuning key, which dispatch reads. An imported file may not say all of it: what it doesn't say
            is left out.
        problem: the sizes exactly as run, layout included.
        status: one of `STATUSES`.
        reason: why it isn't "ok".
        times: microseconds, at `QUANTILES`; empty if there is none.
        repeats: how many times were taken.
        registers: per thread, the most of all launches; -1 if unknown.
        spills: bytes per thread, the most of all launches; -1 if unknown.
        shared: bytes per block, the most of all launches; -1 if unknown.
        clock_mhz: of the multiprocessors while measuring; 0 if unknown.
        notes: what else is worth knowing, such as "throttled".
    """

    subject: Subject
    origin: Origin
    key: Mapping[str, int]
    problem: Mapping[str, Value | float]
    status: str
    reason: str = ""
    times: tuple[float, ...] = ()
    repeats: int = 0
    registers: int = -1
    spills: int = -1
    shared: int = -1
    clock_mhz: int = 0
    notes: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", _cut(self.reason))
        object.__setattr__(self, "notes", _cut(self.notes))

    @property
    def median(self) -> float | None:
        """Microseconds, if there is a time."""
        return self.times[2] if self.times else None


@dataclass(frozen=True)
class Evidence:
    """What the correctness gate found for one config on one problem and layout.

    Attributes:
        subject: what was run.
        origin: where the record came from.
        problem: the sizes.
        layout: of the tensors.
        status: one of `EVIDENCE_STATUSES`.
        error: of the worst output, absolute; -1 if unknown. Infinity and NaN, which JSON lacks, become the largest
            float.
        allowed: the error that was allowed for that output; -1 if unknown.
        runs: how often it ran.
        reason: why it isn't "ok".
    """

    subject: Subject
    origin: Origin
    problem: Mapping[str, Value | float]
    layout: str
    status: str
    error: float = -1.0
    allowed: float = -1.0
    runs: int = 1
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", _cut(self.reason))
        if isinstance(self.error, float) and not math.isfinite(self.error):
            object.__setattr__(self, "error", sys.float_info.max)


Record: TypeAlias = Measurement | Evidence

KINDS: Mapping[str, type[Measurement] | type[Evidence]] = {"measurement": Measurement, "evidence": Evidence}


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return [float(v) for v in value] if isinstance(value, tuple) else value


def _fields_to_dict(part: Any) -> dict[str, Any]:
    result = {}
    for f in fields(part):
        value = getattr(part, f.name)
        if f.default is MISSING or value != f.default:
            # An int where a float belongs would give another text for an equal record.
            result[f.name] = float(value) if f.type == "float" and _is_int(value) else _plain(value)
    return result


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def to_dict(record: Record) -> dict[str, Any]:
    """A record as JSON's values, defaults left out; not checked."""
    result = _fields_to_dict(record)
    result["subject"] = _fields_to_dict(record.subject)
    result["origin"] = _fields_to_dict(record.origin)
    result["kind"] = "measurement" if isinstance(record, Measurement) else "evidence"
    return result


def to_line(record: Record) -> str:
    """Canonical JSON of a record, one line without its end.

    Raises:
        RecordError: if a field is one that `from_line` would refuse.
    """
    from precast.database.rules import check_record

    check_record(record)
    return canonical_json(to_dict(record))


def record_id(record: Record) -> str:
    """SHA-256 of the record's line, in hex."""
    return hashlib.sha256(to_line(record).encode()).hexdigest()


def _build(cls: type[Any], given: Any, what: str) -> Any:
    if not isinstance(given, dict):
        raise RecordError(f"{what} is {_short(given)}, not an object")
    known: dict[str, Field[Any]] = {f.name: f for f in fields(cls)}
    for name in given:
        if name not in known:
            raise RecordError(f"{what} has an unknown field {_short(name)}: is it of a newer precast?")
    for name, f in known.items():
        if f.default is MISSING and name not in given:
            raise RecordError(f"{what} lacks the field {name!r}")
    values = dict(given)
    if "times" in values:
        if not isinstance(values["times"], list):
            raise RecordError(f"times is {_short(values['times'])}, not a list")
        values["times"] = tuple(float(v) if _is_int(v) else v for v in values["times"])
    for name, f in known.items():
        if f.type == "float" and _is_int(values.get(name)):
            values[name] = float(values[name])
    return cls(**values)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def from_dict(given: Any) -> Record:
    """The record of JSON's values, checked.

    Raises:
        RecordError: if it isn't one; the message says what is wrong.
    """
    from precast.database.rules import check_record

    if not isinstance(given, dict):
        raise RecordError(f"a record is an object, not {_short(given)}")
    values = dict(given)
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise RecordError(f"kind is {_short(kind)}, not one of {', '.join(KINDS)}")
    for name, cls in (("subject", Subject), ("origin", Origin)):
        if name in values:
            values[name] = _build(cls, values[name], name)
    record: Record = _build(KINDS[kind], values, kind)
    check_record(record)
    return record


def from_line(text: str) -> Record:
    """The record of a line that `to_line` wrote; everything about it is checked.

    Raises:
        RecordError: if it isn't one; the message says what is wrong.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}") from None
    return from_dict(given)
