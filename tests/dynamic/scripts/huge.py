"""Shapes that no machine has the memory for."""

import torch
import triton
import triton.language as tl


@triton.jit
def column(x, out, rows, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * stride, mask=i < rows), mask=i < rows)


x = torch.randn(2**20, 2**13, device="cuda", dtype=torch.float16)
doubled = (x * 2 + 1).t().contiguous().t()
doubled += 1
assert doubled.stride() == (1, 2**20)
assert (x.float().sum(dim=1) @ torch.ones(2**20, device="cuda")).item() == 0
column[(2**10,)](doubled[:, 5], torch.empty(2**20, device="cuda"), 2**20, 1, BLOCK=1024)
strided = torch.empty_strided((2**20,), (2**13,), device="cuda")
column[(2**10,)](strided, x[:, 0], 2**20, strided.stride(0), BLOCK=1024)
a = torch.randn(8192, 8192, device="cuda") @ torch.randn(8192, 8192, device="cuda")
assert a.shape == (8192, 8192)
