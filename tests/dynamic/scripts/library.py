"""Kernels behind operators of torch.library, autograd and torch.compile."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def launch(x, factor):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    assert out.is_cuda
    scale[(triton.cdiv(x.numel(), 64),)](x, out, factor, x.numel(), BLOCK=64)
    return out


@torch.library.custom_op("captured::custom", mutates_args=(), device_types="cuda")
def custom(x: torch.Tensor) -> torch.Tensor:
    return launch(x, 2.0)


@torch.library.triton_op("captured::wrapped", mutates_args=())
def wrapped(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(scale)[(1,)](x, out, 3.0, x.numel(), BLOCK=64)
    return out


library = torch.library.Library("captured", "FRAGMENT")
library.define("old(Tensor x) -> Tensor")
library.impl("old", lambda x: launch(x, 4.0), "CUDA")


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return launch(x, 5.0)

    @staticmethod
    def backward(ctx, grad):
        return launch(grad, 6.0)


@torch.compile
def compiled(x):
    return launch(x, 7.0) + 1


x = torch.randn(50, device="cuda")
custom(x)
wrapped(x)
torch.ops.captured.old(x)
leaf = torch.randn(50, device="cuda", requires_grad=True)
Scale.apply(leaf).sum().backward()
assert leaf.grad.is_cuda
compiled(x)


@torch.compile(dynamic=True)
def never_called(x):
    return x + 1
