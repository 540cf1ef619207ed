"""GPU tests run where torch sees a GPU; the libraries come from `precast build … -o out/FAMILY`, made elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

OUT = Path(os.environ.get("PRECAST_TEST_LIBRARIES", Path(__file__).parents[2] / "out"))


@pytest.fixture(scope="session")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return torch


@pytest.fixture(scope="session")
def library_path():
    def find(family: str) -> Path:
        path = OUT / family / f"lib{family}.so"
        if not path.is_file():
            pytest.skip(f"{path} is not built")
        return path

    return find
