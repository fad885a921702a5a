"""A tile that is summed up along one axis by a scan, and then along one axis as a whole."""

import triton
import triton.language as tl


@triton.jit
def scanned(
    a, out, n,
    padded: tl.constexpr, masked: tl.constexpr, axis: tl.constexpr, summed: tl.constexpr,
    reverse: tl.constexpr, exclusive: tl.constexpr, powers: tl.constexpr,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    rows = tl.arange(0, height)[:, None]
    columns = tl.arange(0, width)[None, :]
    x = tl.load(a + rows * width + columns, mask=((columns if padded else rows) < n), other=0.0)
    y = tl.cumsum(x, axis, reverse=reverse)
    if exclusive:
        y = y - x
    if powers:
        y = tl.exp2(y)
    if masked == 0:
        y = tl.where(rows < n, y, 0.0)
    if masked == 1:
        y = tl.where(columns < n, y, 0.0)
    s = tl.sum(y, summed)
    if summed == 0:
        tl.store(out + tl.arange(0, width), s)
    else:
        tl.store(out + tl.arange(0, height), s)
