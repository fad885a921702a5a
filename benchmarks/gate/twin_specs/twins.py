"""Twins of fixtures/kernels/twins as operators: faults that families aim at and the 26 operators
of fixtures/specs do not have. `NAME_buggy` is the faulty twin of `NAME`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
import triton

from ptxlint.dynamic.operators import Dim, Operator, Tensor, Value

_TWINS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels" / "twins"
_DTYPES = ("float32", "float16")
_BLOCK = 128
"""Of loops over chunks, and of quantisation."""


def _module(name: str) -> ModuleType:
    known = f"ptxlint_twins.{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, _TWINS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


def _rows(
    module: str,
    kernel: str,
    reference: Callable[..., Any],
    *,
    reduces: bool = False,
    strided: bool = True,
    eps: float = 0.0,
    block: int = 0,
) -> Operator:
    """One program a row: a row comes out, or with `reduces` one number; the tile is the row's next
    power of two, or fixed."""
    jitted = getattr(_module(module), kernel)
    more = {"eps": Value(eps)} if eps else {}

    def call(x: torch.Tensor, *rest: float) -> torch.Tensor:
        rows, n = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device) if reduces else torch.empty_like(x)
        stride = (x.stride(0),) if strided else ()
        tile = block or triton.next_power_of_2(n)
        jitted[(rows,)](out, x, *stride, n, *rest, BLOCK=tile)
        return out

    return Operator(
        # The names of arguments are those of the inputs.
        kernel=(lambda x, eps: call(x, eps)) if eps else (lambda x: call(x)),
        reference=reference,
        dims={"rows": Dim(1, 256, typical=16), "n": Dim(1, 4096, typical=1024)},
        inputs={"x": Tensor("rows", "n"), **more},
        dtypes=_DTYPES,
    )


# Padding ---------------------------------------------------------------------------------------
def _variance(x: Any) -> Any:
    return x.var(axis=1)


def _maximum(x: Any) -> Any:
    # Of a number and NaN Triton's maximum is the number.
    return np.fmax.reduce(x, axis=1)


def _norm(x: Any, eps: float) -> Any:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + eps)


variance = _rows("tails", "variance_masked_again", _variance, reduces=True)
variance_buggy = _rows("tails", "variance_of_all_lanes", _variance, reduces=True)
maximum = _rows("tails", "maximum_fill_infinity", _maximum, reduces=True)
maximum_buggy = _rows("tails", "maximum_fill_zero", _maximum, reduces=True)
norm = _rows("means", "norm_of_row", _norm, eps=1e-5)
norm_buggy = _rows("means", "norm_variance_of_tile", _norm, eps=1e-5)


# Infinities and NaN ----------------------------------------------------------------------------
def _logsumexp(x: Any) -> Any:
    peak = np.fmax.reduce(x, axis=1, keepdims=True)
    base = np.where(peak == -np.inf, 0.0, peak)
    with np.errstate(divide="ignore"):
        return (np.log(np.exp(x - base).sum(axis=1, keepdims=True)) + base)[:, 0]


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _quantised(x: Any) -> tuple[Any, Any]:
    scale = np.fmax.reduce(np.abs(x), axis=1) / 448.0
    scale = np.where(scale == 0, 1.0, scale)
    return x / scale[:, None], scale


def _quantise(kernel: str) -> Operator:
    jitted = getattr(_module("nonfinite"), kernel)

    def call(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks, n = x.shape
        out = torch.empty_like(x)
        scale = torch.empty(blocks, dtype=torch.float32, device=x.device)
        jitted[(blocks,)](out, scale, x, blocks * n, BLOCK=n)
        return out, scale

    return Operator(
        kernel=call,
        reference=_quantised,
        dims={"blocks": Dim(1, 256, typical=16)},
        inputs={"x": Tensor("blocks", _BLOCK)},
        dtypes=_DTYPES,
    )


logsumexp = _rows("loops", "lanes_rescaled", _logsumexp, reduces=True, block=_BLOCK)
logsumexp_buggy = _rows("loops", "lanes_not_rescaled", _logsumexp, reduces=True, block=_BLOCK)
logsumexp_masked_buggy = _rows(
    "loops", "logsumexp_rescaled", _logsumexp, reduces=True, block=_BLOCK
)
softmax = _rows("nonfinite", "softmax_with_maximum", _softmax, strided=False)
softmax_buggy = _rows("nonfinite", "softmax_without_maximum", _softmax, strided=False)
quantise = _quantise("quantise_chosen_scale")
quantise_buggy = _quantise("quantise_zero_block")


# Sums in sixteen bits --------------------------------------------------------------------------
def _column_sum(kernel: str) -> Operator:
    jitted = getattr(_module("loops"), kernel)

    def call(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows, n = x.shape
        total = torch.empty(n, dtype=torch.float32, device=x.device)
        jitted[(triton.cdiv(n, 32),)](total, x, y, rows, n, x.stride(0), BLOCK_M=64, BLOCK_N=32)
        return total

    return Operator(
        kernel=call,
        reference=lambda x, y: (x * y).sum(axis=0),
        dims={"rows": Dim(1, 4096, typical=1024), "n": Dim(1, 256, typical=64)},
        inputs={"x": Tensor("rows", "n"), "y": Tensor("rows", "n")},
        dtypes=("float16",),
    )


column_sum = _column_sum("column_sum_wide")
column_sum_buggy = _column_sum("column_sum_narrow")
