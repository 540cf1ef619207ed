"""Enumerating what a family asks for: specializations, and the choices that each kernel has for one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from precast.describe.bind import BoundKernel, BoundOperator
from precast.describe.declarations import Config
from precast.describe.dtypes import DTYPES, find_dtype
from precast.describe.expression import Expression, as_expression, symbol
from precast.describe.namespace import TensorSymbol, call
from precast.targets import Target

__all__ = ["Choice", "Specialization", "both", "choices", "runtime_values", "specializations", "why_excluded"]


@dataclass(frozen=True)
class Specialization:
    """One choice of every type variable and feature of an operator."""

    index: int
    types: Mapping[str, str]
    features: Mapping[str, Any]

    @property
    def text(self) -> str:
        """For messages and progress."""
        return " ".join(f"{k}={v}" for k, v in {**self.types, **self.features}.items())

    def values(self) -> dict[str, Any]:
        """What lambdas over features and types see."""
        return {**{name: find_dtype(dtype) for name, dtype in self.types.items()}, **self.features}


@dataclass(frozen=True)
class Choice:
    """One config of a kernel, with the values of its heuristics.

    Attributes:
        needed: must hold for a call: what the config can do, and the heuristics' values that are compiled in.
        preferred: holds for the calls that the description prefers it for when nothing was measured; False if it
            never does.
    """

    config: Config
    heuristics: Mapping[str, Any]
    needed: Expression | None = None
    preferred: Expression | bool | None = None

    @property
    def text(self) -> str:
        """Canonical text of the config."""
        extra = " ".join(f"{k}={v}" for k, v in sorted(self.heuristics.items()))
        return f"{self.config.text} {extra}".strip()


def specializations(operator: BoundOperator) -> list[Specialization]:
    """All of an operator, in the order of the dispatch table: types first, the last feature fastest."""
    axes: list[Sequence[Any]] = [*operator.types.values(), *(f.values for f in operator.features.values())]
    names = [*operator.types, *operator.features]
    split = len(operator.types)
    result = []
    for index, combination in enumerate(itertools.product(*axes)):
        pairs = list(zip(names, combination, strict=True))
        result.append(Specialization(index, dict(pairs[:split]), dict(pairs[split:])))
    return result


def why_excluded(operator: BoundOperator, spec: Specialization, target: Target) -> str | None:
    """The reason why a combination is not built for a target, or None."""
    for exclusion in operator.exclusions:
        if call(exclusion.predicate, spec.values()):
            return exclusion.reason
    for name, dtype in spec.types.items():
        if dtype.startswith("fp8") and dtype not in target.fp8:
            have = ", ".join(DTYPES[d].long_name for d in target.fp8) or "none"
            return f"{name}={DTYPES[dtype].long_name}: {target} has no such type (its fp8 types: {have})"
    if not any(plan.applies_to(target.name) for plan in operator.plans):
        return f"no plan is for {target}"
    return None


def runtime_values(operator: BoundOperator, kernel: BoundKernel | None = None) -> dict[str, Any]:
    """What lambdas over a call's arguments see: dims, strides and integers by name, tensors, `num_sms`."""
    values: dict[str, Any] = {"num_sms": symbol("num_sms")}
    for name, (tensor, axis) in operator.dims.items():
        values[name] = symbol(f"{tensor}.shape[{axis}]")
    for argument in operator.arguments:
        if argument.tensor is not None:
            dtype = argument.tensor.dtype
            itemsize = find_dtype(dtype).itemsize if dtype in DTYPES else None
            values.setdefault(argument.name, TensorSymbol(argument.name, argument.tensor.rank, itemsize))
        elif argument.kind in ("int", "bool", "choice"):
            values.setdefault(argument.name, symbol(argument.name))
    if kernel is not None:
        for b in kernel.bindings:
            if b.kind in ("slot", "int"):
                values.setdefault(b.parameter.name, symbol(b.source))
    return values


def choice_values(
    operator: BoundOperator, kernel: BoundKernel, spec: Specialization, choice: Choice | None
) -> dict[str, Any]:
    """What a kernel's lambdas see for one specialization and config."""
    values = runtime_values(operator, kernel)
    values.update(spec.values())
    for b in kernel.bindings:
        if b.kind == "default":
            values[b.parameter.name] = b.declaration
        elif b.kind == "constant":
            values[b.parameter.name] = constant_value(b.declaration, spec)
    if choice is not None:
        values.update(num_warps=4, num_ctas=1)
        values.update(choice.config.options)
        values.update(choice.config.parameters)
        values.update(choice.heuristics)
    return values


def constant_value(given: Any, spec: Specialization) -> Any:
    """A constant of the description, called with features and types if it is a function."""
    return call(given, spec.values()) if callable(given) and not isinstance(given, type) else given


def _when(condition: Any) -> Expression | bool | None:
    """A traced condition: None if it always holds, False if it never does."""
    if isinstance(condition, bool):
        return None if condition else False
    expression = as_expression(condition)
    if not expression.symbols():
        return None if int(expression) else False
    return expression


def both(one: Expression | bool | None, other: Expression | bool | None) -> Expression | None:
    """The condition that two conditions hold; None is one that always does."""
    assert not isinstance(one, bool)
    assert not isinstance(other, bool)
    return other if one is None else one if other is None else one & other


def choices(
    operator: BoundOperator, kernel: BoundKernel, spec: Specialization, target: Target
) -> Iterator[tuple[bool, tuple[Choice, ...]]]:
    """Configs of a kernel for one specialization, in order of preference when nothing was measured.

    For each config: whether it is for all problems and preferred for all, and its choices, one for each value of
    the heuristics (together these cover all problems that the config is for).
    """
    for config in kernel.configs:
        if not config.applies_to(target.name):
            continue
        plain = Choice(config, {})
        values_there = choice_values(operator, kernel, spec, plain)
        needed = _when(call(config.when, values_there))
        preferred = _when(call(config.prefer, values_there))
        if needed is False:
            continue
        found = []
        for values, given in _heuristic_values(operator, kernel, spec, plain):
            found.append(Choice(config, values, both(needed, given), preferred))
        yield needed is None and preferred is None, tuple(found)


def _heuristic_values(
    operator: BoundOperator, kernel: BoundKernel, spec: Specialization, plain: Choice
) -> Iterator[tuple[dict[str, Any], Expression | None]]:
    """Every combination of heuristics' values with the condition under which the call has it."""
    options: list[list[tuple[str, Any, Expression | None]]] = []
    for name, (function, values) in kernel.heuristics.items():
        traced = call(function, choice_values(operator, kernel, spec, plain))
        if not isinstance(traced, Expression) or not traced.symbols():
            options.append([(name, traced if not isinstance(traced, Expression) else int(traced), None)])
            continue
        ordered = sorted(values, reverse=True) if set(values) == {False, True} else list(values)
        options.append([(name, value, traced == int(value)) for value in ordered])
    for combination in itertools.product(*options):
        condition: Expression | None = None
        for _, _, given in combination:
            condition = both(condition, given)
        yield {name: value for name, value, _ in combination}, condition
