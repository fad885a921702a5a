"""Indices that kernels compute from what the host knows, as a mixture of experts does."""

import torch
import triton
import triton.language as tl


@triton.jit
def count(experts, counts, n, E: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    expert = tl.load(experts + i, mask=i < n, other=0)
    tl.atomic_add(counts + expert, 1, mask=i < n)


@triton.jit
def starts(counts, first, E: tl.constexpr):
    e = tl.arange(0, E)
    number = tl.load(counts + e)
    tl.store(first + e, tl.cumsum(number, 0) - number)


@triton.jit
def sort(experts, first, order, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    expert = tl.load(experts + i, mask=i < n, other=32767)
    key = tl.sort(expert * 65536 + i, 0)
    expert = key >> 16
    place = tl.load(first + expert, mask=expert != 32767, other=0)
    tl.store(order + i, key & 65535, mask=expert != 32767)
    tl.store(order + n + place, expert, mask=expert != 32767)


@triton.jit
def take(x, order, out, n, COLUMNS: tl.constexpr):
    row = tl.load(order + tl.program_id(0))
    i = tl.arange(0, COLUMNS)
    tl.store(out + tl.program_id(0) * COLUMNS + i, tl.load(x + row * COLUMNS + i))


@triton.jit
def top(scores, best, COLUMNS: tl.constexpr):
    i = tl.arange(0, COLUMNS)
    score = tl.load(scores + tl.program_id(0) * COLUMNS + i)
    tl.store(best + tl.program_id(0), tl.argmax(score, 0))


N, E = 200, 8
experts = (torch.arange(N, dtype=torch.int32, device="cuda") * 5) % 7
counts = torch.zeros(E, dtype=torch.int32, device="cuda")
count[(4,)](experts, counts, N, E=E, BLOCK=64)
assert counts.tolist() == torch.bincount(experts.long(), minlength=E).tolist()
first = torch.empty(E, dtype=torch.int32, device="cuda")
starts[(1,)](counts, first, E=E)
assert first.tolist() == (counts.cumsum(0) - counts).tolist()
# Some cells of the second half are not written.
order = torch.empty(2 * N, dtype=torch.int32, device="cuda")
sort[(1,)](experts, first, order, N, BLOCK=256)
assert order[:N].tolist() == experts.sort(stable=True).indices.tolist()

x = torch.randn(N, 64, device="cuda")
rows = order[:N].clone()
out = torch.empty(int(counts.max()), 64, device="cuda")
take[(len(out),)](x, rows, out, N, COLUMNS=64)
take[(len(out),)](x, order, out, N, COLUMNS=64)
# What comes of floating point is not worked out.
best = torch.empty(N, dtype=torch.int32, device="cuda")
top[(N,)](x, best, COLUMNS=64)
take[(len(out),)](x, best, out, N, COLUMNS=64)
