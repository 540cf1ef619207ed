"""Layer normalization: forward, and a backward of two kernels without atomics."""

from precast.describe import Config, Family, Kernel, Operator, Plan, cdiv, feature, scalar, select, tensor, workspace

from .kernels import backward_input_kernel, backward_parameters_kernel, forward_kernel

TYPES = {"T": ("fp16", "bf16", "fp32")}
ROWS = 16


def matrix(**more):
    return tensor("T", shape=("n_rows", "n_cols"), **more)


def per_column(**more):
    return tensor("T", shape=("n_cols",), **more)


def per_row(**more):
    return tensor("fp32", shape=("n_rows",), **more)


def partials():
    return workspace("fp32", shape=lambda a: (cdiv(a.n_rows, ROWS), a.n_cols))


forward = Kernel(
    forward_kernel,
    types=TYPES,
    args={
        "y_ptr": matrix(output=True),
        "mean_ptr": per_row(output=True),
        "rstd_ptr": per_row(output=True),
        "x_ptr": matrix(),
        "weight_ptr": per_column(),
        "bias_ptr": per_column(),
        "eps": scalar("fp32", default=1e-5),
    },
    key=("n_rows", "n_cols"),
    configs=[
        Config({"BLOCK": 256}, num_warps=2, prefer=lambda a: a.n_cols <= 256),
        Config({"BLOCK": 1024}, num_warps=4, prefer=lambda a: a.n_cols <= 1024),
        Config({"BLOCK": 4096}, num_warps=8),
    ],
    grid=lambda a: (a.n_rows,),
)

backward_input = Kernel(
    backward_input_kernel,
    types=TYPES,
    args={
        "dx_ptr": matrix(output=True),
        "partial_weight_ptr": partials(),
        "partial_bias_ptr": partials(),
        "dy_ptr": matrix(),
        "x_ptr": matrix(),
        "weight_ptr": per_column(),
        "mean_ptr": per_row(),
        "rstd_ptr": per_row(),
    },
    features={
        "BLOCK": feature(
            (256, 1024, 4096, 16384),
            value=lambda a: select(
                a.n_cols <= 256, 256, select(a.n_cols <= 1024, 1024, select(a.n_cols <= 4096, 4096, 16384))
            ),
        )
    },
    constants={"ROWS": ROWS},
    key=("n_rows", "n_cols"),
    configs=[
        Config(num_warps=2, when=lambda a: a.BLOCK <= 256),
        Config(num_warps=8, when=lambda a: a.BLOCK <= 4096),
        Config(num_warps=16),
        Config(num_warps=8),
    ],
    grid=lambda a: (cdiv(a.n_rows, ROWS),),
)

backward_parameters = Kernel(
    backward_parameters_kernel,
    types=TYPES,
    args={
        "dweight_ptr": per_column(output=True),
        "dbias_ptr": per_column(output=True),
        "partial_weight_ptr": partials(),
        "partial_bias_ptr": partials(),
        "n_partials": scalar("i32", value=lambda a: cdiv(a.n_rows, ROWS)),
    },
    configs=[Config({"BLOCK_ROWS": 32, "BLOCK_COLS": 64}, num_warps=4)],
    grid=lambda a: (cdiv(a.n_cols, a.BLOCK_COLS),),
)

family = Family(
    "layer_norm",
    [
        Operator("layer_norm", [Plan("rows", [forward])], doc="y = (x - mean) * rstd * weight + bias, row by row"),
        Operator(
            "layer_norm_backward",
            [Plan("two_kernels", [backward_input, backward_parameters])],
            arguments=("dx", "dweight", "dbias", "dy", "x", "weight", "mean", "rstd"),
            checks=[(lambda a: a.n_cols <= 16384, "rows of up to 16384 columns are supported")],
            doc="Gradients of layer_norm",
        ),
    ],
)
