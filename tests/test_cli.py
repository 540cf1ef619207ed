"""The command line: what each command prints, its exit codes, and errors in one screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from precast.pack.writer import FORMAT_VERSION, MAGIC


def precast(*args: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "precast.cli.main", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **env}, check=False)


def test_targets() -> None:
    rows = json.loads(precast("targets", "--json").stdout)
    assert len(rows) == 15
    sm_89 = next(r for r in rows if r["target"] == "sm_89")
    assert sm_89["runs_code_of"] == ["sm_80", "sm_86", "sm_89"] and sm_89["warp_size"] == 32
    assert "gfx942" in precast("targets").stdout


def test_lint_exit_codes(families: Path) -> None:
    assert precast("lint", families / "autotuned").returncode == 0
    assert precast("lint", "softmax").returncode == 0
    missing = precast("lint", "sotfmax")
    assert missing.returncode == 2 and "did you mean 'softmax'" in missing.stderr and "Traceback" not in missing.stderr


def test_preview_counts(families: Path, tmp_path: Path) -> None:
    done = precast(
        "preview", families / "autotuned", "--targets", "sm_90,gfx942", "--json", XDG_CACHE_HOME=str(tmp_path)
    )
    result = json.loads(done.stdout)
    assert result["cached"] == 0 and result["code_objects"] > 10 and result["seconds"] > 0
    assert {r["target"] for r in result["rows"]} == {"sm_90", "gfx942"}
    assert all(r["specializations"] == 2 for r in result["rows"])


def test_build_inspect_and_verify(families: Path, compile_cache: Path, tmp_path: Path) -> None:
    common = ("build", families / "autotuned", "--targets", "sm_90", "-o", tmp_path / "out", "--cache", compile_cache)
    done = precast(*common, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["code_objects"] > 3
    assert "nothing had changed" in precast(*common).stdout
    library = tmp_path / "out" / "libautotuned.so"
    shown = precast("inspect", library, "--verify")
    assert (
        shown.returncode == 0
        and "every byte verified" in shown.stdout
        and "static default" in shown.stdout.replace("\n", " ")
    )
    data = bytearray(library.read_bytes())
    data[data.index(MAGIC + bytes([FORMAT_VERSION])) + 90] ^= 4
    library.write_bytes(data)
    assert precast("inspect", library, "--verify").returncode == 1
    assert precast("inspect", library).returncode == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("build", "softmax", "--targets", "sm90"), "did you mean 'sm_90'"),
        (("build", "softmax", "--targets", "sm_90", "--features", "BLOCK=77"), "never 77"),
        (("inspect", "/nowhere.so"), "nowhere"),
        (("build", "softmax"), "targets"),
        (("nonsense",), "nonsense"),
    ],
)
def test_bad_input_is_one_screen_without_a_traceback(args: tuple[str, ...], says: str) -> None:
    done = precast(*args)
    text = done.stdout + done.stderr
    assert done.returncode == 2 and says in text and "Traceback" not in text and len(text.splitlines()) < 25


def test_check_runs_kernels_on_the_cpu() -> None:
    done = precast("check", "vector_add")
    assert done.returncode == 0 and "24 ok" in done.stdout, done.stdout + done.stderr


def test_check_finds_a_wrong_kernel(tmp_path: Path) -> None:
    folder = tmp_path / "wrong"
    folder.mkdir()
    (folder / "kernels.py").write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(z_ptr, x_ptr, n, B: tl.constexpr):\n"
        "    at = tl.program_id(0) * B + tl.arange(0, B)\n    tl.store(z_ptr + at, tl.load(x_ptr + at) * 2, mask=at < n - 1)\n"
    )
    (folder / "family.py").write_text(
        "from precast.describe import *\nfrom .kernels import k\nfamily = Family('wrong', [Kernel(k, args={"
        "'z_ptr': tensor('fp32', shape=('n',), output=True), 'x_ptr': tensor('fp32', shape=('n',))}, configs=[Config({'B': 8})], "
        "grid=lambda a: (cdiv(a.n, a.B),))])\n"
    )
    (folder / "reference.py").write_text(
        "import numpy as np\nfrom precast.reference import Reference, random_array\n"
        "REFERENCES = {'k': Reference([{'n': 16}], lambda p, rng: {'x': random_array(rng, (p['n'],), 'fp32')}, "
        "lambda a: {'z': a['x'].astype(np.float64) * 2}, lambda a: {'z': a['x'] * 2})}\n"
    )
    done = precast("check", folder)
    assert done.returncode == 1 and "wrong: k" in done.stdout


def test_measuring_refuses_what_it_can_not_use(tmp_path: Path) -> None:
    made = precast("tune", "vector_add", "--targets", "sm_90", "--compile-only", "-o", tmp_path)
    assert made.returncode == 0, made.stderr
    pack = tmp_path / "vector_add.sm_90.pack"
    results = tmp_path / "results.jsonl"
    for flags, text in (
        (("--budget", "soon"), "not a time"),
        (("--operator", "nope"), "vector_add"),
        (("--problems", tmp_path / "none.jsonl"), "can't be read"),
        ((), "no problem to tune for"),
    ):
        done = precast("measure", pack, "--results", results, *flags)
        assert done.returncode == 2 and text in done.stderr.replace("\n", " "), (flags, done.stderr)
        assert not results.exists()
    both = precast("tune", "vector_add", "--targets", "sm_90,gfx942", "-o", tmp_path)
    assert both.returncode == 2 and "--compile-only" in both.stderr
