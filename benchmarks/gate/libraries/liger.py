"""Kernels of liger-kernel 0.8.5, launched by its own code.

https://github.com/linkedin/Liger-Kernel. Variables are called as the kernels, without underscores
in front.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _source import module

from ptxlint.dynamic.operators import Dim, Domain, Operator, Tensor, Value

_DIMS = {"rows": Dim(1, 256, typical=16), "n": Dim(1, 4096, typical=1024)}
_ROWS = Tensor("rows", "n")
_FINITE = Tensor("rows", "n", domain=Domain(-1e4, 1e4))
_EPS = Value(1e-5)
_BOTH = ("float32", "float16")


def _ops(name: str) -> Any:
    return module(f"liger_kernel.ops.{name}")


# Softmax --------------------------------------------------------------------------------------
def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


softmax_single_block_forward_kernel = Operator(
    kernel=lambda x: _ops("softmax")._softmax_forward(x)[0],
    reference=_softmax,
    dims=_DIMS,
    inputs={"x": _ROWS},
)


def _call_softmax_backward(dy: Any, y: Any) -> Any:
    ops = _ops("softmax")
    return ops._softmax_backward(dy, y, *ops.calculate_settings(y.shape[1]), False)


softmax_single_block_backward_kernel = Operator(
    kernel=_call_softmax_backward,
    reference=lambda dy, y: y * (dy - (dy * y).sum(axis=1, keepdims=True)),
    dims=_DIMS,
    inputs={"dy": _ROWS, "y": _ROWS},
)


# Activations ----------------------------------------------------------------------------------
def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


swiglu_forward_kernel = Operator(
    kernel=lambda a, b: _ops("swiglu").swiglu_forward(a, b, 1.5)[2],
    reference=lambda a, b: 1.5 * a * _sigmoid(1.5 * a) * b,
    dims=_DIMS,
    inputs={"a": _ROWS, "b": _ROWS},
    dtypes=_BOTH,
)


def _call_swiglu_backward(a: Any, b: Any, dc: Any) -> None:
    _ops("swiglu").swiglu_backward(a, b, dc, 1.5)


def _swiglu_backward(a: Any, b: Any, dc: Any) -> tuple[Any, Any]:
    s = _sigmoid(1.5 * a)
    return 1.5 * dc * b * (s + 1.5 * a * s * (1 - s)), dc * 1.5 * a * s


swiglu_backward_kernel = Operator(
    kernel=_call_swiglu_backward,
    reference=_swiglu_backward,
    dims=_DIMS,
    inputs={"a": _FINITE, "b": _FINITE, "dc": _FINITE},
    writes=("a", "b"),
)
relu_squared_forward_kernel = Operator(
    kernel=lambda x: _ops("relu_squared").relu_squared_forward(x),
    reference=lambda x: np.fmax(x, 0) ** 2,
    dims=_DIMS,
    inputs={"x": _ROWS},
    dtypes=_BOTH,
)
relu_squared_backward_kernel = Operator(
    kernel=lambda x, dy: _ops("relu_squared").relu_squared_backward(x, dy),
    reference=lambda x, dy: 2 * dy * np.fmax(x, 0),
    dims=_DIMS,
    inputs={"x": _FINITE, "dy": _FINITE},
)


# Norms ----------------------------------------------------------------------------------------
def _moments(x: Any) -> tuple[Any, Any]:
    mean = x.mean(axis=-1, keepdims=True)
    return mean, ((x - mean) ** 2).mean(axis=-1, keepdims=True)


def _call_layer_norm(x: Any, w: Any, b: Any, eps: float) -> tuple[Any, ...]:
    y, _, mean, rstd, *_ = _ops("layer_norm").layer_norm_forward(x, w, b, eps)
    return y, mean, rstd


def _layer_norm(x: Any, w: Any, b: Any, eps: float) -> tuple[Any, ...]:
    mean, variance = _moments(x)
    rstd = 1 / np.sqrt(variance + eps)
    return (x - mean) * rstd * w + b, mean[:, 0], rstd[:, 0]


layer_norm_forward_kernel = Operator(
    kernel=_call_layer_norm,
    reference=_layer_norm,
    dims=_DIMS,
    inputs={"x": _ROWS, "w": Tensor("n"), "b": Tensor("n"), "eps": _EPS},
    dtypes=_BOTH,
)
_OFFSET = 1.0
"""What is added to weights, as Gemma has it."""


def _call_rms_norm(x: Any, w: Any, eps: float) -> tuple[Any, ...]:
    y, _, rstd, *_ = _ops("rms_norm").rms_norm_forward(x, w, eps, _OFFSET, "gemma", True)
    return y, rstd


def _rms_norm(x: Any, w: Any, eps: float) -> tuple[Any, ...]:
    rstd = 1 / np.sqrt((x * x).mean(axis=1) + eps)
    return x * rstd[:, None] * (_OFFSET + w), rstd


rms_norm_forward_kernel = Operator(
    kernel=_call_rms_norm,
    reference=_rms_norm,
    dims=_DIMS,
    inputs={"x": _ROWS, "w": Tensor("n"), "eps": _EPS},
    dtypes=_BOTH,
)


def _call_fused_add(x: Any, r: Any, w: Any, eps: float) -> tuple[Any, ...]:
    ops = _ops("fused_add_rms_norm")
    y, total, rstd, *_ = ops.fused_add_rms_norm_forward(x, r, w, eps, _OFFSET, "gemma")
    return y, total, rstd


def _fused_add(x: Any, r: Any, w: Any, eps: float) -> tuple[Any, ...]:
    y, rstd = _rms_norm(x + r, w, eps)
    return y, x + r, rstd


fused_add_rms_norm_forward_kernel = Operator(
    kernel=_call_fused_add,
    reference=_fused_add,
    dims=_DIMS,
    inputs={"x": _ROWS, "r": _ROWS, "w": Tensor("n"), "eps": _EPS},
)
_GROUPS = 2


def _call_group_norm(x: Any, w: Any, b: Any, eps: float) -> Any:
    return _ops("group_norm").group_norm_forward(x, x.shape[1], _GROUPS, w, b, eps)[0]


def _group_norm(x: Any, w: Any, b: Any, eps: float) -> Any:
    batch, channels, _ = x.shape
    parts = x.reshape(batch, _GROUPS, -1)
    mean, variance = _moments(parts)
    out = ((parts - mean) / np.sqrt(variance + eps)).reshape(x.shape)
    return out * w[:channels, None] + b[:channels, None]


group_norm_forward_kernel = Operator(
    kernel=_call_group_norm,
    reference=_group_norm,
    dims={
        "batch": Dim(1, 8), "channels": Dim(_GROUPS, 32, multiple=_GROUPS, typical=8),
        "n": Dim(1, 512, typical=64),
    },
    inputs={
        "x": Tensor("batch", "channels", "n"), "w": Tensor("channels"), "b": Tensor("channels"),
        "eps": _EPS,
    },
)  # fmt: skip


# Losses ---------------------------------------------------------------------------------------
def _call_kl_div(y: Any, target: Any) -> Any:
    return _ops("kl_div").kldiv_forward_triton(y, target, True, "sum", 1e-10)


_LOGS = Tensor("rows", "n", domain=Domain(high=0.0))
kldiv_kernel_forward = Operator(
    kernel=_call_kl_div,
    reference=lambda y, target: (np.exp(target) * (target - y)).sum(),
    dims=_DIMS,
    inputs={"y": _LOGS, "target": _LOGS},
    dtypes=_BOTH,
)


def _call_cross_entropy(x: Any, target: Any) -> Any:
    ops = _ops("cross_entropy")
    return ops.cross_entropy_forward(x, target, None, -100, 0.0, 0.1, "none", None, False)[0]


def _cross_entropy(x: Any, target: Any) -> Any:
    top = x.max(axis=1)
    lse = top + np.log(np.exp(x - top[:, None]).sum(axis=1))
    chosen = np.take_along_axis(x, target[:, None], axis=1)[:, 0]
    return 0.9 * (lse - chosen) + 0.1 * (lse - x.mean(axis=1))


liger_cross_entropy_kernel = Operator(
    kernel=_call_cross_entropy,
    reference=_cross_entropy,
    dims=_DIMS,
    inputs={
        "x": _FINITE,
        "target": Tensor("rows", dtype="int64", domain=Domain(below="n")),
    },
)
