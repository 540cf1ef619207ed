"""Which configs of which plans a specialization may be built with: the static default's, or all of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from precast.build.enumerate import Choice, Specialization, both, choices, runtime_values
from precast.describe.bind import BoundKernel, BoundOperator, BoundPlan
from precast.describe.declarations import Lambda
from precast.describe.expression import Expression, as_expression
from precast.describe.namespace import TRACE_ERRORS, call
from precast.dispatch.static import combinations, reachable
from precast.errors import UserError
from precast.targets import Target

__all__ = ["BuildError", "PlanChoice", "all_choices", "plan_choices", "static_choices"]

MAX_CANDIDATES = 2000
"""Combinations of configs that a plan of several kernels may have for one specialization."""

Complete = Callable[[BoundKernel, Choice], bool | None]


class BuildError(UserError):
    """Nothing can be built, or an expression of the description is wrong; the message says where."""


@dataclass(frozen=True)
class PlanChoice:
    """One config of each kernel of a plan.

    Attributes:
        condition: must hold for a call; None if it always does.
    """

    plan: BoundPlan
    configs: tuple[Choice, ...]
    condition: Expression | None

    @property
    def text(self) -> str:
        """The config's canonical text; that of several kernels names each."""
        if len(self.configs) == 1:
            return self.configs[0].text
        return "; ".join(f"{k.label}: {c.text}" for k, c in zip(self.plan.kernels, self.configs, strict=True))


def _condition(function: Lambda | None, operator: BoundOperator, spec: Specialization) -> Expression | bool | None:
    traced = as_expression(call(function, {**runtime_values(operator), **spec.values()}))
    return traced if traced.symbols() else (None if int(traced) else False)


def _plans(
    operator: BoundOperator, spec: Specialization, target: Target
) -> Iterator[tuple[BoundPlan, Expression | None, Expression | bool | None]]:
    """Plans that can do some call of a specialization, with what they need, and when they are preferred."""
    for plan in operator.plans:
        if not plan.applies_to(target.name):
            continue
        needed = _condition(plan.when, operator, spec)
        if isinstance(needed, bool):
            continue
        yield plan, needed, _condition(plan.prefer, operator, spec)


def _configs(
    operator: BoundOperator, kernel: BoundKernel, spec: Specialization, target: Target
) -> list[tuple[bool, tuple[Choice, ...]]]:
    try:
        return list(choices(operator, kernel, spec, target))
    except TRACE_ERRORS as error:
        raise BuildError(f"{operator.name}.{kernel.label}.configs ({spec.text}): {error}") from error


def static_choices(
    operator: BoundOperator, spec: Specialization, target: Target, complete: Complete
) -> list[PlanChoice]:
    """What dispatch may come to when nothing was measured, in order of preference.

    Args:
        complete: whether every alignment class of a kernel's config compiled; None while that isn't known.
    """
    result: list[PlanChoice] = []
    for plan, needed, preferred in _plans(operator, spec, target):
        if isinstance(preferred, bool):
            continue
        per_kernel = []
        for kernel in plan.kernels:
            found = [c for c in _configs(operator, kernel, spec, target) if c[1][0].preferred is not False]
            per_kernel.append(reachable(found, functools.partial(complete, kernel)))
        for combination in combinations(per_kernel):
            condition = both(needed, preferred)
            for choice in combination:
                condition = both(both(condition, choice.needed), choice.preferred)
            result.append(PlanChoice(plan, combination, condition))
    return result


def all_choices(operator: BoundOperator, spec: Specialization, target: Target) -> list[PlanChoice]:
    """Every config of every plan, whatever the description prefers, each where it can be used: for tuning."""
    result: list[PlanChoice] = []
    for plan, needed, _ in _plans(operator, spec, target):
        per_kernel = [[c for _, found in _configs(operator, k, spec, target) for c in found] for k in plan.kernels]
        for combination in itertools.islice(combinations(per_kernel), MAX_CANDIDATES):
            condition = needed
            for choice in combination:
                condition = both(condition, choice.needed)
            result.append(PlanChoice(plan, combination, condition))
    return list({(c.plan.name, c.text): c for c in reversed(result)}.values())[::-1]


def plan_choices(known: Sequence[PlanChoice], wanted: Sequence[tuple[str, str]]) -> list[PlanChoice | None]:
    """Choices by the names of plan and config; None for those that the description no longer has."""
    index = {(c.plan.name, c.text): c for c in known}
    return [index.get(name) for name in wanted]
