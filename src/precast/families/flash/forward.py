"""Attention forward through pointers: every target, any strides but a unit last one."""

import triton
import triton.language as tl

from .shared import finish, mask_scores, softmax_step, visible_columns


@triton.jit
def attend(
    acc, top, total, q, k_base, v_base, stride_ks, stride_vs, start, stop, rows, Sq, Sk, scale, MASKED: tl.constexpr,
    MASK: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Keys and values from start to stop."""
    dims = tl.arange(0, HEAD_DIM)
    for at in range(start, stop, BLOCK_N):
        cols = at + tl.arange(0, BLOCK_N)
        k_at = k_base + dims[:, None] + cols[None, :] * stride_ks
        v_at = v_base + cols[:, None] * stride_vs + dims[None, :]
        if MASKED:
            k = tl.load(k_at, mask=cols[None, :] < Sk, other=0.0)
            scores = mask_scores(tl.dot(q, k), rows, cols, Sq, Sk, MASK)
        else:
            k = tl.load(k_at)
            scores = tl.dot(q, k)
        weights, decay, top, total = softmax_step(scores, scale, top, total, MASKED)
        v = tl.load(v_at, mask=cols[:, None] < Sk, other=0.0) if MASKED else tl.load(v_at)
        acc = tl.dot(weights.to(v.dtype), v, acc * decay[:, None])
    return acc, top, total


@triton.jit
def attention_forward_kernel(
    out_ptr, lse_ptr, q_ptr, k_ptr, v_ptr, scale, stride_ob, stride_oh, stride_os, stride_qb, stride_qh, stride_qs,
    stride_kb, stride_kh, stride_ks, stride_vb, stride_vh, stride_vs, stride_lb, stride_lh, H, Hk, Sq, Sk,
    MASK: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One block of BLOCK_M queries of one head a program; the last blocks, which see most, come first."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    kv_head = head // (H // Hk)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD_DIM)
    q_at = q_ptr + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qs + dims[None, :]
    q = tl.load(q_at, mask=rows[:, None] < Sq, other=0.0)
    k_base = k_ptr + batch * stride_kb + kv_head * stride_kh
    v_base = v_ptr + batch * stride_vb + kv_head * stride_vh
    top = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    scale = scale * 1.4426950408889634  # exp(x) = exp2(x log2 e)
    whole, some = visible_columns(block * BLOCK_M, Sq, Sk, MASK, BLOCK_M, BLOCK_N)
    acc, top, total = attend(
        acc, top, total, q, k_base, v_base, stride_ks, stride_vs, 0, whole, rows, Sq, Sk, scale, False, MASK, HEAD_DIM,
        BLOCK_N,
    )  # fmt: skip
    acc, top, total = attend(
        acc, top, total, q, k_base, v_base, stride_ks, stride_vs, whole, some, rows, Sq, Sk, scale, True, MASK,
        HEAD_DIM, BLOCK_N,
    )  # fmt: skip
    out, lse = finish(acc, top, total)
    out_at = out_ptr + batch * stride_ob + head * stride_oh + rows[:, None] * stride_os + dims[None, :]
    tl.store(out_at, out.to(out_ptr.dtype.element_ty), mask=rows[:, None] < Sq)
    tl.store(lse_ptr + batch * stride_lb + head * stride_lh + rows, lse, mask=rows < Sq)
