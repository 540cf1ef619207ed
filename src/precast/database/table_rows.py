"""Records as cells of tables, for people."""

from __future__ import annotations

from typing import Any

from precast.database.database import Best
from precast.database.records import Evidence, Measurement

__all__ = ["best_row", "choice_row", "evidence_row", "measurement_row"]


def _pairs(*groups: Any) -> str:
    return " ".join(f"{k}={v}" for group in groups for k, v in group.items())


def measurement_row(m: Measurement) -> tuple[Any, ...]:
    """Cells of `precast db show`."""
    s = m.subject
    figures = ["" if v < 0 else v for v in (m.registers, m.spills, m.shared)]
    time = "" if m.median is None else f"{m.median:.2f}"
    specialization, key = _pairs(s.types, s.features), _pairs(m.key)
    return (s.operator, s.target, s.device, specialization, key, s.plan, s.config, m.status, time, *figures, m.reason,
            m.notes)  # fmt: skip


def evidence_row(e: Evidence) -> tuple[Any, ...]:
    """Cells of `precast db show --evidence`."""
    s = e.subject
    figures = ["" if v < 0 else f"{v:.3g}" for v in (e.error, e.allowed)]
    return (s.operator, s.target, s.device, _pairs(s.types, s.features), _pairs(e.problem), e.layout, s.plan, s.config,
            e.status, *figures, e.reason)  # fmt: skip


def best_row(b: Best) -> tuple[Any, ...]:
    """Cells of `precast db best`."""
    problem = _pairs(b.types, b.features, b.key)
    time = "" if b.median_us is None else f"{b.median_us:.2f}"
    return (b.operator, b.target, b.device, problem, b.plan, b.config, time, b.gate, b.importer or b.date)


def choice_row(b: Best | None) -> tuple[str, str]:
    """A winner of `precast db diff`, and its time."""
    if b is None:
        return "none", ""
    return f"{b.plan}: {b.config}", "" if b.median_us is None else f"{b.median_us:.2f}"
