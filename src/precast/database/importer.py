"""Importing other tools' tuning data into the database, by a family's mappings."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.database.database import Added, Database
from precast.database.imports import ImportMapping, RowRejectedError
from precast.database.layouts import Content, ImportFileError, Row, read_content
from precast.database.records import QUANTILES, Measurement, Origin, RecordError, Subject
from precast.database.rules import check_record
from precast.describe.load import find_family, import_family_module
from precast.targets import find_target

__all__ = [
    "UNVERIFIED",
    "ImportReport",
    "ReadRows",
    "Rejection",
    "add_rows",
    "family_mappings",
    "import_file",
    "read_rows",
]

UNTIMED = "no time, not verified here"
UNVERIFIED = "not verified here"

PLAIN = re.compile(r"[A-Za-z0-9_.+-]{1,40}")
"""Values that a config's text can hold."""

PRODUCTS = {
    "sm_80": ("A100", "A800"),
    "sm_86": ("A10", "A10G", "A40", "A6000", "3090"),
    "sm_89": ("L4", "L40", "L40S", "4090"),
    "sm_90": ("H100", "H200", "H20", "H800", "GH200"),
    "sm_100": ("B200", "GB200"),
    "sm_120": ("5090",),
    "gfx90a": ("MI210", "MI250", "MI250X"),
    "gfx942": ("MI300X", "MI300A", "MI308X", "MI325X"),
    "gfx950": ("MI350X", "MI355X"),
}
"""Words of devices' names by target."""


@dataclass(frozen=True)
class Rejection:
    """A row that was not imported: its number in the file, counted from 1, whose it is, and why."""

    row: int
    kernel: str
    reason: str


@dataclass(frozen=True)
class ImportReport:
    """What came of a file; imported and rejected rows add up to its rows."""

    layout: str
    imported: int
    rejections: tuple[Rejection, ...]
    added: Added

    @property
    def rejected(self) -> int:
        """How many rows did not fit."""
        return len(self.rejections)

    def reasons(self) -> list[tuple[str, int]]:
        """Reasons of rejections with their counts, the most frequent first."""
        return Counter(r.reason for r in self.rejections).most_common()

    def summary(self) -> dict[str, Any]:
        """As JSON's values."""
        return {
            "imported": self.imported,
            "rejected": self.rejected,
            "layout": self.layout,
            "added": self.added.added,
            "known": self.added.known,
            "rejections": [vars(r) for r in self.rejections],
        }


def family_mappings(family: str | Path) -> tuple[str, tuple[ImportMapping, ...]]:
    """A family's name and its import mappings; needs no Triton.

    Raises:
        FamilyError: if there is no such family, or it has no imports.py.
        ImportFileError: if that defines no `IMPORTS`.
    """
    location = find_family(family)
    module = import_family_module(location, "imports")
    mappings = getattr(module, "IMPORTS", None)
    if not isinstance(mappings, Sequence) or not all(isinstance(m, ImportMapping) for m in mappings):
        raise ImportFileError(f"{location.folder / 'imports.py'} doesn't define IMPORTS, a tuple of ImportMapping")
    return location.name, tuple(mappings)


@dataclass(frozen=True)
class ReadRows:
    """A file's rows, mapped: those that fit as records, and the others."""

    layout: str
    records: tuple[Measurement, ...]
    rejections: tuple[Rejection, ...]


def read_rows(
    path: str | Path, family: str | Path, *, target: str | None = None, device: str | None = None
) -> ReadRows:
    """Maps the rows of a file.

    Args:
        path: the file; its layout is recognised by its content.
        family: whose mappings say what the columns are.
        target, device: for files that don't say.

    Raises:
        ImportFileError: if the file can't be imported at all.
        FamilyError: if the family has no mappings.
    """
    name, mappings = family_mappings(family)
    content, data = read_content(path)
    if target is not None:
        target = find_target(target).name
    run = hashlib.sha256(data).hexdigest()[:16]
    importer = _Importer(name, mappings, content, Origin("", content.triton, "", "", run, content.importer))
    records, rejections = [], []
    for row in content.rows:
        try:
            records.append(importer.record(row, target, device))
        except RowRejectedError as error:
            rejections.append(Rejection(row.number, row.kernel, str(error)))
    return ReadRows(content.layout, tuple(records), tuple(rejections))


def add_rows(database: Database, rows: ReadRows) -> ImportReport:
    """Adds mapped rows to a database."""
    return ImportReport(rows.layout, len(rows.records), rows.rejections, database.add(rows.records))


def import_file(
    database: Database, path: str | Path, family: str | Path, *, target: str | None = None, device: str | None = None
) -> ImportReport:
    """Adds the rows of a file that fit a family; arguments and errors as of `read_rows`."""
    return add_rows(database, read_rows(path, family, target=target, device=device))


def _target_of_device(device: str) -> str | None:
    words = set(re.split(r"[^A-Za-z0-9]+", device))
    return next((target for target, products in PRODUCTS.items() if words.intersection(products)), None)


@dataclass(frozen=True)
class _Importer:
    family: str
    mappings: tuple[ImportMapping, ...]
    content: Content
    origin: Origin

    def record(self, row: Row, target: str | None, device: str | None) -> Measurement:
        """The record of a row; raises RowRejectedError if it doesn't fit."""
        if row.problem:
            raise RowRejectedError(row.problem)
        mapping = next((m for m in self.mappings if row.kernel in m.kernels), None)
        if mapping is None:
            raise RowRejectedError(f"kernel {row.kernel} has no counterpart in family {self.family}")
        values = row.values
        for name, lacking in mapping.lacks.items():
            if name in values and values[name] not in lacking.off:
                raise RowRejectedError(f"{lacking.what}: {mapping.operator} lacks it")
        unknown = sorted(set(values) - mapping.known_columns())
        if unknown:
            raise RowRejectedError(f"nothing says what column {unknown[0]} is")
        notes: list[str] = []
        types = {n: s.read(n, values, notes) for n, s in mapping.types.items()}
        features = {n: s.read(n, values, notes) for n, s in mapping.features.items()}
        key = {n: s.read(n, values, notes) for n, s in mapping.key.items() if s.present(values)}
        problem = {n: s.read(n, values, notes) for n, s in mapping.problem.items() if s.present(values)}
        parameters = {n: s.read(n, values, notes) for n, s in mapping.parameters.items()}
        options = {n: s.read(n, values, notes) for n, s in mapping.options.items() if s.present(values)}
        for name, value in {**parameters, **options}.items():
            if not PLAIN.fullmatch(str(value)):
                raise RowRejectedError(f"{name} is {value!r:.40}, no number or word")
        if reason := mapping.reject(values):
            raise RowRejectedError(reason)
        left_out = [f"{n.rpartition('$')[2]}={values[n]}" for n in mapping.noted if n in values]
        if left_out:
            notes.append("left out: " + " ".join(left_out))
        found, product = self._where(row, target, device)
        # The canonical text of a config: parameters by name, then options by name.
        config = " ".join(f"{k}={v}" for k, v in [*sorted(parameters.items()), *sorted(options.items())])
        subject = Subject(self.family, mapping.operator, found, product, types, features, mapping.plan, config)
        status, reason = "untimed", ""
        times: tuple[float, ...] = ()
        if row.failure:
            status, reason = "launch_error", row.failure
        elif row.time_us is not None:
            status, times = "ok", (row.time_us,) * len(QUANTILES)
            notes.insert(0, f"{UNVERIFIED}; all quantiles are the median")
        if status != "ok":
            notes.insert(0, UNTIMED)
        record = Measurement(subject, self.origin, key, problem, status, reason, times, notes="; ".join(notes))
        try:
            check_record(record)
        except RecordError as error:
            raise RowRejectedError(str(error)) from None
        return record

    def _where(self, row: Row, target: str | None, device: str | None) -> tuple[str, str]:
        """Target and device: what the row says, else what was given."""
        product = row.device or device
        found = row.target or target or (_target_of_device(product) if product else None)
        if found is None:
            if product is None:
                raise ImportFileError(
                    f"a file of the layout {self.content.layout!r} doesn't say which GPU it is of: "
                    "give --target and --device"
                )
            raise RowRejectedError(f"the target of device {product!r} isn't known: give --target")
        try:
            found = find_target(found).name
        except ValueError:
            raise RowRejectedError(f"target {found!r} is none that precast knows") from None
        return found, product or f"{found} (imported)"
