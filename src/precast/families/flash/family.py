"""Attention forward: through pointers for every target, through TMA where there is TMA."""

from precast.describe import Config, Family, Kernel, Operator, Plan, cdiv, feature, scalar, stride, tensor

from .forward import attention_forward_kernel
from .forward_tma import attention_forward_tma_kernel

HOPPER = ("sm_90", "sm_100")
NVIDIA = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1150", "gfx1151", "gfx1200", "gfx1201")
MASKS = ("none", "causal_top_left", "causal_bottom_right")
QUERY = ("B", "H", "Sq", "D")
KEY = ("B", "Hk", "Sk", "D")


def config(m, n, **options):
    return Config({"BLOCK_M": m, "BLOCK_N": n}, **options)


# The first that fit are used when nothing was measured; the others are for tuning.
POINTER_TUNING = [
    *(
        config(m, n, num_warps=warps, num_stages=stages, targets=NVIDIA)
        for m, n, warps, stages in (
            (16, 64, 4, 2), (16, 128, 4, 3), (32, 64, 4, 3), (64, 64, 4, 3), (64, 128, 4, 3), (64, 64, 8, 3),
            (128, 32, 4, 3), (128, 64, 4, 3), (128, 128, 8, 2),
        )
    ),
    *(
        config(m, n, num_warps=4, num_stages=1, waves_per_eu=waves, targets=AMD)
        for m, n in ((16, 64), (32, 32), (32, 64), (64, 64), (128, 32), (128, 64), (128, 128))
        for waves in (0, 2, 3)
    ),
]  # fmt: skip
TMA_TUNING = [
    config(m, n, num_warps=warps, num_stages=stages)
    for m, n, warps in ((64, 32, 4), (64, 64, 4), (64, 128, 4), (128, 32, 8), (128, 64, 4), (128, 64, 8), (128, 128, 8),
                        (128, 256, 8), (256, 64, 8))
    for stages in (2, 3, 4)
]  # fmt: skip


COMMON = {
    "types": {"T": ("fp16", "bf16")},
    "features": {"MASK": MASKS, "HEAD_DIM": feature((64, 128), value=lambda a: a.D)},
    "key": {"Sq": lambda a: a.Sq, "Sk": lambda a: a.Sk, "heads": lambda a: a.B * a.H},
    "grid": lambda a: (cdiv(a.Sq, a.BLOCK_M), a.B * a.H),
}

pointers = Kernel(
    attention_forward_kernel,
    args={
        "out_ptr": tensor("T", shape=QUERY, output=True),
        "lse_ptr": tensor("fp32", shape=("B", "H", "Sq"), output=True),
        "q_ptr": tensor("T", shape=QUERY),
        "k_ptr": tensor("T", shape=KEY),
        "v_ptr": tensor("T", shape=KEY),
        "scale": scalar("fp32"),
        "stride_lb": stride("lse", 0),
        "stride_lh": stride("lse", 1),
        **{f"stride_{t[0]}{axis}": stride(t, i) for t in ("out", "q", "k", "v") for i, axis in enumerate("bhs")},
    },
    configs=[
        config(64, 32, num_warps=4, num_stages=2, prefer=lambda a: a.Sq <= 64),
        config(128, 64, num_warps=8, num_stages=3, targets=("sm_80", *HOPPER)),
        config(128, 64, num_warps=8, num_stages=2, targets=("sm_86", "sm_89", "sm_120")),
        config(128, 64, num_warps=4, num_stages=1, waves_per_eu=2, targets=("gfx90a", "gfx942", "gfx950")),
        config(64, 32, num_warps=4, num_stages=1),
        *POINTER_TUNING,
    ],
    name="attention_forward",
    **COMMON,
)

tma = Kernel(
    attention_forward_tma_kernel,
    args={
        "out_desc": tensor("T", shape=QUERY, output=True, block=lambda c: (1, 1, c.BLOCK_M, c.HEAD_DIM)),
        "lse_ptr": tensor("fp32", shape=("B", "H", "Sq"), output=True),
        "q_desc": tensor("T", shape=QUERY, block=lambda c: (1, 1, c.BLOCK_M, c.HEAD_DIM)),
        "k_desc": tensor("T", shape=KEY, block=lambda c: (1, 1, c.BLOCK_N, c.HEAD_DIM)),
        "v_desc": tensor("T", shape=KEY, block=lambda c: (1, 1, c.BLOCK_N, c.HEAD_DIM)),
        "scale": scalar("fp32"),
        "stride_lb": stride("lse", 0),
        "stride_lh": stride("lse", 1),
    },
    configs=[
        config(128, 128, num_warps=8, num_stages=3, prefer=lambda a: a.HEAD_DIM <= 128),
        config(128, 64, num_warps=8, num_stages=3),
        *TMA_TUNING,
    ],
    targets=HOPPER,
    name="attention_forward_tma",
    **COMMON,
)

family = Family(
    "flash",
    [
        Operator(
            "attention_forward",
            [
                Plan("tma", [tma], targets=HOPPER, when=lambda a: (a.Sq > 0) & (a.Sk > 0), prefer=lambda a: a.Sq > 64),
                Plan("pointers", [pointers]),
            ],
            arguments=("out", "lse", "q", "k", "v", "scale", "mask"),
            checks=[(lambda a: (a.Hk > 0) & (a.H % (a.Hk + (a.Hk == 0)) == 0), "H must be a multiple of Hk")],
            doc="out = softmax(mask(scale q k^T)) v, and the natural log-sum-exp of each row",
        )
    ],
)
