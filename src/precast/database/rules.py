"""What a record's fields may hold. The same rules for what precast writes and for what it reads."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from precast.database.records import (
    EVIDENCE_STATUSES,
    QUANTILES,
    STATUSES,
    TEXT_LIMIT,
    Evidence,
    Measurement,
    Origin,
    Record,
    RecordError,
    Subject,
)

__all__ = ["check_record"]

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
TARGET = re.compile(r"[A-Za-z0-9_]{1,64}")
DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-6]\d(Z|\+00:00)")

MOST = 2**63 - 1
"""The largest integer that SQLite holds."""

MOST_ENTRIES = 64
"""Entries that a mapping may have."""

MOST_MICROSECONDS = 86400e6
"""A day."""

COUNTS = {
    "repeats": (0, 10**9),
    "registers": (-1, 4096),
    "spills": (-1, 2**31),
    "shared": (-1, 2**31),
    "clock_mhz": (0, 100_000),
    "runs": (0, 10**9),
}
"""Range of each count, both ends included."""


def _fail(name: str, value: Any, rule: str) -> RecordError:
    text = repr(value)
    return RecordError(f"{name} is {text if len(text) <= 80 else text[:77] + '…'}, {rule}")


def _text(name: str, value: Any, most: int = 500, *, empty: bool = False, free: bool = False) -> None:
    if not isinstance(value, str):
        raise _fail(name, value, "not text")
    if not value and not empty:
        raise _fail(name, value, "which must not be empty")
    if len(value) > most:
        raise _fail(name, value, f"longer than {most} characters")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise _fail(name, value, "not valid Unicode")
    if not free and any(ord(c) < 32 or ord(c) == 127 for c in value):
        raise _fail(name, value, "with a control character")


def _matches(name: str, value: Any, pattern: re.Pattern[str], rule: str) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _fail(name, value, rule)


def _entries(name: str, value: Any, kinds: tuple[type, ...], rule: str) -> None:
    if not isinstance(value, Mapping):
        raise _fail(name, value, "not an object")
    if len(value) > MOST_ENTRIES:
        raise RecordError(f"{name} has {len(value)} entries, more than {MOST_ENTRIES}")
    for key, entry in value.items():
        _text(f"a name in {name}", key, 100)
        where = f"{name}[{key!r}]"
        if type(entry) not in kinds:
            raise _fail(where, entry, rule)
        if isinstance(entry, str):
            _text(where, entry, 200, empty=True)
        elif isinstance(entry, float) and not math.isfinite(entry):
            raise _fail(where, entry, "not finite")
        elif isinstance(entry, int) and not -MOST - 1 <= entry <= MOST:
            raise _fail(where, entry, "beyond 64 bits")


def _count(name: str, value: Any) -> None:
    low, high = COUNTS[name]
    if type(value) is not int or not low <= value <= high:
        raise _fail(name, value, f"not an integer of {low} to {high}")


def _check_subject(subject: Any) -> None:
    if not isinstance(subject, Subject):
        raise _fail("subject", subject, "not a Subject")
    name = "not a name of letters, digits and _"
    for attribute in ("family", "operator"):
        _matches(attribute, getattr(subject, attribute), IDENTIFIER, name)
    _matches("target", subject.target, TARGET, "not a target's name")
    _text("device", subject.device, 200)
    _text("plan", subject.plan, 200)
    _text("config", subject.config, 2000, empty=True)
    _entries("types", subject.types, (str,), "not text")
    _entries("features", subject.features, (int, str, bool), "not an integer, text or bool")


def _check_origin(origin: Any) -> None:
    if not isinstance(origin, Origin):
        raise _fail("origin", origin, "not an Origin")
    for attribute in ("source", "triton", "driver", "run", "importer"):
        _text(attribute, getattr(origin, attribute), empty=True)
    if origin.date != "" or not origin.importer:
        _matches("date", origin.date, DATE, "not a UTC time like 2026-01-31T12:00:00Z")


def _check_measurement(m: Measurement) -> None:
    _entries("key", m.key, (int,), "not an integer")
    if m.status not in STATUSES:
        raise _fail("status", m.status, f"not one of {', '.join(STATUSES)}")
    _text("reason", m.reason, TEXT_LIMIT, empty=True, free=True)
    _text("notes", m.notes, TEXT_LIMIT, empty=True, free=True)
    if not isinstance(m.times, tuple) or len(m.times) not in (0, len(QUANTILES)):
        raise _fail("times", m.times, f"not {len(QUANTILES)} quantiles")
    for time in m.times:
        if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 < time <= MOST_MICROSECONDS:
            raise _fail("times", m.times, "not microseconds above 0 and within a day")
    if list(m.times) != sorted(m.times):
        raise _fail("times", m.times, "not in ascending order")
    if m.status == "ok" and not m.times:
        raise RecordError("status is 'ok', but there are no times")
    if m.status == "untimed" and m.times:
        raise RecordError("status is 'untimed', but there are times")
    for name in ("repeats", "registers", "spills", "shared", "clock_mhz"):
        _count(name, getattr(m, name))


def _check_evidence(e: Evidence) -> None:
    _text("layout", e.layout, 200, empty=True)
    if e.status not in EVIDENCE_STATUSES:
        raise _fail("status", e.status, f"not one of {', '.join(EVIDENCE_STATUSES)}")
    _text("reason", e.reason, TEXT_LIMIT, empty=True, free=True)
    for name in ("error", "allowed"):
        value = getattr(e, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _fail(name, value, "not a number")
        if not math.isfinite(value) or (value < 0 and value != -1):
            raise _fail(name, value, "neither a finite error nor -1")
    _count("runs", e.runs)


def check_record(record: Record) -> None:
    """Checks type, range and length of every field.

    Raises:
        RecordError: names the first field that is wrong, its value and the rule.
    """
    if not isinstance(record, (Measurement, Evidence)):
        raise _fail("record", record, "neither a Measurement nor an Evidence")
    _check_subject(record.subject)
    _check_origin(record.origin)
    _entries("problem", record.problem, (int, str, bool, float), "not a number, text or bool")
    if isinstance(record, Measurement):
        _check_measurement(record)
    else:
        _check_evidence(record)
