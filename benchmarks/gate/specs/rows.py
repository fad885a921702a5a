"""Rows and columns: softmax and its gradient, scans, extrema, moments, quantisation, rotation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
from _source import BOTH, fixture, held_out

from ptxlint.dynamic.operators import Dim, Domain, Operator, Size, Tensor

_BLOCK = 64
_DIMS = {"rows": Dim(1, 512, typical=16), "n": Dim(1, 4096, typical=1024)}
_VIEWS = ("padded-rows", "offset")
_ROWS = Tensor("rows", "n", layouts=_VIEWS)
_PLAIN = Tensor("rows", "n")
_FINITE = Domain(-1e4, 1e4)


def _one_tile(x: Any) -> int:
    return triton.next_power_of_2(x.shape[1])


def _like(x: Any) -> Any:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _per_row(x: Any, dtype: torch.dtype = torch.float32) -> Any:
    return torch.empty(x.shape[0], dtype=dtype, device=x.device)


# Softmax --------------------------------------------------------------------------------------
def _call_log_softmax(x: Any) -> Any:
    y = _like(x)
    held_out("log_softmax")[(x.shape[0],)](
        y, x, y.stride(0), x.stride(0), x.shape[1], BLOCK=_one_tile(x)
    )
    return y


def _log_softmax(x: Any) -> Any:
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


log_softmax = Operator(
    kernel=_call_log_softmax, reference=_log_softmax, dims=_DIMS, inputs={"x": _ROWS}, dtypes=BOTH
)


def _call_softmax_backward(dy: Any, y: Any) -> Any:
    dx = _like(y)
    held_out("softmax_backward")[(y.shape[0],)](
        dx, dy, y, y.stride(0), y.shape[1], BLOCK=_one_tile(y)
    )
    return dx


softmax_backward = Operator(
    kernel=_call_softmax_backward,
    reference=lambda dy, y: y * (dy - (dy * y).sum(axis=1, keepdims=True)),
    dims=_DIMS,
    inputs={"dy": _PLAIN, "y": _PLAIN},
)


def _call_masked_scores(s: Any, length: Any) -> Any:
    p = _like(s)
    held_out("masked_softmax_scores")[(s.shape[0],)](
        p, s, length, s.stride(0), s.shape[1], BLOCK=_one_tile(s)
    )
    return p


def _masked_scores(s: Any, length: Any) -> Any:
    seen = np.arange(s.shape[1])[None, :] < length[:, None]
    top = np.where(seen, s, -np.inf).max(axis=1, keepdims=True)
    e = np.where(seen, np.exp(np.fmin(s - top, 0.0)), 0.0)
    return e / e.sum(axis=1, keepdims=True)


masked_softmax_scores = Operator(
    kernel=_call_masked_scores,
    reference=_masked_scores,
    dims=_DIMS,
    inputs={
        "s": Tensor("rows", "n", domain=_FINITE),
        "length": Tensor("rows", dtype="int32", domain=Domain(low=1, below=lambda d: d["n"] + 1)),
    },
    dtypes=BOTH,
)


# Scans ----------------------------------------------------------------------------------------
def _call_cumsum(x: Any) -> Any:
    out = _like(x)
    fixture("scan", "cumsum_kernel")[(x.shape[0],)](
        out, x, out.stride(0), x.stride(0), x.shape[1], BLOCK=_BLOCK
    )
    return out


cumsum_kernel = Operator(
    kernel=_call_cumsum,
    reference=lambda x: np.cumsum(x, axis=1),
    dims=_DIMS,
    inputs={"x": _ROWS},
    dtypes=BOTH,
)


def _call_decay_scan(a: Any, x: Any) -> Any:
    h = _like(x)
    fixture("scan", "decay_scan_kernel")[(x.shape[0],)](
        h, a, x, x.stride(0), x.shape[1], BLOCK=_BLOCK
    )
    return h


def _decay_scan(a: Any, x: Any) -> Any:
    h = np.empty_like(x)
    state = np.zeros(x.shape[0])
    for at in range(x.shape[1]):
        state = a[:, at] * state + x[:, at]
        h[:, at] = state
    return h


decay_scan_kernel = Operator(
    kernel=_call_decay_scan,
    reference=_decay_scan,
    dims=_DIMS,
    inputs={"a": Tensor("rows", "n", domain=Domain(0.0, 1.0)), "x": _PLAIN},
    dtypes=BOTH,
)


def _call_cumulative(x: Any) -> Any:
    y = _like(x)
    held_out("cumulative_logsumexp")[(x.shape[0],)](y, x, x.stride(0), x.shape[1], BLOCK=_BLOCK)
    return y


cumulative_logsumexp = Operator(
    kernel=_call_cumulative,
    reference=lambda x: np.logaddexp.accumulate(x, axis=1),
    dims=_DIMS,
    inputs={"x": Tensor("rows", "n", domain=Domain(-16.0, 16.0))},
    dtypes=BOTH,
)


# Extrema and moments --------------------------------------------------------------------------
def _call_minimum(x: Any) -> Any:
    out = _per_row(x)
    held_out("minimum_of_rows")[(x.shape[0],)](out, x, *x.stride(), x.shape[1], BLOCK=_BLOCK)
    return out


minimum_of_rows = Operator(
    kernel=_call_minimum,
    reference=lambda x: x.min(axis=1),
    dims=_DIMS,
    inputs={
        "x": Tensor(
            "rows", "n", domain=_FINITE,
            layouts=("padded-rows", "transposed", "every-second", "offset"),
        )
    },
    dtypes=BOTH,
)  # fmt: skip


def _call_maximum(x: Any) -> Any:
    rows, n = x.shape
    out = torch.empty(n, dtype=torch.float32, device=x.device)
    held_out("maximum_of_columns")[(triton.cdiv(n, 32),)](
        out, x, rows, n, x.stride(0), BLOCK_M=16, BLOCK_N=32
    )
    return out


maximum_of_columns = Operator(
    kernel=_call_maximum,
    reference=lambda x: x.max(axis=0),
    dims=_DIMS,
    inputs={"x": Tensor("rows", "n", domain=_FINITE, layouts=_VIEWS)},
    dtypes=BOTH,
)


def _call_argmax(x: Any) -> Any:
    out = _per_row(x, torch.int32)
    fixture("clean_idioms", "argmax_kernel")[(x.shape[0],)](
        out, x, x.stride(0), x.shape[1], BLOCK=_one_tile(x)
    )
    return out


argmax_kernel = Operator(
    kernel=_call_argmax,
    reference=lambda x: np.argmax(x, axis=1),
    dims=_DIMS,
    inputs={"x": Tensor("rows", "n", domain=_FINITE, layouts=_VIEWS)},
    dtypes=BOTH,
)


def _two_of_rows(name: str) -> Callable[[Any], Any]:
    def call(x: Any) -> tuple[Any, ...]:
        one, other = _per_row(x), _per_row(x)
        fixture("clean_idioms", name)[(x.shape[0],)](
            one, other, x, x.stride(0), x.shape[1], BLOCK=_one_tile(x)
        )
        return one, other

    return call


zero_fill_kernel = Operator(
    kernel=_two_of_rows("zero_fill_kernel"),
    reference=lambda x: (np.fmax(x, 0).sum(axis=1), np.abs(x).max(axis=1)),
    dims=_DIMS,
    inputs={"x": Tensor("rows", "n", domain=_FINITE, layouts=_VIEWS)},
    dtypes=BOTH,
)
welford_kernel = Operator(
    kernel=_two_of_rows("welford_kernel"),
    reference=lambda x: (x.mean(axis=1), x.var(axis=1)),
    dims=_DIMS,
    inputs={"x": Tensor("rows", "n", domain=_FINITE, layouts=_VIEWS)},
    dtypes=BOTH,
)


def _call_weighted(dy: Any, x: Any) -> Any:
    rows, n = x.shape
    dw = torch.empty(n, dtype=torch.float32, device=x.device)
    held_out("weighted_sum_backward")[(triton.cdiv(n, 32),)](
        dw, dy, x, rows, n, dy.stride(0), x.stride(0), BLOCK_M=16, BLOCK_N=32
    )
    return dw


weighted_sum_backward = Operator(
    kernel=_call_weighted,
    reference=lambda dy, x: (dy * x).sum(axis=0),
    dims=_DIMS,
    inputs={"dy": _ROWS, "x": _ROWS},
    dtypes=BOTH,
)


# Quantisation, rotation, copies ---------------------------------------------------------------
def _call_quantise(x: Any) -> tuple[Any, ...]:
    q = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    scale = _per_row(x)
    held_out("quantise_rows")[(x.shape[0],)](
        q, scale, x, x.stride(0), q.stride(0), x.shape[1], BLOCK=_one_tile(x)
    )
    return q, scale


def _quantise(x: Any) -> tuple[Any, ...]:
    scale = np.fmax(np.abs(x).max(axis=1) / 127, 1e-6)
    return np.floor(x / scale[:, None] + 0.5).astype(np.int64), scale


quantise_rows = Operator(
    kernel=_call_quantise,
    reference=_quantise,
    dims=_DIMS,
    inputs={"x": Tensor("rows", "n", domain=_FINITE, layouts=_VIEWS)},
    dtypes=BOTH,
)


def _call_rope(x: Any, cos: Any, sin: Any) -> Any:
    tokens, heads, width = x.shape
    out = _like(x)
    fixture("rope", "rope_kernel")[(tokens,)](
        out, x, cos, sin, x.stride(0), x.stride(1), cos.stride(0), heads, width // 2,
        INVERSE=False, BLOCK_H=4, BLOCK_D=triton.next_power_of_2(width // 2),
    )  # fmt: skip
    return out


def _rope(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[2] // 2
    low, high = x[..., :half], x[..., half:]
    c, s = cos[:, None, :], sin[:, None, :]
    return np.concatenate([low * c - high * s, high * c + low * s], axis=2)


rope_kernel = Operator(
    kernel=_call_rope,
    reference=_rope,
    dims={"tokens": Dim(1, 64), "heads": Dim(1, 32), "half": Dim(1, 128, typical=32)},
    inputs={
        "x": Tensor("tokens", "heads", lambda d: 2 * d["half"]),
        "cos": Tensor("tokens", "half", layouts=_VIEWS),
        "sin": Tensor("tokens", "half", layouts=_VIEWS),
    },
    dtypes=BOTH,
)


def _call_transpose(x: Any) -> Any:
    rows, n = x.shape
    y = torch.empty((n, rows), dtype=x.dtype, device=x.device)
    held_out("transpose")[(triton.cdiv(rows, 16), triton.cdiv(n, 16))](
        y, x, rows, n, x.stride(0), y.stride(0), BLOCK_M=16, BLOCK_N=16
    )
    return y


transpose = Operator(
    kernel=_call_transpose,
    reference=lambda x: x.T,
    dims=_DIMS,
    inputs={"x": _ROWS},
    dtypes=BOTH,
)


def _call_convolution(x: Any, w: Any) -> Any:
    rows, n = x.shape
    y = _like(x)
    held_out("convolution_1d")[(rows, triton.cdiv(n, _BLOCK))](
        y, x, w, n, w.shape[0], x.stride(0), y.stride(0), BLOCK=_BLOCK
    )
    return y


convolution_1d = Operator(
    kernel=_call_convolution,
    reference=lambda x, w: np.stack([np.convolve(row, w)[: row.size] for row in x]),
    dims={**_DIMS, "width": Dim(1, 9, typical=5)},
    inputs={"x": _ROWS, "w": Tensor("width")},
)


# By index -------------------------------------------------------------------------------------
def _call_mean_pool(x: Any, length: Any) -> Any:
    batch, _, dim = x.shape
    out = torch.empty((batch, dim), dtype=x.dtype, device=x.device)
    held_out("mean_pool")[(batch, triton.cdiv(dim, 16))](
        out, x, length, x.stride(0), x.stride(1), out.stride(0), dim, BLOCK_T=16, BLOCK_D=16
    )
    return out


mean_pool = Operator(
    kernel=_call_mean_pool,
    reference=lambda x, length: np.stack(
        [row[:count].mean(axis=0) for row, count in zip(x, length, strict=True)]
    ),
    dims={"batch": Dim(1, 16), "tokens": Dim(1, 256), "dim": Dim(1, 256, typical=64)},
    inputs={
        "x": Tensor("batch", "tokens", "dim", layouts=_VIEWS),
        "length": Tensor(
            "batch", dtype="int32", domain=Domain(low=1, below=lambda d: d["tokens"] + 1)
        ),
    },
    dtypes=BOTH,
)


def _call_embedding_bag(table: Any, index: Any) -> Any:
    bags, each = index.shape
    dim = table.shape[1]
    starts = torch.arange(0, bags * each + 1, each, dtype=torch.int32, device=table.device)
    out = torch.empty((bags, dim), dtype=table.dtype, device=table.device)
    held_out("embedding_bag")[(bags,)](
        out, table, index, starts, table.stride(0), out.stride(0), dim, BLOCK=_one_tile(table)
    )
    return out


embedding_bag = Operator(
    kernel=_call_embedding_bag,
    reference=lambda table, index: table[index].sum(axis=1),
    dims={
        "words": Dim(1, 512, typical=64), "dim": Dim(1, 512, typical=64),
        "bags": Dim(1, 64), "each": Dim(1, 16, typical=4),
    },
    inputs={
        "table": Tensor("words", "dim", layouts=_VIEWS),
        "index": Tensor("bags", "each", dtype="int32", domain=Domain(below="words")),
    },
    dtypes=BOTH,
)  # fmt: skip


def _call_segment_sum(x: Any, segment: Any, segments: int) -> tuple[Any, ...]:
    (n,) = x.shape
    total = torch.zeros(segments, dtype=torch.float32, device=x.device)
    peak = torch.zeros_like(total)
    fixture("atomics", "segment_sum_kernel")[(triton.cdiv(n, 256),)](
        total, peak, x, segment, n, segments, BLOCK=256
    )
    return total, peak


def _segment_sum(x: Any, segment: Any, segments: int) -> tuple[Any, ...]:
    total, peak = np.zeros(segments), np.zeros(segments)
    np.add.at(total, segment, x)
    np.maximum.at(peak, segment, np.abs(x))
    return total, peak


segment_sum_kernel = Operator(
    kernel=_call_segment_sum,
    reference=_segment_sum,
    dims={"n": Dim(1, 1 << 14, typical=2048), "segments": Dim(1, 64, typical=8)},
    inputs={
        "x": Tensor("n", domain=_FINITE),
        "segment": Tensor("n", dtype="int32", domain=Domain(below="segments")),
        "segments": Size("segments"),
    },
    dtypes=BOTH,
    deterministic=False,
)
