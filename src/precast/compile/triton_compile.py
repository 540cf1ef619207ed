"""The only place that calls Triton's compiler. It runs in worker processes and needs no GPU."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from precast.compile.job import CompileJob, CompileResult, DtypeConstant, JobStatus
from precast.compile.resources import amd_resources, cubin_resources
from precast.describe.load import FamilyLocation, import_family_module
from precast.describe.signature import read_kernel
from precast.targets import find_target

__all__ = ["SCRUBBED", "compile_job", "descriptor_layout", "scrub_environment", "source_hash", "triton_version"]

SCRUBBED = re.compile(r"^(TRITON_|AMDGCN_|LLVM_|DISABLE_PTXAS_OPT|PTXAS_OPTIONS|NVPTX_|MLIR_|USE_IR_LOC)")
"""Environment variables that change what Triton compiles; a build must not depend on them."""

KEPT = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")


def scrub_environment() -> None:
    """Takes what could change the compiled code out of the environment, and sets what precast fixes."""
    for name in list(os.environ):
        if SCRUBBED.match(name) and name not in KEPT:
            del os.environ[name]
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"


def triton_version() -> str:
    """Version of the installed Triton."""
    import triton

    return str(triton.__version__)


def source_hash(jit_function: Any) -> str:
    """Digest of a kernel's source with all that it calls and the constants that it uses; not of where it stands."""
    _forget_lines(jit_function)
    return str(jit_function.cache_key)


def _forget_lines(jit_function: Any) -> None:
    """Triton's digest has the line that a function starts at, which only debug information needs."""
    if jit_function.hash is None and jit_function.starting_line_number != 0:
        jit_function.starting_line_number = 0
        for value in jit_function.fn.__globals__.values():
            if type(value) is type(jit_function):
                _forget_lines(value)


def descriptor_layout(block: tuple[int, ...], dtype: str) -> str:
    """Shared memory layout that a Gluon kernel's descriptor argument has for a block, as its type's text says it.

    The layout is Gluon's default: the widest swizzle that the block allows.
    """
    import triton.language as tl
    from triton.experimental.gluon.language import NVMMASharedLayout

    return repr(NVMMASharedLayout.get_default_for(list(block), tl.dtype(dtype)))


def _find_kernel(job: CompileJob) -> Any:
    import importlib

    reference = job.kernel
    if reference.module.startswith(reference.package + "."):
        location = FamilyLocation("", Path(reference.folder), reference.package)
        module = import_family_module(location, reference.module.removeprefix(reference.package + "."))
    else:
        module = importlib.import_module(reference.module)
    found: Any = module
    for part in reference.qualname.split("."):
        found = getattr(found, part)
    return read_kernel(found)


def _constant(value: Any) -> Any:
    if isinstance(value, DtypeConstant):
        import triton.language as tl

        return tl.dtype(value.name)
    return tuple(_constant(v) for v in value) if isinstance(value, tuple) else value


def compile_job(job: CompileJob) -> CompileResult:
    """Compiles one job; a failure of the compiler is a result with its reason, not an exception."""
    import triton
    from triton.backends.compiler import GPUTarget

    target = find_target(job.target)
    gpu = GPUTarget(target.backend, target.arch, target.warp_size)
    folder = tempfile.mkdtemp(prefix="precast-compile-")
    triton.knobs.cache.dir = folder
    triton.knobs.compilation.disable_line_info = True
    start = time.perf_counter()
    try:
        kernel = _find_kernel(job)
        names = [name for name, _ in job.signature]
        attributes: dict[tuple[int], list[list[Any]]] = {}
        for name in job.divisible:
            attributes.setdefault((names.index(name),), []).append(["tt.divisibility", 16])
        for name in job.small_range:
            attributes.setdefault((names.index(name),), []).append(["tt.pointer_range", 32])
        constants = {name: _constant(value) for name, value in job.constants}
        if kernel.gluon:
            from triton.experimental.gluon._runtime import GluonASTSource as Source
        else:
            from triton.compiler import ASTSource as Source
        source = Source(kernel.jit, dict(job.signature), constants, attributes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = triton.compile(source, target=gpu, options=dict(job.options))
        return _result(job, compiled, time.perf_counter() - start)
    except Exception as error:  # whatever the compiler raises is this config's reason
        reason = _reason(error)
        return CompileResult(JobStatus.ERROR, reason, seconds=time.perf_counter() - start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reason(error: BaseException) -> str:
    """The innermost cause: what surrounds it are the calls that led there."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error).strip() or type(error).__name__
    lines = [line for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: " + "\n".join(lines[-12:])[-2000:]


def _result(job: CompileJob, compiled: Any, seconds: float) -> CompileResult:
    target = find_target(job.target)
    raw = compiled.metadata._asdict()
    metadata = {
        "name": raw["name"],
        "threads": raw["num_warps"] * target.warp_size,
        "shared": raw["shared"],
        "num_ctas": raw.get("num_ctas", 1) or 1,
        "global_scratch_size": raw.get("global_scratch_size") or 0,
        "global_scratch_align": raw.get("global_scratch_align") or 1,
        "profile_scratch_size": raw.get("profile_scratch_size") or 0,
        "profile_scratch_align": raw.get("profile_scratch_align") or 1,
        "cooperative": bool(raw.get("launch_cooperative_grid")),
        "dependent_launch": bool(raw.get("launch_pdl")),
        "tensordesc_meta": [dict(m) for m in raw.get("tensordesc_meta") or []],
        "tmem_size": raw.get("tmem_size") or 0,
    }
    if metadata["shared"] > target.shared_bytes:
        reason = f"needs {metadata['shared']} bytes of shared memory; {target} has {target.shared_bytes} for a block"
        return CompileResult(JobStatus.ERROR, reason, seconds=seconds)
    if metadata["threads"] > 1024:
        return CompileResult(JobStatus.ERROR, f"needs {metadata['threads']} threads; a block has 1024", seconds=seconds)
    code = bytes(compiled.kernel)
    if target.vendor == "nvidia":
        registers, spills = cubin_resources(code)
    else:
        registers, spills = amd_resources(compiled.asm["amdgcn"])
    ptx = compiled.asm["ptx"].encode() if job.keep_ptx and target.vendor == "nvidia" else b""
    return CompileResult(JobStatus.OK, "", code, ptx, metadata, registers, spills, seconds)
