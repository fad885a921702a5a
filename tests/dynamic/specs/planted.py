"""Planted faults between two right operators, all of one shape."""

import os
import sys

import torch
import triton
import triton.language as tl

from ptxlint.dynamic.operators import Dim, Operator, Tensor


@triton.jit
def add_kernel(out, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def waiting_kernel(out, x, y, n, BLOCK: tl.constexpr):
    while tl.load(x, volatile=True) != 12345.0:
        pass


@triton.jit
def far_kernel(out, x, y, n, BLOCK: tl.constexpr):
    """Stores a terabyte away."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    far = out + i + (1 << 38)
    tl.store(far, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def other_input_kernel(out, x, y, n, BLOCK: tl.constexpr):
    """Changes an input beside."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    old = tl.load(y + i, mask=i < n)
    tl.store(out + i, tl.load(x + i, mask=i < n) + old, mask=i < n)
    tl.store(y + i, old + 1, mask=i < n)


@triton.jit
def behind_kernel(out, x, y, n, BLOCK: tl.constexpr):
    """Writes three elements behind its output, where a neighbour may lie."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
    tl.store(out + n + 3, 7.0)


def adding(kernel, before=lambda: None):
    def call(x, y):
        before()
        out = torch.empty_like(x)
        kernel[(triton.cdiv(out.numel(), 64),)](out, x, y, out.numel(), BLOCK=64)
        return out

    return Operator(
        kernel=call,
        reference=lambda x, y: x + y,
        dims={"n": Dim(1, 4096)},
        inputs={"x": Tensor("n"), "y": Tensor("n")},
    )


def prints():
    line = "x" * ((1 << 20) - 1) + "\n"
    for _ in range(100):
        sys.stdout.write(line)


def eats():
    held = []
    while True:
        held.append(torch.ones(1 << 24))


right = adding(add_kernel)
waits = adding(waiting_kernel)
far = adding(far_kernel)
other_input = adding(other_input_kernel)
behind = adding(behind_kernel)
leaves = adding(add_kernel, lambda: sys.exit(0))
leaves_at_once = adding(add_kernel, lambda: os._exit(0))
floods = adding(add_kernel, prints)
hoards = adding(add_kernel, eats)
right_too = adding(add_kernel)
