"""One right plan and one for each fault; tuning must end with the right one alone."""

from precast.describe import Config, Family, Kernel, Operator, Plan, cdiv, tensor

from . import kernels

FAULTS = ("out_of_bounds", "far_out_of_bounds", "race", "whole_blocks", "endless", "unwritten", "too_much_shared")


def plan(name):
    """A plan of one kernel; all have the same arguments."""
    options = {"BLOCK": 64 if name == "too_much_shared" else 128}
    stages = 5 if name == "too_much_shared" else 1
    kernel = Kernel(
        getattr(kernels, f"{name}_kernel"),
        name=name,
        args={"y_ptr": tensor("fp32", shape=("n",), output=True), "x_ptr": tensor("fp32", shape=("n",))},
        key=("n",),
        configs=[Config(options, num_warps=4, num_stages=stages)],
        grid=lambda a: (cdiv(a.n, a.BLOCK),),
    )
    return Plan(name, [kernel])


family = Family("bad_kernels", [Operator("twice", [plan("right"), *(plan(name) for name in FAULTS)])])
