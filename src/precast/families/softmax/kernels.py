"""Softmax over the rows of a matrix."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, stride_y, stride_x, n_cols, BLOCK: tl.constexpr):
    """One program a row, the whole row in registers; BLOCK is at least n_cols."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * stride_y + cols, (e / tl.sum(e, axis=0)).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_online_kernel(y_ptr, x_ptr, stride_y, stride_x, n_cols, BLOCK: tl.constexpr):
    """One program a row, two passes over blocks of it.

    The first keeps a running maximum and a rescaled sum (Milakov and Gimelshein, "Online normalizer calculation
    for softmax", 2018).
    """
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride_x
    cols = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_row + start + cols, mask=start + cols < n_cols, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, x)
        # A lane that has seen only -inf keeps 0: -inf - -inf would be NaN.
        base = tl.where(new_top == -float("inf"), 0.0, new_top)
        total = total * tl.exp(top - base) + tl.exp(x - base)
        top = new_top
    row_top = tl.max(top, axis=0)
    row_total = tl.sum(total * tl.exp(top - row_top), axis=0)
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - row_top) / row_total
        tl.store(y_ptr + row * stride_y + start + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
