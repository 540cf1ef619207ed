"""A C++ program built with the generated CMake config runs attention."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_cmake_program_runs_attention(torch, library_path, tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    out = library_path("flash").parent
    subprocess.run(["cmake", "-S", ROOT / "examples" / "cpp", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={out}"], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    done = subprocess.run([tmp_path / "attention"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
