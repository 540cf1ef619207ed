"""Building the stand-in driver once, and running a test's body in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def standin_build() -> Path:
    """The folder with the stand-in driver and the C++ tests, built by CMake from what the wheel was built from."""
    folder = ROOT / "build" / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    cmake = shutil.which("cmake") or "cmake"
    with FileLock(str(ROOT / "build" / "tests.lock")):
        subprocess.run(
            [cmake, "-S", str(ROOT), "-B", str(folder), "-DPRECAST_TESTS=ON"], check=True, capture_output=True
        )
        subprocess.run([cmake, "--build", str(folder), "--parallel", "2"], check=True, capture_output=True)
    return folder


@pytest.fixture
def run(standin_build: Path, tmp_path: Path):
    """Runs Python text in a fresh process with the stand-in driver; the text sees everything of standin.py."""

    def start(body: str, *, expect: str = "done", **environment: str) -> str:
        script = "from standin import *\nimport ctypes, sys\nfrom pathlib import Path\nfrom precast.pack.writer import write\n"
        script += (
            f"folder = Path({str(tmp_path)!r})\ndriver = ctypes.CDLL({str(standin_build / 'libstandin_cuda.so')!r})\n"
        )
        script += "driver.standin_record.restype = ctypes.POINTER(Record)\nrecord = driver.standin_record().contents\n"
        script += "def opened(**changes):\n    write(add_pack(**changes), folder / 'a.pack')\n    return Opened(folder / 'a.pack')\n"
        script += "z, x, y = (aligned(300) for _ in range(3)); tz, tx, ty = map(tensor, (z, x, y))\n"
        script += textwrap.dedent(body) + "\nprint('done')\n"
        env = {
            **os.environ,
            "PRECAST_CUDA_DRIVER": str(standin_build / "libstandin_cuda.so"),
            "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}",
            **environment,
        }
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
        assert expect in done.stdout
        return done.stdout + done.stderr

    return start
