"""Losses of rows, of which some keep a running maximum, and losses of elements in blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
from _source import BOTH, fixture, held_out

from ptxlint.dynamic.operators import Dim, Domain, Operator, Tensor, Value

_BLOCK = 64
_DIMS = {"rows": Dim(1, 512, typical=16), "n": Dim(1, 4096, typical=1024)}
_ROWS = Tensor("rows", "n", layouts=("padded-rows", "offset"))
_IGNORED = 0
"""The class whose rows have no loss."""


def _logsumexp(x: Any) -> Any:
    top = x.max(axis=1)
    return top + np.log(np.exp(x - top[:, None]).sum(axis=1))


def _chosen(x: Any, target: Any) -> Any:
    return np.take_along_axis(x, target[:, None], axis=1)[:, 0]


def _call_cross_entropy(x: Any, target: Any) -> tuple[Any, ...]:
    rows, n = x.shape
    loss = torch.empty(rows, dtype=torch.float32, device=x.device)
    lse = torch.empty_like(loss)
    fixture("cross_entropy", "cross_entropy_fwd_kernel")[(rows,)](
        loss, lse, x, target, x.stride(0), n, _IGNORED, BLOCK=_BLOCK
    )
    return loss, lse


def _cross_entropy(x: Any, target: Any) -> tuple[Any, ...]:
    lse = _logsumexp(x)
    return np.where(target == _IGNORED, 0.0, lse - _chosen(x, target)), lse


cross_entropy_fwd_kernel = Operator(
    kernel=_call_cross_entropy,
    reference=_cross_entropy,
    dims=_DIMS,
    inputs={"x": _ROWS, "target": Tensor("rows", dtype="int64", domain=Domain(below="n"))},
    dtypes=BOTH,
)


def _call_cross_entropy_bwd(dloss: Any, lse: Any, x: Any, target: Any) -> Any:
    rows, n = x.shape
    dx = torch.empty((rows, n), dtype=x.dtype, device=x.device)
    fixture("cross_entropy", "cross_entropy_bwd_kernel")[(rows, triton.cdiv(n, _BLOCK))](
        dx, dloss, lse, x, target, dx.stride(0), x.stride(0), n, _IGNORED, BLOCK=_BLOCK
    )
    return dx


def _cross_entropy_bwd(dloss: Any, lse: Any, x: Any, target: Any) -> Any:
    hot = np.arange(x.shape[1])[None, :] == target[:, None]
    scale = np.where(target == _IGNORED, 0.0, dloss)
    return (np.exp(x - lse[:, None]) - hot) * scale[:, None]


cross_entropy_bwd_kernel = Operator(
    kernel=_call_cross_entropy_bwd,
    reference=_cross_entropy_bwd,
    dims=_DIMS,
    inputs={
        "dloss": Tensor("rows", dtype="float32"),
        "lse": Tensor("rows", dtype="float32", domain=Domain(2.0, 12.0)),
        "x": Tensor("rows", "n", domain=Domain(-12.0, 12.0), layouts=("padded-rows", "offset")),
        "target": Tensor("rows", dtype="int64", domain=Domain(below="n")),
    },
    dtypes=BOTH,
)
_SMOOTHING = 0.1


def _call_smoothed(x: Any, label: Any, smoothing: float) -> Any:
    rows, n = x.shape
    loss = torch.empty(rows, dtype=torch.float32, device=x.device)
    held_out("cross_entropy_smoothed")[(rows,)](
        loss, x, label, x.stride(0), n, smoothing, BLOCK=_BLOCK
    )
    return loss


def _smoothed(x: Any, label: Any, smoothing: float) -> Any:
    lse = _logsumexp(x)
    return (1 - smoothing) * (lse - _chosen(x, label)) + smoothing * (lse - x.mean(axis=1))


cross_entropy_smoothed = Operator(
    kernel=_call_smoothed,
    reference=_smoothed,
    dims=_DIMS,
    inputs={
        "x": _ROWS, "label": Tensor("rows", dtype="int32", domain=Domain(below="n")),
        "smoothing": Value(_SMOOTHING),
    },
    dtypes=BOTH,
)  # fmt: skip


def _call_kl(p: Any, q: Any) -> Any:
    rows, n = p.shape
    out = torch.empty(rows, dtype=torch.float32, device=p.device)
    held_out("kl_divergence")[(rows,)](out, p, q, p.stride(0), n, BLOCK=_BLOCK)
    return out


_LOGS = Tensor("rows", "n", domain=Domain(high=0.0), layouts=("padded-rows", "offset"))
kl_divergence = Operator(
    kernel=_call_kl,
    reference=lambda p, q: (np.exp(p) * (p - q)).sum(axis=1),
    dims=_DIMS,
    inputs={"p": _LOGS, "q": _LOGS},
)


def _call_entropy(x: Any) -> Any:
    rows, n = x.shape
    out = torch.empty(rows, dtype=torch.float32, device=x.device)
    held_out("entropy")[(rows,)](out, x, x.stride(0), n, BLOCK=triton.next_power_of_2(n))
    return out


def _entropy(x: Any) -> Any:
    shifted = x - x.max(axis=1, keepdims=True)
    e = np.exp(shifted)
    return np.log(e.sum(axis=1)) - (e * shifted).sum(axis=1) / e.sum(axis=1)


entropy = Operator(
    kernel=_call_entropy,
    reference=_entropy,
    dims=_DIMS,
    inputs={"x": Tensor("rows", "n", domain=Domain(-1e4, 1e4), layouts=("padded-rows", "offset"))},
    dtypes=BOTH,
)
_ELEMENTS = 256
"""Elements that a program of these adds up."""


def _in_blocks(name: str, *more: float) -> Callable[[Any, Any], Any]:
    def call(x: Any, y: Any) -> Any:
        (n,) = x.shape
        programs = triton.cdiv(n, _ELEMENTS)
        out = torch.empty(programs, dtype=torch.float32, device=x.device)
        held_out(name)[(programs,)](out, x, y, n, *more, BLOCK=_ELEMENTS)
        return out

    return call


def _summed(loss: Any) -> Any:
    firsts = range(0, loss.size, _ELEMENTS)
    return np.array([loss[at : at + _ELEMENTS].sum() for at in firsts])


def _huber(x: Any, y: Any) -> Any:
    d = np.abs(x - y)
    return _summed(np.where(d < 1.0, d * d / 2, d - 0.5))


huber_loss = Operator(
    kernel=_in_blocks("huber_loss", 1.0),
    reference=_huber,
    dims={"n": Dim(1, 1 << 16, typical=4096)},
    inputs={"x": Tensor("n", layouts=("offset",)), "y": Tensor("n", layouts=("offset",))},
    dtypes=BOTH,
)


def _bce(x: Any, y: Any) -> Any:
    return _summed(np.logaddexp(0.0, x) - x * y)


binary_cross_entropy = Operator(
    kernel=_in_blocks("binary_cross_entropy"),
    reference=_bce,
    dims={"n": Dim(1, 1 << 16, typical=4096)},
    inputs={
        "x": Tensor("n", domain=Domain(-1e4, 1e4), layouts=("offset",)),
        "y": Tensor("n", domain=Domain(0.0, 1.0), layouts=("offset",)),
    },
    dtypes=BOTH,
)
