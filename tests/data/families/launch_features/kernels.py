"""Kernels that need more of a launch than a grid: each names what it needs."""

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def cluster_sum_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """A cluster of CTAs works on one block: sums cross its CTAs."""
    at = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + tl.program_id(0) * n + at, mask=at < n, other=0.0), 0)
    tl.store(y_ptr + tl.program_id(0), total)


@triton.jit
def grid_sum_kernel(y_ptr, x_ptr, partial_ptr, arrived_ptr, n, BLOCK: tl.constexpr):
    """Cooperative: all programs run at once, wait for each other, and then each reads what the others wrote."""
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    part = tl.zeros([BLOCK], tl.float32)
    for start in range(program * BLOCK, n, programs * BLOCK):
        part += tl.load(x_ptr + start + at, mask=start + at < n, other=0.0)
    tl.store(partial_ptr + program, tl.sum(part, 0))
    tl.debug_barrier()
    tl.atomic_add(arrived_ptr, 1, sem="release")
    while tl.atomic_add(arrived_ptr, 0, sem="acquire") < programs:
        pass
    total = 0.0
    for other in range(programs):
        total += tl.load(partial_ptr + other, volatile=True)
    tl.store(y_ptr + program, total)


@triton.jit
def first_kernel(middle_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Lets the kernel after it start early."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gdc_launch_dependents()
    tl.store(middle_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def second_kernel(y_ptr, middle_ptr, n, BLOCK: tl.constexpr):
    """Starts before the kernel before it is done, and waits for it where it needs its results."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gdc_wait()
    tl.store(y_ptr + at, tl.load(middle_ptr + at, mask=at < n) + 1, mask=at < n)


@triton.jit
def device_descriptor_kernel(y_ptr, x_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Makes TMA descriptors on the device: they live in global scratch."""
    x_desc = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    y_desc = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    col = tl.program_id(1) * BLOCK_N
    y_desc.store([row, col], x_desc.load([row, col]) * 2)


@triton.jit
def few_registers_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Compiled for a limited number of registers."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.sin(x) * tl.cos(x), mask=at < n)
