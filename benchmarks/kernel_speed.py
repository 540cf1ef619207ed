"""Kernels of built libraries beside the JIT's compile of the same source and config: registers, spills, time.

Build the libraries with the Triton version that this machine has, so that only the way differs:

    python benchmarks/kernel_speed.py out
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

import precast
from precast.families.flash.forward import attention_forward_kernel
from precast.families.flash.forward_tma import attention_forward_tma_kernel
from precast.families.matmul.kernels import matmul_kernel
from precast.families.softmax.kernels import softmax_kernel
from precast.families.vector_add.kernels import add_kernel


def microseconds(call, repeats: int = 60) -> float:
    """Median device time of ten launches in a CUDA graph, over ten."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            call()
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 100)
    return sorted(times)[len(times) // 2]


def config_of(text: str) -> dict[str, int]:
    """A config's canonical text as numbers."""
    return {k: int(v) for k, v in (p.split("=") for p in text.split()) if v.isdigit()}


def cases(out: Path):
    """Name, call through precast, its explanation, call through the JIT."""

    def load(family: str):
        return precast.load(out / family / f"lib{family}.so")

    n = 1 << 26
    x, y, z = (torch.randn(n, device="cuda") for _ in range(3))
    add = load("vector_add").vector_add
    yield ("vector_add 64M fp32", lambda: add(z, x, y), add.explain(z, x, y),
           lambda c: add_kernel[(triton.cdiv(n, 1024),)](z, x, y, n, **c))  # fmt: skip
    rows, cols = 16384, 4096
    a = torch.randn(rows, cols, device="cuda", dtype=torch.bfloat16)
    b = torch.empty_like(a)
    softmax = load("softmax").softmax
    yield ("softmax 16k x 4k bf16", lambda: softmax(b, a), softmax.explain(b, a),
           lambda c: softmax_kernel[(rows,)](b, a, cols, cols, cols, BLOCK=4096, **c))  # fmt: skip
    m = 1024
    p, q = (torch.randn(m, m, device="cuda", dtype=torch.float16) for _ in range(2))
    r = torch.empty_like(p)
    matmul = load("matmul").matmul
    yield ("matmul 1k fp16, pointers", lambda: matmul(r, p, q), matmul.explain(r, p, q),
           lambda c: matmul_kernel[(triton.cdiv(m, c["BLOCK_M"]) * triton.cdiv(m, c["BLOCK_N"]),)](
               r, p, q, m, m, m, m, 1, m, 1, m, 1, **c))  # fmt: skip
    attention = load("flash").attention_forward
    for d, s, name in ((128, 64, "short"), (128, 8192, "tma")):
        h = 16 if s > 64 else 512
        qq, kk, vv = (torch.randn(1, h, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        o, lse = torch.empty_like(qq), torch.empty(1, h, s, device="cuda")
        scale = 1 / math.sqrt(d)
        args = (o, lse, qq, kk, vv, scale, 0)

        def jit(c, o=o, lse=lse, q=qq, k=kk, v=vv, scale=scale, h=h, s=s, d=d):
            grid = (triton.cdiv(s, c["BLOCK_M"]), h)
            common = {"MASK": "none", "HEAD_DIM": d, **c}
            if s <= 64:
                st = [t.stride(i) for t in (o, q, k, v) for i in range(3)]
                return attention_forward_kernel[grid](
                    o, lse, q, k, v, scale, *st, *lse.stride()[:2], h, h, s, s, **common
                )
            bm, bn = [1, 1, c["BLOCK_M"], d], [1, 1, c["BLOCK_N"], d]
            maps = [TensorDescriptor.from_tensor(t, b) for t, b in ((q, bm), (k, bn), (v, bn))]
            out = TensorDescriptor.from_tensor(o, bm)
            return attention_forward_tma_kernel[grid](out, lse, *maps, scale, *lse.stride()[:2], h, h, s, s, **common)

        yield (f"attention {s} d {d}, {name}", lambda args=args: attention(*args), attention.explain(*args), jit)


def main() -> None:
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}")
    print(f"{'':30}{'precast µs':>12}{'JIT µs':>10}{'ratio':>8}   registers/spills/shared")
    for name, ours, facts, jit in cases(Path(sys.argv[1])):
        config = config_of(facts["config"])
        launch = facts["launches"][0]
        kernel = jit(config)
        a, b = microseconds(ours), microseconds(lambda jit=jit, config=config: jit(config))
        a, b = min(a, microseconds(ours)), min(b, microseconds(lambda jit=jit, config=config: jit(config)))
        mine = f"{launch['registers']}/{launch['spills']}/{launch['shared_bytes']}"
        theirs = f"{kernel.n_regs}/{kernel.n_spills * 4}/{kernel.metadata.shared}"
        print(f"{name:30}{a:12.2f}{b:10.2f}{a / b:8.3f}   {mine} | {theirs}")


if __name__ == "__main__":
    main()
