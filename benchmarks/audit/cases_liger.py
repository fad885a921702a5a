"""Calls that make liger-kernel compile its operators, forward and backward.

Each case is a function that takes nothing. Shapes are no multiples of the tiles, so that masks are
there to be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import torch

ROWS, COLUMNS, VOCABULARY = 6, 1000, 2000


def tensor(*shape: int, dtype: Any = torch.bfloat16, grad: bool = True) -> Any:
    made = torch.randn(shape, dtype=torch.float32, device="cuda").to(dtype)
    return made.requires_grad_(grad)


def labels(count: int, top: int) -> Any:
    return torch.randint(0, top, (count,), device="cuda")


def operator(module: str, name: str) -> Any:
    return getattr(import_module(f"liger_kernel.ops.{module}"), name)


def backward(result: Any) -> None:
    """Run the backward of whatever a forward gave."""
    parts = result if isinstance(result, tuple) else (result,)
    wanted = [p for p in parts if isinstance(p, torch.Tensor) and p.requires_grad]
    torch.autograd.backward(wanted, [torch.ones_like(p) for p in wanted])


def call(module: str, name: str, *arguments: Any, **named: Any) -> None:
    backward(operator(module, name).apply(*arguments, **named))


def typed_cases(kind: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """The operators that take tensors of any type, for one type."""
    short = str(kind).removeprefix("torch.")

    def x(*shape: int, dtype: Any = kind) -> Any:
        return tensor(*shape, dtype=dtype)

    def scalar() -> Any:
        return tensor(1, dtype=torch.float32)

    def single() -> Any:
        return tensor(dtype=torch.float32)

    yield f"softmax_{short}", lambda: call("softmax", "LigerSoftmaxFunction", x(ROWS, COLUMNS))
    yield f"softmax_long_{short}", lambda: call("softmax", "LigerSoftmaxFunction", x(2, 40_001))
    yield (
        f"layer_norm_{short}",
        lambda: call(
            "layer_norm",
            "LigerLayerNormFunction",
            x(ROWS, COLUMNS),
            x(COLUMNS),
            x(COLUMNS),
            1e-5,
        ),
    )
    for mode in ("llama", "gemma", "none"):
        yield f"rms_norm_{mode}_{short}", lambda mode=mode: call(
            "rms_norm", "LigerRMSNormFunction", x(ROWS, COLUMNS), x(COLUMNS), 1e-6, 0.0, mode,
            False,
        )  # fmt: skip
    yield f"rms_norm_rows_{short}", lambda: call(
        "rms_norm", "LigerRMSNormFunction", x(70_000, 128), x(128), 1e-6, 0.0, "llama", False,
        None,
    )  # fmt: skip
    yield f"fused_add_rms_norm_{short}", lambda: call(
        "fused_add_rms_norm", "LigerFusedAddRMSNormFunction", x(ROWS, COLUMNS),
        x(ROWS, COLUMNS), x(COLUMNS), 1e-6,
    )  # fmt: skip
    yield (
        f"geglu_{short}",
        lambda: call("geglu", "LigerGELUMulFunction", x(ROWS, COLUMNS), x(ROWS, COLUMNS)),
    )
    yield (
        f"swiglu_{short}",
        lambda: call("swiglu", "LigerSiLUMulFunction", x(ROWS, COLUMNS), x(ROWS, COLUMNS)),
    )
    yield (
        f"relu_squared_{short}",
        lambda: call("relu_squared", "LigerReLUSquaredFunction", x(ROWS, COLUMNS)),
    )
    yield (
        f"group_norm_{short}",
        lambda: call(
            "group_norm", "LigerGroupNormFunction", x(3, 12, 500), x(12), x(12), 12, 4, 1e-5
        ),
    )
    yield (
        f"dyt_{short}",
        lambda: call("dyt", "LigerDyTFunction", x(ROWS, COLUMNS), scalar(), x(COLUMNS), x(COLUMNS)),
    )
    yield (
        f"poly_norm_{short}",
        lambda: call(
            "poly_norm", "LigerPolyNormFunction", x(ROWS, COLUMNS), x(3), x(), 1e-6, False
        ),
    )
    for reduction in ("mean", "none"):
        yield f"cross_entropy_{reduction}_{short}", lambda reduction=reduction: call(
            "cross_entropy", "LigerCrossEntropyFunction", x(ROWS, VOCABULARY),
            labels(ROWS, VOCABULARY), None, -100, 0.0, 0.0, reduction,
        )  # fmt: skip
    yield f"cross_entropy_all_{short}", lambda: call(
        "cross_entropy", "LigerCrossEntropyFunction", x(ROWS, VOCABULARY),
        labels(ROWS, VOCABULARY), torch.rand(VOCABULARY), -100, 1e-4, 0.1, "mean", 30.0, True,
    )  # fmt: skip
    yield f"fused_linear_cross_entropy_{short}", lambda: call(
        "fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction", x(ROWS, 64),
        x(VOCABULARY, 64), labels(ROWS, VOCABULARY),
    )  # fmt: skip
    yield (
        f"kl_div_{short}",
        lambda: call(
            "kl_div", "LigerKLDivLossFunction", x(ROWS, COLUMNS), x(ROWS, COLUMNS).detach()
        ),
    )
    for beta in (0.0, 0.5, 1.0):
        yield (
            f"jsd_{beta}_{short}",
            lambda beta=beta: call(
                "jsd",
                "LigerJSDFunction",
                x(ROWS, COLUMNS),
                x(ROWS, COLUMNS).detach(),
                None,
                beta,
            ),
        )
    yield (
        f"tvd_{short}",
        lambda: call("tvd", "LigerTVDLossFunction", x(ROWS, COLUMNS), x(ROWS, COLUMNS).detach()),
    )
    yield f"rope_{short}", lambda: call(
        "rope", "LigerRopeFunction", x(1, 6, 10, 96), x(1, 2, 10, 96),
        tensor(1, 10, 96, dtype=kind, grad=False), tensor(1, 10, 96, dtype=kind, grad=False),
    )  # fmt: skip
    yield f"qwen2vl_mrope_{short}", lambda: call(
        "qwen2vl_mrope", "LigerQwen2VLMRopeFunction", x(1, 6, 10, 128), x(1, 2, 10, 128),
        tensor(3, 1, 10, 128, dtype=kind, grad=False),
        tensor(3, 1, 10, 128, dtype=kind, grad=False), [16, 24, 24],
    )  # fmt: skip
    yield f"modulated_rms_norm_{short}", lambda: call(
        "modulated_rms_norm", "LigerModulatedRMSNormFunction", x(2, 5, COLUMNS), x(COLUMNS),
        x(2, COLUMNS), x(2, COLUMNS), 1e-6, 0.0, "llama", False,
    )  # fmt: skip
    yield (
        f"attn_res_{short}",
        lambda: call(
            "attn_res",
            "LigerAttnResFunction",
            x(4, 2, 5, COLUMNS),
            x(COLUMNS),
            x(COLUMNS),
            1e-6,
        ),
    )
    yield f"multi_token_attention_{short}", lambda: call(
        "multi_token_attention", "LigerMultiTokenAttentionFunction", x(1, 2, 40, 40),
        x(2, 2, 3, 3), None, 1, 1,
    )  # fmt: skip
    yield f"neighborhood_attention_{short}", lambda: call(
        "fused_neighborhood_attention", "LigerFusedNeighborhoodAttentionFunction",
        x(1, 2, 40, 32), x(1, 2, 40, 32), x(1, 2, 40, 32),
    )  # fmt: skip
    yield (
        f"mhc_pre_{short}",
        lambda: call(
            "mhc",
            "LigerMHCPreFunction",
            x(2, 5, 4, COLUMNS),
            tensor(2, 5, 4, dtype=torch.float32),
        ),
    )
    yield f"mhc_post_{short}", lambda: call(
        "mhc", "LigerMHCPostResFunction", x(2, 5, 4, COLUMNS), x(2, 5, COLUMNS),
        tensor(2, 5, 4, dtype=torch.float32), tensor(2, 5, 4, 4, dtype=torch.float32),
    )  # fmt: skip
    yield f"mhc_coeffs_{short}", lambda: call(
        "mhc", "LigerMHCCoeffsFunction", x(2, 5, 4, COLUMNS),
        tensor(4 * COLUMNS, 24, dtype=torch.float32), tensor(24, dtype=torch.float32),
        single(), single(), single(), True, 5, 1e-6, 1e-6, 1e-6, 2.0,
    )  # fmt: skip
    yield f"swiglu_gate_up_{short}", lambda: call(
        "swiglu", "LigerFusedGateUpSiLUMulFunction", x(ROWS, 2 * COLUMNS)
    )  # fmt: skip
    yield f"swiglu_scaled_{short}", lambda: call(
        "swiglu", "LigerSiLUMulFunction", x(ROWS, COLUMNS), x(ROWS, COLUMNS), 1.5, 0.5
    )  # fmt: skip
    yield f"llama4_rope_{short}", lambda: call(
        "llama4_rope", "LigerLlama4RopeFunction", x(1, 10, 6, 96), x(1, 10, 2, 96),
        torch.randn(10, 48, dtype=torch.complex64),
    )  # fmt: skip
    yield f"fused_ce_tvd_{short}", lambda: call(
        "fused_ce_tvd", "LigerFusedCETVDFunction", x(ROWS, VOCABULARY),
        x(ROWS, VOCABULARY).detach(), labels(ROWS, VOCABULARY),
    )  # fmt: skip
    yield f"fused_linear_kl_div_{short}", lambda: call(
        "fused_linear_kl_div", "LigerFusedLinearKLDivFunction", x(ROWS, 64), x(VOCABULARY, 64),
        torch.rand(ROWS, VOCABULARY).to(kind),
    )  # fmt: skip
    yield f"vocab_parallel_cross_entropy_{short}", lambda: call(
        "vocab_parallel_cross_entropy", "LigerVocabParallelCEFunction", x(3, 2, VOCABULARY),
        labels(ROWS, VOCABULARY).view(3, 2), None, -100, 0.1, "megatron", "mean",
    )  # fmt: skip
    yield f"mlp_{short}", lambda: call(
        "mlp", "LigerMLPFunction", x(2, 50, 96), x(160, 96), x(160, 96), x(96, 160)
    )  # fmt: skip


def mixture(kind: Any) -> None:
    """A mixture of experts. Which tile is whose is worked out from what the host knows."""
    call(
        "fused_moe", "LigerFusedMoEFunction", tensor(50, 96, dtype=kind),
        tensor(4, 160, 96, dtype=kind), tensor(4, 96, 80, dtype=kind),
        (torch.arange(100) % 4).to(torch.int32).view(50, 2).cuda(),
        tensor(50, 2, dtype=torch.float32),
    )  # fmt: skip


def scaled_losses() -> None:
    """A loss that is not the end of the graph: its gradient is scaled by a kernel of its own."""
    loss = operator("cross_entropy", "LigerCrossEntropyFunction").apply(
        tensor(ROWS, VOCABULARY), labels(ROWS, VOCABULARY), None
    )[0]  # fmt: skip
    (loss * 2.0).backward()


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, call) of every operator."""
    # First: once the host has read a number that no kernel has computed here, none counts as known.
    for kind in (torch.float32, torch.bfloat16):
        yield f"fused_moe_{str(kind).removeprefix('torch.')}", lambda kind=kind: mixture(kind)
    for kind in (torch.float32, torch.bfloat16):
        yield from typed_cases(kind)
    yield (
        "sparsemax",
        lambda: call(
            "sparsemax", "LigerSparsemaxFunction", tensor(ROWS, COLUMNS, dtype=torch.float32), -1
        ),
    )
    yield "fused_linear_jsd", lambda: call(
        "fused_linear_jsd", "LigerFusedLinearJSDFunction", tensor(ROWS, 64),
        tensor(VOCABULARY, 64), tensor(ROWS, 64), tensor(VOCABULARY, 64), None,
    )  # fmt: skip
    yield "element_mul", scaled_losses
    yield "selective_log_softmax", lambda: import_module(
        "liger_kernel.ops.grpo_loss"
    ).fused_selective_log_softmax(
        tensor(2, 9, COLUMNS, grad=False), torch.randint(0, COLUMNS, (2, 8)), 0.9,
        torch.ones(2, 8, dtype=torch.int32),
    )  # fmt: skip
    yield "grpo", lambda: call(
        "grpo_loss", "GrpoLossFunction", tensor(2, 9, COLUMNS), None, None,
        torch.randint(0, COLUMNS, (2, 8)), torch.randn(2), torch.ones(2, 8, dtype=torch.int32),
        0.9, 0.0, 0.2, 0.2, False,
    )  # fmt: skip
