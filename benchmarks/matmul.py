"""Matrix multiplication on a GPU: precast beside torch (cuBLAS), in TFLOP/s, taking turns.

python benchmarks/matmul.py out/matmul/libmatmul.so [another/libmatmul.so …]
"""

from __future__ import annotations

import statistics
import sys

import torch
from attention import milliseconds

import precast

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 2048))


def main() -> None:
    libraries = [precast.load(path) for path in sys.argv[1:]]
    for dtype in (torch.bfloat16, torch.float16):
        for m, n, k in SHAPES:
            a, b = torch.randn(m, k, dtype=dtype, device="cuda"), torch.randn(k, n, dtype=dtype, device="cuda")
            c = torch.empty(m, n, dtype=dtype, device="cuda")
            contestants = [lambda lib=lib: lib.matmul(c, a, b) for lib in libraries]
            contestants.append(lambda: torch.mm(a, b, out=c))
            times = [[] for _ in contestants]
            for _ in range(5):
                for call, into in zip(contestants, times, strict=True):
                    into.append(milliseconds(call, 10))
            plans = [lib.matmul.explain(c, a, b)["plan"] for lib in libraries]
            rates = [f"{2 * m * n * k / statistics.median(t) / 1e9:.0f}" for t in times]
            print(f"{str(dtype)[6:]:9} {m} {n} {k}:", *(f"{p} {r}" for p, r in zip([*plans, "torch"], rates)))


if __name__ == "__main__":
    main()
