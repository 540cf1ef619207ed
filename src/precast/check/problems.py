"""The references of a family, and what came of checking one problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precast.describe.load import FamilyError, FamilyLocation, find_family, import_family_module

if TYPE_CHECKING:  # the module needs an optional package
    from precast.reference import Reference

__all__ = ["Outcome", "load_references", "problem_text"]


@dataclass(frozen=True)
class Outcome:
    """One problem, checked one way.

    Attributes:
        operator: its name.
        problem: as a text.
        way: plan, or layout of the arguments.
        status: "ok", "wrong", "unwritten", "guard", "refused" or "error".
        detail: error and allowance, or the reason.
    """

    operator: str
    problem: str
    way: str
    status: str
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; a refusal with a reason is right where the description excludes the call."""
        return self.status in ("ok", "refused")


def load_references(family: str | Path) -> tuple[dict[str, Reference], FamilyLocation]:
    """A family's references; raises `FamilyError` if it has none."""
    location = find_family(family)
    module = import_family_module(location, "reference")
    references = getattr(module, "REFERENCES", None)
    if not isinstance(references, dict) or not references:
        raise FamilyError(
            f"{location.folder / 'reference.py'} defines no REFERENCES, a dict of operator name to Reference"
        )
    return references, location


def problem_text(problem: Mapping[str, Any]) -> str:
    """A problem in one line."""
    return " ".join(f"{k}={v}" for k, v in problem.items() if k not in ("big", "needs"))
