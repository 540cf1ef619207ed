"""Alignment classes: which facts about a call the compiled variants of a kernel rely on.

The JIT derives such facts from each call and compiles anew for each combination that comes up. Ahead of
time, a few combinations must do. By default, best first:

========  =======================  ============================  ==================
class     pointers divisible by 16 strides and sizes div. by 16  unit inner strides
========  =======================  ============================  ==================
full      yes                      strides and sizes             yes
strides   yes                      strides                       yes
pointers  yes                      no                            yes
none      no                       no                            no
========  =======================  ============================  ==================

All four have 32-bit integers and refuse tensors that span 2**31 elements or more. With `large="wide"`, two
more follow that have 64-bit integers: `wide`, with the facts of `strides`, and `wide_none`.
"""

from __future__ import annotations

from precast.describe.bind import BoundKernel, BoundOperator
from precast.describe.declarations import Alignment

__all__ = ["alignments_of"]


def alignments_of(operator: BoundOperator, kernel: BoundKernel) -> tuple[Alignment, ...]:
    """The classes that a kernel is compiled for, best first; equal ones once."""
    if kernel.kernel.alignments is not None:
        return tuple(kernel.kernel.alignments)
    tensors = operator.tensors
    unit, strides, sizes = [], [], []
    for b in kernel.bindings:
        if not (b.parameter.specialize and b.kind in ("slot", "int")):
            continue
        if b.kind == "slot" and ".stride[" in b.source:
            tensor, _, axis = b.source.partition(".stride[")
            if int(axis.rstrip("]")) == tensors[tensor].rank - 1:
                unit.append(b.parameter.name)
            else:
                strides.append(b.parameter.name)
        elif b.parameter.annotation != "i1":
            sizes.append(b.parameter.name)
    aligned = [b.parameter.name for b in kernel.bindings if b.parameter.align]
    strides = [n for n in strides if n in aligned]
    sizes = [n for n in sizes if n in aligned]
    ones = tuple(unit)
    classes = [
        Alignment("full", True, ones, (*strides, *sizes)),
        Alignment("strides", True, ones, tuple(strides)),
        Alignment("pointers", True, ones, ()),
        Alignment("none"),
    ]
    if kernel.kernel.large == "wide":
        classes += [Alignment("wide", True, ones, tuple(strides), wide=True), Alignment("wide_none", wide=True)]
    seen: set[tuple[object, ...]] = set()
    result = []
    for c in classes:
        facts = (c.pointers, c.equal_to_1, c.divisible_by_16, c.wide)
        if facts not in seen:
            seen.add(facts)
            result.append(c)
    return tuple(result)
