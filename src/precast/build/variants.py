"""From a compile result to the launch record that the runtime reads."""

from __future__ import annotations

from typing import Any

from precast.build.lower import LoweredKernel
from precast.build.tables import OperatorTables
from precast.compile.job import CompileResult
from precast.describe.declarations import Tensor
from precast.describe.namespace import call
from precast.pack import model as m

__all__ = ["class_mask", "make_variant"]

_SCALARS = {
    "i1": m.ScalarType.I8, "u1": m.ScalarType.I8, "i8": m.ScalarType.I8, "i16": m.ScalarType.I16,
    "i32": m.ScalarType.I32, "i64": m.ScalarType.I64, "u8": m.ScalarType.U8, "u16": m.ScalarType.U16,
    "u32": m.ScalarType.U32, "u64": m.ScalarType.U64, "fp16": m.ScalarType.FP16, "bf16": m.ScalarType.BF16,
    "fp32": m.ScalarType.FP32, "fp64": m.ScalarType.FP64,
}  # fmt: skip

TMA_DEVICE_TO_HOST = {8: 10, 9: 8, 10: 9}
"""Triton numbers these TMA element types otherwise in device code than the driver does."""


def class_mask(lowered: LoweredKernel, tables: OperatorTables) -> int:
    """The conditions under which the compiled code may run."""
    arguments, kinds = tables.argument_index, m.ConditionKind
    slot_tensors: dict[str, list[str]] = {}
    int32_slots = [tables.slot(s) for s in lowered.int32]
    if not lowered.alignment.wide:
        for p in lowered.parameters:
            if p.binding.kind == "slot" and p.type == "i32":
                slot_tensors.setdefault(p.binding.source.partition(".")[0], []).append(p.binding.source)
    by_offset = set() if lowered.alignment.wide else set(lowered.pointers)
    for tensor, sources in slot_tensors.items():
        if tensor in lowered.maps:
            int32_slots += [tables.slot(s) for s in sources]
        else:
            by_offset.add(tensor)
    mask = 0
    if lowered.alignment.pointers:
        mask |= tables.condition_mask(kinds.POINTERS_DIV16, [arguments[n] for n in lowered.pointers])
    mask |= tables.condition_mask(kinds.SLOTS_DIV16, [tables.slot(s) for s in lowered.divisible])
    mask |= tables.condition_mask(kinds.SLOTS_EQ1, [tables.slot(s) for s in lowered.ones])
    mask |= tables.condition_mask(kinds.SLOTS_INT32, int32_slots)
    mask |= tables.condition_mask(kinds.OFFSETS_INT32, [arguments[n] for n in sorted(by_offset)])
    mask |= tables.condition_mask(kinds.RANGE_INT32, [arguments[n] for n in lowered.small_range])
    mask |= tables.condition_mask(kinds.TENSOR_MAPS, [arguments[n] for n in lowered.maps])
    return mask


def make_variant(
    lowered: LoweredKernel,
    result: CompileResult,
    object_index: int,
    tables: OperatorTables,
    workspace_index: dict[str, int],
    kernel_name: str,
    values: dict[str, Any],
) -> m.Variant:
    """The launch record of one compiled kernel; `values` are what its lambdas see."""
    params: list[m.Param] = []
    maps: list[m.TensorMap] = []
    descriptors = list(result.metadata["tensordesc_meta"])
    kind = m.ParamKind
    for p in lowered.parameters:
        b = p.binding
        if b.kind == "pointer":
            params.append(m.Param(kind.POINTER, m.ScalarType.POINTER, tables.argument_index[b.source]))
        elif b.kind == "workspace":
            params.append(m.Param(kind.WORKSPACE, m.ScalarType.POINTER, workspace_index[b.source]))
        elif b.kind == "float":
            params.append(m.Param(kind.FLOAT, _SCALARS[p.type], tables.argument_index[b.source]))
        elif b.kind == "expression":
            params.append(m.Param(kind.EXPRESSION, _SCALARS[p.type], tables.expression(call(b.function, values))))
        elif b.kind == "tensor_map":
            meta = descriptors[len(maps)] if descriptors else None
            params += _descriptor_params(b.source, b.declaration, meta, maps, tables)
        else:
            params.append(m.Param(kind.SLOT, _SCALARS[p.type], tables.slot(b.source)))
    params.append(m.Param(kind.GLOBAL_SCRATCH, m.ScalarType.POINTER))
    params.append(m.Param(kind.PROFILE_SCRATCH, m.ScalarType.POINTER))
    meta = result.metadata
    flags = (m.VariantFlag.COOPERATIVE if meta["cooperative"] else 0) | (
        m.VariantFlag.DEPENDENT_LAUNCH if meta["dependent_launch"] else 0
    )
    return m.Variant(
        object=object_index,
        function=meta["name"],
        kernel=kernel_name,
        threads=meta["threads"],
        shared_bytes=meta["shared"],
        cluster=meta["num_ctas"],
        flags=flags,
        global_scratch_bytes=meta["global_scratch_size"],
        global_scratch_align=meta["global_scratch_align"],
        profile_scratch_bytes=meta["profile_scratch_size"],
        profile_scratch_align=meta["profile_scratch_align"],
        registers=result.registers,
        spills=result.spills,
        params=tuple(params),
        tensor_maps=tuple(maps),
        class_name=lowered.alignment.name,
    )


def _descriptor_params(
    name: str, declared: Tensor, meta: dict[str, Any] | None, maps: list[m.TensorMap], tables: OperatorTables
) -> list[m.Param]:
    """A descriptor argument as the kernel takes it: an encoded map, or its parts where there is no TMA.

    Either way the shape (32 bits) and the strides (64 bits) follow, as Triton's launcher passes them.
    """
    argument = tables.argument_index[name]
    kind, scalar = m.ParamKind, m.ScalarType
    shape = [tables.slot(f"{name}.shape[{i}]") for i in range(declared.rank)]
    strides = [tables.slot(f"{name}.stride[{i}]") for i in range(declared.rank)]
    params: list[m.Param] = []
    if meta is None:
        nan = tables.expression(int(declared.padding == "nan"))
        params.append(m.Param(kind.POINTER, scalar.POINTER, argument))
        params += [m.Param(kind.SLOT, scalar.I64, s) for s in (*shape, *strides)]
        params.append(m.Param(kind.CONSTANT, scalar.I8, nan))
        params.append(m.Param(kind.CONSTANT, scalar.I8, tables.expression(0)))
    else:
        element_type = int(meta["elem_type"])
        params.append(m.Param(kind.TENSOR_MAP, scalar.TENSOR_MAP, len(maps)))
        maps.append(
            m.TensorMap(
                argument=argument,
                data_type=TMA_DEVICE_TO_HOST.get(element_type, element_type),
                element_bytes=int(meta["elem_size"]),
                swizzle=int(meta["swizzle"]),
                fill_nan=declared.padding == "nan",
                fp4_padded=bool(meta.get("fp4_padded")),
                box=tuple(int(x) for x in meta["block_size"]),
            )
        )
    params += [m.Param(kind.SLOT, scalar.I32, s) for s in shape]
    params += [m.Param(kind.SLOT, scalar.I64, s) for s in strides]
    return params
