"""What is compiled, and what came of it, as plain values that cross processes and files."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import Any

__all__ = ["CompileJob", "CompileResult", "DtypeConstant", "JobStatus", "KernelReference", "cache_key"]

FORMAT = 1
"""Raised whenever what a worker produces for the same job changes."""


class JobStatus:
    """How a compile ended."""

    OK = "ok"
    ERROR = "compile error"
    CRASH = "crash"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class KernelReference:
    """Where a worker finds a kernel: a module, importable as it is or from a family's folder."""

    package: str
    folder: str
    module: str
    qualname: str


@dataclass(frozen=True)
class DtypeConstant:
    """A constexpr that is a dtype, by Triton's name."""

    name: str


@dataclass(frozen=True)
class CompileJob:
    """One call of the compiler.

    Attributes:
        kernel: the jitted function.
        source_hash: digest of its source with all that it calls and the constants that it uses.
        signature: parameter name and Triton type, in order ("constexpr" for those with a constant).
        constants: parameter name and value: bool, int, float, text, None, `DtypeConstant`, or a tuple of these.
        divisible: parameters known to be divisible by 16.
        small_range: pointers known to span less than 2**31 bytes (AMD).
        options: compile options, every one that the environment could change included.
        target: name of the target.
        triton_version: version of the compiler.
        keep_ptx: also keep the PTX.
    """

    kernel: KernelReference
    source_hash: str
    signature: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Any], ...]
    divisible: tuple[str, ...]
    small_range: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    target: str
    triton_version: str
    keep_ptx: bool = False

    @property
    def label(self) -> str:
        """A short text for progress and messages."""
        constants = " ".join(f"{k}={_short(v)}" for k, v in self.constants)
        options = " ".join(f"{k}={v}" for k, v in self.options if k in ("num_warps", "num_stages"))
        types = ",".join(t for _, t in self.signature if t != "constexpr" and t.startswith("*"))
        return f"{self.kernel.qualname}[{types}] {constants} {options} ({self.target})"


def _short(value: Any) -> Any:
    return value.name if isinstance(value, DtypeConstant) else value


@dataclass(frozen=True)
class CompileResult:
    """What a compile gave.

    Attributes:
        status: one of `JobStatus`.
        reason: why it failed; empty if it didn't.
        code: the cubin or hsaco.
        ptx: PTX text, if it was asked for.
        metadata: launch facts: name, num_warps (all of them, with those of warp specialization), threads,
            shared, num_ctas, scratch sizes, tensor map facts, cooperative and dependent launch.
        registers: per thread.
        spills: bytes of local memory per thread.
        seconds: how long the compiler took.
    """

    status: str
    reason: str = ""
    code: bytes = b""
    ptx: bytes = b""
    metadata: dict[str, Any] = field(default_factory=dict)
    registers: int = 0
    spills: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether there is code."""
        return self.status == JobStatus.OK


@functools.lru_cache(maxsize=1 << 16)
def cache_key(job: CompileJob) -> str:
    """Digest of everything that the compiled code depends on; where the kernel's file lies is not of it."""
    facts = [getattr(job, f.name) for f in fields(job) if f.name != "kernel"]
    text = json.dumps([FORMAT, job.kernel.qualname, *facts], default=vars)
    return hashlib.sha256(text.encode()).hexdigest()
