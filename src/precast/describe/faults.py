"""Faults of a description, collected so that all are shown at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from precast.errors import UserError

__all__ = ["DescriptionError", "Fault", "Faults", "nearest"]


@dataclass(frozen=True)
class Fault:
    """One mistake in a description.

    Attributes:
        file: the file to mend.
        where: the operator, kernel or argument at fault.
        problem: what was given and why it can't be.
        remedy: what to do.
    """

    file: str
    where: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.where}: {self.problem}\n    remedy: {self.remedy}"


class DescriptionError(UserError):
    """A description has faults; its text lists them all."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        count = len(self.faults)
        super().__init__(
            f"{count} fault{'s' if count != 1 else ''} in the description:\n" + "\n".join(map(str, self.faults))
        )


class Faults:
    """A collector of faults in one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Fault] = []

    def add(self, where: str, problem: str, remedy: str) -> None:
        """Notes one fault."""
        fault = Fault(self.file, where, problem, remedy)
        if fault not in self.found:
            self.found.append(fault)

    def check(self) -> None:
        """Raises `DescriptionError` if any fault was noted."""
        if self.found:
            raise DescriptionError(self.found)


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy's half-sentence: the nearest known name, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(names)}" if names else "there are none"
