"""What the attention kernels share: masking and the online softmax.

The algorithm is that of Dao, "FlashAttention-2" (2023): one block of queries a program, keys and values in
blocks, a running row maximum and sum.
"""

import triton
import triton.language as tl


@triton.jit
def visible_columns(first_row, Sq, Sk, MASK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """How far a block of rows sees: columns that all its rows see, in whole blocks, and columns that any sees."""
    if MASK == "none":
        whole = Sk // BLOCK_N * BLOCK_N
        some = Sk
    else:
        offset = 0
        if MASK == "causal_bottom_right":
            offset = Sk - Sq
        some = min(max(first_row + BLOCK_M + offset, 0), Sk)
        whole = min(max(first_row + offset + 1, 0), Sk) // BLOCK_N * BLOCK_N
    return whole, some


@triton.jit
def mask_scores(scores, rows, cols, Sq, Sk, MASK: tl.constexpr):
    """-inf where a row does not see a column."""
    seen = cols[None, :] < Sk
    if MASK == "causal_top_left":
        seen = seen & (cols[None, :] <= rows[:, None])
    if MASK == "causal_bottom_right":
        seen = seen & (cols[None, :] <= rows[:, None] + (Sk - Sq))
    return tl.where(seen, scores, -float("inf"))


@triton.jit
def softmax_step(scores, scale, top, total, MASKED: tl.constexpr):
    """One block's weights, the factor for what was summed before, and the new maximum and sum (base 2)."""
    new_top = tl.maximum(top, tl.max(scores, 1) * scale)
    base = new_top
    if MASKED:
        # A row that has seen nothing has a maximum of -inf, and -inf - -inf would be NaN.
        base = tl.where(new_top == -float("inf"), 0.0, new_top)
    weights = tl.math.exp2(scores * scale - base[:, None])
    decay = tl.math.exp2(top - base)
    return weights, decay, new_top, total * decay + tl.sum(weights, 1)


@triton.jit
def finish(acc, top, total):
    """The output and the natural log-sum-exp; a row that has seen nothing gives 0 and -inf."""
    empty = total == 0.0
    out = acc / tl.where(empty, 1.0, total)[:, None]
    lse = (top + tl.math.log2(tl.where(empty, 1.0, total))) * 0.6931471805599453
    return out, tl.where(empty, -float("inf"), lse)
