"""Layer norm, forward and backward, group norm, and the cosine of two rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
from _source import BOTH, fixture, held_out

from ptxlint.dynamic.operators import Dim, Domain, Operator, Tensor, Value

_EPS = Value(1e-5)
_ROWS = Tensor("rows", "n", layouts=("padded-rows", "offset"))
_PLAIN = Tensor("rows", "n")
_DIMS = {"rows": Dim(1, 512, typical=16), "n": Dim(1, 4096, typical=1024)}
_PER_PROGRAM = 3
"""Rows that a program of the backward kernel walks."""


def _statistics(x: Any, eps: float) -> tuple[Any, Any]:
    mean = x.sum(axis=1) / x.shape[1]
    variance = ((x - mean[:, None]) ** 2).sum(axis=1) / x.shape[1]
    return mean, (variance + eps) ** -0.5


def _normalised(x: Any, w: Any, b: Any, eps: float) -> Any:
    mean, rstd = _statistics(x, eps)
    return (x - mean[:, None]) * rstd[:, None] * w + b


def _call_layer_norm(x: Any, w: Any, b: Any, eps: float) -> tuple[Any, ...]:
    rows, n = x.shape
    y = torch.empty((rows, n), dtype=x.dtype, device=x.device)
    mean = torch.empty(rows, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    fixture("layer_norm", "layer_norm_fwd_kernel")[(rows,)](
        y, x, w, b, mean, rstd, y.stride(0), x.stride(0), n, eps, BLOCK=triton.next_power_of_2(n)
    )
    return y, mean, rstd


layer_norm_fwd_kernel = Operator(
    kernel=_call_layer_norm,
    reference=lambda x, w, b, eps: (_normalised(x, w, b, eps), *_statistics(x, eps)),
    dims=_DIMS,
    inputs={"x": _ROWS, "w": Tensor("n"), "b": Tensor("n"), "eps": _EPS},
    dtypes=BOTH,
)


def _call_layer_norm_bwd(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, ...]:
    rows, n = x.shape
    programs = triton.cdiv(rows, _PER_PROGRAM)
    dx = torch.empty((rows, n), dtype=x.dtype, device=x.device)
    dw = torch.empty((programs, n), dtype=torch.float32, device=x.device)
    db = torch.empty_like(dw)
    fixture("layer_norm", "layer_norm_bwd_kernel")[(programs,)](
        dx, dw, db, dy, x, w, mean, rstd, dx.stride(0), dy.stride(0), x.stride(0), dw.stride(0),
        rows, n, _PER_PROGRAM, BLOCK=triton.next_power_of_2(n),
    )  # fmt: skip
    return dx, dw, db


def _layer_norm_bwd(dy: Any, x: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, ...]:
    x_hat = (x - mean[:, None]) * rstd[:, None]
    g = dy * w
    along = (x_hat * g).mean(axis=1, keepdims=True)
    dx = rstd[:, None] * (g - g.mean(axis=1, keepdims=True) - x_hat * along)
    firsts = range(0, x.shape[0], _PER_PROGRAM)
    dw = [(dy * x_hat)[at : at + _PER_PROGRAM].sum(axis=0) for at in firsts]
    db = [dy[at : at + _PER_PROGRAM].sum(axis=0) for at in firsts]
    return dx, np.stack(dw), np.stack(db)


layer_norm_bwd_kernel = Operator(
    kernel=_call_layer_norm_bwd,
    reference=_layer_norm_bwd,
    dims=_DIMS,
    inputs={
        "dy": _ROWS, "x": _ROWS, "w": Tensor("n"),
        "mean": Tensor("rows", dtype="float32", domain=Domain(-4.0, 4.0)),
        "rstd": Tensor("rows", dtype="float32", domain=Domain(0.25, 4.0)),
    },
    dtypes=BOTH,
)  # fmt: skip


def _call_reduce(dw: Any, db: Any) -> tuple[Any, ...]:
    parts, n = dw.shape
    out = [torch.empty(n, dtype=dw.dtype, device=dw.device) for _ in range(2)]
    fixture("layer_norm", "layer_norm_bwd_reduce_kernel")[(triton.cdiv(n, 32),)](
        *out, dw, db, dw.stride(0), parts, n, BLOCK_M=8, BLOCK_N=32
    )
    return tuple(out)


layer_norm_bwd_reduce_kernel = Operator(
    kernel=_call_reduce,
    reference=lambda dw, db: (dw.sum(axis=0), db.sum(axis=0)),
    dims={"parts": Dim(1, 256, typical=32), "n": Dim(1, 4096, typical=1024)},
    inputs={name: Tensor("parts", "n", layouts=("padded-rows", "offset")) for name in ("dw", "db")},
)


def _call_fused_add(x: Any, r: Any, w: Any, b: Any, eps: float) -> tuple[Any, ...]:
    rows, n = x.shape
    y, total = torch.empty_like(x), torch.empty_like(x)
    held_out("fused_add_layer_norm")[(rows,)](
        y, total, x, r, w, b, x.stride(0), n, eps, BLOCK=triton.next_power_of_2(n)
    )
    return y, total


fused_add_layer_norm = Operator(
    kernel=_call_fused_add,
    reference=lambda x, r, w, b, eps: (_normalised(x + r, w, b, eps), x + r),
    dims=_DIMS,
    inputs={"x": _PLAIN, "r": _PLAIN, "w": Tensor("n"), "b": Tensor("n"), "eps": _EPS},
    dtypes=BOTH,
)


def _call_long(x: Any, w: Any, b: Any, eps: float) -> Any:
    rows, n = x.shape
    y = torch.empty((rows, n), dtype=x.dtype, device=x.device)
    held_out("layer_norm_long")[(rows,)](y, x, w, b, x.stride(0), y.stride(0), n, eps, BLOCK=64)
    return y


layer_norm_long = Operator(
    kernel=_call_long,
    reference=_normalised,
    dims=_DIMS,
    inputs={"x": _ROWS, "w": Tensor("n"), "b": Tensor("n"), "eps": _EPS},
    dtypes=BOTH,
)


def _call_group_norm(x: Any, w: Any, b: Any, groups: int, eps: float) -> Any:
    batch, channels, spatial = x.shape
    size = channels // groups
    y = torch.empty_like(x)
    held_out("group_norm")[(batch, groups)](
        y, x, w, b, x.stride(0), x.stride(1), size, spatial, eps,
        BLOCK_C=triton.next_power_of_2(size), BLOCK_S=triton.next_power_of_2(spatial),
    )  # fmt: skip
    return y


def _group_norm(x: Any, w: Any, b: Any, groups: int, eps: float) -> Any:
    batch, channels, spatial = x.shape
    parts = x.reshape(batch * groups, -1)
    mean, rstd = _statistics(parts, eps)
    out = ((parts - mean[:, None]) * rstd[:, None]).reshape(batch, channels, spatial)
    return out * w[:, None] + b[:, None]


_GROUPS = 2
group_norm = Operator(
    kernel=_call_group_norm,
    reference=_group_norm,
    dims={
        "batch": Dim(1, 16),
        "channels": Dim(_GROUPS, 64, multiple=_GROUPS, typical=32),
        "spatial": Dim(1, 1024, typical=64),
    },
    inputs={
        "x": Tensor("batch", "channels", "spatial"), "w": Tensor("channels"),
        "b": Tensor("channels"), "groups": Value(_GROUPS), "eps": _EPS,
    },
    dtypes=BOTH,
)  # fmt: skip


def _call_cosine(a: Any, b: Any) -> Any:
    rows, n = a.shape
    out = torch.empty(rows, dtype=torch.float32, device=a.device)
    held_out("cosine_similarity")[(rows,)](out, a, b, a.stride(0), b.stride(0), n, BLOCK=64)
    return out


def _cosine(a: Any, b: Any) -> Any:
    lengths = np.sqrt((a * a).sum(axis=1)) * np.sqrt((b * b).sum(axis=1))
    return (a * b).sum(axis=1) / np.fmax(lengths, 1e-8)


cosine_similarity = Operator(
    kernel=_call_cosine, reference=_cosine, dims=_DIMS, inputs={"a": _ROWS, "b": _ROWS}, dtypes=BOTH
)
