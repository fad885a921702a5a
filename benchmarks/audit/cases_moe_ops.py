"""Calls that make moe-ops compile its operators: routing, permutation, grouped GEMM and back.

The experts' offsets are what the host counted: on the device a kernel writes them, and here kernels
do not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import moe_ops
import torch

TOP = 3


def tensor(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_(True)


def experts(tokens: int, count: int) -> Any:
    """The experts of each token, as the host draws them."""
    return torch.randint(0, count, (tokens, TOP), dtype=torch.int32).cuda()


def offsets(chosen: Any, count: int) -> Any:
    """Where each expert's rows begin, and behind the last one where they end."""
    counted = torch.bincount(chosen.reshape(-1), minlength=count)
    return torch.nn.functional.pad(counted.cumsum(0), (1, 0)).to(torch.int32)


def backward(result: Any) -> None:
    result.backward(torch.ones_like(result))


def route(tokens: int, count: int, kind: Any) -> None:
    weights, _ = moe_ops.fused_topk_softmax(tensor(tokens, count, dtype=kind), TOP)
    backward(weights)


def permute(tokens: int, columns: int, count: int, kind: Any) -> None:
    rows, _, _ = moe_ops.permute(
        tensor(tokens, columns, dtype=kind), experts(tokens, count), E=count
    )
    backward(rows)


def unpermute(tokens: int, columns: int, kind: Any) -> None:
    places = torch.randperm(tokens * TOP).to(torch.int32).cuda()
    backward(
        moe_ops.unpermute(
            tensor(tokens * TOP, columns, dtype=kind),
            places,
            tensor(tokens, TOP, dtype=kind),
            tokens,
            TOP,
        )
    )


def multiply(tokens: int, inner: int, outer: int, count: int, kind: Any) -> None:
    bounds = offsets(experts(tokens, count), count)
    backward(
        moe_ops.grouped_gemm(
            tensor(tokens * TOP, inner, dtype=kind), tensor(count, outer, inner, dtype=kind), bounds
        )
    )


def layer(tokens: int, columns: int, inner: int, count: int) -> None:
    """All of a layer as a model calls it; what kernels pass to kernels stays zeros here."""
    hidden = tensor(tokens, columns)
    weights, chosen = moe_ops.fused_topk_softmax(tensor(tokens, count), TOP)
    rows, places, bounds = moe_ops.permute(hidden, chosen, E=count)
    up = moe_ops.grouped_gemm(rows, tensor(count, inner, columns), bounds)
    down = moe_ops.grouped_gemm(torch.nn.functional.silu(up), tensor(count, columns, inner), bounds)
    backward(moe_ops.unpermute(down, places, weights, tokens, TOP))


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, call) of every operator."""
    for kind in (torch.bfloat16, torch.float16):
        short = str(kind).removeprefix("torch.")
        yield f"route_{short}", lambda kind=kind: route(1000, 60, kind)
        yield f"route_one_{short}", lambda kind=kind: route(1, 8, kind)
        yield f"permute_{short}", lambda kind=kind: permute(700, 1000, 8, kind)
        yield f"unpermute_{short}", lambda kind=kind: unpermute(700, 1000, kind)
        yield f"unpermute_wide_{short}", lambda kind=kind: unpermute(33, 7168, kind)
        yield f"multiply_{short}", lambda kind=kind: multiply(500, 200, 328, 8, kind)
        yield f"multiply_large_{short}", lambda kind=kind: multiply(4096, 1024, 1408, 64, kind)
    yield "layer", lambda: layer(300, 520, 264, 16)
