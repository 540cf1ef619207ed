"""Matrix multiplication: through pointers for every target, through TMA where there is TMA."""

from precast.describe import Config, Family, Kernel, Operator, Plan, cdiv, tensor

from .kernels import matmul_kernel, matmul_tma_kernel
from .kernels_hopper import matmul_hopper_kernel

TYPES = {"T": ("fp16", "bf16", "fp8e4nv", "fp8e4b8"), "O": ("fp16", "bf16")}
HOPPER = ("sm_90", "sm_100")
NVIDIA = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1150", "gfx1151", "gfx1200", "gfx1201")


def wrong_output(f):
    """fp16 and bf16 give their own dtype; fp8 gives bf16."""
    return f.O.name != f.T.name if f.T.bits == 16 else f.O.name != "bf16"


COMMON = {
    "types": TYPES,
    "exclude": [(wrong_output, "the output of fp16 is fp16, that of bf16 and fp8 is bf16")],
    "key": ("M", "N", "K"),
    "grid": lambda a: (cdiv(a.M, a.BLOCK_M) * cdiv(a.N, a.BLOCK_N),),
}


def large(a):
    """Small problems leave most of the GPU idle in large tiles."""
    return a.M * a.N > 1 << 20


def config(m, n, k, **options):
    return Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, **options)


def tma_config(m, n, k, warp_specialize, **options):
    parameters = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "WARP_SPECIALIZE": warp_specialize}
    return Config(parameters, **options)


# The first that fit are used when nothing was measured; the others are for tuning.
POINTER_TUNING = [
    *(
        config(m, n, k, num_warps=warps, num_stages=stages, targets=NVIDIA)
        for m, n, k, warps, stages in (
            (16, 32, 128, 2, 4), (16, 64, 64, 4, 4), (16, 64, 128, 4, 4), (16, 128, 64, 4, 4), (16, 128, 128, 4, 3),
            (32, 32, 128, 4, 4), (32, 64, 64, 4, 4), (32, 64, 128, 4, 4), (32, 128, 64, 4, 4), (64, 32, 64, 4, 4),
            (64, 64, 64, 4, 4), (64, 64, 128, 4, 3), (64, 128, 64, 4, 3), (64, 128, 64, 4, 4), (64, 256, 64, 4, 3),
            (128, 64, 64, 4, 4), (128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 128, 64, 8, 4), (128, 256, 64, 8, 4),
            (256, 128, 64, 8, 3),
        )
    ),
    *(
        config(m, n, k, num_warps=warps, num_stages=2, waves_per_eu=2, targets=AMD)
        for m, n, k, warps in (
            (16, 64, 128, 4), (32, 64, 64, 4), (64, 64, 64, 4), (64, 128, 64, 4), (128, 128, 32, 4), (128, 256, 64, 8),
            (256, 128, 64, 8), (256, 256, 32, 8),
        )
    ),
]  # fmt: skip
TMA_TUNING = [
    tma_config(m, n, k, False, num_warps=warps, num_stages=stages)
    for m, n, k, warps, stages in (
        (64, 64, 64, 4, 4), (64, 64, 128, 4, 4), (64, 128, 64, 4, 4), (64, 128, 128, 4, 3), (64, 256, 64, 4, 4),
        (128, 64, 64, 4, 4), (128, 64, 128, 4, 3), (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 128, 128, 8, 3),
        (128, 256, 64, 8, 4), (256, 64, 64, 8, 4), (256, 128, 64, 8, 3), (256, 128, 64, 8, 4),
    )
]  # fmt: skip
HOPPER_CONFIGS = [
    # Two bytes an element: Hopper's products of fp8 want b with K innermost.
    Config(
        {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP_M": 8, "STAGES": stages},
        num_warps=warps,
        when=lambda a: a.T.bits == 16,
    )
    for m, n, stages, warps in (
        (128, 256, 3, 8), (128, 128, 4, 8), (128, 128, 5, 8), (128, 128, 6, 4), (64, 256, 4, 4), (64, 128, 6, 4),
        (64, 128, 4, 4), (128, 64, 6, 8), (64, 64, 8, 4),
    )
]  # fmt: skip


pointers = Kernel(
    matmul_kernel,
    args={
        "c_ptr": tensor("O", shape=("M", "N"), output=True),
        "a_ptr": tensor("T", shape=("M", "K")),
        "b_ptr": tensor("T", shape=("K", "N")),
    },
    configs=[
        config(64, 64, 32, num_warps=4, num_stages=3, prefer=lambda a: a.M * a.N <= 1 << 20),
        config(128, 256, 64, num_warps=8, num_stages=3, targets=("sm_80", *HOPPER)),
        config(128, 128, 64, num_warps=8, num_stages=2, targets=("gfx90a", "gfx942", "gfx950")),
        config(128, 128, 32, num_warps=8, num_stages=3),
        config(64, 64, 32, num_warps=4, num_stages=2),
        *POINTER_TUNING,
    ],
    large="wide",
    **COMMON,
)

tma = Kernel(
    matmul_tma_kernel,
    args={
        "c_desc": tensor("O", shape=("M", "N"), output=True, block=lambda c: (c.BLOCK_M, c.BLOCK_N)),
        "a_desc": tensor("T", shape=("M", "K"), block=lambda c: (c.BLOCK_M, c.BLOCK_K)),
        "b_desc": tensor("T", shape=("K", "N"), block=lambda c: (c.BLOCK_K, c.BLOCK_N)),
    },
    configs=[
        # Triton 3.9 specializes warps by itself on Blackwell alone; on Hopper it ignores the wish.
        tma_config(128, 256, 64, True, num_warps=8, num_stages=3, targets=("sm_100",)),
        tma_config(128, 256, 64, False, num_warps=8, num_stages=3),
        tma_config(128, 128, 64, False, num_warps=4, num_stages=3),
        *TMA_TUNING,
    ],
    targets=HOPPER,
    name="matmul_tma",
    **COMMON,
)

hopper = Kernel(
    matmul_hopper_kernel,
    args=tma.args,
    configs=HOPPER_CONFIGS,
    targets=("sm_90",),
    name="matmul_hopper",
    **COMMON,
)

family = Family(
    "matmul",
    [
        Operator(
            "matmul",
            [
                Plan("hopper", [hopper], targets=("sm_90",), when=lambda a: a.K > 0, prefer=large),
                Plan("tma", [tma], targets=HOPPER, when=lambda a: a.K > 0, prefer=large),
                Plan("pointers", [pointers]),
            ],
            doc="c = a @ b, accumulated in fp32",
        )
    ],
)
