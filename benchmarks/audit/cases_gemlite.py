"""Calls that make gemlite compile its kernels: linear layers on weights of few bits, forward only.

The number of rows chooses the kernel: vector, split along the sum, or tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gemlite.helper as layers
import torch

ROWS = (1, 3, 17, 130)
INNER, OUTER = 512, 1000


def tensor(*shape: int, dtype: Any = torch.float16) -> Any:
    return torch.randn(*shape, device="cuda").to(dtype)


def linear(kind: Any, inner: int, outer: int) -> Any:
    """A layer of torch, which the library takes in."""
    return torch.nn.Linear(inner, outer, bias=False, device="cuda").to(kind)


def converted(maker: Any, kind: Any, inner: int = INNER, outer: int = OUTER, **named: Any) -> Any:
    return maker(device="cuda", dtype=kind, **named).from_linear(linear(kind, inner, outer))


def packed(maker: Any, bits: int, kind: Any, group: int = 64) -> Any:
    """A layer from integers of few bits with a scale and a zero for each group."""
    weights = torch.randint(0, 2**bits, (OUTER, INNER), dtype=torch.uint8).cuda()
    scales = tensor(OUTER * INNER // group, 1, dtype=kind)
    zeros = torch.full_like(scales, 2 ** (bits - 1))
    made = maker(device="cuda", dtype=kind)
    return made.from_weights(weights, scales, zeros, bits, group)


def run(layer: Any, rows: int, inner: int = INNER, kind: Any = torch.float16) -> None:
    layer(tensor(rows, inner, dtype=kind))


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, call) of every kernel."""
    half, brain = torch.float16, torch.bfloat16
    makers = [layers.A16W8_INT8, layers.A8W8_int8_dynamic]
    # Triton has fp8 from sm_89 on.
    has_fp8 = torch.cuda.get_device_capability() >= (8, 9)
    if has_fp8:
        makers += [layers.A16W8_FP8, layers.A8W8_fp8_dynamic, layers.A16W4_MXFP, layers.A16W8_MXFP]
        makers += [layers.A8W8_MXFP_dynamic, layers.A8W4_MXFP_dynamic]
    makers += [layers.A4W4_MXFP_dynamic, layers.A4W4_NVFP_dynamic]
    for rows in ROWS:
        for bits in (8, 4, 2, 1):
            yield (
                f"a16w{bits}_{rows}",
                lambda rows=rows, bits=bits: run(packed(layers.A16Wn, bits, half), rows),
            )
        yield (
            f"a16w4_bf16_{rows}",
            lambda rows=rows: run(packed(layers.A16Wn, 4, brain), rows, kind=brain),
        )
        yield (
            f"a16w4_whole_{rows}",
            lambda rows=rows: run(packed(layers.A16Wn, 4, half, INNER), rows),
        )
        for maker in makers:
            yield (
                f"{maker.__name__}_{rows}",
                lambda rows=rows, maker=maker: run(converted(maker, half), rows),
            )
    if has_fp8:
        yield (
            "block_scales",
            lambda: run(converted(layers.A8W8_fp8_dynamic, half, 512, 1024, block_quant=True), 130),
        )
