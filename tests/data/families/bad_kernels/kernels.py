"""y = 2 x, done wrongly in every way that the correctness gate must catch."""

import triton
import triton.language as tl


@triton.jit
def right_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def out_of_bounds_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Writes one element past the end."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n, other=0), mask=at <= n)


@triton.jit
def far_out_of_bounds_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Writes where there is no memory: the context does not survive it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    far = y_ptr + at + (tl.full([BLOCK], 1, tl.int64) << 44)
    tl.store(far, 2 * tl.load(x_ptr + at, mask=at < n, other=0), mask=at < n)


@triton.jit
def race_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Programs add to one element in turn, without atomics: what they read may be old."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)
    tl.store(y_ptr, 2 * tl.load(x_ptr) + 1e-3 * tl.program_id(0).to(tl.float32))


@triton.jit
def whole_blocks_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Right only where n is a multiple of the block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    last = tl.program_id(0) == tl.num_programs(0) - 1
    factor = tl.where(last & (n % BLOCK != 0), 3.0, 2.0)
    tl.store(y_ptr + at, factor * tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def endless_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Waits for what never comes."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    while tl.load(x_ptr, volatile=True) < 1e30:
        tl.store(y_ptr + at, tl.load(y_ptr + at, mask=at < n, volatile=True), mask=at < n)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def unwritten_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """Leaves the last element as it was."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n - 1)


@triton.jit
def too_much_shared_kernel(y_ptr, x_ptr, n, BLOCK: tl.constexpr):
    """A product of tiles that no GPU's shared memory holds."""
    rows = tl.arange(0, BLOCK)
    cols = tl.arange(0, 256)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for step in range(n):
        a = tl.load(x_ptr + rows[:, None] * 256 + cols[None, :] + step)
        b = tl.load(x_ptr + cols[:, None] * BLOCK + rows[None, :] + step)
        acc = tl.dot(a, b, acc, input_precision="tf32")
    tl.store(y_ptr + rows[:, None] * BLOCK + rows[None, :], acc, mask=rows[:, None] * BLOCK + rows[None, :] < n)
