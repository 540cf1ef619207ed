"""Softmax over rows: a plan for rows that fit in registers, and one for any."""

from precast.describe import Config, Family, Kernel, Operator, Plan, feature, maximum, minimum, next_power_of_2, tensor

from .kernels import softmax_kernel, softmax_online_kernel

TYPES = {"T": ("fp16", "bf16", "fp32")}
ARGS = {
    "y_ptr": tensor("T", shape=("n_rows", "n_cols"), output=True, in_place_with="x"),
    "x_ptr": tensor("T", shape=("n_rows", "n_cols")),
}
LARGEST = 16384

one_pass = Kernel(
    softmax_kernel,
    types=TYPES,
    args=ARGS,
    features={
        "BLOCK": feature(
            (128, 1024, 4096, LARGEST),
            # Rounded up to the next listed size: few sizes are compiled, and a mask covers the rest.
            value=lambda a: _listed(a.n_cols),
        )
    },
    key=("n_rows", "n_cols"),
    configs=[
        Config(num_warps=1, when=lambda a: a.BLOCK <= 128),
        Config(num_warps=4, when=lambda a: a.BLOCK <= 4096),
        Config(num_warps=16),
        Config(num_warps=8),
    ],
    grid=lambda a: (a.n_rows,),
    large="wide",
)

online = Kernel(
    softmax_online_kernel,
    types=TYPES,
    args=ARGS,
    constants={"BLOCK": 4096},
    configs=[Config(num_warps=8)],
    grid=lambda a: (a.n_rows,),
    large="wide",
)


def _listed(n_cols):
    """128, 1024, 4096 or 16384, the least that holds n_cols (or the last)."""
    power = minimum(LARGEST, maximum(128, next_power_of_2(n_cols)))
    return (
        128 * (power <= 128) + 1024 * ((power > 128) & (power <= 1024)) + 4096 * ((power > 1024) & (power <= 4096))
        + LARGEST * (power > 4096)
    )  # fmt: skip


family = Family(
    "softmax",
    [
        Operator(
            "softmax",
            [Plan("one_pass", [one_pass], when=lambda a: a.n_cols <= LARGEST), Plan("online", [online])],
            doc="y[i, :] = exp(x[i, :] - max) / sum, row by row",
        )
    ],
)
