"""Automatic mixed precision for the GPU, on tensors that are on the CPU.

torch chooses types by where a tensor is. The CPU's autocast is made to do what the GPU's does:
products are narrow where `torch.autocast("cuda")` says so and nowhere else, and what is wide on a
GPU alone is widened here. Tensors that are really on the CPU are treated alike.
https://docs.pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

_WIDENED: Final = frozenset(
    """
    __pow__ __rdiv__ __rpow__ __rtruediv__ acos asin binary_cross_entropy_with_logits cosh
    cosine_embedding_loss cdist cosine_similarity cross_entropy cumprod cumsum dist erfinv exp
    expm1 group_norm hinge_embedding_loss kl_div l1_loss layer_norm log log10 log_softmax log1p
    log2 margin_ranking_loss mse_loss multilabel_margin_loss multi_margin_loss nll_loss norm
    normalize pdist poisson_nll_loss pow prod reciprocal rsqrt sinh smooth_l1_loss
    soft_margin_loss softmax softmin softplus sum renorm tan triplet_margin_loss
    """.split()
)
"""Functions that CUDA's autocast computes in single precision."""
_NARROW: Final = ("torch.float16", "torch.bfloat16")


def is_widened(function: Any) -> bool:
    """True for a function that autocast has in single precision here and now."""
    import torch

    name = getattr(function, "__name__", "")
    return name in _WIDENED and torch.is_autocast_enabled("cuda")


def widened(value: Any, on_gpu: Callable[[Any], bool]) -> Any:
    """The same with tensors of half precision on the GPU in single precision."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.float() if str(value.dtype) in _NARROW and on_gpu(value) else value
    if isinstance(value, tuple | list):
        return type(value)(widened(item, on_gpu) for item in value)
    if isinstance(value, dict):
        return {key: widened(item, on_gpu) for key, item in value.items()}
    return value


@contextmanager
def autocast_followed() -> Iterator[None]:
    """Inside, the CPU's autocast is that of the GPU."""
    import torch
    from torch.amp import autocast_mode

    kind: Any = autocast_mode.autocast
    genuine_enter, genuine_exit = kind.__enter__, kind.__exit__

    def enter(self: Any) -> Any:
        result = genuine_enter(self)
        stack = ExitStack()
        stack.callback(torch.set_autocast_dtype, "cpu", torch.get_autocast_dtype("cpu"))
        stack.callback(torch.set_autocast_enabled, "cpu", torch.is_autocast_enabled("cpu"))
        torch.set_autocast_dtype("cpu", torch.get_autocast_dtype("cuda"))
        torch.set_autocast_enabled("cpu", torch.is_autocast_enabled("cuda"))
        # One object may be entered again inside of itself.
        self.__dict__.setdefault("_before_here", []).append(stack)
        return result

    def leave(self: Any, *error: Any) -> Any:
        self._before_here.pop().close()
        return genuine_exit(self, *error)

    with (
        mock.patch.object(kind, "__enter__", enter),
        mock.patch.object(kind, "__exit__", leave),
    ):
        yield
