"""z = x + y."""

from precast.describe import Config, Family, Kernel, cdiv, tensor

from .kernels import add_kernel

family = Family(
    "vector_add",
    [
        Kernel(
            add_kernel,
            name="vector_add",
            types={"T": ("fp16", "bf16", "fp32")},
            args={
                "z_ptr": tensor("T", shape=("n",), output=True, in_place_with="x"),
                "x_ptr": tensor("T", shape=("n",)),
                "y_ptr": tensor("T", shape=("n",)),
            },
            key=("n",),
            configs=[Config({"BLOCK": 1024}, num_warps=4)],
            grid=lambda a: (cdiv(a.n, a.BLOCK),),
        )
    ],
)
