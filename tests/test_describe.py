"""Descriptions: binding, and every fault found with its place and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from precast.build.lint import find_faults
from precast.describe.load import FamilyError, find_family, load_family

KERNELS = """
import triton
import triton.language as tl

@triton.jit
def rows(y_ptr, x_ptr, bias_ptr, stride_y, stride_x, n_cols, scale, CAUSAL: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + r * stride_x + c, mask=c < n_cols) * scale
    if bias_ptr is not None:
        v += tl.load(bias_ptr + c, mask=c < n_cols)
    if CAUSAL:
        v = tl.where(c <= r, v, 0)
    tl.store(y_ptr + r * stride_y + c, v, mask=c < n_cols)
"""

GOOD = {
    "types": "{'T': ('fp16', 'fp32')}",
    "args": "{'y_ptr': tensor('T', shape=('n_rows', 'n_cols'), output=True), 'x_ptr': tensor('T', shape=('n_rows', 'n_cols')),"
    " 'bias_ptr': tensor('T', shape=('n_cols',), when=lambda f: f.BIAS), 'scale': scalar('fp32', default=1.0)}",
    "features": "{'CAUSAL': (False, True)}",
    "key": "('n_rows', 'n_cols')",
    "configs": "[Config({'BLOCK': 128}, num_warps=4)]",
    "grid": "lambda a: (a.n_rows,)",
    "more": "",
}


def write_family(folder: Path, kernels: str = KERNELS, **changes: str) -> Path:
    """A family with one operator, some parts of its description replaced."""
    parts = {**GOOD, **changes}
    folder.mkdir(exist_ok=True)
    (folder / "kernels.py").write_text(kernels)
    (folder / "family.py").write_text(
        "from precast.describe import *\nfrom .kernels import *\n"
        f"family = Family('{folder.name}', [Kernel(rows, types={parts['types']}, args={parts['args']}, "
        f"features={parts['features']}, key={parts['key']}, configs={parts['configs']}, grid={parts['grid']}, "
        f"{parts['more']})])\n"
    )
    return folder


GOOD_ARGS = GOOD["args"].replace(", when=lambda f: f.BIAS", ", when=lambda f: f.CAUSAL")


def faults_of(tmp_path: Path, **changes: str) -> Sequence[Any]:
    changes.setdefault("args", GOOD_ARGS)
    return find_faults(write_family(tmp_path / "fam", **changes))


def test_a_good_description_has_no_faults(tmp_path: Path) -> None:
    assert faults_of(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "where", "problem", "remedy"),
    [
        ({"args": GOOD_ARGS.replace("'x_ptr'", "'x_prt'")}, "rows.args", "no argument 'x_prt'", "x_ptr"),
        ({"args": GOOD_ARGS.replace("'scale': scalar('fp32', default=1.0)", "")}, "rows.scale", "nothing says", "scalar"),
        ({"types": "{'T': ('float16',)}"}, "types['T']", "unknown dtype", "fp16"),
        ({"args": GOOD_ARGS.replace("tensor('T', shape=('n_cols',)", "tensor('U', shape=('n_cols',)")}, "bias_ptr", "'U'", "T"),
        ({"features": "{'CASUAL': (False, True)}"}, "features", "no argument 'CASUAL'", "CAUSAL"),
        ({"features": "{'CAUSAL': ()}"}, "CAUSAL", "no values", "list the values"),
        ({"features": "{'CAUSAL': (0, True)}"}, "CAUSAL", "mixed", "bools"),
        ({"features": "{}"}, "rows.CAUSAL", "nothing says", "features"),
        ({"key": "('n_row',)"}, "rows.key", "'n_row'", "n_row"),
        ({"configs": "[Config({'BLOK': 1})]"}, "configs", "no constexpr 'BLOK'", "BLOCK"),
        ({"configs": "[Config({'BLOCK': 64}, num_wraps=4)]"}, "configs", "'num_wraps'", "num_warps"),
        ({"configs": "[Config({'BLOCK': 64}, num_warps=3)]"}, "configs", "num_warps=3", "power of two"),
        ({"configs": "[Config({'BLOCK': 64}, targets=('sm90',))]"}, "configs", "unknown target 'sm90'", "sm_90"),
        ({"grid": "None"}, "rows", "no grid", "grid="),
        ({"grid": "lambda a: (a.n_row,)"}, "grid", "no 'n_row'", "mend"),
        ({"grid": "lambda a: (a.n_rows / 2,)"}, "grid", "cdiv", "mend"),
        ({"grid": "lambda a: (a.n_rows if a.n_rows > 3 else 1,)"}, "grid", "select", "mend"),
        ({"grid": "lambda a: (a.n_rows // 0, a.BLOCK // 0)"}, "grid", "by zero", "mend"),
        ({"grid": "lambda a: (1, 2, 3, 4)"}, "grid", "4 sizes", "mend"),
        ({"more": "name='int'"}, "int", "keyword of C++", "another name"),
        ({"more": "name='targets'"}, "targets", "every loaded library", "another name"),
        ({"more": "name='2d'"}, "2d", "no C identifier", "another name"),
        ({"more": "large='huge'"}, "rows", "huge", "refuse"),
        ({"more": "targets=('gfx94',)"}, "targets", "gfx94", "gfx942"),
    ],
)  # fmt: skip
def test_each_fault_has_place_problem_and_remedy(
    tmp_path: Path, changes: dict[str, str], where: str, problem: str, remedy: str
) -> None:
    found = [f for f in faults_of(tmp_path, **changes) if where in f.where and problem in f.problem]
    assert found, [str(f) for f in faults_of(tmp_path, **changes)]
    assert any(remedy in f.remedy for f in found), [f.remedy for f in found]
    assert all(f.file.endswith("family.py") for f in found)


def test_all_faults_are_found_at_once(tmp_path: Path) -> None:
    found = faults_of(
        tmp_path,
        features="{'CASUAL': (False, True)}",
        key="('nope',)",
        grid="None",
        configs="[Config({'BLOCK': 64}, num_warps=3)]",
    )
    assert len(found) >= 5


def test_wrong_shape_of_the_constructor_call_is_a_family_error(tmp_path: Path) -> None:
    folder = write_family(tmp_path / "fam", args="{'y_ptr': tensor('T')}")
    with pytest.raises(FamilyError, match=r"shape=.* or rank="):
        load_family(folder)


def test_no_family(tmp_path: Path) -> None:
    with pytest.raises(FamilyError, match=r"no family\.py"):
        find_family(tmp_path)
    with pytest.raises(FamilyError, match="did you mean 'softmax'"):
        find_family("sotfmax")
    (tmp_path / "family.py").write_text("x = 1\n")
    with pytest.raises(FamilyError, match="doesn't define"):
        load_family(tmp_path)
    (tmp_path / "family.py").write_text("import nowhere_to_be_found\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "family.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(FamilyError, match="nowhere_to_be_found"):
        load_family(other)
