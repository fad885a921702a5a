"""Indices that the host computes from what is known, and from what is not."""

from itertools import count

import torch
import triton
import triton.language as tl


@triton.jit
def look(ids, out, turn, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(ids + i).to(tl.float32) * turn)


@triton.jit
def rounded(x, ids, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(ids + i, tl.load(x + i).to(tl.int64))


out = torch.empty(8, device="cuda")
turns = count(0)


def see(ids):
    look[(1,)](ids, out, float(next(turns)), BLOCK=8)


ids = torch.empty(8, dtype=torch.int64, device="cuda")
see(ids)
ids[:4] = torch.arange(4, device="cuda")
see(ids)
ids[4:] = 7
see(ids)

unknown = torch.empty(8, dtype=torch.int64, device="cuda")
rounded[(1,)](torch.randn(8, device="cuda"), unknown, BLOCK=8)
see(unknown)
see((unknown + 1).clamp(0, 5))
ids[0] = unknown[0]
see(ids)
ids[0] = 2
see(ids)
ids.copy_(unknown)
see(ids)
torch.arange(8, out=ids)
see(ids)
torch.add(unknown, 1, out=ids)
see(ids)
ids.fill_(3)
see(ids)
ids[torch.tensor([1, 2], device="cuda")] = 9
see(ids)
ids.resize_(16)
see(ids)



@torch.library.custom_op("taint::round_into", mutates_args={"ids"}, device_types="cuda")
def round_into(x: torch.Tensor, ids: torch.Tensor) -> None:
    rounded[(1,)](x, ids, BLOCK=8)


own = torch.zeros(8, dtype=torch.int64, device="cuda")
round_into(torch.randn(8, device="cuda"), own)
see(own)

# What the host reads decides what it does from then on.
float(torch.ones(1, device="cuda").sum())
see(torch.arange(10, 18, device="cuda"))
most = int(unknown.max())
see(torch.tensor([most] * 8, device="cuda"))
see(torch.arange(20, 28, device="cuda"))
see(torch.zeros(8, dtype=torch.int64, device="cuda"))
