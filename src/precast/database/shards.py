"""Text shards: the form of the database that git keeps. One file for each operator and target.

The first line is a header. What many records share is defined once: an `origin`, and a `case` (device, types,
features, key, problem), each under a name made of its content's hash, so that a new record changes no other
line. Definitions come first, then records, one a line, sorted. On import lines may come in any order, so two
shards that git merged line by line are a shard.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from precast.database.database import Added, Database, DatabaseError
from precast.database.records import Record, RecordError, canonical_json, from_dict, to_dict
from precast.database.results import BadLine, BadRecord, ends_whole, lines_of

__all__ = ["ShardImport", "export_shards", "import_shard", "import_shards", "is_shard"]

FORMAT = 1
SUFFIX = ".jsonl"
SUBJECT_IN_HEADER = ("family", "operator", "target")
SUBJECT_IN_CASE = ("device", "types", "features")
RECORD_IN_CASE = ("key", "problem", "layout")
SUBJECT_IN_LINE = ("plan", "config")


@dataclass
class ShardImport:
    """What an import of shards did."""

    added: Added = field(default_factory=lambda: Added(0, 0))
    bad: list[BadRecord] = field(default_factory=list)
    files: int = 0


def export_shards(database: Database, folder: str | Path, **filters: str | None) -> list[Path]:
    """Writes all records as shards; equal databases give equal bytes.

    Args:
        database: what to export.
        folder: where; it is made if it is missing. Shards without records in the database stay as they are.
        filters: as of `Database.measurements`.

    Returns:
        The files, sorted.
    """
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in database.records(**filters):
        s = record.subject
        groups.setdefault((s.family, s.operator, s.target), []).append(record)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, records in sorted(groups.items()):
        file = folder / (".".join(name) + SUFFIX)
        _replace(file, "".join(line + "\n" for line in _lines(name, records)))
        files.append(file)
    return files


def _replace(file: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as out:
            out.write(text)
        Path(temporary).chmod(0o644)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _split(record: Record) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A record's origin, case and the rest."""
    rest = to_dict(record)
    subject, origin = rest.pop("subject"), rest.pop("origin")
    case = {name: subject[name] for name in SUBJECT_IN_CASE}
    case |= {name: rest.pop(name) for name in RECORD_IN_CASE if name in rest}
    rest |= {name: subject[name] for name in SUBJECT_IN_LINE}
    if rest["kind"] == "measurement":
        del rest["kind"]
    return origin, case, rest


class _Names:
    """Names of definitions: a letter and as many digits of the hash as tell all of a shard apart, 8 at least."""

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self.hashes: dict[str, str] = {}

    def add(self, value: Any) -> str:
        text = canonical_json(value)
        self.hashes.setdefault(text, hashlib.sha256(text.encode()).hexdigest())
        return text

    def names(self) -> dict[str, str]:
        length = 8
        while len({h[:length] for h in self.hashes.values()}) < len(self.hashes):
            length += 1
        return {text: self.letter + h[:length] for text, h in self.hashes.items()}


def _lines(name: tuple[str, ...], records: Iterable[Record]) -> Iterable[str]:
    origins, cases, rows = _Names("o"), _Names("c"), []
    for record in records:
        origin, case, rest = _split(record)
        rows.append((origins.add(origin), cases.add(case), rest))
    header = {"precast": "shard", "version": FORMAT, **dict(zip(SUBJECT_IN_HEADER, name, strict=True))}
    yield canonical_json(header)
    origin_names, case_names = origins.names(), cases.names()
    for kind, names in (("origin", origin_names), ("case", case_names)):
        # Sorted by content, which readers of a diff can follow.
        for text, label in sorted(names.items()):
            yield f'{{"define":"{label}","{kind}":{text}}}'
    for origin_text, case_text, rest in rows:
        yield canonical_json(rest | {"case": case_names[case_text], "origin": origin_names[origin_text]})


def is_shard(path: Path) -> bool:
    """Whether a file's first lines are those of a shard."""
    for _, line in lines_of(path):
        if isinstance(line, BadLine):
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        return isinstance(value, dict) and (value.get("precast") == "shard" or "define" in value)
    return False


class _Reader:
    """Reads one shard: definitions first, wherever they stand, then records."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bad: list[BadLine] = []
        self.header: dict[str, Any] | None = None
        self.definitions: dict[str, dict[str, Any]] = {"origin": {}, "case": {}}

    def records(self) -> list[Record]:
        rows = []
        last = 0
        for number, line in lines_of(self.path):
            last = number
            try:
                value = self._parse(line)
                if "precast" in value:
                    self._read_header(value)
                elif "define" in value:
                    self._define(value)
                else:
                    rows.append((number, value))
            except RecordError as error:
                self._note(number, str(error))
        if self.header is None:
            self._guess_header()
        found = []
        for number, value in rows:
            try:
                found.append(self._record(value))
            except RecordError as error:
                self._note(number, str(error))
        if any(b.number == last for b in self.bad) and not ends_whole(self.path):
            self.bad = [b for b in self.bad if b.number != last] + [BadLine(last, "half-written last line")]
        self.bad.sort(key=lambda b: b.number)
        return found

    def _note(self, number: int, reason: str) -> None:
        self.bad.append(BadLine(number, reason))

    @staticmethod
    def _parse(line: str | BadLine) -> dict[str, Any]:
        if isinstance(line, BadLine):
            raise RecordError(line.reason)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"not JSON: {error}") from None
        if not isinstance(value, dict):
            raise RecordError("not an object")
        return value

    def _read_header(self, value: dict[str, Any]) -> None:
        version = value.get("version")
        if value["precast"] != "shard" or type(version) is not int:
            raise RecordError("a header that is none of a shard")
        if version > FORMAT:
            raise DatabaseError(
                f"{self.path} is a shard of version {version}, newer than {FORMAT}: use a newer precast"
            )
        given = {name: value.get(name) for name in SUBJECT_IN_HEADER}
        if self.header is not None and self.header != given:
            raise RecordError("a second header that says something else")
        self.header = given

    def _guess_header(self) -> None:
        parts = self.path.name.removesuffix(SUFFIX).split(".")
        if len(parts) != len(SUBJECT_IN_HEADER):
            raise DatabaseError(f"{self.path} has no header, and its name isn't FAMILY.OPERATOR.TARGET{SUFFIX}")
        self.header = dict(zip(SUBJECT_IN_HEADER, parts, strict=True))
        if not self.bad:
            self._note(1, "no header: family, operator and target are taken from the file's name")

    def _define(self, value: dict[str, Any]) -> None:
        label = value["define"]
        for kind, known in self.definitions.items():
            if isinstance(label, str) and isinstance(value.get(kind), dict):
                if known.setdefault(label, value[kind]) != value[kind]:
                    raise RecordError(f"{kind} {label!r} is defined twice, differently")
                return
        raise RecordError("a definition of neither an origin nor a case")

    def _record(self, value: dict[str, Any]) -> Record:
        rest = dict(value)
        rest.setdefault("kind", "measurement")
        found = {}
        for kind, known in self.definitions.items():
            label = rest.pop(kind, None)
            if not isinstance(label, str) or label not in known:
                raise RecordError(f"no line defines its {kind} {label!r}")
            found[kind] = dict(known[label])
        case = found["case"]
        subject = dict(self.header or {})
        subject |= {name: case.pop(name) for name in SUBJECT_IN_CASE if name in case}
        subject |= {name: rest.pop(name) for name in SUBJECT_IN_LINE if name in rest}
        for name in case:
            if name in rest or name not in RECORD_IN_CASE:
                raise RecordError(f"its case has a field {name!r} that doesn't belong there")
        return from_dict(rest | case | {"subject": subject, "origin": found["origin"]})


def import_shard(database: Database, path: Path) -> ShardImport:
    """Adds the records of one shard; bad lines are left out and reported.

    Raises:
        DatabaseError: if the shard is of a newer version, or what it is of can't be told.
        OSError: if it can't be read.
    """
    reader = _Reader(path)
    records = reader.records()
    added = database.add(records)
    return ShardImport(added, [BadRecord(str(path), b.number, b.reason) for b in reader.bad], 1)


def import_shards(database: Database, folder: str | Path) -> ShardImport:
    """Adds the records of all shards in a folder, or of one; as `import_shard` does.

    Raises:
        DatabaseError: if there is none.
    """
    path = Path(folder)
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files:
        raise DatabaseError(f"{path} has no shards: files named FAMILY.OPERATOR.TARGET{SUFFIX}")
    total = ShardImport()
    for file in files:
        one = import_shard(database, file)
        total = ShardImport(total.added + one.added, total.bad + one.bad, total.files + one.files)
    return total
