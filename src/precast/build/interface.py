"""The part of an operator's tables that no target changes: arguments, checks, types, features, key."""

from __future__ import annotations

from typing import Any

from precast.build.enumerate import runtime_values
from precast.build.tables import OperatorTables
from precast.describe.bind import BoundOperator, PublicArgument
from precast.describe.dtypes import DTYPES, find_dtype
from precast.describe.expression import Expression, ExpressionError, as_expression, select, symbol
from precast.describe.namespace import call
from precast.pack import model as m

__all__ = ["key_expressions", "make_arguments", "make_checks", "make_features", "make_key", "make_types"]

INVALID_ARGUMENT = 1
"""PRECAST_INVALID_ARGUMENT."""

_KINDS = {
    "tensor": m.ArgumentKind.TENSOR,
    "int": m.ArgumentKind.INT,
    "float": m.ArgumentKind.FLOAT,
    "bool": m.ArgumentKind.BOOL,
    "choice": m.ArgumentKind.CHOICE,
}


def _shape_text(shape: tuple[Any, ...]) -> str:
    entries = ["*" if e is None else "…" if callable(e) else str(e) for e in shape]
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


def _dim(operator: BoundOperator, name: str, axis: int, entry: Any, values: dict[str, Any]) -> Expression | None:
    """What a dim must be, as an expression of other arguments; None if any size will do."""
    if entry is None:
        return None
    if isinstance(entry, int):
        return as_expression(entry)
    if isinstance(entry, str):
        owner = operator.dims[entry]
        return None if owner == (name, axis) else symbol(f"{owner[0]}.shape[{owner[1]}]")
    return as_expression(call(entry, values))


def _output_dims(operator: BoundOperator, name: str) -> list[Expression]:
    """An output's dims as expressions of inputs; none if they don't all follow from them, or it is no output."""
    t = operator.tensors[name]
    if not t.output:
        return []
    outputs = {n for n, other in operator.tensors.items() if other.output}
    values = runtime_values(operator)
    dims = [_dim(operator, name, i, e, values) for i, e in enumerate(t.shape)]
    known = [d for d in dims if d is not None and not any(s.partition(".")[0] in outputs for s in d.symbols())]
    return known if len(known) == len(dims) else []


def make_arguments(operator: BoundOperator, tables: OperatorTables) -> tuple[m.Argument, ...]:
    """Public arguments, with the dims of outputs where they follow from inputs."""
    types = list(operator.types)

    def make(a: PublicArgument) -> m.Argument:
        if a.tensor is None:
            default = a.default if a.default is not None else 0
            return m.Argument(
                a.name,
                _KINDS[a.kind],
                optional=a.optional,
                labels=a.labels,
                default_int=int(default) if a.kind != "float" else 0,
                default_float=float(default) if a.kind == "float" else 0.0,
            )
        t = a.tensor
        return m.Argument(
            a.name,
            m.ArgumentKind.TENSOR,
            optional=t.when is not None,
            output=t.output,
            in_place_with=m.NO_INDEX if t.in_place_with is None else tables.argument_index[t.in_place_with],
            rank=t.rank,
            type_variable=types.index(t.dtype) if t.dtype in operator.types else m.NO_INDEX,
            fixed_dtype=0 if t.dtype in operator.types else find_dtype(t.dtype).packed,
            shape=tuple(tables.expression(d) for d in _output_dims(operator, a.name)),
            shape_text=_shape_text(t.shape),
        )

    return tuple(make(a) for a in operator.arguments)


def make_checks(operator: BoundOperator, tables: OperatorTables) -> tuple[m.Check, ...]:
    """Dims that must agree, tensors that must be there, and the description's own checks."""
    values = runtime_values(operator)
    checks: list[m.Check] = []
    # Outputs may be left out when asking; where their dims follow from inputs, the runtime then supposes these.
    may_be_absent = {
        n for n, t in operator.tensors.items() if t.when is not None or (t.output and not _output_dims(operator, n))
    }
    for name, t in operator.tensors.items():
        for axis, entry in enumerate(t.shape):
            wanted = _dim(operator, name, axis, entry, values)
            if wanted is None:
                continue
            given = symbol(f"{name}.shape[{axis}]")
            holds = given == wanted
            for s in sorted({x.partition(".")[0] for x in wanted.symbols()} | {name}):
                if s in may_be_absent:
                    holds = select(symbol(f"{s}.present"), holds, 1)
            says = f" ({entry})" if isinstance(entry, str) else ""
            message = f"{given} must be {wanted}{says}"
            checks.append(m.Check(tables.expression(holds), INVALID_ARGUMENT, message))
        if t.when is not None and (needed := _symbolic_when(operator, t.when)) is not None:
            holds = select(needed, symbol(f"{name}.present"), 1)
            message = f"{name} must be given when {needed}"
            checks.append(m.Check(tables.expression(holds), INVALID_ARGUMENT, message))
    for name, axis in _unbound_strides(operator):
        checks.append(_stride_check(operator, name, axis, tables))
    for function, message in operator.checks:
        checks.append(m.Check(tables.expression(as_expression(call(function, values))), INVALID_ARGUMENT, message))
    return tuple(checks)


def _unbound_strides(operator: BoundOperator) -> list[tuple[str, int]]:
    """Strides that some kernel reads a tensor by address without taking: it must assume them to be compact."""
    found: dict[tuple[str, int], None] = {}
    for plan in operator.plans:
        for kernel in plan.kernels:
            taken = {b.source for b in kernel.bindings if b.kind == "slot"}
            for b in kernel.bindings:
                if b.kind == "pointer":
                    rank = operator.tensors[b.source].rank
                    found |= {
                        (b.source, axis): None for axis in range(rank) if f"{b.source}.stride[{axis}]" not in taken
                    }
    return list(found)


def _stride_check(operator: BoundOperator, name: str, axis: int, tables: OperatorTables) -> m.Check:
    rank = operator.tensors[name].rank
    size, stride = symbol(f"{name}.shape[{axis}]"), symbol(f"{name}.stride[{axis}]")
    if axis == rank - 1:
        wanted, says = as_expression(1), "1"
    else:
        wanted = symbol(f"{name}.shape[{axis + 1}]") * symbol(f"{name}.stride[{axis + 1}]")
        says = f"{name}.shape[{axis + 1}] * {name}.stride[{axis + 1}]"
    holds = (size <= 1) | (stride == wanted)
    for other in (i for i in range(rank) if i != axis):
        holds = holds | (symbol(f"{name}.shape[{other}]") == 0)
    message = f"{name}.stride[{axis}] must be {says}: a kernel reads {name} without taking this stride"
    return m.Check(tables.expression(holds), INVALID_ARGUMENT, message)


def feature_expression(operator: BoundOperator, name: str) -> Expression:
    """A feature's value for a call."""
    declared = operator.features[name]
    if declared.value is not None:
        return as_expression(call(declared.value, runtime_values(operator)))
    return symbol(declared.name or name.lower())


def _symbolic_when(operator: BoundOperator, when: Any) -> Expression | None:
    """A tensor's `when` over features' expressions; None if it can't be traced or is derived from presence."""
    features = {n: feature_expression(operator, n) for n in operator.features}
    try:
        traced = as_expression(call(when, features))
    except (ExpressionError, AttributeError):
        return None
    return None if not traced.symbols() or any(s.endswith(".present") for s in traced.symbols()) else traced


def make_types(operator: BoundOperator, tables: OperatorTables) -> tuple[m.TypeVariable, ...]:
    """Type variables, each with the first tensor that has it (an input if there is one)."""
    result = []
    for name, dtypes in operator.types.items():
        having = [a for a in operator.arguments if a.tensor is not None and a.tensor.dtype == name]
        having.sort(key=lambda a: (a.tensor is not None and a.tensor.output, a.optional))
        argument = tables.argument_index[having[0].name]
        packed = tuple(DTYPES[d].packed for d in dtypes)
        result.append(m.TypeVariable(name, argument, packed, tuple(DTYPES[d].long_name for d in dtypes)))
    return tuple(result)


def make_features(operator: BoundOperator, tables: OperatorTables) -> tuple[m.Feature, ...]:
    """Features with their values as integers; texts by their index."""
    result = []
    for name, declared in operator.features.items():
        texts = isinstance(declared.values[0], str)
        numbers = tuple(range(len(declared.values))) if texts else tuple(int(v) for v in declared.values)
        expression = tables.expression(feature_expression(operator, name))
        result.append(m.Feature(name, expression, numbers, tuple(str(v) for v in declared.values)))
    return tuple(result)


def key_expressions(operator: BoundOperator) -> dict[str, Expression]:
    """The tuning key, by name."""
    values = runtime_values(operator)
    return {
        name: as_expression(call(given, values) if callable(given) else values[name])
        for name, given in operator.key.items()
    }


def make_key(operator: BoundOperator, tables: OperatorTables) -> tuple[m.KeyField, ...]:
    """The tuning key."""
    return tuple(m.KeyField(name, tables.expression(e)) for name, e in key_expressions(operator).items())
