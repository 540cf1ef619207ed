"""Matrix multiplication for Hopper, in Gluon: one warp loads tiles by TMA, two groups of warps multiply them."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from .kernels import tile_of


@gluon.jit
def load_tiles(a_desc, b_desc, a_tiles, b_tiles, full, empty, row, col, K, BLOCK_K: gl.constexpr):
    """Fills stages as they become empty."""
    STAGES: gl.constexpr = a_tiles.shape[0]
    for step in range(gl.cdiv(K, BLOCK_K)):
        stage = step % STAGES
        mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)  # the first round finds them empty
        mbarrier.expect(full.index(stage), a_desc.nbytes_per_cta + b_desc.nbytes_per_cta)
        tma.async_load(a_desc, [row, step * BLOCK_K], full.index(stage), a_tiles.index(stage))
        tma.async_load(b_desc, [step * BLOCK_K, col], full.index(stage), b_tiles.index(stage))


@gluon.jit
def multiply_tiles(c_desc, c_tile, a_tiles, b_tiles, full, empty, row, col, K, BLOCK_K: gl.constexpr):
    """Multiplies stages as they become full, one product behind, and writes the tile of C."""
    STAGES: gl.constexpr = a_tiles.shape[0]
    BLOCK_M: gl.constexpr = c_desc.block_shape[0]
    BLOCK_N: gl.constexpr = c_desc.block_shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[gl.num_warps(), 1], instr_shape=[16, BLOCK_N, 16]
    )
    acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
    for step in range(gl.cdiv(K, BLOCK_K)):
        stage = step % STAGES
        mbarrier.wait(full.index(stage), step // STAGES & 1)
        product = warpgroup_mma(a_tiles.index(stage), b_tiles.index(stage), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(product,))
        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), pred=step > 0)
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    c_tile.store(acc.to(c_desc.dtype))
    fence_async_shared()
    tma.async_store(c_desc, [row, col], c_tile)
    tma.store_wait(0)


@gluon.jit
def matmul_hopper_kernel(
    c_desc, a_desc, b_desc, M, N, K,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """C = A B, one program a tile of C."""
    tile_m, tile_n = tile_of(gl.program_id(0), gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N), GROUP_M)
    row = tile_m * BLOCK_M
    col = tile_n * BLOCK_N
    a_tiles = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BLOCK_M, BLOCK_K], a_desc.layout)
    b_tiles = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_K, BLOCK_N], b_desc.layout)
    c_tile = gl.allocate_shared_memory(c_desc.dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (multiply_tiles, (c_desc, c_tile, a_tiles, b_tiles, full, empty, row, col, K, BLOCK_K)),
            (load_tiles, (a_desc, b_desc, a_tiles, b_tiles, full, empty, row, col, K, BLOCK_K)),
        ],
        [1],
        [24],
    )
