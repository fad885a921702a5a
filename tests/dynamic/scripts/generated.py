"""Kernels that torch generates, forward and backward, and a function that it cannot compile here."""

import torch


@torch.compile
def activation(x, weight):
    return (torch.nn.functional.gelu(x) * weight).softmax(dim=-1)


@torch.compile
def away(x):
    return x + torch.ones(4, device="cuda")


x = torch.randn(40, 100, device="cuda", requires_grad=True)
weight = torch.randn(100, device="cuda")
y = activation(x, weight)
assert y.is_cuda
activation(x, weight)
y.sum().backward()
assert x.grad.is_cuda
assert away(torch.ones(4, device="cuda")).is_cuda
