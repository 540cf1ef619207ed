"""The last step: packs and the linked library into a folder, skipped when nothing has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from precast.build import headers, link
from precast.build.build import BuildOptions, BuiltPack, Progress, bound_family, make_pack
from precast.build.link import link_library
from precast.build.tuned import Dispatch, TableReport
from precast.build.tuning_data import Tuning, dispatch_from
from precast.native import native_file
from precast.pack import compress, writer
from precast.pack.model import Pack, SpecializationStatus
from precast.pack.split import split_by_target
from precast.pack.writer import dump

__all__ = ["BuiltLibrary", "build_library"]

MANIFEST = ".precast-build.json"
"""Beside the library: what it was made of, so that an unchanged build need not be written again."""


@dataclass(frozen=True)
class BuiltLibrary:
    """What a build left in its folder."""

    library: Path
    built: BuiltPack
    bytes: int
    unchanged: bool
    tables: tuple[TableReport, ...] = ()

    def summary(self) -> dict[str, Any]:
        """For machines."""
        pack, tally = self.built.pack, self.built.tally
        return {
            "library": str(self.library),
            "bytes": self.bytes,
            "unchanged": self.unchanged,
            "targets": list(pack.targets),
            "code_objects": len(pack.objects),
            "code_bytes": sum(len(o.data) for o in pack.objects),
            "compiled": tally.compiled,
            "from_cache": tally.cached,
            "compile_seconds": round(tally.compile_seconds, 3),
            "failed": [{"job": j.label, "status": r.status, "reason": r.reason} for j, r in self.built.failures],
            "dispatch": [{**asdict(r), "rung": r.rung.name.lower()} for r in self.tables],
            "not_callable": [{"operator": o, "target": t, "reason": reason} for o, t, reason in not_callable(pack)],
        }

    def text(self) -> str:
        """For people."""
        pack, tally = self.built.pack, self.built.tally
        raw = sum(len(o.data) for o in pack.objects)
        lines = [
            f"{self.library}: {self.bytes:,} bytes, {len(pack.objects)} code objects ({raw:,} bytes raw) for "
            f"{', '.join(pack.targets)}" + ("; nothing had changed" if self.unchanged else ""),
            f"compiled {tally.compiled}, from the cache {tally.cached}, failed {tally.failed}",
        ]
        lines += [_table_text(r) for r in self.tables]
        lines += [f"not callable: {o} on {t}: {reason}" for o, t, reason in not_callable(pack)]
        return "\n".join(lines)


def _table_text(r: TableReport) -> str:
    rung = r.rung.name.lower().replace("_", " ")
    text = f"{r.operator} {r.specialization} on {r.target}: {rung}"
    if r.problems:
        text += f" ({r.device}): {r.problems} problems, {r.kept} of {r.configs} configs kept"
    if r.mean_regret >= 0:
        text += f", held-out regret {100 * r.mean_regret:.1f} % mean, {100 * r.worst_regret:.1f} % worst"
    return text + (f"; {r.note}" if r.note else "")


def not_callable(pack: Pack) -> list[tuple[str, str, str]]:
    """Operator, target and reason of every specialization that was wanted and could not be built."""
    return [
        (o.name, pack.targets[t.target], s.reason)
        for o in pack.operators
        for t in o.targets
        for s in t.specializations
        if s.status == SpecializationStatus.FAILED
    ]


def _digest(pack: Pack, split: bool) -> str:
    """Of all that the files depend on."""
    digest = hashlib.sha256(repr((replace(pack, objects=()), split)).encode())
    for o in pack.objects:
        digest.update(o.sha256)
    for name in ("libprecast_runtime.a", "library/library.cpp"):
        digest.update(hashlib.sha256(native_file(name).read_bytes()).digest())
    for module in (headers, link, compress, writer):
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()


def _file_digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    return {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in names}


def _unchanged(folder: Path, digest: str) -> list[str] | None:
    """Names of the files that an equal build left, if they are all still as it left them."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        if manifest["digest"] != digest or _file_digests(folder, manifest["files"]) != manifest["files"]:
            return None
        return list(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def build_library(
    family: str | Path,
    output: Path,
    options: BuildOptions,
    *,
    split: bool = False,
    tuning: Tuning | None = None,
    progress: Progress | None = None,
) -> BuiltLibrary:
    """Builds a family's library into a folder: the library, its headers, CMake and pkg-config files.

    Raises:
        FamilyError, DescriptionError, BuildError: if the family or what was asked of it is wrong.
        LibraryError: if the library can't be linked or the folder can't be written.
    """
    bound, location = bound_family(family)
    dispatch = Dispatch()
    if tuning is not None:
        dispatch = dispatch_from(bound, tuple(options.targets), options.selection, tuning)
        options = replace(options, tuned=dispatch.tuned)
    built = make_pack(bound, location, options, progress)
    digest = _digest(built.pack, split)
    library = output / f"lib{bound.name}.so"
    files = _unchanged(output, digest)
    unchanged = files is not None
    if files is None:
        parts = split_by_target(built.pack) if split else [("", built.pack)]
        packs = {name: dump(part) for name, part in parts}
        written = link_library(built.pack, packs, output)
        names = sorted(str(p.relative_to(output)) for p in written)
        manifest = {"digest": digest, "files": _file_digests(output, names)}
        temporary = output / f"{MANIFEST}.new"
        temporary.write_text(json.dumps(manifest, indent=1, sort_keys=True))
        temporary.replace(output / MANIFEST)
        files = names
    size = sum((output / n).stat().st_size for n in files if n.endswith((".so", ".pack")))
    return BuiltLibrary(library, built, size, unchanged, tuple(dispatch.reports))
