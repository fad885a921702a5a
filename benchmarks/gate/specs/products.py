"""Products of matrices, some with what comes before or behind, and of a matrix and a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from _source import BOTH, fixture, held_out

from ptxlint.dynamic.operators import Dim, Operator, Tensor

_ANY = ("padded-rows", "transposed", "every-second", "offset")
_ROWS = ("padded-rows", "offset")
_COARSE = {"float32": "tf32"}


def _dims(*names: str, high: int = 256) -> dict[str, Dim]:
    return {name: Dim(1, high, typical=64) for name in names}


def _out(*shape: int, like: Any) -> Any:
    return torch.empty(shape, dtype=like.dtype, device=like.device)


def _call_matmul(a: Any, b: Any, c: Any) -> None:
    (m, k), n = a.shape, b.shape[1]
    fixture("matmul_dot", "matmul_dot_kernel")[(triton.cdiv(m, 32) * triton.cdiv(n, 32),)](
        c, a, b, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2, PRECISION="ieee", ACC=tl.float32,
    )  # fmt: skip


matmul_dot_kernel = Operator(
    kernel=_call_matmul,
    reference=lambda a, b, c: a @ b,
    dims=_dims("m", "n", "k"),
    inputs={
        "a": Tensor("m", "k", layouts=_ANY),
        "b": Tensor("k", "n", layouts=_ANY),
        "c": Tensor("m", "n", layouts=_ANY),
    },
    dtypes=BOTH,
    writes=("c",),
)


def _call_wrapped(a: Any, b: Any) -> Any:
    (m, k), n = a.shape, b.shape[1]
    c = _out(m, n, like=a)
    fixture("clean_idioms", "wrapped_matmul_kernel")[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        c, a, b, m, n, k, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=16,
    )  # fmt: skip
    return c


wrapped_matmul_kernel = Operator(
    kernel=_call_wrapped,
    reference=lambda a, b: a @ b,
    dims={**_dims("m", "n"), "k": Dim(16, 256, multiple=16, typical=64)},
    inputs={"a": Tensor("m", "k", layouts=_ROWS), "b": Tensor("k", "n", layouts=_ROWS)},
    dtypes=BOTH,
    arithmetic=_COARSE,
)


def _call_batched(a: Any, b: Any, bias: Any) -> Any:
    (batch, m, k), n = a.shape, b.shape[2]
    c = _out(batch, m, n, like=a)
    held_out("batched_matmul_bias")[(triton.cdiv(m, 16), triton.cdiv(n, 16), batch)](
        c, a, b, bias, m, n, k, *a.stride(), *b.stride(), c.stride(0), c.stride(1),
        BLOCK_M=16, BLOCK_N=16, BLOCK_K=32,
    )  # fmt: skip
    return c


batched_matmul_bias = Operator(
    kernel=_call_batched,
    reference=lambda a, b, bias: a @ b + bias,
    dims={"batch": Dim(1, 8), **_dims("m", "n", "k")},
    inputs={
        "a": Tensor("batch", "m", "k", layouts=_ANY),
        "b": Tensor("batch", "k", "n", layouts=_ANY),
        "bias": Tensor("n"),
    },
    dtypes=BOTH,
    arithmetic=_COARSE,
)


def _call_softmax(x: Any, w: Any) -> Any:
    (m, k), n = x.shape, w.shape[0]
    out = _out(m, n, like=x)
    held_out("product_with_softmax")[(triton.cdiv(m, 16),)](
        out, x, w, m, n, k, x.stride(0), w.stride(0), out.stride(0),
        BLOCK_M=16, BLOCK_N=max(16, triton.next_power_of_2(n)), BLOCK_K=16,
    )  # fmt: skip
    return out


def _softmax_of_product(x: Any, w: Any) -> Any:
    logits = x @ w.T
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


product_with_softmax = Operator(
    kernel=_call_softmax,
    reference=_softmax_of_product,
    dims={**_dims("m", "k"), "n": Dim(1, 64, typical=16)},
    inputs={"x": Tensor("m", "k", layouts=_ROWS), "w": Tensor("n", "k", layouts=_ROWS)},
    dtypes=BOTH,
    arithmetic=_COARSE,
)


def _call_swiglu(gate: Any, up: Any, w: Any) -> Any:
    (m, k), n = gate.shape, w.shape[1]
    out = _out(m, n, like=gate)
    held_out("swiglu_down")[(triton.cdiv(m, 16), triton.cdiv(n, 16))](
        out, gate, up, w, m, n, k, gate.stride(0), w.stride(0), out.stride(0),
        BLOCK_M=16, BLOCK_N=16, BLOCK_K=32,
    )  # fmt: skip
    return out


swiglu_down = Operator(
    kernel=_call_swiglu,
    reference=lambda gate, up, w: gate / (1 + np.exp(-gate)) * up @ w,
    dims=_dims("m", "n", "k"),
    inputs={
        "gate": Tensor("m", "k", layouts=_ROWS), "up": Tensor("m", "k", layouts=_ROWS),
        "w": Tensor("k", "n", layouts=_ROWS),
    },
    dtypes=BOTH,
    arithmetic=_COARSE,
)  # fmt: skip


def _call_vector(a: Any, x: Any) -> Any:
    m, n = a.shape
    y = _out(m, like=a)
    held_out("matrix_vector")[(triton.cdiv(m, 16),)](
        y, a, x, m, n, a.stride(0), BLOCK_M=16, BLOCK_N=32
    )
    return y


matrix_vector = Operator(
    kernel=_call_vector,
    reference=lambda a, x: a @ x,
    dims=_dims("m", "n", high=1024),
    inputs={"a": Tensor("m", "n", layouts=_ROWS), "x": Tensor("n")},
)
