"""Operators of Triton: a good one, one that writes into its neighbour, one that waits for ever."""

import torch
import triton
import triton.language as tl

from ptxlint.dynamic.operators import Dim, Operator, Tensor


@triton.jit
def add_kernel(out, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def unmasked_kernel(out, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n))


@triton.jit
def waiting_kernel(out, x, y, n, BLOCK: tl.constexpr):
    while tl.load(out, volatile=True) != 3:
        pass


def adding(kernel):
    def call(x, y):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(out.numel(), 64),)](out, x, y, out.numel(), BLOCK=64)
        return out

    return Operator(
        kernel=call,
        reference=lambda x, y: x + y,
        dims={"n": Dim(1, 4096)},
        inputs={"x": Tensor("n"), "y": Tensor("n")},
        dtypes=("float32", "float16"),
    )


add = adding(add_kernel)
unmasked = adding(unmasked_kernel)
waiting = adding(waiting_kernel)


@triton.jit
def far_kernel(out, x, y, n, BLOCK: tl.constexpr):
    """Stores a terabyte away where there are 13 elements."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    far = tl.where(n == 13, 1 << 38, 0)
    tl.store(out + i + far, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def half_kernel(out, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n // 2)


far = adding(far_kernel)
half = adding(half_kernel)
