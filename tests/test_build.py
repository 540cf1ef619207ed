"""From a family to a pack: specializations, alignment classes, decorators taken over, selection, determinism."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from precast.build.assemble import BuildError
from precast.build.build import BuildOptions, bound_family, make_pack
from precast.build.selection import parse_selection
from precast.describe.expression import decode, evaluate
from precast.pack import model as m
from precast.pack.split import split_by_target
from precast.pack.writer import dump
from precast.targets import parse_targets


def pack_of(family: Path | str, targets: str, cache: Path, *features: str) -> m.Pack:
    bound, location = bound_family(family)
    options = BuildOptions(parse_targets(targets), parse_selection(features), cache=cache)
    return make_pack(bound, location, options).pack


def value(operator: m.Operator, expression: int, **values: int) -> int:
    names = {i: s.name for i, s in enumerate(operator.slots)}
    known = {**{s.name: 0 for s in operator.slots}, **{k.replace("__", "."): v for k, v in values.items()}}
    return evaluate(decode(operator.expressions[expression], names), known)


def test_autotune_and_heuristics_are_taken_over(families: Path, compile_cache: Path) -> None:
    operator = pack_of(families / "autotuned", "sm_90", compile_cache).operators[0]
    assert operator.name == "scale"
    assert [k.name for k in operator.key] == ["n"]
    assert [a.name for a in operator.arguments] == ["y", "x", "factor"]
    assert operator.arguments[2].optional and operator.arguments[2].default_float == 2.0
    target = operator.targets[0]
    leaf = target.specializations[0].tables[0].leaves[0].choices
    chosen = [target.candidates[i] for i in leaf]
    assert [c.config for c in chosen] == [
        "BLOCK=128 num_stages=3 num_warps=4 EVEN=True",
        "BLOCK=128 num_stages=3 num_warps=4 EVEN=False",
    ]
    slot = next(s.name for s in operator.slots if s.name == "x.shape[0]")
    names = {i: s.name for i, s in enumerate(operator.slots)}
    condition = decode(operator.expressions[chosen[0].condition], names)
    assert evaluate(condition, {slot: 256}) == 1 and evaluate(condition, {slot: 257}) == 0
    otherwise = decode(operator.expressions[chosen[1].condition], names)
    assert evaluate(otherwise, {slot: 256}) == 0 and evaluate(otherwise, {slot: 257}) == 1
    grid = decode(operator.expressions[chosen[0].launches[0].grid[0]], names)
    assert [evaluate(grid, {slot: n}) for n in (0, 1, 128, 129)] == [0, 1, 1, 2]


def test_specializations_are_the_product_of_types_and_features(families: Path, compile_cache: Path) -> None:
    operator = pack_of(families / "autotuned", "sm_90,gfx942", compile_cache).operators[0]
    for target in operator.targets:
        assert len(target.specializations) == 2
        assert all(s.status == m.SpecializationStatus.BUILT for s in target.specializations)


def test_alignment_classes_go_from_most_to_least_assumed(families: Path, compile_cache: Path) -> None:
    operator = pack_of(families / "autotuned", "sm_90", compile_cache).operators[0]
    target = operator.targets[0]
    for candidate in target.candidates:
        masks = [v.class_mask for v in candidate.launches[0].variants]
        for earlier, later in itertools.pairwise(masks):
            assert earlier & ~later, "a later class that asks as much as an earlier one is never chosen"
        kinds = {c.kind for i, c in enumerate(operator.conditions) if masks[-1] >> i & 1}
        assert kinds <= {m.ConditionKind.OFFSETS_INT32, m.ConditionKind.SLOTS_INT32}


def test_amd_has_the_pointer_range(families: Path, compile_cache: Path) -> None:
    operator = pack_of(families / "autotuned", "gfx942", compile_cache).operators[0]
    assert m.ConditionKind.RANGE_INT32 in {c.kind for c in operator.conditions}
    operator = pack_of(families / "autotuned", "sm_90", compile_cache).operators[0]
    assert m.ConditionKind.RANGE_INT32 not in {c.kind for c in operator.conditions}


def test_a_selection_builds_a_part_and_says_so(families: Path, compile_cache: Path) -> None:
    operator = pack_of(families / "autotuned", "sm_90", compile_cache, "T=float16").operators[0]
    statuses = [s.status for s in operator.targets[0].specializations]
    assert statuses == [m.SpecializationStatus.BUILT, m.SpecializationStatus.NOT_BUILT]
    with pytest.raises(BuildError, match="no feature or type 'U'"):
        pack_of(families / "autotuned", "sm_90", compile_cache, "U=1")
    with pytest.raises(BuildError, match="never bf16"):
        pack_of(families / "autotuned", "sm_90", compile_cache, "T=bf16")
    with pytest.raises(BuildError, match="NAME=value"):
        parse_selection(["T"])


def test_the_same_build_gives_the_same_bytes(families: Path, compile_cache: Path) -> None:
    first = dump(pack_of(families / "autotuned", "sm_90,gfx942", compile_cache))
    second = dump(pack_of(families / "autotuned", "sm_90,gfx942", compile_cache))
    assert first == second


def test_equal_code_is_stored_once(families: Path, compile_cache: Path) -> None:
    pack = pack_of(families / "autotuned", "sm_90", compile_cache)
    digests = [o.sha256 for o in pack.objects]
    assert len(set(digests)) == len(digests)


def test_split_packs_hold_each_target_alone(families: Path, compile_cache: Path) -> None:
    pack = pack_of(families / "autotuned", "sm_90,gfx942", compile_cache)
    parts = dict(split_by_target(pack))
    assert list(parts) == ["sm_90", "gfx942"]
    assert sum(len(p.objects) for p in parts.values()) == len(pack.objects)
    for name, part in parts.items():
        assert part.targets == (name,)
        used = {v.object for o in part.operators for t in o.targets for v in t.variants}
        assert used == set(range(len(part.objects)))


def test_nothing_built_is_an_error(families: Path, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    (folder / "kernels.py").write_text((families / "planted" / "kernels.py").read_text())
    text = (families / "planted" / "family.py").read_text()
    lines = [
        line
        for line in text.splitlines()
        if '"MODE": 0' not in line and '"MODE": 1' not in line and '"MODE": 2' not in line
    ]
    (folder / "family.py").write_text("\n".join(lines) + "\n")
    with pytest.raises(BuildError, match="planted"):
        pack_of(folder, "sm_90", tmp_path / "cache")


def test_ptx_is_a_target_of_its_own(families: Path, compile_cache: Path) -> None:
    bound, location = bound_family(families / "autotuned")
    pack = make_pack(bound, location, BuildOptions(parse_targets("sm_80,sm_90"), cache=compile_cache, ptx=True)).pack
    assert pack.targets == ("sm_80", "sm_90", "compute_80")
    ptx = pack.operators[0].targets[2]
    assert {pack.objects[v.object].kind for v in ptx.variants} == {m.CodeKind.PTX}
    texts = [pack.objects[v.object].data for v in ptx.variants]
    assert all(b".target sm_80" in t and b".version 8.4" in t for t in texts)  # not newer than drivers can assemble
    with pytest.raises(BuildError, match="add sm_80"):
        make_pack(bound, location, BuildOptions(parse_targets("sm_90"), cache=compile_cache, ptx=True))
