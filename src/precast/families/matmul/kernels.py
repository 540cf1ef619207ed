"""Matrix multiplication."""

import triton
import triton.language as tl


@triton.jit
def tile_of(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile when tiles are taken in groups of GROUP_M rows, so that a group's B stays in L2."""
    in_group = GROUP_M * tiles_n
    first = (tile // in_group) * GROUP_M
    rows = min(tiles_m - first, GROUP_M)
    return first + (tile % in_group) % rows, (tile % in_group) // rows


@triton.jit
def matmul_kernel(
    c_ptr, a_ptr, b_ptr, M, N, K, stride_cm, stride_cn, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """C = A B through pointers: any strides, any target. One program a tile of C."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    # Reads past the last row or column wrap around instead of being masked; their results are not stored.
    a = a_ptr + (rows % M)[:, None] * stride_am + inner[None, :] * stride_ak
    b = b_ptr + inner[:, None] * stride_bk + (cols % N)[None, :] * stride_bn
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(a, mask=inner[None, :] < K - start, other=0.0)
        y = tl.load(b, mask=inner[:, None] < K - start, other=0.0)
        acc = tl.dot(x, y, acc)
        a += BLOCK_K * stride_ak
        b += BLOCK_K * stride_bk
    c = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def matmul_tma_kernel(
    c_desc, a_desc, b_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """C = A B through TMA descriptors; with WARP_SPECIALIZE, loads by one group of warps, products by others."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    row = tile_m * BLOCK_M
    col = tile_n * BLOCK_N
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(0, K, BLOCK_K, warp_specialize=WARP_SPECIALIZE):
        x = a_desc.load([row, start])
        y = b_desc.load([start, col])
        acc = tl.dot(x, y, acc)
    c_desc.store([row, col], acc.to(c_desc.dtype))
