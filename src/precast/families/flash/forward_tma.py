"""Attention forward through TMA descriptors, for GPUs that have TMA."""

import triton
import triton.language as tl

from .shared import finish, mask_scores, softmax_step, visible_columns


@triton.jit
def attend_tma(
    acc, top, total, q, k_desc, v_desc, batch, kv_head, start, stop, rows, Sq, Sk, scale, MASKED: tl.constexpr,
    MASK: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Keys and values from start to stop; what TMA reads past the end is 0."""
    for at in tl.range(start, stop, BLOCK_N, num_stages=1 if MASKED else None):
        k = k_desc.load([batch, kv_head, at, 0]).reshape([BLOCK_N, HEAD_DIM])
        scores = tl.dot(q, k.T)
        if MASKED:
            scores = mask_scores(scores, rows, at + tl.arange(0, BLOCK_N), Sq, Sk, MASK)
        weights, decay, top, total = softmax_step(scores, scale, top, total, MASKED)
        v = v_desc.load([batch, kv_head, at, 0]).reshape([BLOCK_N, HEAD_DIM])
        acc = tl.dot(weights.to(v.dtype), v, acc * decay[:, None])
    return acc, top, total


@triton.jit
def attention_forward_tma_kernel(
    out_desc, lse_ptr, q_desc, k_desc, v_desc, scale, stride_lb, stride_lh, H, Hk, Sq, Sk, MASK: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One block of BLOCK_M queries of one head a program; the last blocks, which see most, come first."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    kv_head = head // (H // Hk)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    q = q_desc.load([batch, head, block * BLOCK_M, 0]).reshape([BLOCK_M, HEAD_DIM])
    top = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    scale = scale * 1.4426950408889634  # exp(x) = exp2(x log2 e)
    whole, some = visible_columns(block * BLOCK_M, Sq, Sk, MASK, BLOCK_M, BLOCK_N)
    acc, top, total = attend_tma(
        acc,
        top,
        total,
        q,
        k_desc,
        v_desc,
        batch,
        kv_head,
        0,
        whole,
        rows,
        Sq,
        Sk,
        scale,
        False,
        MASK,
        HEAD_DIM,
        BLOCK_N,
    )
    acc, top, total = attend_tma(
        acc,
        top,
        total,
        q,
        k_desc,
        v_desc,
        batch,
        kv_head,
        whole,
        some,
        rows,
        Sq,
        Sk,
        scale,
        True,
        MASK,
        HEAD_DIM,
        BLOCK_N,
    )
    out, lse = finish(acc, top, total)
    out_desc.store([batch, head, block * BLOCK_M, 0], out.to(out_desc.dtype).reshape([1, 1, BLOCK_M, HEAD_DIM]))
    lse_at = lse_ptr + batch.to(tl.int64) * stride_lb + head.to(tl.int64) * stride_lh + rows
    tl.store(lse_at, lse, mask=rows < Sq)
