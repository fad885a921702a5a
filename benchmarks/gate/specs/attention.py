"""Attention: flash forward and backward, one query at a time, a tile at a time, and linear."""

from __future__ import annotations

from math import log2, sqrt
from typing import Any

import numpy as np
import torch
import triton
from _source import BOTH, fixture, held_out

from ptxlint.dynamic.operators import Dim, Domain, Operator, Tensor

_D = 32
"""Width of a head."""
_TILE = 16
_SCALE = 1 / sqrt(_D)
_LOG2_E = log2(np.e)
_DIMS = {"heads": Dim(1, 8, typical=2), "seq": Dim(1, 512, typical=64)}
_COARSE = {"float32": "tf32"}
_SMALL = Domain(-4.0, 4.0)
_HEADS = Tensor("heads", "seq", _D, domain=_SMALL)
_PER_ROW = Tensor("heads", "seq", dtype="float32", domain=Domain(2.0, 8.0))


def _t(x: Any) -> Any:
    return x.swapaxes(-1, -2)


def _softmax(scores: Any) -> Any:
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def _tiles() -> dict[str, Any]:
    return {"CAUSAL": False, "D": _D, "BLOCK_M": _TILE, "BLOCK_N": _TILE}


def _grid(q: Any) -> tuple[int, int]:
    return triton.cdiv(q.shape[1], _TILE), q.shape[0]


def _call_forward(q: Any, k: Any, v: Any) -> tuple[Any, ...]:
    o = torch.empty_like(q)
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    fixture("flash_attention_dot", "flash_fwd_kernel")[_grid(q)](
        o, lse, q, k, v, _SCALE, q.stride(0), q.stride(1), q.shape[1], **_tiles()
    )
    return o, lse


def _forward(q: Any, k: Any, v: Any) -> tuple[Any, ...]:
    scores = q @ _t(k) * _SCALE
    top = scores.max(axis=2)
    lse = (top + np.log(np.exp(scores - top[..., None]).sum(axis=2))) * _LOG2_E
    return _softmax(scores) @ v, lse


flash_fwd_kernel = Operator(
    kernel=_call_forward,
    reference=_forward,
    dims=_DIMS,
    inputs={"q": _HEADS, "k": _HEADS, "v": _HEADS},
    dtypes=BOTH,
    arithmetic=_COARSE,
)
_BACKWARD = {
    "q": _HEADS, "k": _HEADS, "v": _HEADS, "do": _HEADS, "lse": _PER_ROW, "delta": _PER_ROW,
}  # fmt: skip


def _call_dkdv(q: Any, k: Any, v: Any, do: Any, lse: Any, delta: Any) -> tuple[Any, ...]:
    dk, dv = torch.empty_like(q), torch.empty_like(q)
    fixture("flash_attention_dot", "flash_bwd_dkdv_kernel")[_grid(q)](
        dk, dv, q, k, v, do, lse, delta, _SCALE, q.stride(0), q.stride(1), q.shape[1], **_tiles()
    )
    return dk, dv


def _gradients(q: Any, k: Any, v: Any, do: Any, lse: Any, delta: Any) -> tuple[Any, Any]:
    """Probabilities, and the gradient of scores before their scale."""
    p = np.exp2(q @ _t(k) * (_SCALE * _LOG2_E) - lse[..., None])
    return p, p * (do @ _t(v) - delta[..., None])


def _dkdv(q: Any, k: Any, v: Any, do: Any, lse: Any, delta: Any) -> tuple[Any, ...]:
    p, ds = _gradients(q, k, v, do, lse, delta)
    return _t(ds) @ q * _SCALE, _t(p) @ do


flash_bwd_dkdv_kernel = Operator(
    kernel=_call_dkdv,
    reference=_dkdv,
    dims=_DIMS,
    inputs=_BACKWARD,
    dtypes=("float16",),
)


def _call_dq(q: Any, k: Any, v: Any, do: Any, lse: Any, delta: Any) -> Any:
    dq = torch.empty_like(q)
    fixture("flash_attention_dot", "flash_bwd_dq_kernel")[_grid(q)](
        dq, q, k, v, do, lse, delta, _SCALE, q.stride(0), q.stride(1), q.shape[1], **_tiles()
    )
    return dq


flash_bwd_dq_kernel = Operator(
    kernel=_call_dq,
    reference=lambda q, k, v, do, lse, delta: _gradients(q, k, v, do, lse, delta)[1] @ k * _SCALE,
    dims=_DIMS,
    inputs=_BACKWARD,
    dtypes=("float16",),
)


def _call_delta(o: Any, do: Any) -> Any:
    delta = torch.empty(o.shape[:2], dtype=torch.float32, device=o.device)
    fixture("flash_attention_dot", "flash_bwd_delta_kernel")[_grid(o)](
        delta, o, do, o.stride(0), o.stride(1), o.shape[1], D=_D, BLOCK_M=_TILE
    )
    return delta


flash_bwd_delta_kernel = Operator(
    kernel=_call_delta,
    reference=lambda o, do: (o * do).sum(axis=2),
    dims=_DIMS,
    inputs={
        name: Tensor("heads", "seq", _D, layouts=("padded-rows", "offset")) for name in ("o", "do")
    },
    dtypes=BOTH,
)


def _call_decode(q: Any, k: Any, v: Any) -> Any:
    o = torch.empty_like(q)
    held_out("decode_attention")[(q.shape[0],)](
        o, q, k, v, _SCALE, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        k.shape[1], BLOCK_N=_TILE, D=_D,
    )  # fmt: skip
    return o


_VIEWS = Tensor("heads", "seq", _D, layouts=("padded-rows", "offset"))
decode_attention = Operator(
    kernel=_call_decode,
    reference=lambda q, k, v: (_softmax(q[:, None, :] @ _t(k) * _SCALE) @ v)[:, 0, :],
    dims=_DIMS,
    inputs={"q": Tensor("heads", _D), "k": _VIEWS, "v": _VIEWS},
    dtypes=BOTH,
)


def _call_tile(q: Any, k: Any, v: Any) -> Any:
    o = torch.empty_like(q)
    held_out("attention_tile")[_grid(q)](
        o, q, k, v, _SCALE, q.stride(0), q.stride(1), k.stride(0), k.stride(1), q.shape[1],
        k.shape[1], BLOCK_M=_TILE, BLOCK_N=_TILE, D=_D,
    )  # fmt: skip
    return o


attention_tile = Operator(
    kernel=_call_tile,
    reference=lambda q, k, v: _softmax(q @ _t(k) * _SCALE) @ v,
    dims={**_DIMS, "keys": Dim(1, 512, typical=64)},
    inputs={
        "q": _HEADS,
        **{
            name: Tensor("heads", "keys", _D, domain=_SMALL, layouts=("padded-rows", "offset"))
            for name in ("k", "v")
        },
    },
    dtypes=BOTH,
    arithmetic=_COARSE,
)


def _call_linear(q: Any, k: Any, v: Any) -> Any:
    o = torch.empty_like(q)
    held_out("linear_attention")[(q.shape[0],)](
        o, q, k, v, q.stride(0), q.stride(1), q.shape[1], BLOCK_T=_TILE, D=_D
    )
    return o


linear_attention = Operator(
    kernel=_call_linear,
    reference=lambda q, k, v: np.tril(q @ _t(k)) @ v,
    dims=_DIMS,
    inputs={name: Tensor("heads", "seq", _D, domain=Domain(-1.0, 1.0)) for name in "qkv"},
    dtypes=BOTH,
    arithmetic=_COARSE,
)
