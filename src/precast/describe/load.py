"""Loading a family: a folder with a `family.py` that defines `family`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from precast.describe.declarations import Family
from precast.describe.faults import nearest
from precast.errors import UserError, missing_extra

__all__ = ["FamilyError", "FamilyLocation", "find_family", "import_family_module", "load_family", "shipped_families"]

SHIPPED = "precast.families"


class FamilyError(UserError):
    """A family can't be found or loaded; the message says what to do."""


@dataclass(frozen=True)
class FamilyLocation:
    """Where a family's modules are: importable as `package`, from `folder`."""

    name: str
    folder: Path
    package: str

    @property
    def shipped(self) -> bool:
        """Whether it comes with precast."""
        return self.package.startswith(SHIPPED + ".")


def _shipped_folder() -> Path:
    return Path(__file__).resolve().parent.parent / "families"


def shipped_families() -> list[str]:
    """Names of the families that precast ships."""
    root = _shipped_folder()
    return sorted(p.parent.name for p in root.glob("*/family.py")) if root.is_dir() else []


def find_family(name_or_folder: str | Path) -> FamilyLocation:
    """A folder with a `family.py`, or the name of a family that precast ships.

    Raises:
        FamilyError: if there is none.
    """
    text = str(name_or_folder)
    folder = Path(text)
    if text in shipped_families() and not (folder / "family.py").is_file():
        return FamilyLocation(text, _shipped_folder() / text, f"{SHIPPED}.{text}")
    if folder.is_dir():
        if not (folder / "family.py").is_file():
            raise FamilyError(
                f"{text} has no family.py: a family is a folder whose family.py defines `family = Family(…)`"
            )
        resolved = folder.resolve()
        if resolved.parent == _shipped_folder():
            return FamilyLocation(resolved.name, resolved, f"{SHIPPED}.{resolved.name}")
        digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:8]
        return FamilyLocation(resolved.name, resolved, f"_precast_family_{resolved.name}_{digest}")
    raise FamilyError(
        f"no family {text!r}: it is neither a folder nor one that precast ships; {nearest(text, shipped_families())}"
    )


def _import_package(location: FamilyLocation) -> None:
    if location.shipped or location.package in sys.modules:
        return
    init = location.folder / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        location.package,
        init if init.is_file() else None,
        loader=None
        if init.is_file()
        else importlib.machinery.NamespaceLoader(location.package, [str(location.folder)], None),  # type: ignore[arg-type]
        submodule_search_locations=[str(location.folder)],
    )
    if spec is None:
        raise FamilyError(f"{location.folder} can't be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[location.package] = module
    if init.is_file() and spec.loader is not None:
        spec.loader.exec_module(module)


def import_family_module(location: FamilyLocation, module: str) -> ModuleType:
    """Imports a module of the family, such as "family" or "reference".

    Raises:
        FamilyError: if it is missing or fails to import, with the cause.
    """
    if not (location.folder / f"{module}.py").is_file():
        raise FamilyError(f"{location.folder} has no {module}.py")
    try:
        _import_package(location)
        return importlib.import_module(f"{location.package}.{module}")
    except Exception as error:
        remedy = missing_extra(error)
        reason = f"{type(error).__name__}: {error}" + (f"; {remedy}" if remedy else "")
        raise FamilyError(f"{location.folder / f'{module}.py'} fails to import: {reason}") from error


def load_family(name_or_folder: str | Path) -> tuple[Family, FamilyLocation]:
    """The family and where it is.

    Raises:
        FamilyError: if it can't be found or imported, or doesn't define `family`.
    """
    location = find_family(name_or_folder)
    module = import_family_module(location, "family")
    family = getattr(module, "family", None)
    if not isinstance(family, Family):
        raise FamilyError(f"{location.folder / 'family.py'} doesn't define `family = Family(…)`")
    return family, location
