"""Kernels that torch generates, forward and backward, and a function that it cannot compile here."""

import torch


@torch.compile
def activation(x, weight):
    return (torch.nn.functional.gelu(x) * weight).softmax(dim=-1)


@torch.compile
def away(x):
    return x + torch.ones(4, device="cuda")


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(100))

    def forward(self, x):
        return (x * self.weight).sigmoid()


x = torch.randn(40, 100, device="cuda", requires_grad=True)
weight = torch.randn(100, device="cuda")
y = activation(x, weight)
assert y.is_cuda
activation(x, weight)
y.sum().backward()
assert x.grad.is_cuda
model = torch.compile(Scale().to("cuda"))
assert model.weight.is_cuda
assert model(weight).is_cuda
assert away(torch.ones(4, device="cuda")).is_cuda
