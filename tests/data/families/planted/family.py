"""A family with one sound config and three whose compiles crash, hang and fail."""

from precast.describe import Config, Family, Kernel, cdiv, tensor

from .kernels import fill

family = Family(
    "planted",
    [
        Kernel(
            fill,
            args={"y": tensor("fp32", shape=("n",), output=True)},
            configs=[
                Config({"MODE": 1, "BLOCK": 64}),
                Config({"MODE": 2, "BLOCK": 64}),
                Config({"MODE": 3, "BLOCK": 64}),
                Config({"MODE": 0, "BLOCK": 64}),
            ],
            grid=lambda a: (cdiv(a.n, a.BLOCK),),
        )
    ],
)
