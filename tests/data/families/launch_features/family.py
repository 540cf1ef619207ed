"""Clusters, cooperative grids, programmatic dependent launch, global scratch, register limits."""

from precast.describe import Alignment, Config, Family, Kernel, Operator, Plan, cdiv, tensor, workspace

from .kernels import (
    cluster_sum_kernel,
    device_descriptor_kernel,
    few_registers_kernel,
    first_kernel,
    grid_sum_kernel,
    second_kernel,
)

NVIDIA = ("sm_90",)
vector = {"x_ptr": tensor("fp32", shape=("n",)), "y_ptr": tensor("fp32", shape=("n",), output=True)}
blocks = lambda a: (cdiv(a.n, a.BLOCK),)  # noqa: E731

# What a descriptor made on the device needs, the kernel's author must say: TMA takes whole 16 bytes.
STRIDES = (lambda a: a.N % 4 == 0, "N must be a multiple of 4")
device_descriptor = Kernel(
    device_descriptor_kernel,
    args={"y_ptr": tensor("fp32", shape=("M", "N"), output=True), "x_ptr": tensor("fp32", shape=("M", "N"))},
    configs=[Config({"BLOCK_M": 16, "BLOCK_N": 32}, num_warps=4)],
    grid=lambda a: (cdiv(a.M, a.BLOCK_M), cdiv(a.N, a.BLOCK_N)),
    alignments=[Alignment("full", pointers=True)],
    targets=NVIDIA,
)

family = Family(
    "launch_features",
    [
        Kernel(
            cluster_sum_kernel,
            name="cluster_sum",
            args={"y_ptr": tensor("fp32", shape=("rows",), output=True), "x_ptr": tensor("fp32", shape=("rows", "n"))},
            configs=[Config({"BLOCK": 8192}, num_warps=4, num_ctas=2)],
            grid=lambda a: (a.rows,),
            targets=NVIDIA,
        ),
        Kernel(
            grid_sum_kernel,
            name="grid_sum",
            args={
                "y_ptr": tensor("fp32", shape=("programs",), output=True),
                "x_ptr": tensor("fp32", shape=("n",)),
                "partial_ptr": workspace("fp32", shape=lambda a: a.programs),
                "arrived_ptr": workspace("i32", shape=lambda a: 1, zero=True),
            },
            configs=[Config({"BLOCK": 1024}, num_warps=4, launch_cooperative_grid=True)],
            grid=lambda a: (a.programs,),
            targets=NVIDIA,
        ),
        Operator(
            "dependent",
            [
                Plan(
                    "two kernels",
                    [
                        Kernel(
                            first_kernel,
                            args={"x_ptr": vector["x_ptr"], "middle_ptr": workspace("fp32", shape=lambda a: a.n)},
                            configs=[Config({"BLOCK": 512}, num_warps=4)],
                            grid=blocks,
                        ),
                        Kernel(
                            second_kernel,
                            args={"y_ptr": vector["y_ptr"], "middle_ptr": workspace("fp32", shape=lambda a: a.n)},
                            configs=[Config({"BLOCK": 512}, num_warps=4, launch_pdl=True)],
                            grid=blocks,
                        ),
                    ],
                    targets=NVIDIA,
                )
            ],
            arguments=("y", "x"),
        ),
        Operator("device_descriptor", [Plan("descriptors", [device_descriptor])], checks=[STRIDES]),
        Kernel(
            few_registers_kernel,
            name="few_registers",
            args=vector,
            configs=[Config({"BLOCK": 1024}, num_warps=4, maxnreg=32)],
            grid=blocks,
            targets=NVIDIA,
        ),
    ],
)
