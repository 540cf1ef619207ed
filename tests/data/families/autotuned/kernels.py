"""An existing kernel with Triton's own decorators, as users have them."""

import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}, num_warps=4), triton.Config({"BLOCK": 256}, num_warps=8)],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def scale_kernel(y_ptr, x_ptr, n, factor, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(y_ptr + at, tl.load(x_ptr + at) * factor)
    else:
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)
