"""Imports run one way: a package imports none that comes after it."""

from __future__ import annotations

import ast
from pathlib import Path

import precast

ORDER = (
    "errors", "native", "reference", "targets", "describe", "compile", "pack", "database", "dispatch", "build",
    "runtime", "check", "tune", "cli",
)  # fmt: skip
"""As CONTRIBUTING.md has it."""

ROOT = Path(precast.__file__).parent


def imported(file: Path) -> set[str]:
    """Packages of precast that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found |= {n.split(".")[1] for n in names if n.startswith("precast.")}
    return found


def test_a_package_imports_none_that_comes_after_it() -> None:
    wrong = []
    for file in sorted(ROOT.rglob("*.py")):
        package = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if package in ("families", "__init__"):
            continue
        for other in imported(file):
            if ORDER.index(other) > ORDER.index(package):
                wrong.append(f"{file.relative_to(ROOT)} imports precast.{other}")
    assert not wrong, "\n".join(wrong)
