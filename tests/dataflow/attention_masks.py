"""Attention over one tile, with the mask on the scores where it belongs, or not."""

import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    masked: tl.constexpr, block: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    rows = tl.arange(0, block)
    columns = tl.arange(0, width)
    inside = rows < n
    place = rows[:, None] * width + columns[None, :]
    q = tl.load(q_ptr + place, mask=inside[:, None], other=0.0)
    k = tl.load(k_ptr + place, mask=inside[:, None], other=0.0)
    v = tl.load(v_ptr + place, mask=inside[:, None], other=0.0)
    scores = tl.dot(q, tl.trans(k)) * scale
    if masked == 1:
        scores = tl.where(inside[None, :], scores, float("-inf"))
    if masked == 2:
        scores = tl.where(inside[:, None], scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    out = tl.dot(weights.to(tl.float16), v) / tl.sum(weights, 1)[:, None]
    tl.store(out_ptr + place, out, mask=inside[:, None])
