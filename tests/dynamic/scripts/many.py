"""More than twenty different kernels: element by element, reductions, products, scans, atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + i, values / tl.sum(values, axis=0), mask=i < columns)


@triton.jit
def norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    values *= scale * tl.load(weight + i, mask=i < columns, other=0.0)
    tl.store(out + row * columns + i, values, mask=i < columns)


@triton.jit
def product(
    a, b, c, m, n, k, stride_a, stride_b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inside = inner + start < k
        left = tl.load(
            a + rows[:, None] * stride_a + (inner + start)[None, :],
            mask=(rows < m)[:, None] & inside[None, :],
            other=0.0,
        )
        right = tl.load(
            b + (inner + start)[:, None] * stride_b + columns[None, :],
            mask=inside[:, None] & (columns < n)[None, :],
            other=0.0,
        )
        total = tl.dot(left, right, total)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)


@triton.jit
def scan(x, out, n, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, tl.cumsum(values, axis=0, reverse=REVERSE), mask=i < n)


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(counts + bins, 1, mask=i < n)


@triton.jit
def dropout(x, out, n, chance, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, i) > chance
    values = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(kept, values / (1 - chance), 0.0), mask=i < n)


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=inside)
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile), mask=tl.trans(inside))


for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x = torch.randn(33, 1000, device="cuda").to(dtype)
    out = torch.empty_like(x)
    for warps in (4, 8):
        softmax[(33,)](x, out, 1000, x.stride(0), BLOCK=1024, num_warps=warps)
    norm[(33,)](x, torch.ones(1000, device="cuda"), out, 1000, 1e-6, BLOCK=1024)
    b = torch.randn(1000, 120, device="cuda").to(dtype)
    c = torch.empty(33, 120, device="cuda", dtype=torch.float32)
    for stages in (1, 3):
        product[(1, 2)](x, b, c, 33, 120, 1000, 1000, 120, 64, 64, 32, num_stages=stages)
    dropout[(33,)](x, out, 33000, 0.5, 7, BLOCK=1024)
    transpose[(2, 16)](x, torch.empty(1000, 33, device="cuda", dtype=dtype), 33, 1000, BLOCK=64)
for dtype in (torch.int32, torch.int64):
    numbers = torch.randint(0, 16, (500,), device="cuda").to(dtype)
    scan[(1,)](numbers, torch.empty_like(numbers), 500, BLOCK=512, REVERSE=False)
    counts = torch.zeros(16, device="cuda", dtype=torch.int32)
    histogram[(2,)](numbers, counts, 500, BLOCK=256)
