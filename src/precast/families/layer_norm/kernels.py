"""Layer normalization over rows, forward and backward (Ba, Kiros and Hinton, "Layer Normalization", 2016)."""

import triton
import triton.language as tl


@triton.jit
def forward_kernel(
    y_ptr, mean_ptr, rstd_ptr, x_ptr, weight_ptr, bias_ptr, stride_y, stride_x, n_cols, eps, BLOCK: tl.constexpr
):
    """One program a row: mean, then variance, then the result, in three passes over blocks."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride_x
    cols = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        total += tl.load(x_row + start + cols, mask=start + cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=0.0).to(tl.float32)
        centered = tl.where(mask, x - mean, 0.0)
        squares += centered * centered
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * weight + bias
        tl.store(y_ptr + row * stride_y + start + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def backward_input_kernel(
    dx_ptr, partial_weight_ptr, partial_bias_ptr, dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, stride_dx, stride_dy,
    stride_x, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """ROWS rows a program: dx, and this program's share of the gradients of weight and bias.

    With g = dy * weight and xhat the normalized row, dx = rstd * (g - mean(g) - xhat * mean(g * xhat)). Each
    program writes its own row of the partial sums, so that the result does not depend on who comes first.
    """
    program = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], tl.float32)
    dbias = tl.zeros([BLOCK], tl.float32)
    for i in range(ROWS):
        row = program * ROWS + i
        if row < n_rows:
            x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + row * stride_dy + cols, mask=mask, other=0.0).to(tl.float32)
            mean = tl.load(mean_ptr + row)
            rstd = tl.load(rstd_ptr + row)
            xhat = tl.where(mask, (x - mean) * rstd, 0.0)
            g = dy * weight
            along = tl.sum(g * xhat, axis=0) / n_cols
            center = tl.sum(g, axis=0) / n_cols
            dx = (g - center - xhat * along) * rstd
            tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
            dweight += dy * xhat
            dbias += dy
    tl.store(partial_weight_ptr + program * n_cols + cols, dweight, mask=mask)
    tl.store(partial_bias_ptr + program * n_cols + cols, dbias, mask=mask)


@triton.jit
def backward_parameters_kernel(
    dweight_ptr, dbias_ptr, partial_weight_ptr, partial_bias_ptr, n_partials, n_cols, BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):  # fmt: skip
    """Sums the partial gradients of BLOCK_COLS columns."""
    cols = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    dweight = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
    dbias = tl.zeros([BLOCK_ROWS, BLOCK_COLS], tl.float32)
    for start in range(0, n_partials, BLOCK_ROWS):
        rows = start + tl.arange(0, BLOCK_ROWS)
        mask = (rows[:, None] < n_partials) & (cols[None, :] < n_cols)
        at = rows[:, None].to(tl.int64) * n_cols + cols[None, :]
        dweight += tl.load(partial_weight_ptr + at, mask=mask, other=0.0)
        dbias += tl.load(partial_bias_ptr + at, mask=mask, other=0.0)
    mask = cols < n_cols
    tl.store(dweight_ptr + cols, tl.sum(dweight, axis=0).to(dweight_ptr.dtype.element_ty), mask=mask)
    tl.store(dbias_ptr + cols, tl.sum(dbias, axis=0).to(dbias_ptr.dtype.element_ty), mask=mask)
