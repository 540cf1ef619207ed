"""Elementwise addition."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(z_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """z = x + y over n elements, BLOCK a program."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(z_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)
