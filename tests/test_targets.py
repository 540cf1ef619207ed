"""Targets."""

from __future__ import annotations

import pytest

from precast.targets import TARGETS, UnknownTargetError, find_target, parse_targets


def test_all_promised_targets_are_known() -> None:
    promised = (
        "sm_80 sm_86 sm_89 sm_90 sm_100 sm_120 gfx90a gfx942 gfx950 gfx1100 gfx1101 gfx1150 gfx1151 gfx1200 gfx1201"
    )
    assert list(TARGETS) == promised.split()


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("sm90", "sm_90"), ("sm_90a", "sm_90"), ("SM_80", "sm_80"), ("gfx940", "gfx942"), ("gfx1102", "gfx1100")],
)
def test_a_misspelt_target_names_the_nearest(given: str, nearest: str) -> None:
    with pytest.raises(UnknownTargetError, match=f"did you mean '{nearest}'"):
        find_target(given)


def test_no_target_is_an_error() -> None:
    with pytest.raises(UnknownTargetError, match="no target"):
        parse_targets(" , ")


def test_targets_are_taken_once_in_order() -> None:
    assert [t.name for t in parse_targets("sm_90, gfx942,sm_90")] == ["sm_90", "gfx942"]


def test_whose_code_runs_where() -> None:
    def runs(target: str, code: str) -> bool:
        return TARGETS[target].runs_code_of(TARGETS[code])

    assert runs("sm_86", "sm_80") and runs("sm_89", "sm_80") and runs("sm_89", "sm_86")
    assert not runs("sm_80", "sm_86")
    assert not runs("sm_90", "sm_80")  # another major
    assert not runs("sm_120", "sm_100")  # architecture-specific code
    assert not runs("gfx950", "gfx942") and runs("gfx942", "gfx942")
