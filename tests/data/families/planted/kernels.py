"""Kernels whose compiles go wrong in every way that a compile can."""

import triton
import triton.language as tl


@triton.constexpr_function
def misbehave(mode):
    if mode == 1:
        __import__("os")._exit(7)
    if mode == 2:
        __import__("time").sleep(3600)
    return mode


@triton.jit
def fill(y, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value: tl.constexpr = misbehave(MODE)
    if MODE == 3:
        tl.static_assert(False, "planted")
    tl.store(y + at, value, mask=at < n)
