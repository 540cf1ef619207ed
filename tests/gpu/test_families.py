"""Every family equals its reference on every problem, in every layout, without Triton."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from precast.check.library import check_library


@pytest.mark.parametrize("family", ["vector_add", "softmax", "layer_norm", "matmul", "flash"])
def test_family_equals_its_reference(torch, library_path, family):
    outcomes = list(check_library(library_path(family)))
    bad = [o for o in outcomes if not o.ok]
    counts = Counter(o.status for o in outcomes)
    print(family, dict(counts))
    assert not bad, bad[:10]
    assert counts["ok"] > 20
    assert "triton" not in sys.modules or not hasattr(sys.modules["triton"], "jit")
