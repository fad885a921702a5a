"""Automatic mixed precision: which type a kernel is given."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


numbers = iter(range(2, 16))


def run(x):
    # Launches that are alike count as one: each copies another number of elements.
    copy[(1,)](x, torch.empty_like(x), next(numbers), BLOCK=64)


class Kept(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        run(x @ x)
        return x

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        run(grad @ grad)
        return grad


layer = torch.nn.Linear(8, 8).cuda()
x = torch.randn(8, 8, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
run(layer(x))
with torch.autocast("cuda"):
    run(layer(x))
    run(torch.relu(layer(x)))
    run(torch.softmax(layer(x), dim=-1))
    run(torch.nn.functional.layer_norm(layer(x), (8,)))
    with torch.amp.autocast("cuda", enabled=False):
        run(layer(x))
    kept = Kept.apply(x)
    loss = torch.nn.functional.mse_loss(layer(kept), x)
    assert loss.dtype == torch.float32
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
with torch.autocast("cuda", dtype=torch.bfloat16):
    run(x @ x)
run(x @ x)
with torch.autocast("cpu", dtype=torch.bfloat16):
    run(x @ x)
