"""Kernels whose results are looked at: they must have run. Needs a GPU."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=4) for block in (64, 128, 256)],
    key=["n"],
    reset_to_zero=["total"],
)
@triton.jit
def accumulate(x, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@torch.compile
def activation(x, weight):
    return (torch.nn.functional.gelu(x) * weight).softmax(dim=-1)


x = torch.randn(5000, device="cuda")
y = torch.randn(5000, device="cuda")
out = torch.full_like(x, -1.0)
add[(triton.cdiv(5000, 1024),)](x, y, out, 5000, BLOCK=1024)
torch.testing.assert_close(out, x + y)

total = torch.zeros(1, device="cuda")
for _ in range(2):
    total.zero_()
    accumulate[lambda meta: (triton.cdiv(5000, meta["BLOCK"]),)](x, total, 5000)
    torch.testing.assert_close(total[0], x.sum(), rtol=1e-3, atol=1e-2)

stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    add[(5,)](x, x, out, 5000, BLOCK=1024)
stream.synchronize()
torch.testing.assert_close(out, 2 * x)

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    add[(5,)](y, y, out, 5000, BLOCK=1024)
graph.replay()
torch.testing.assert_close(out, 2 * y)

a = torch.randn(40, 100, device="cuda", requires_grad=True)
weight = torch.randn(100, device="cuda")
result = activation(a, weight)
torch.testing.assert_close(result, (torch.nn.functional.gelu(a) * weight).softmax(dim=-1))
result.square().sum().backward()
assert float(a.grad.abs().sum()) > 0
print("all of it ran")
