"""Indices from the host, and indices that a kernel would have written."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather(x, rows, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(rows + i)
    tl.store(out + i, tl.load(x + row))


@triton.jit
def order(rows, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(rows + i) + 1)


x = torch.randn(100, device="cuda")
rows = torch.tensor([3, 99] * 8, device="cuda")
out = torch.empty(16, device="cuda")
gather[(1,)](x, rows, out, BLOCK=16)
gather[(1,)](x, rows[8:] + 1 - 1, out, BLOCK=8)
made = torch.empty_like(rows)
order[(1,)](rows, made, BLOCK=16)
gather[(1,)](x, rows, out, BLOCK=16)
gather[(1,)](x, made, out, BLOCK=16)
gather[(1,)](x, made + 1, out, BLOCK=16)
made.zero_()
gather[(1,)](x, made, out, BLOCK=16)

# Other rows each time.
for last in range(6):
    gather[(1,)](x, torch.tensor([0, 9] + [last] * 22, device="cuda"), out, BLOCK=16)
