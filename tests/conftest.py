"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

FAMILIES = Path(__file__).parent / "data" / "families"


@pytest.fixture(scope="session")
def families() -> Path:
    """The folder of the tests' own families."""
    return FAMILIES


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One compile cache for the whole run, so that nothing is compiled twice."""
    return tmp_path_factory.mktemp("compile-cache")
