"""Seeds for the fuzzers: small packs that together have every part of the format.

python seeds.py FOLDER        writes FOLDER/pack (raw metadata) and FOLDER/call (raw metadata after 16 bytes that
                              shape the call's tensors)
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import zstandard
from standin import add_pack, code

from precast.describe.expression import symbol
from precast.pack import model as m
from precast.pack.writer import dump

HEADS = (
    b"\5" * 8 + bytes((0, 0, 0, 0, 0, 0, 255, 0)),
    bytes.fromhex("030d151b2b333c44 01000000 01010000"),
    bytes(14) + b"\1\0",
)


def _workspaces() -> m.Pack:
    pointers = (m.Param(m.ParamKind.POINTER, m.ScalarType.POINTER, i) for i in range(3))
    params = (
        *pointers, m.Param(m.ParamKind.SLOT, m.ScalarType.I32, 0),
        m.Param(m.ParamKind.WORKSPACE, m.ScalarType.POINTER, 0), m.Param(m.ParamKind.GLOBAL_SCRATCH, m.ScalarType.POINTER),
        m.Param(m.ParamKind.EXPRESSION, m.ScalarType.I64, 0),
    )  # fmt: skip
    variant = {"global_scratch_bytes": 64, "global_scratch_align": 128, "cluster": 2, "flags": 3}
    workspaces = (("counters", symbol("x.shape[0]") * 4, True), ("partial", 100, False))
    return add_pack(params=params, masks=(0, 0), variant=variant, workspaces=workspaces)


def _tensor_maps() -> m.Pack:
    kinds = m.ConditionKind
    pack = add_pack(
        params=(m.Param(m.ParamKind.TENSOR_MAP, m.ScalarType.TENSOR_MAP, 0),),
        variant={"tensor_maps": (m.TensorMap(1, 7, 4, 3, False, False, (16, 32)),)},
        conditions=(
            m.Condition(kinds.TENSOR_MAPS, (1,)), m.Condition(kinds.SLOTS_EQ1, (4,)),
            m.Condition(kinds.SLOTS_INT32, (0,)), m.Condition(kinds.RANGE_INT32, (1,)),
        ),
        masks=(1, 0),
    )  # fmt: skip
    operator = pack.operators[0]
    arguments = tuple(replace(a, rank=2, shape=()) for a in operator.arguments)
    return replace(pack, operators=(replace(operator, arguments=arguments, checks=()),))


def _everything_else() -> m.Pack:
    pack = add_pack(masks=(0, 0), devices=("Some GPU",), objects=(code("standin:nothing"),))
    operator = pack.operators[0]
    leaf = m.Node(m.NO_INDEX, 0, 0, 0)
    nodes = (m.Node(0, 128, 1, 2), leaf, m.Node(0, 1000, 3, 4), replace(leaf, left=1), leaf)
    leaves = (m.Leaf((0,)), m.Leaf((0, 0), 1))
    table = m.Table(nodes, leaves, (0,), 0, m.Rung.MEASURED, 0.01, 0.05, ((1,), (128,)))
    tables = (table, replace(table, device=m.NO_INDEX, rung=m.Rung.OTHER_DEVICE))
    tree = m.Specialization(m.SpecializationStatus.BUILT, "", (0,), tables)
    arguments = (
        *operator.arguments,
        m.Argument("s", m.ArgumentKind.FLOAT),
        m.Argument("k", m.ArgumentKind.CHOICE, optional=True, labels=("p", "q")),
        m.Argument("b", m.ArgumentKind.BOOL, optional=True),
    )
    target = operator.targets[0]
    half = replace(target.variants[0], params=(m.Param(m.ParamKind.FLOAT, m.ScalarType.FP16, 3),))
    target = replace(target, variants=(half, target.variants[1]), specializations=(tree,) * 6)
    feature = m.Feature("F", 0, (0, 1, 300), ("a", "b", "c"))
    slots = (*operator.slots, m.Slot(m.SlotKind.INT, 4, 0, "k"))
    operator = replace(operator, arguments=arguments, features=(feature,), slots=slots, targets=(target,))
    return replace(pack, operators=(operator,))


def main(folder: Path) -> None:
    """Writes the seeds."""
    packs = (
        add_pack(), add_pack(targets=("sm_90", "compute_80", "gfx942"), masks=(3, 0)), _workspaces(), _tensor_maps(),
        _everything_else(),
    )  # fmt: skip
    for name in ("pack", "call"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for i, pack in enumerate(packs):
        data = dump(pack)
        raw = zstandard.ZstdDecompressor().decompress(data[72 : 72 + int.from_bytes(data[48:56], "little")])
        (folder / "pack" / str(i)).write_bytes(raw)
        for j, head in enumerate(HEADS):
            (folder / "call" / f"{i}-{j}").write_bytes(head + raw)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
