"""The commands of README and docs are run, on the files that they show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text())


def commands(page: str) -> list[str]:
    return [
        line for kind, text in blocks(page) if kind == "sh" for line in text.splitlines() if line.startswith("precast ")
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/building.md", "docs/tuning.md"])
def test_commands_run(page: str, tmp_path: Path, compile_cache: Path) -> None:
    for kind, text in blocks(page):
        first = text.splitlines()[0]
        if kind == "python" and first.startswith("# ") and first.endswith(".py"):
            file = tmp_path / first.removeprefix("# ")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
    found = commands(page)
    assert found
    for line in found:
        words = [w.replace("FAMILY", "vector_add") for w in shlex.split(line)]
        env = {**os.environ, "PRECAST_CACHE": str(compile_cache)}
        command = [sys.executable, "-m", "precast.cli.main", *words[1:]]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
