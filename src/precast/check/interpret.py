"""Running an operator's kernels in Triton's interpreter, as the runtime would launch them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from precast.build.assemble import trace_grid
from precast.build.enumerate import (
    Choice,
    Specialization,
    both,
    choice_values,
    choices,
    constant_value,
    runtime_values,
    specializations,
    why_excluded,
)
from precast.build.interface import feature_expression
from precast.build.lower import present, workspace_bytes
from precast.check.cpu_tensor import CpuTensor, allocate
from precast.describe.bind import Binding, BoundKernel, BoundOperator, BoundPlan
from precast.describe.expression import as_expression, evaluate
from precast.describe.namespace import call
from precast.reference import DTYPES, Array
from precast.targets import Target

__all__ = ["Unsupported", "plans_for", "run_plan"]

SIMULATED_MULTIPROCESSORS = 4


class Unsupported(Exception):  # noqa: N818
    """The description excludes this call; the text is its reason."""


@dataclass
class _Bound:
    spec: Specialization
    symbols: dict[str, int]
    arguments: Mapping[str, Any]


def _symbols(operator: BoundOperator, arguments: Mapping[str, Any]) -> dict[str, int]:
    """The integers that a call's lambdas see."""
    symbols = {"num_sms": SIMULATED_MULTIPROCESSORS}
    for a in operator.arguments:
        value = arguments.get(a.name)
        if a.tensor is not None:
            symbols[f"{a.name}.present"] = int(value is not None)
            for axis in range(a.tensor.rank):
                symbols[f"{a.name}.shape[{axis}]"] = 0 if value is None else value.shape[axis]
                symbols[f"{a.name}.stride[{axis}]"] = 0 if value is None else value.strides[axis] // value.itemsize
        elif a.kind == "choice":
            symbols[a.name] = a.labels.index(value) if isinstance(value, str) else int(value or 0)
        elif a.kind != "float":
            symbols[a.name] = int(value if value is not None else a.default or 0)
    return symbols


def _bind(operator: BoundOperator, arguments: Mapping[str, Any], target: Target) -> _Bound:
    """What a call's symbols are, and which specialization it has."""
    symbols = _symbols(operator, arguments)
    types = {}
    for name, dtypes in operator.types.items():
        having = [arguments[n] for n, t in operator.tensors.items() if t.dtype == name and arguments.get(n) is not None]
        types[name] = next(d for d in dtypes if d in DTYPES and DTYPES[d] == having[0].dtype)
    features: dict[str, Any] = {}
    for name, declared in operator.features.items():
        number = evaluate(feature_expression(operator, name), symbols)
        if isinstance(declared.values[0], str):
            features[name] = declared.values[number]
        else:
            matching = [v for v in declared.values if int(v) == number]
            if not matching:
                raise Unsupported(f"{name}={number} was not built; there are {', '.join(map(str, declared.values))}")
            features[name] = matching[0]
    for spec in specializations(operator):
        if spec.types == types and spec.features == features:
            reason = why_excluded(operator, spec, target)
            if reason is not None:
                raise Unsupported(reason)
            return _Bound(spec, symbols, arguments)
    raise Unsupported("no such specialization")


def plans_for(operator: BoundOperator, arguments: Mapping[str, Any], target: Target) -> list[BoundPlan]:
    """Plans that can do a call on a target, those of Gluon left out, which has no interpreter.

    Raises:
        Unsupported: if the description excludes the call.
    """
    bound = _bind(operator, arguments, target)
    values = {**runtime_values(operator), **bound.spec.values()}
    return [
        plan
        for plan in operator.plans
        if plan.applies_to(target.name)
        and evaluate(as_expression(call(plan.when, values)), bound.symbols)
        and all(_maps_fit(k, arguments) and not k.function.gluon for k in plan.kernels)
    ]


def _maps_fit(kernel: BoundKernel, arguments: Mapping[str, Any]) -> bool:
    """Whether TMA can read the tensors that a kernel takes as descriptors."""
    for b in kernel.bindings:
        if b.kind == "tensor_map":
            array = arguments[b.source]
            strides = [s // array.itemsize for s in array.strides]
            if array.size == 0 or strides[-1] != 1 or any(s * array.itemsize % 16 for s in strides[:-1]):
                return False
    return True


def run_plan(operator: BoundOperator, plan: BoundPlan, arguments: Mapping[str, Any], target: Target) -> None:
    """Runs a plan's kernels on arrays; outputs among the arguments are written in place.

    Args:
        operator: the operator.
        plan: one of `plans_for`.
        arguments: by public name; outputs too.
        target: whose configs are used.
    """
    widened = {name: _widen(value) for name, value in arguments.items()}
    spec = _bind(operator, arguments, target).spec
    bound = _Bound(spec, _symbols(operator, widened), widened)
    workspaces: dict[str, Array] = {}
    for kernel in plan.kernels:
        choice = _choose(operator, kernel, bound, target)
        values = choice_values(operator, kernel, bound.spec, choice)
        grid = tuple(evaluate(size, bound.symbols) for size in trace_grid(operator, kernel, bound.spec, values))
        if 0 in grid:
            continue
        given = {b.parameter.name: _argument(b, kernel, bound, values, workspaces) for b in kernel.bindings}
        kernel.function.jit[grid](**given)
    for name, value in arguments.items():
        if widened[name] is not value:
            value[...] = widened[name].astype(value.dtype)


def _widen(value: Any) -> Any:
    """bfloat16 arrays as float32: the interpreter has no bfloat16 arithmetic."""
    if isinstance(value, np.ndarray) and value.dtype == DTYPES["bf16"]:
        wide = np.empty_like(value, dtype=np.float32)
        wide[...] = value
        return wide
    return value


def _choose(operator: BoundOperator, kernel: BoundKernel, bound: _Bound, target: Target) -> Choice:
    for _, found in choices(operator, kernel, bound.spec, target):
        for choice in found:
            if choice.preferred is not False and evaluate(
                as_expression(both(both(choice.needed, choice.preferred), as_expression(1))), bound.symbols
            ):
                return choice
    raise Unsupported(f"no config of {kernel.label} is for this call")


def _argument(
    b: Binding, kernel: BoundKernel, bound: _Bound, values: Mapping[str, Any], workspaces: dict[str, Array]
) -> Any:
    if b.kind == "feature":
        return bound.spec.features[b.source]
    if b.kind == "constant":
        return constant_value(b.declaration, bound.spec)
    if b.kind in ("tuning", "heuristic", "default"):
        return values.get(b.parameter.name, b.parameter.default)
    if b.kind == "pointer":
        array = bound.arguments.get(b.source)
        return CpuTensor(array) if array is not None and present(b.declaration, bound.spec) else None
    if b.kind == "tensor_map":
        from triton.tools.tensor_descriptor import TensorDescriptor

        tensor = CpuTensor(bound.arguments[b.source])
        block = [int(x) for x in call(b.declaration.block, values)]
        return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block, b.declaration.padding)
    if b.kind == "workspace":
        if b.source not in workspaces:
            size = evaluate(as_expression(workspace_bytes(b.declaration, values, bound.spec)), bound.symbols)
            dtype = DTYPES[bound.spec.types.get(b.declaration.dtype, b.declaration.dtype)]
            workspaces[b.source] = allocate((max(1, size // dtype.itemsize),), dtype)
            if b.declaration.zero:
                workspaces[b.source][...] = np.zeros((), dtype)
        return CpuTensor(workspaces[b.source])
    if b.kind == "expression":
        return evaluate(as_expression(call(b.function, values)), bound.symbols)
    if b.kind == "float":
        value = bound.arguments.get(b.source)
        return float(value if value is not None else b.declaration.default)
    return bound.symbols[b.source]
