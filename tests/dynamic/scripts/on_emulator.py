"""Kernels and host code for tests: what is run on the emulator."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(out, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(out.numel(), 64),)](out, x, y, out.numel(), BLOCK=64)
    return out


@triton.jit
def shifted_kernel(out, x, n, BLOCK: tl.constexpr):
    """Stores one element too far on."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i + 1, tl.load(x + i, mask=i < n), mask=i < n)


def shifted(x):
    out = torch.empty_like(x)
    shifted_kernel[(1,)](out, x, x.numel(), BLOCK=64)
    return out


@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def increment_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def program_kernel(out, taken):
    """Each program writes which number it draws."""
    tl.store(out + tl.program_id(0), tl.atomic_add(taken, 1))


@triton.jit
def neighbours_kernel(x, n, BLOCK: tl.constexpr):
    """Adds the element before each in place: one that a program before may have changed."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0)
    tl.store(x + i, tl.load(x + i, mask=i < n) + before, mask=i < n)


@triton.jit
def endless_kernel(flag):
    while tl.load(flag, volatile=True) == 0:
        pass


@triton.jit
def inline_kernel(out):
    seven = tl.inline_asm_elementwise(
        "vadd.s32.s32.s32 $0, 3, 4;", "=r", [], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(out, seven)
