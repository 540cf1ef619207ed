"""Reading a `@triton.jit` or `@gluon.jit` function: its parameters, and what decorators around it say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from precast.describe.declarations import Config

__all__ = ["KernelFunction", "Parameter", "read_kernel"]

NO_DEFAULT = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel's signature."""

    name: str
    constexpr: bool
    annotation: str
    """Triton's canonical type text, or empty."""
    const: bool
    default: Any
    specialize: bool
    align: bool

    @property
    def has_default(self) -> bool:
        """Whether the signature gives a default."""
        return self.default is not NO_DEFAULT


@dataclass(frozen=True)
class KernelFunction:
    """The jitted function inside its decorators, and what these say."""

    jit: Any
    module: str
    qualname: str
    file: str
    line: int
    parameters: tuple[Parameter, ...]
    gluon: bool
    autotune_configs: tuple[Config, ...]
    autotune_key: tuple[str, ...]
    heuristics: dict[str, Callable[[Any], Any]]


def _take_config(config: Any) -> Config:
    return Config(
        config.kwargs,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        num_ctas=None if config.num_ctas == 1 else config.num_ctas,
        maxnreg=getattr(config, "maxnreg", None),
    )


def _canonical(annotation: Any) -> str:
    if annotation is NO_DEFAULT or annotation is None:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "name", None) or str(annotation)
    text = text.strip().strip("'\"").removeprefix("tl.")
    long_names = {
        "int1": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
        "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32",
        "float64": "fp64", "bool": "i1", "int": "", "float": "fp32",
    }  # fmt: skip
    return long_names.get(text, text)


def read_kernel(function: Any) -> KernelFunction:
    """Reads a decorated function.

    Raises:
        TypeError: if there is no jitted function in it.
    """
    configs: tuple[Config, ...] = ()
    key: tuple[str, ...] = ()
    heuristics: dict[str, Callable[[Any], Any]] = {}
    inner = function
    while not hasattr(inner, "params") and not _is_interpreted(inner):
        if hasattr(inner, "configs"):
            configs, key = tuple(_take_config(c) for c in inner.configs), tuple(inner.keys)
        elif isinstance(getattr(inner, "values", None), dict):
            heuristics.update(inner.values)
        if not hasattr(inner, "fn"):
            raise TypeError(f"{function!r} is no @triton.jit or @gluon.jit function")
        inner = inner.fn
    python = inner.fn
    unspecialized = set(getattr(inner, "do_not_specialize", None) or ())
    unaligned = set(getattr(inner, "do_not_specialize_on_alignment", None) or ())
    parameters = []
    for number, p in enumerate(inspect.signature(python).parameters.values()):
        annotation = _canonical(p.annotation)
        constexpr = "constexpr" in str(p.annotation)
        parameters.append(
            Parameter(
                p.name,
                constexpr,
                "" if constexpr else annotation.removeprefix("const "),
                not constexpr and annotation.startswith("const"),
                p.default,
                number not in unspecialized and p.name not in unspecialized,
                number not in unaligned and p.name not in unaligned,
            )
        )
    gluon = bool(getattr(inner, "is_gluon", lambda: False)())
    code = python.__code__
    return KernelFunction(
        inner, python.__module__, python.__qualname__, code.co_filename, code.co_firstlineno, tuple(parameters), gluon,
        configs, key, heuristics,
    )  # fmt: skip


def _is_interpreted(function: Any) -> bool:
    return type(function).__name__ == "InterpretedFunction"
