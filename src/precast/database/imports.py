"""How a family says which columns of other tools' tuning data are what: values in its `imports.py`.

    IMPORTS = (
        ImportMapping(
            kernels=("attn_fwd",), operator="attention_forward", plan="pointers",
            types={"T": column("inputs$Q_dtype", values={"torch.float16": "fp16"})},
            key={"Sq": column("inputs$max_seqlen_q", "inputs$seqlen_q")},
            parameters={"BLOCK_M": column("tuned_kernel$BLOCK_M")},
            lacks={"inputs$ENABLE_DROPOUT": Lacks("dropout")},
        ),
    )

Every column of a row must be accounted for, or the row is rejected: what a mapping doesn't know it can't judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = [
    "Column",
    "First",
    "ImportMapping",
    "Lacks",
    "Product",
    "RowRejectedError",
    "Source",
    "column",
    "first",
    "product",
]


class RowRejectedError(Exception):
    """A row that doesn't fit, and why."""


@dataclass(frozen=True)
class Column:
    """A value from a column; see `column`."""

    names: tuple[str, ...]
    values: Mapping[Any, int | str | bool] | None = None
    index: int | None = None
    caveat: str = ""

    def present(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has it."""
        return any(name in row for name in self.names)

    def read(self, what: str, row: Mapping[str, Any], notes: list[str]) -> Any:
        """Its value in a row.

        Args:
            what: what is read, for the reason of a rejection.
            row: column names and values.
            notes: caveats are added to it.

        Raises:
            RowRejectedError: if the row lacks it, or has a value that the family lacks.
        """
        name = next((n for n in self.names if n in row), None)
        if name is None:
            raise RowRejectedError(f"{what}: the row has no column {' or '.join(self.names)}")
        value = row[name]
        if self.index is not None:
            if not isinstance(value, list) or len(value) <= self.index:
                raise RowRejectedError(f"{what}: {name} is no list of more than {self.index}")
            value = value[self.index]
        if self.values is not None:
            if isinstance(value, (list, dict)) or value not in self.values:
                have = ", ".join(map(str, self.values))
                raise RowRejectedError(f"{what} {value!s:.40}: the family has {have} only")
            value = self.values[value]
        if self.caveat and value != next(iter((self.values or {}).values()), None):
            notes.append(self.caveat)
        return value

    def columns(self) -> Iterator[str]:
        """The columns that it reads."""
        yield from self.names


@dataclass(frozen=True)
class Product:
    """The product of columns: batch x heads."""

    factors: tuple[Column, ...]

    def present(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has all of them."""
        return all(f.present(row) for f in self.factors)

    def read(self, what: str, row: Mapping[str, Any], notes: list[str]) -> Any:
        """As `Column.read`."""
        result = 1
        for factor in self.factors:
            value = factor.read(what, row, notes)
            if type(value) is not int:
                raise RowRejectedError(f"{what}: {value!r:.40} is no integer")
            result *= value
        return result

    def columns(self) -> Iterator[str]:
        """The columns that it reads."""
        for factor in self.factors:
            yield from factor.columns()


@dataclass(frozen=True)
class First:
    """The first of several sources that a row has: columns whose name and values drifted."""

    sources: tuple[Column | Product, ...]

    def present(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has one of them."""
        return any(s.present(row) for s in self.sources)

    def read(self, what: str, row: Mapping[str, Any], notes: list[str]) -> Any:
        """As `Column.read`."""
        for source in self.sources:
            if source.present(row):
                return source.read(what, row, notes)
        raise RowRejectedError(f"{what}: the row has no column {' or '.join(self.columns())}")

    def columns(self) -> Iterator[str]:
        """The columns that it may read."""
        for source in self.sources:
            yield from source.columns()


Source: TypeAlias = Column | Product | First


def column(
    *names: str,
    values: Mapping[Any, int | str | bool] | None = None,
    index: int | None = None,
    caveat: str = "",
) -> Column:
    """A value from a column.

    Args:
        names: the column's names; the first that a row has is read.
        values: the file's values to ours; a row with another value is rejected. All values are taken if not given.
        index: the element of a list.
        caveat: noted with rows that have any but the first of `values`.
    """
    return Column(names, values, index, caveat)


def product(*factors: Column) -> Product:
    """The product of columns."""
    return Product(factors)


def first(*sources: Column | Product) -> First:
    """The first source that a row has."""
    return First(sources)


@dataclass(frozen=True)
class Lacks:
    """An option that the family lacks: rows that use it are rejected.

    Args:
        what: the option, for the reason.
        off: values of rows that don't use it.
    """

    what: str
    off: tuple[Any, ...] = (0, False, None)


def _everything(row: Mapping[str, Any]) -> str | None:
    return None


@dataclass(frozen=True)
class ImportMapping:
    """What the columns of another tool's kernel are in this family.

    Args:
        kernels: the other tool's names of the kernel.
        operator, plan: whose configs these are.
        types, features, key: type variables, features and the tuning key; every feature must be in a row, a key that
            a file doesn't say is left out.
        problem: sizes; those that a file doesn't say are left out.
        parameters: tuning parameters of the kernel; a row must have them.
        options: compile options; those that a file doesn't say are left out.
        lacks: options that the family lacks, by column.
        unused: columns that follow from others.
        noted: tuning parameters of the other kernel without a counterpart here: named in the notes.
        reject: why a row doesn't fit although its columns do, or None.
    """

    kernels: tuple[str, ...]
    operator: str
    plan: str
    types: Mapping[str, Source] = field(default_factory=dict)
    features: Mapping[str, Source] = field(default_factory=dict)
    key: Mapping[str, Source] = field(default_factory=dict)
    problem: Mapping[str, Source] = field(default_factory=dict)
    parameters: Mapping[str, Source] = field(default_factory=dict)
    options: Mapping[str, Source] = field(default_factory=dict)
    lacks: Mapping[str, Lacks] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    reject: Callable[[Mapping[str, Any]], str | None] = _everything

    def known_columns(self) -> set[str]:
        """All columns that it accounts for."""
        groups = (self.types, self.features, self.key, self.problem, self.parameters, self.options)
        read = {name for group in groups for source in group.values() for name in source.columns()}
        return {*read, *self.lacks, *self.unused, *self.noted}
