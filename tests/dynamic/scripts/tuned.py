"""Autotuners: pruning, resets, a configuration that does not fit, heuristics, a second call."""

import torch
import triton
import triton.language as tl


def small_enough(configs, named, **_):
    return [c for c in configs if c.kwargs["BLOCK"] < 8192]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 8192}, num_warps=4),
        triton.Config({"BLOCK": 256}, num_warps=4),
        triton.Config({"BLOCK": 512}, num_warps=8),
        triton.Config({"BLOCK": 1024}, num_warps=8),
    ],
    key=["n"],
    reset_to_zero=["total"],
    prune_configs_by={"early_config_prune": small_enough},
)
@triton.heuristics({"EVEN": lambda named: named["n"] % named["BLOCK"] == 0})
@triton.jit
def accumulate(x, total, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + i) if EVEN else tl.load(x + i, mask=i < n, other=0.0)
    tl.atomic_add(total, tl.sum(values, axis=0))


@triton.autotune(
    configs=[
        triton.Config({"SIZE": 256}, num_stages=2),
        triton.Config({"SIZE": 32}, num_stages=2),
    ],
    key=["n"],
    restore_value=["x"],
)
@triton.jit
def square(x, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tile = x + i[:, None] * n + i[None, :]
    values = tl.load(tile)
    tl.store(tile, tl.dot(values, values).to(tl.float16))


x = torch.randn(4096, device="cuda")
total = torch.empty(1, device="cuda")
for _ in range(2):
    accumulate[lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)](x, total, 4096)
# 256 x 256 halves twice are more shared memory than sm_86 has.
y = torch.randn(256, 256, device="cuda", dtype=torch.float16)
square[(1,)](y, 256)
