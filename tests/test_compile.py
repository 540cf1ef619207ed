"""Compiling in worker processes: failures are data, results are cached, nothing comes from the environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from precast.build.assemble import OperatorAssembly, Selection
from precast.build.build import BuildOptions, bound_family, make_pack
from precast.build.enumerate import specializations
from precast.compile.cache import CompileCache
from precast.compile.job import CompileJob, CompileResult, JobStatus, cache_key
from precast.compile.pool import CompileTally, compile_all
from precast.compile.triton_compile import triton_version
from precast.pack.model import SpecializationStatus
from precast.targets import find_target, parse_targets


def jobs_of(family: Path | str, target: str) -> list[CompileJob]:
    bound, location = bound_family(family)
    jobs = []
    for operator in bound.operators:
        assembly = OperatorAssembly(operator, location, triton_version(), Selection())
        jobs += [v.job for v in assembly.jobs(specializations(operator), find_target(target), lambda job: None)]
    return jobs


def with_constant(job: CompileJob, name: str, value: int) -> CompileJob:
    return replace(job, constants=tuple((k, value if k == name else v) for k, v in job.constants))


def test_crash_hang_and_error_are_results_with_reasons(families: Path, tmp_path: Path) -> None:
    job = jobs_of(families / "planted", "sm_90")[0]
    jobs = [with_constant(job, "MODE", mode) for mode in (1, 2, 3, 0)]
    results = compile_all(jobs, CompileCache(tmp_path), workers=2, timeout=15)
    assert [r.status for r in results] == [JobStatus.CRASH, JobStatus.TIMEOUT, JobStatus.ERROR, JobStatus.OK]
    assert "exit code" in results[0].reason
    assert "15 s" in results[1].reason
    assert "planted" in results[2].reason
    assert results[3].code[:4] == b"\x7fELF" and results[3].registers > 0


def test_a_build_goes_on_past_failures_and_reports_them(families: Path, tmp_path: Path) -> None:
    bound, location = bound_family(families / "planted")
    built = make_pack(bound, location, BuildOptions(parse_targets("sm_90"), timeout=15, cache=tmp_path))
    statuses = {r.status for _, r in built.failures}
    assert statuses == {JobStatus.CRASH, JobStatus.TIMEOUT, JobStatus.ERROR}
    spec = built.pack.operators[0].targets[0].specializations[0]
    assert spec.status == SpecializationStatus.BUILT
    assert built.pack.operators[0].targets[0].candidates[spec.candidates[0]].config.startswith("BLOCK=64 MODE=0")
    assert len(built.pack.notes) == len(built.failures)


def test_results_come_from_the_cache(families: Path, compile_cache: Path) -> None:
    jobs = jobs_of(families / "autotuned", "gfx942")
    cache = CompileCache(compile_cache)
    first = compile_all(jobs, cache)
    tallies: list[CompileTally] = []
    second = compile_all(jobs, cache, progress=lambda tally, job, result: tallies.append(tally))
    assert second == first
    assert tallies[-1].cached == tallies[-1].total and tallies[-1].compiled == 0


def test_a_damaged_cache_file_is_a_miss(families: Path, tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    result = CompileResult(JobStatus.OK, code=b"code" * 100, metadata={"name": "k"}, registers=3)
    cache.put("ab" * 32, result)
    assert cache.get("ab" * 32) == result
    path = next(p for p in tmp_path.rglob("*") if p.is_file())
    data = bytearray(path.read_bytes())
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        assert cache.get("ab" * 32) is None
    path.write_bytes(data[:-1])
    assert cache.get("ab" * 32) is None


@pytest.mark.parametrize(
    "change",
    [
        {"source_hash": "other"},
        {"target": "sm_80"},
        {"triton_version": "0.0"},
        {"options": (("num_warps", 2),)},
        {"divisible": ()},
        {"constants": (("BLOCK", 512),)},
        {"keep_ptx": True},
    ],
)
def test_the_key_depends_on_all_that_matters(families: Path, change: dict[str, object]) -> None:
    job = jobs_of(families / "autotuned", "sm_90")[0]
    assert cache_key(replace(job, **change)) != cache_key(job)  # type: ignore[arg-type]


def test_the_key_depends_on_functions_that_the_kernel_calls(tmp_path: Path) -> None:
    template = (
        "import triton\nimport triton.language as tl\nFACTOR = tl.constexpr({factor})\n"
        "@triton.jit\ndef inner(x):\n    return x {op} FACTOR\n"
        "@triton.jit\ndef k(y, n, B: tl.constexpr):\n    at = tl.arange(0, B)\n    tl.store(y + at, inner(at), mask=at < n)\n"
    )
    description = (
        "from precast.describe import *\nfrom .kernels import k\n"
        "family = Family('f', [Kernel(k, args={'y': tensor('i32', shape=('n',), output=True)}, "
        "configs=[Config({'B': 64})], grid=lambda a: (1,))])\n"
    )
    keys = set()
    for i, (op, factor) in enumerate((("+", 1), ("*", 1), ("+", 2))):
        folder = tmp_path / f"f{i}"
        folder.mkdir()
        (folder / "kernels.py").write_text(template.format(op=op, factor=factor))
        (folder / "family.py").write_text(description)
        keys.add(cache_key(jobs_of(folder, "sm_90")[0]))
    assert len(keys) == 3


def test_environment_does_not_change_the_code(families: Path, tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom precast.build.build import *\nfrom precast.targets import parse_targets\n"
        "if __name__ == '__main__':\n"
        "    b, l = bound_family(sys.argv[1])\n"
        "    p = make_pack(b, l, BuildOptions(parse_targets('sm_90'), cache=Path(sys.argv[2]))).pack\n"
        "    print(sorted(o.sha256.hex() for o in p.objects))\n"
    )
    (tmp_path / "run.py").write_text(script)
    outputs = []
    for i, extra in enumerate(
        ({}, {"TRITON_DEFAULT_FP_FUSION": "0", "TRITON_DISABLE_LINE_INFO": "0", "PTXAS_OPTIONS": "-O0"})
    ):
        command = [sys.executable, str(tmp_path / "run.py"), str(families / "autotuned"), str(tmp_path / f"cache{i}")]
        outputs.append(
            subprocess.run(command, env={**os.environ, **extra}, check=True, capture_output=True, text=True).stdout
        )
    assert outputs[0] == outputs[1] != "[]\n"


def test_interrupted_then_repeated_goes_on_where_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "precast.cli.main", "build", "vector_add", "--targets", "sm_80,sm_86,sm_90,gfx90a,gfx942,gfx1100",
               "--cache", str(tmp_path / "cache"), "-o", str(tmp_path / "out"), "--json"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "cache").glob("??/*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert not (tmp_path / "out" / "libvector_add.so").exists()
    kept = len(list((tmp_path / "cache").glob("??/*")))
    assert kept > 0
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    facts = json.loads(again.stdout)
    assert facts["from_cache"] >= kept
    assert facts["compiled"] > 0


def test_a_script_without_a_main_guard_can_build(families: Path, tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from precast.build.build import BuildOptions, bound_family, make_pack
from precast.targets import parse_targets
print("once")
bound, location = bound_family({str(families / "launch_features")!r})
print(make_pack(bound, location, BuildOptions(parse_targets("sm_90"), cache=Path({str(tmp_path)!r}))).tally)
"""
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.count("once") == 1 and "failed=0" in done.stdout
