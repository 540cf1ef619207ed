"""The runtime on a real GPU: streams, threads, graphs, refusals, allocation."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import precast
from precast.runtime import errors


@pytest.fixture(scope="module")
def add(torch, library_path):
    return precast.load(library_path("vector_add")).vector_add


@pytest.fixture(scope="module")
def flash(torch, library_path):
    return precast.load(library_path("flash")).attention_forward


def test_outputs_are_allocated_as_torch_tensors(torch, add):
    x, y = (torch.randn(1031, device="cuda") for _ in range(2))
    z = add(x, y)
    assert isinstance(z, torch.Tensor) and z.dtype == x.dtype and z.device == x.device
    assert torch.equal(z, x + y)
    assert add(torch.empty_like(x), x, y) is None


def test_several_outputs(torch, flash):
    q, k, v = (torch.randn(1, 2, 67, 64, dtype=torch.float16, device="cuda") for _ in range(3))
    out, lse = flash(q, k, v, 0.125)
    assert out.shape == q.shape and lse.shape == (1, 2, 67) and lse.dtype == torch.float32
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.125)
    assert (out.float() - expected.float()).abs().max() < 5e-3


def test_current_stream_is_used(torch, add):
    stream = torch.cuda.Stream()
    x, y = (torch.randn(1 << 22, device="cuda") for _ in range(2))
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.mul_(2)
        z = add(x, y)
    stream.synchronize()
    assert torch.equal(z, x + y)


def test_cuda_graph_replays(torch, library_path):
    lib = precast.load(library_path("flash"))
    q, k, v = (torch.randn(1, 4, 300, 128, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    out, lse = torch.empty_like(q), torch.empty(1, 4, 300, device="cuda")
    lib.attention_forward.warmup(out, lse, q, k, v, 0.1)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        lib.attention_forward(out, lse, q, k, v, 0.1, "none")
    q.normal_()
    out.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    fresh, _ = lib.attention_forward(q, k, v, 0.1)
    assert torch.equal(out, fresh)


def test_graph_with_workspaces(torch, library_path):
    lib = precast.load(library_path("layer_norm"))
    x = torch.randn(37, 200, device="cuda")
    dy, w = torch.randn_like(x), torch.randn(200, device="cuda")
    _, mean, rstd = lib.layer_norm(x, w, torch.zeros_like(w))
    expected = lib.layer_norm_backward(dy, x, w, mean, rstd)
    outs = [torch.empty_like(t) for t in expected]
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        lib.layer_norm_backward(*outs, dy, x, w, mean, rstd)
    for _ in range(3):
        for t in outs:
            t.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert all(torch.equal(a, b) for a, b in zip(outs, expected, strict=True))


def test_capture_before_warmup_is_refused(torch, library_path):
    script = f"""
import torch, precast
from precast.runtime.errors import NotWarmError
lib = precast.load({str(library_path("vector_add"))!r})
x = torch.ones(64, device="cuda"); z = torch.empty_like(x); torch.cuda.synchronize()
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        lib.vector_add(z, x, x)
except NotWarmError as error:
    assert "warmup" in str(error); print("refused")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "refused" in done.stdout, done.stderr


def test_two_threads_on_two_streams_agree(torch, library_path):
    lib = precast.load(library_path("softmax"))
    x = torch.randn(500, 1000, device="cuda")
    expected = lib.softmax(x)
    torch.cuda.synchronize()
    results, failures = {}, []

    def work(i):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(200):
                    y = lib.softmax(x)
                torch.cuda.current_stream().synchronize()
                results[i] = y
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert all(torch.equal(r, expected) for r in results.values())


def test_sixty_four_threads_make_the_first_call_at_once(torch, library_path):
    script = f"""
import threading, torch, precast
lib = precast.load({str(library_path("vector_add"))!r})
x = torch.ones(5000, device="cuda"); torch.cuda.synchronize()
gate = threading.Barrier(64); bad = []
def work():
    z = torch.empty_like(x); gate.wait()
    try:
        lib.vector_add(z, x, x); torch.cuda.synchronize()
        if not bool((z == 2).all()): bad.append("wrong")
    except Exception as error: bad.append(repr(error))
threads = [threading.Thread(target=work) for _ in range(64)]
[t.start() for t in threads]; [t.join() for t in threads]
assert not bad, bad
print("agreed")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "agreed" in done.stdout, done.stderr


def test_refusals_name_what_is_wrong(torch, add, flash):
    x = torch.ones(64, device="cuda")
    with pytest.raises(errors.InvalidArgumentError, match="on the CPU"):
        add(x, x, x.cpu())
    with pytest.raises(errors.InvalidArgumentError, match="float64"):
        add(x.double(), x.double(), x.double())
    with pytest.raises(errors.InvalidArgumentError, match="float16"):
        add(x.clone(), x, x.half())
    with pytest.raises(errors.InvalidArgumentError, match="2 dims"):
        add(x.clone(), x, x[None])
    with pytest.raises(errors.InvalidArgumentError, match=r"y\.shape\[0\] must be x\.shape\[0\]"):
        add(x.clone(), x, x[:32])
    with pytest.raises(errors.InvalidArgumentError, match="stride"):
        add(x.clone()[::2], x[::2], x[::2])
    with pytest.raises(errors.InvalidArgumentError, match="shares memory"):
        add(x[:32], x[32:], x[1:33])
    with pytest.raises(errors.UnsupportedError, match=r"HEAD_DIM=96 was not built; there are 64, 128"):
        flash(*(torch.ones(1, 1, 8, 96, device="cuda", dtype=torch.float16) for _ in range(3)), 1.0)
    q = torch.ones(1, 3, 8, 64, device="cuda", dtype=torch.float16)
    with pytest.raises(errors.InvalidArgumentError, match="multiple of Hk"):
        flash(q, q[:, :2].contiguous(), q[:, :2].contiguous(), 1.0)


def test_tensors_past_the_32_bit_range(torch, add, library_path):
    n = 2**31 + 7
    x = torch.ones(n, dtype=torch.float16, device="cuda")
    with pytest.raises(errors.UnsupportedError, match=r"2\^31"):
        add(torch.empty_like(x), x, x)
    del x
    softmax = precast.load(library_path("softmax")).softmax
    x = torch.randn(2**18 + 1, 8192, dtype=torch.float16, device="cuda")
    y = softmax(x)
    assert torch.allclose(y[-1].float(), torch.softmax(x[-1].float(), 0), atol=1e-3)


def test_explain_says_what_is_launched(torch, flash):
    q = torch.ones(1, 2, 1024, 128, device="cuda", dtype=torch.bfloat16)
    facts = flash.explain(q, q, q, scale=1.0)
    assert facts["target"] == "sm_90" and facts["plan"] == "tma" and facts["rung"] == "static default"
    assert facts["launches"][0]["registers"] > 0
    assert flash.supports(q, q, q, scale=1.0) is None
    assert "96" in flash.supports(
        *(torch.ones(1, 1, 8, 96, device="cuda", dtype=torch.float16) for _ in range(3)), scale=1.0
    )
