"""From a kernel, a specialization, a config and an alignment class to a compile job and launch parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from precast.build.enumerate import Choice, Specialization, choice_values, constant_value
from precast.compile.job import CompileJob, DtypeConstant, KernelReference
from precast.compile.triton_compile import descriptor_layout, source_hash
from precast.describe.bind import Binding, BoundKernel, BoundOperator
from precast.describe.declarations import Alignment, Tensor
from precast.describe.dtypes import DTYPES, find_dtype
from precast.describe.load import FamilyLocation
from precast.describe.namespace import call
from precast.targets import Target

__all__ = ["LoweredKernel", "Parameter", "lower"]


@dataclass(frozen=True)
class Parameter:
    """One parameter that a launch passes, before descriptors are expanded."""

    binding: Binding
    type: str


@dataclass(frozen=True)
class LoweredKernel:
    """A compile job, with what a launch of its code passes and relies on.

    Attributes:
        job: what to compile.
        parameters: those that the compiled kernel takes, in order.
        alignment: the class.
        pointers: public names of tensors passed by address.
        maps: public names of tensors passed as TMA descriptors.
        int32: symbols passed as 32-bit integers.
        divisible: symbols compiled in as divisible by 16.
        ones: symbols compiled in as 1.
        small_range: public names of tensors known to span less than 2**31 bytes.
    """

    job: CompileJob
    parameters: tuple[Parameter, ...]
    alignment: Alignment
    pointers: tuple[str, ...]
    maps: tuple[str, ...]
    int32: tuple[str, ...]
    divisible: tuple[str, ...]
    ones: tuple[str, ...]
    small_range: tuple[str, ...]


def present(tensor: Tensor, spec: Specialization) -> bool:
    """Whether a tensor exists in a specialization."""
    return bool(call(tensor.when, spec.values()))


def _dtype_name(dtype: str, spec: Specialization) -> str:
    return spec.types.get(dtype, dtype)


def _plain_constant(value: Any) -> Any:
    """Constexpr values as they travel to workers: dtypes by name."""
    if type(value).__name__ == "dtype" and hasattr(value, "name"):
        return DtypeConstant(value.name)
    if hasattr(value, "packed") and getattr(value, "name", None) in DTYPES:
        return DtypeConstant(value.name)
    if isinstance(value, (tuple, list)):
        return tuple(_plain_constant(v) for v in value)
    return _plain_constant(value.value) if type(value).__name__ == "constexpr" else value


PORTABLE_PTX = 84
"""Version of the PTX that is kept for newer GPUs: Triton's own is as new as its assembler, which drivers lag behind."""


def options_for(choice: Choice, target: Target, keep_ptx: bool = False) -> tuple[tuple[str, Any], ...]:
    """Compile options, those that the environment could change fixed; other vendors' options dropped."""
    only_amd = {"waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint", "wgp_cu_mode"}
    only_nvidia = {"maxnreg", "launch_pdl", "ptx_options"}
    foreign = only_amd if target.vendor == "nvidia" else only_nvidia
    options = {k: v for k, v in choice.config.options.items() if k not in foreign}
    for name in ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu"):
        if name in choice.config.parameters and name not in foreign:
            options[name] = choice.config.parameters[name]
    options.setdefault("num_warps", 4)
    options.setdefault("enable_fp_fusion", True)
    if keep_ptx:
        options.setdefault("ptx_version", PORTABLE_PTX)
    return tuple(sorted(options.items()))


def lower(
    operator: BoundOperator,
    kernel: BoundKernel,
    spec: Specialization,
    choice: Choice,
    alignment: Alignment,
    target: Target,
    location: FamilyLocation,
    triton_version: str,
    keep_ptx: bool = False,
) -> LoweredKernel:
    """Lowers one variant of a kernel; pure but for reading the kernel's source."""
    values = choice_values(operator, kernel, spec, choice)
    tensors = operator.tensors
    signature: list[tuple[str, str]] = []
    constants: list[tuple[str, Any]] = []
    parameters: list[Parameter] = []
    facts: dict[str, list[str]] = {k: [] for k in ("pointers", "maps", "int32", "divisible", "ones", "small")}
    divisible_parameters: list[str] = []
    small_parameters: list[str] = []

    def constant(name: str, value: Any) -> None:
        signature.append((name, "constexpr"))
        constants.append((name, _plain_constant(value)))

    def parameter(b: Binding, type_name: str) -> None:
        signature.append((b.parameter.name, type_name))
        parameters.append(Parameter(b, type_name))

    for b in kernel.bindings:
        name = b.parameter.name
        if b.kind == "feature":
            constant(name, spec.features[name])
        elif b.kind == "constant":
            constant(name, constant_value(b.declaration, spec))
        elif b.kind in ("tuning", "heuristic"):
            constant(name, values.get(name, b.parameter.default))
        elif b.kind == "default":
            constant(name, b.declaration)
        elif b.kind == "pointer":
            declared: Tensor = b.declaration
            if not present(declared, spec):
                constant(name, None)
                continue
            const = "k" if b.parameter.const else ""
            parameter(b, f"*{const}{_dtype_name(declared.dtype, spec)}")
            facts["pointers"].append(b.source)
            if alignment.pointers and b.parameter.align and b.parameter.specialize:
                divisible_parameters.append(name)
            if target.vendor == "amd" and not alignment.wide and alignment.pointers:
                small_parameters.append(name)
                facts["small"].append(b.source)
        elif b.kind == "tensor_map":
            declared = b.declaration
            if not present(declared, spec):
                constant(name, None)
                continue
            block = tuple(int(x) for x in call(declared.block, values))
            dtype = _dtype_name(declared.dtype, spec)
            layout = f",{descriptor_layout(block, dtype)}" if kernel.function.gluon else ""
            parameter(b, f"tensordesc<{dtype}{list(block)}{layout}>")
            facts["maps"].append(b.source)
        elif b.kind == "workspace":
            parameter(b, f"*{_dtype_name(b.declaration.dtype, spec)}")
            if b.parameter.align and b.parameter.specialize:
                divisible_parameters.append(name)  # the library aligns its own memory
            if target.vendor == "amd":
                small_parameters.append(name)
        elif b.kind == "float":
            parameter(b, b.declaration.type or b.parameter.annotation or "fp32")
        elif b.kind == "expression":
            parameter(b, b.declaration.type or b.parameter.annotation or "i32")
        else:
            tensor = b.source.partition(".")[0] if b.kind == "slot" else None
            if tensor is not None and not present(tensors[tensor], spec):
                constant(name, 0)
                continue
            declared_type = b.parameter.annotation or getattr(b.declaration, "type", None)
            if name in alignment.equal_to_1 and b.parameter.specialize:
                constant(name, 1)
                facts["ones"].append(b.source)
                continue
            parameter(b, declared_type or ("i64" if alignment.wide else "i32"))
            if not declared_type and not alignment.wide and b.kind == "int":
                facts["int32"].append(b.source)
            if name in alignment.divisible_by_16 and b.parameter.specialize and b.parameter.align:
                divisible_parameters.append(name)
                facts["divisible"].append(b.source)
    function = kernel.function
    job = CompileJob(
        KernelReference(location.package, str(location.folder), function.module, function.qualname),
        source_hash(function.jit),
        tuple(signature),
        tuple(constants),
        tuple(divisible_parameters),
        tuple(small_parameters),
        options_for(choice, target, keep_ptx),
        target.name,
        triton_version,
        keep_ptx,
    )
    unique: Mapping[str, tuple[str, ...]] = {k: tuple(dict.fromkeys(v)) for k, v in facts.items()}
    return LoweredKernel(
        job, tuple(parameters), alignment, unique["pointers"], unique["maps"], unique["int32"], unique["divisible"],
        unique["ones"], unique["small"],
    )  # fmt: skip


def workspace_bytes(declaration: Any, values: Mapping[str, Any], spec: Specialization) -> Any:
    """Size of a workspace in bytes, as an expression."""
    shape = call(declaration.shape, values)
    size: Any = find_dtype(_dtype_name(declaration.dtype, spec)).itemsize
    for extent in shape if isinstance(shape, (tuple, list)) else (shape,):
        size = extent * size
    return size
