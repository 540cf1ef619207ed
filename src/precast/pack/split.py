"""One pack into one a target."""

from __future__ import annotations

from dataclasses import replace

from precast.pack.model import Operator, Pack, Target

__all__ = ["split_by_target"]


def split_by_target(pack: Pack) -> list[tuple[str, Pack]]:
    """Each target's name with a pack that holds its kernels alone, its code objects numbered anew."""
    return [(name, _only(pack, index)) for index, name in enumerate(pack.targets)]


def _only(pack: Pack, index: int) -> Pack:
    used: dict[int, int] = {}

    def target(t: Target) -> Target:
        variants = tuple(replace(v, object=used.setdefault(v.object, len(used))) for v in t.variants)
        return replace(t, target=0, variants=variants)

    def operator(o: Operator) -> Operator:
        return replace(o, targets=tuple(target(t) for t in o.targets if t.target == index))

    operators = tuple(operator(o) for o in pack.operators)
    objects = tuple(pack.objects[i] for i in used)
    notes = tuple(n for n in pack.notes if f"({pack.targets[index]})" in n)
    return replace(pack, targets=(pack.targets[index],), objects=objects, operators=operators, notes=notes)
