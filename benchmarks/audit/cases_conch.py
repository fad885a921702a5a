"""Calls that make conch-triton-kernels compile its operators; the library has no backward but one.

Paged attention, caches, quantised GEMM, norms and vision. Tables of pages, lengths and slots are
what a server's host fills in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import torch

HALF = torch.float16
PAGE, HEADS, KEY_HEADS, HEAD = 16, 8, 2, 96


def tensor(*shape: int, dtype: Any = HALF) -> Any:
    return torch.randn(*shape, device="cuda").to(dtype)


def operator(module: str, name: str) -> Any:
    return getattr(import_module(f"conch.ops.{module}"), name)


def pages(lengths: list[int]) -> tuple[Any, Any, int]:
    """The pages of each sequence, the lengths, and how many pages there are."""
    most = -(-max(lengths) // PAGE)
    count = most * len(lengths)
    table = torch.randperm(count).to(torch.int32).view(len(lengths), most).cuda()
    return table, torch.tensor(lengths, dtype=torch.int32).cuda(), count


def paged_attention(lengths: list[int], softcap: float = 0.0, head: int = HEAD) -> None:
    table, held, count = pages(lengths)
    cache = tensor(count, PAGE, KEY_HEADS, head)
    operator("attention.paged_attention", "paged_attention")(
        tensor(len(lengths), HEADS, head), cache, tensor(*cache.shape), table, held,
        softcap=softcap,
    )  # fmt: skip


def packed_attention(queries: list[int], lengths: list[int], causal: bool) -> None:
    table, held, count = pages(lengths)
    cache = tensor(count, PAGE, KEY_HEADS, HEAD)
    starts = torch.tensor([0, *queries]).cumsum(0).to(torch.int32).cuda()
    operator("attention.varlen_attention", "varlen_attention")(
        tensor(sum(queries), HEADS, HEAD), cache, tensor(*cache.shape), starts, max(queries),
        held, max(lengths), table, causal=causal,
    )  # fmt: skip


def cached(tokens: int) -> None:
    slots = torch.randperm(tokens * 2)[:tokens].cuda()
    count = -(-tokens * 2 // PAGE)
    operator("vllm.reshape_and_cache", "reshape_and_cache")(
        tensor(tokens, KEY_HEADS, HEAD), tensor(tokens, KEY_HEADS, HEAD),
        tensor(count, PAGE, KEY_HEADS, HEAD), tensor(count, PAGE, KEY_HEADS, HEAD), slots,
    )  # fmt: skip


def copied(pairs: int) -> None:
    size = PAGE * KEY_HEADS * HEAD
    layers = [tensor(pairs * 2, size) for _ in range(4)]
    operator("vllm.copy_blocks", "copy_blocks")(
        layers[:2], layers[2:], torch.randperm(pairs * 2).view(pairs, 2).cuda()
    )


def mixed_gemm(rows: int, inner: int, columns: int, bits: int, shifted: bool) -> None:
    group = 128
    packed = torch.randint(-(2**31), 2**31 - 1, (inner * bits // 32, columns), dtype=torch.int32)
    operator("quantization.gemm", "mixed_precision_gemm")(
        tensor(rows, inner), packed.cuda(), tensor(inner // group, columns),
        tensor(inner // group, columns) if shifted else None, bits, 2 ** (bits - 1), group,
    )  # fmt: skip


def scaled_gemm(rows: int, inner: int, columns: int, kind: Any) -> None:
    operator("quantization.gemm", "scaled_gemm")(
        torch.zeros(rows, inner, dtype=kind, device="cuda"),
        torch.zeros(inner, columns, dtype=kind, device="cuda"),
        tensor(rows, 1, dtype=torch.float32), tensor(columns, 1, dtype=torch.float32),
        torch.bfloat16,
    )  # fmt: skip


def blockwise(elements: int, quantised: str) -> None:
    functional = import_module("conch.ops.quantization.bitsandbytes.functional")
    packed, state = functional.quantize_4bit(tensor(elements), quant_type=quantised)
    functional.dequantize_4bit(packed, state, quant_type=quantised)


def suppress(boxes: int) -> None:
    corners = torch.rand(boxes, 2, device="cuda")
    operator("vision.nms", "nms")(
        torch.cat([corners, corners + 1], 1), torch.rand(boxes, device="cuda"), 0.5
    )


def pooled(points: int, channels: int) -> None:
    """Points in intervals, each of one cell of the grid that no other interval has."""
    module = import_module("conch.ops.vision.bev_pool")
    starts = torch.arange(0, points, 7, dtype=torch.int32)
    lengths = (torch.clamp(starts + 7, max=points) - starts).to(torch.int32)
    chosen = torch.randperm(20 * 30 * 4 * 2)[: len(starts)].repeat_interleave(7)[:points]
    cells = torch.stack([chosen % 20, chosen // 20 % 30, chosen // 600 % 4, chosen // 2400], 1)
    places = (cells.to(torch.int32).cuda(), starts.cuda(), lengths.cuda())
    module.bev_pool(tensor(points, channels, dtype=torch.float32), *places, 2, 4, 20, 30)
    module.bev_pool_backward(tensor(2, 4, 20, 30, channels, dtype=torch.float32), *places)


def voxels(points: int) -> None:
    module = import_module("conch.ops.vision.voxelization")
    grid = module.VoxelizationParameter((0.0, 0.0, 0.0), (10.0, 8.0, 2.0), (0.5, 0.5, 0.5), 10)
    module.generate_voxels(torch.rand(points, 4, device="cuda"), grid)


def rotated(tokens: int) -> None:
    operator("embedding.rotary_embedding", "rotary_embedding")(
        torch.arange(tokens).cuda(), tensor(tokens, HEADS * HEAD), tensor(tokens, KEY_HEADS * HEAD),
        HEAD, tensor(4096, HEAD),
    )  # fmt: skip


def normed(rows: int, columns: int) -> None:
    x, weight = tensor(rows, columns), tensor(columns)
    operator("normalization.rms_norm", "rms_norm")(x, weight, 1e-6)
    operator("normalization.rms_norm", "fused_add_rms_norm")(x, tensor(rows, columns), weight, 1e-6)
    operator("normalization.gemma_rms_norm", "gemma_rms_norm")(x, weight, 1e-6)


def activated(rows: int, columns: int) -> None:
    operator("activation.silu_and_mul", "silu_and_mul")(tensor(rows, 2 * columns))
    # In halves it does not compile.
    single = tensor(rows, 2 * columns, dtype=torch.float32)
    operator("activation.gelu_tanh_and_mul", "gelu_tanh_and_mul")(single)


def quantised(rows: int, columns: int, width: str) -> None:
    scale = torch.ones(1, device="cuda")
    operator(f"quantization.{width}", f"scaled_{width}_quant")(tensor(rows, columns), scale)


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, call) of every operator."""
    yield "paged", lambda: paged_attention([1, 100, 517])
    yield "paged_exact", lambda: paged_attention([256, 256], head=128)
    yield "paged_softcap", lambda: paged_attention([1000], 30.0)
    yield "prefill", lambda: packed_attention([100, 1, 77], [100, 300, 77], True)
    yield "prefill_full", lambda: packed_attention([100, 33], [100, 128], False)
    yield "decode_long", lambda: packed_attention([1, 1], [5000, 4097], True)
    yield "cached", lambda: cached(37)
    yield "copied", lambda: copied(5)
    for bits in (4, 8):
        for shifted in (False, True):
            yield (
                f"gemm_{bits}_{shifted}",
                lambda bits=bits, shifted=shifted: mixed_gemm(33, 512, 1000, bits, shifted),
            )
    yield "gemm_one_row", lambda: mixed_gemm(1, 4096, 4096, 4, True)
    # Triton has fp8 from sm_89 on.
    has_fp8 = torch.cuda.get_device_capability() >= (8, 9)
    for kind in (torch.int8, torch.float8_e4m3fn) if has_fp8 else (torch.int8,):
        yield f"scaled_{kind}", lambda kind=kind: scaled_gemm(33, 200, 328, kind)
    for name in ("nf4", "fp4"):
        yield f"blockwise_{name}", lambda name=name: blockwise(10_000, name)
    yield "suppress", lambda: suppress(300)
    yield "pooled", lambda: pooled(1000, 80)
    yield "voxels", lambda: voxels(1000)
    yield "rotated", lambda: rotated(37)
    yield "normed", lambda: normed(37, 1000)
    yield "normed_wide", lambda: normed(3, 8192)
    yield "activated", lambda: activated(37, 1000)
    for width in ("fp8", "int8") if has_fp8 else ("int8",):
        yield f"quantised_{width}", lambda width=width: quantised(37, 1000, width)
