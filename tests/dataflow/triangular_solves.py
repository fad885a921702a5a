"""Triangular solves that replace one row per round, up to the number of rows, or beyond it."""

import triton
import triton.language as tl


@triton.jit
def one_block(
    a_ptr, x_ptr, out_ptr, n, limit: tl.constexpr, off: tl.constexpr, fill: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """The rows of a lower triangle are loaded again as they come; what they meet is kept."""
    rows = tl.arange(0, block)
    inside = rows < n
    place = rows[:, None] * block + rows[None, :]
    lower = tl.load(a_ptr + place, mask=inside[:, None], other=fill)
    lower = -tl.where(rows[:, None] > rows[None, :], lower, 0.0)
    end = block
    if limit == 0:
        end = min(block, n)
    if limit == 1:
        end = min(block, n + 1)
    for i in range(2, end):
        row = -tl.load(a_ptr + i * block + rows)
        row = tl.where(rows < i, row, 0.0)
        row += tl.sum(row[:, None] * lower, 0)
        lower = tl.where((rows == i + off)[:, None], row, lower)
    x = tl.load(x_ptr + place, mask=inside[:, None], other=0.0)
    tl.store(out_ptr + place, tl.dot(x, lower), mask=inside[:, None])


@triton.jit
def of_keys(
    k_ptr, g_ptr, beta_ptr, x_ptr, out_ptr, n, m, limit: tl.constexpr, fill: tl.constexpr,
    masked: tl.constexpr, alone: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The triangle is made of products of keys; a second block of rows meets what comes of it."""
    rows = tl.arange(0, block)
    columns = tl.arange(0, 64)
    inside = rows < n
    second = rows < m
    g = tl.load(g_ptr + rows, mask=inside, other=0.0)
    g_second = tl.load(g_ptr + rows + block, mask=second, other=0.0)
    beta = tl.load(beta_ptr + rows, mask=inside, other=fill)
    beta_second = tl.load(beta_ptr + rows + block, mask=second, other=fill)
    lower = tl.zeros((block, block), tl.float32)
    below = tl.zeros((block, block), tl.float32)
    for part in range(2):
        at = rows[:, None] * 128 + part * 64 + columns[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=fill)
        lower = tl.dot(k, tl.trans(k), lower)
        if m > 0:
            k_second = tl.load(k_ptr + at + block * 128, mask=second[:, None], other=0.0)
            below = tl.dot(k_second, tl.trans(k), below)
    triangle = rows[:, None] > rows[None, :]
    keep, keep_second = triangle, rows[:, None] >= 0
    if masked:
        keep = triangle & inside[:, None] & inside[None, :]
        keep_second = second[:, None] & inside[None, :]
    lower *= tl.where(keep, tl.exp(g[:, None] - g[None, :]), 0.0)
    below *= tl.where(keep_second, tl.exp(g_second[:, None] - g[None, :]), 0.0)
    lower = lower * beta[:, None]
    below = below * beta_second[:, None]
    solved = -lower
    end = block
    if limit == 0:
        end = min(block, n)
    for i in range(2, end):
        row = tl.sum(tl.where((rows == i)[:, None], -lower, 0.0), 0)
        row = tl.where(rows < i, row, 0.0)
        row += tl.sum(row[:, None] * solved, 0)
        solved = tl.where((rows == i)[:, None], row, solved)
    place = rows[:, None] * block + rows[None, :]
    if alone:
        tl.store(out_ptr + place, tl.dot(tl.load(x_ptr + place), solved))
    else:
        solved += rows[:, None] == rows[None, :]
        tl.store(out_ptr + place, tl.dot(below, solved), mask=second[:, None])
