"""Arguments of every kind."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BIAS = tl.constexpr(0.5)


@triton.jit
def pick(parts, out, scale, flag, nothing, one, n, KIND: tl.constexpr, WHO: tl.constexpr = tl.float32):
    i = tl.arange(0, 16)
    inside = i < n
    value = tl.load(parts[0] + i, mask=inside) + parts[1] + parts[2][0]
    if nothing is None:
        value += BIAS
    tl.store(out + i * one, (value * scale + flag).to(WHO), mask=inside)


@triton.jit
def move(source, out, BLOCK: tl.constexpr):
    tile = source.load([0, 0])
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], tile)


base = torch.randn(8, 40, device="cuda", dtype=torch.bfloat16)
view = base[2:, 4:].t()
out = torch.full((16,), 0.0, device="cuda")
pick[(1,)]((view, 3, (2.5,)), out, float("inf"), True, None, 1, 7, KIND="max")
same = triton.reinterpret(out.view(torch.int32), tl.float32)
pick[(1,)]((out, 3, (2.5,)), same, 1.5, False, None, 1, 7, KIND=("a", 1))
halves = torch.zeros(64, 128, device="cuda", dtype=torch.float16)
result = torch.empty(16, 16, device="cuda", dtype=torch.float16)
move[(1,)](TensorDescriptor(halves, [64, 100], [128, 1], [16, 16], padding="nan"), result, 16)
