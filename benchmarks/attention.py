"""Attention forward on a GPU: precast beside torch's back ends, in TFLOP/s. 16,384 tokens, hidden size 2,048.

python benchmarks/attention.py out/flash/libflash.so
"""

from __future__ import annotations

import argparse
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import precast

TOKENS = 16384
HIDDEN = 2048


def milliseconds(call, repeats: int = 20) -> float:
    """Median time of a call by device events."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return sorted(times)[len(times) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--lengths", default="512,2048,8192,16384")
    options = parser.parse_args()
    lib = precast.load(options.library)
    print(f"{torch.cuda.get_device_name()}, bf16, TFLOP/s")
    print(f"{'':24}{'precast':>9}{'flash':>9}{'cudnn':>9}  config")
    for dim in (64, 128):
        for causal in (False, True):
            for length in map(int, options.lengths.split(",")):
                heads, batch = HIDDEN // dim, TOKENS // length
                q, k, v = (
                    torch.randn(batch, heads, length, dim, dtype=torch.bfloat16, device="cuda") for _ in range(3)
                )
                out, lse = torch.empty_like(q), torch.empty(batch, heads, length, device="cuda")
                mask = "causal_bottom_right" if causal else "none"
                scale = 1 / math.sqrt(dim)
                flops = 4 * batch * heads * length * length * dim / (2 if causal else 1)
                rates = [flops / milliseconds(lambda: lib.attention_forward(out, lse, q, k, v, scale, mask)) / 1e9]
                for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
                    with sdpa_kernel(backend):
                        expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                        rates.append(
                            flops
                            / milliseconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
                            / 1e9
                        )
                error = (out.float() - expected.float()).abs().max().item()
                assert error < 0.05, error
                config = lib.attention_forward.explain(out, lse, q, k, v, scale, mask)["config"]
                name = f"d {dim} {'causal' if causal else 'dense'} {length}"
                print(f"{name:24}" + "".join(f"{r:9.0f}" for r in rates) + f"  {config}")


if __name__ == "__main__":
    main()
