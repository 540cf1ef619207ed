"""Configs, key and heuristics are taken from the kernel's decorators."""

import triton

from precast.describe import Family, Kernel, scalar, tensor

from .kernels import scale_kernel

family = Family(
    "autotuned",
    [
        Kernel(
            scale_kernel,
            types={"T": ("fp16", "fp32")},
            args={
                "y_ptr": tensor("T", shape=("n",), output=True),
                "x_ptr": tensor("T", shape=("n",)),
                "factor": scalar("fp32", default=2.0),
            },
            grid=lambda META: (triton.cdiv(META["n"], META["BLOCK"]),),
            name="scale",
        )
    ],
)
