"""Launches on tensors that hold something: views of one memory, narrow formats, large ones, what a
kernel wrote that did not run."""

import torch
import triton
import triton.language as tl


@triton.jit
def shift(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside), mask=inside)


def launch(out, x):
    n = x.numel()
    shift[(triton.cdiv(n, 128),)](out, x, n, BLOCK=128)


whole = torch.arange(300, device="cuda", dtype=torch.float32)
launch(whole[10:110], whole[150:250])
launch(whole[10:110], whole[150:250])
narrow = torch.linspace(-2, 2, 100, device="cuda").to(torch.bfloat16)
launch(torch.empty_like(narrow), narrow)
written = torch.empty(100, device="cuda")
launch(written, torch.arange(100, device="cuda", dtype=torch.float32))
launch(torch.zeros(100, device="cuda"), written)
large = torch.ones(1 << 21, device="cuda")
launch(torch.empty(4096, device="cuda"), large[:4096])
launch(torch.empty_like(large), large)
for _ in range(6):
    launch(torch.empty(100, device="cuda"), torch.randn(100, device="cuda"))
huge = torch.ones(2**33, device="cuda")
launch(torch.empty(64, device="cuda"), huge[:64])
launch(torch.empty_like(huge), huge)
