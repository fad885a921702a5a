"""What hooks of autotuners and of configurations put back before each run."""

import torch
import triton
import triton.language as tl


def clear(named):
    named["total"].zero_()


def start(named, reset_only=False):
    named["total"].fill_(7.0)


def look(named, reset_only=False):
    return named["n"] > 0


def tuned(hook=None, **named):
    configs = [triton.Config({"BLOCK": size}, pre_hook=hook) for size in (256, 512)]
    return triton.autotune(configs=configs, key=["n"], **named)(triton.jit(accumulate))


def accumulate(x, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


x = torch.randn(4096, device="cuda")
# Before Triton 3.9 what is to be restored beside a hook raises an error.
restored = ["x"] if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9) else []
kernels = (
    tuned(clear),
    tuned(pre_hook=start),
    tuned(look, pre_hook=look, reset_to_zero=["total"], restore_value=restored),
)
for number, kernel in enumerate(kernels):
    size = 1000 + number
    kernel[lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)](
        x, torch.ones(1, device="cuda"), size
    )
