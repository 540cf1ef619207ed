"""What a launch can need beyond a grid works on the GPU: clusters, cooperative grids, dependent launch, scratch."""

from __future__ import annotations

from pathlib import Path

import pytest

import precast
from precast.check.library import check_library

FAMILY = Path(__file__).parents[1] / "data" / "families" / "launch_features"


def test_kernels_equal_their_references(torch, library_path):
    outcomes = [o for o in check_library(library_path("launch_features"), str(FAMILY)) if o.operator != "grid_sum"]
    assert not [o for o in outcomes if not o.ok]
    done = {o.operator for o in outcomes if o.status == "ok"}
    assert done == {"cluster_sum", "dependent", "device_descriptor", "few_registers"}


@pytest.mark.parametrize("programs", [1, 2, 31, 132])
def test_cooperative_programs_see_each_other(torch, library_path, programs):
    lib = precast.load(library_path("launch_features"))
    for n in (1, 1023, 1_000_003):
        x = torch.randn(n, device="cuda")
        y = torch.full((programs,), float("nan"), device="cuda")
        for _ in range(3):  # the counter that they meet at is zeroed for each call
            lib.grid_sum(y, x)
        torch.testing.assert_close(y, x.double().sum().float().expand(programs), rtol=1e-4, atol=1e-2)


def test_grid_too_large_to_run_at_once_is_refused(torch, library_path):
    lib = precast.load(library_path("launch_features"))
    with pytest.raises(precast.runtime.errors.DriverError, match="COOPERATIVE"):
        lib.grid_sum(torch.empty(1 << 20, device="cuda"), torch.ones(8, device="cuda"))


def test_dependent_kernels_in_a_graph(torch, library_path):
    lib = precast.load(library_path("launch_features"))
    x, y = torch.randn(100_003, device="cuda"), torch.empty(100_003, device="cuda")
    lib.dependent(y, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(8):
            lib.dependent(y, x)
    for _ in range(5):
        x.normal_()
        y.fill_(float("nan"))
        graph.replay()
        torch.testing.assert_close(y, x * 2 + 1)
