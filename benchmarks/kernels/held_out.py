"""Kernels of common operators that no rule was written with: the mutation study's held-out part.

Each is right for any extents, strides and ragged ends, in the usual style of Triton code: pointers
that walk, masks with and without names, two-dimensional tiles, online reductions.
"""

import triton
import triton.language as tl


@triton.jit
def log_softmax(y_ptr, x_ptr, y_row_stride, x_row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    ok = offs < n_cols
    logits = tl.load(x_ptr + row * x_row_stride + offs, mask=ok, other=-float("inf"))
    logits = logits.to(tl.float32)
    z = logits - tl.max(logits, 0)
    y = z - tl.log(tl.sum(tl.exp(z), 0))
    tl.store(y_ptr + row * y_row_stride + offs, y, mask=ok)


@triton.jit
def softmax_backward(dx_ptr, dy_ptr, y_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    ok = offs < n_cols
    dy = tl.load(dy_ptr + row * row_stride + offs, mask=ok, other=0.0)
    y = tl.load(y_ptr + row * row_stride + offs, mask=ok, other=0.0)
    inner = tl.sum(dy * y, 0)
    tl.store(dx_ptr + row * row_stride + offs, y * (dy - inner), mask=ok)


@triton.jit
def fused_add_layer_norm(
    y_ptr, sum_ptr, x_ptr, r_ptr, w_ptr, b_ptr, row_stride, n_cols, eps, BLOCK: tl.constexpr
):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    ok = offs < n_cols
    x = tl.load(x_ptr + pid * row_stride + offs, mask=ok, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + pid * row_stride + offs, mask=ok, other=0.0).to(tl.float32)
    s = x + r
    tl.store(sum_ptr + pid * row_stride + offs, s, mask=ok)
    mu = tl.sum(s, 0) / n_cols
    d = tl.where(ok, s - mu, 0.0)
    var = tl.sum(d * d, 0) / n_cols
    inv = 1.0 / tl.sqrt(var + eps)
    w = tl.load(w_ptr + offs, mask=ok, other=1.0)
    b = tl.load(b_ptr + offs, mask=ok, other=0.0)
    tl.store(y_ptr + pid * row_stride + offs, d * inv * w + b, mask=ok)


@triton.jit
def layer_norm_long(
    y_ptr, x_ptr, w_ptr, b_ptr, x_row_stride, y_row_stride, n, eps, BLOCK: tl.constexpr
):
    pid = tl.program_id(0)
    x_ptr += pid * x_row_stride
    y_ptr += pid * y_row_stride
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, n, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=0) / n
    sq = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, n, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
        x = tl.where(cols < n, x - mean, 0.0)
        sq += x * x
    rstd = 1 / tl.sqrt(tl.sum(sq, axis=0) / n + eps)
    for off in range(0, n, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        ok = cols < n
        w = tl.load(w_ptr + cols, mask=ok)
        b = tl.load(b_ptr + cols, mask=ok)
        x = tl.load(x_ptr + cols, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x - mean) * rstd * w + b, mask=ok)


@triton.jit
def group_norm(
    y_ptr, x_ptr, w_ptr, b_ptr, batch_stride, channel_stride, group_size, spatial, eps,
    BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    batch, group = tl.program_id(0), tl.program_id(1)
    channels = tl.arange(0, BLOCK_C)
    places = tl.arange(0, BLOCK_S)
    channel_ok = channels < group_size
    ok = channel_ok[:, None] & (places < spatial)[None, :]
    at = batch * batch_stride + (group * group_size + channels)[:, None] * channel_stride
    at = at + places[None, :]
    x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    count = group_size * spatial
    mean = tl.sum(tl.sum(x, 1), 0) / count
    d = tl.where(ok, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(tl.sum(d * d, 1), 0) / count + eps)
    w = tl.load(w_ptr + group * group_size + channels, mask=channel_ok, other=0.0)
    b = tl.load(b_ptr + group * group_size + channels, mask=channel_ok, other=0.0)
    tl.store(y_ptr + at, d * rstd * w[:, None] + b[:, None], mask=ok)


@triton.jit
def cosine_similarity(out_ptr, a_ptr, b_ptr, a_stride, b_stride, dim, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    dot = 0.0
    aa = 0.0
    bb = 0.0
    for start in range(0, dim, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + row * a_stride + k, mask=k < dim, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + row * b_stride + k, mask=k < dim, other=0.0).to(tl.float32)
        dot += tl.sum(a * b)
        aa += tl.sum(a * a)
        bb += tl.sum(b * b)
    tl.store(out_ptr + row, dot / tl.maximum(tl.sqrt(aa) * tl.sqrt(bb), 1e-8))


@triton.jit
def kl_divergence(out_ptr, p_ptr, q_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        log_q = tl.load(q_ptr + row * row_stride + cols, mask=inside, other=0.0)
        log_p = tl.load(p_ptr + row * row_stride + cols, mask=inside, other=0.0)
        total += tl.exp(log_p) * (log_p - log_q)
    tl.store(out_ptr + row, tl.sum(total, 0))


@triton.jit
def entropy(out_ptr, x_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * row_stride + cols, mask=inside, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    e = tl.exp(x - top)
    z = tl.sum(e, 0)
    weighted = tl.where(inside, e * (x - top), 0.0)
    tl.store(out_ptr + row, tl.log(z) - tl.sum(weighted, 0) / z)


@triton.jit
def cross_entropy_smoothed(
    loss_ptr, x_ptr, label_ptr, row_stride, n_cols, smoothing, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    label = tl.load(label_ptr + row)
    x_ptr += row * row_stride
    m = -float("inf")
    d = 0.0
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n_cols, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.where(offs < n_cols, x, 0.0))
        block_max = tl.max(x)
        m_new = tl.maximum(m, block_max)
        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
        m = m_new
    lse = m + tl.log(d)
    hit = tl.load(x_ptr + label).to(tl.float32)
    loss = (1.0 - smoothing) * (lse - hit) + smoothing * (lse - total / n_cols)
    tl.store(loss_ptr + row, loss)


@triton.jit
def mean_pool(
    out_ptr, x_ptr, length_ptr, batch_stride, token_stride, out_stride, dim,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(0)
    dims = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    length = tl.load(length_ptr + batch)
    acc = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    for start in range(0, length, BLOCK_T):
        tokens = start + tl.arange(0, BLOCK_T)
        ok = (tokens[:, None] < length) & (dims[None, :] < dim)
        at = batch * batch_stride + tokens[:, None] * token_stride + dims[None, :]
        acc += tl.load(x_ptr + at, mask=ok, other=0.0)
    total = tl.sum(acc, 0)
    tl.store(out_ptr + batch * out_stride + dims, total / length, mask=dims < dim)


@triton.jit
def matrix_vector(
    y_ptr, a_ptr, x_ptr, n_rows, n_cols, row_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        a = tl.load(
            a_ptr + rows[:, None] * row_stride + cols[None, :],
            mask=(rows[:, None] < n_rows) & (cols[None, :] < n_cols),
            other=0.0,
        )
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0)
        acc += tl.sum(a * x[None, :], axis=1)
    tl.store(y_ptr + rows, acc, mask=rows < n_rows)


@triton.jit
def batched_matmul_bias(
    c_ptr, a_ptr, b_ptr, bias_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + batch * stride_ab + rm[:, None] * stride_am + rk[None, :] * stride_ak
    b_tile = b_ptr + batch * stride_bb + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_tile, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        b = tl.load(b_tile, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_tile += BLOCK_K * stride_ak
        b_tile += BLOCK_K * stride_bk
    bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0)
    acc = acc + bias[None, :]
    at = c_ptr + batch * stride_cb + rm[:, None] * stride_cm + rn[None, :]
    tl.store(at, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def product_with_softmax(
    out_ptr, x_ptr, w_ptr, M, N, K, x_stride, w_stride, out_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    logits = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + rk
        x = tl.load(
            x_ptr + rm[:, None] * x_stride + k[None, :],
            mask=(rm[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        w = tl.load(
            w_ptr + rn[None, :] * w_stride + k[:, None],
            mask=(rn[None, :] < N) & (k[:, None] < K),
            other=0.0,
        )
        logits += tl.dot(x, w)
    logits = tl.where(rn[None, :] < N, logits, -float("inf"))
    e = tl.exp(logits - tl.max(logits, 1)[:, None])
    p = e / tl.sum(e, 1)[:, None]
    ok = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(out_ptr + rm[:, None] * out_stride + rn[None, :], p, mask=ok)


@triton.jit
def decode_attention(
    o_ptr, q_ptr, k_ptr, v_ptr, scale, q_stride, k_head_stride, k_stride, v_head_stride, v_stride,
    length, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + d).to(tl.float32) * scale
    m = -float("inf")
    z = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        ok = n < length
        k_at = k_ptr + head * k_head_stride + n[:, None] * k_stride + d[None, :]
        k = tl.load(k_at, mask=ok[:, None], other=0.0).to(tl.float32)
        s = tl.sum(q[None, :] * k, 1)
        s = tl.where(ok, s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, 0))
        p = tl.exp(s - m_new)
        alpha = tl.exp(m - m_new)
        v_at = v_ptr + head * v_head_stride + n[:, None] * v_stride + d[None, :]
        v = tl.load(v_at, mask=ok[:, None], other=0.0).to(tl.float32)
        z = z * alpha + tl.sum(p, 0)
        acc = acc * alpha + tl.sum(p[:, None] * v, 0)
        m = m_new
    tl.store(o_ptr + head * q_stride + d, acc / z)


@triton.jit
def attention_tile(
    o_ptr, q_ptr, k_ptr, v_ptr, scale, q_head_stride, q_stride, k_head_stride, k_stride,
    n_queries, n_keys, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    q_at = head * q_head_stride + rows[:, None] * q_stride + d[None, :]
    q = tl.load(q_ptr + q_at, mask=rows[:, None] < n_queries, other=0.0)
    m_i = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    l_i = tl.full((BLOCK_M,), 1.0, tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, n_keys, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_at = head * k_head_stride + keys[:, None] * k_stride + d[None, :]
        k = tl.load(k_ptr + k_at, mask=keys[:, None] < n_keys, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(keys[None, :] < n_keys, s, -float("inf"))
        m_ij = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_ij[:, None])
        alpha = tl.exp(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + k_at, mask=keys[:, None] < n_keys, other=0.0)
        acc += tl.dot(p.to(v.dtype), v)
        m_i = m_ij
    o = acc / l_i[:, None]
    tl.store(o_ptr + q_at, o.to(o_ptr.dtype.element_ty), mask=rows[:, None] < n_queries)


@triton.jit
def linear_attention(
    o_ptr, q_ptr, k_ptr, v_ptr, head_stride, row_stride, seq,
    BLOCK_T: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    d = tl.arange(0, D)
    t = tl.arange(0, BLOCK_T)
    state = tl.zeros((D, D), dtype=tl.float32)
    for start in range(0, seq, BLOCK_T):
        rows = start + t
        ok = (rows < seq)[:, None]
        at = head * head_stride + rows[:, None] * row_stride + d[None, :]
        q = tl.load(q_ptr + at, mask=ok, other=0.0)
        k = tl.load(k_ptr + at, mask=ok, other=0.0)
        v = tl.load(v_ptr + at, mask=ok, other=0.0)
        s = tl.dot(q, tl.trans(k))
        s = tl.where(t[:, None] >= t[None, :], s, 0.0)
        o = tl.dot(s.to(v.dtype), v) + tl.dot(q, state.to(q.dtype))
        state += tl.dot(tl.trans(k), v)
        tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty), mask=ok)


@triton.jit
def swiglu_down(
    out_ptr, gate_ptr, up_ptr, w_ptr, M, N, K, in_stride, w_stride, out_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        rk = start + tl.arange(0, BLOCK_K)
        row_ok = (rm[:, None] < M) & (rk[None, :] < K)
        at = rm[:, None] * in_stride + rk[None, :]
        g = tl.load(gate_ptr + at, mask=row_ok, other=0.0).to(tl.float32)
        u = tl.load(up_ptr + at, mask=row_ok, other=0.0).to(tl.float32)
        h = (g / (1.0 + tl.exp(-g)) * u).to(w_ptr.dtype.element_ty)
        w = tl.load(
            w_ptr + rk[:, None] * w_stride + rn[None, :],
            mask=(rk[:, None] < K) & (rn[None, :] < N),
            other=0.0,
        )
        acc = tl.dot(h, w, acc)
    ok = (rm[:, None] < M) & (rn[None, :] < N)
    out = acc.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rm[:, None] * out_stride + rn[None, :], out, mask=ok)


@triton.jit
def quantise_rows(q_ptr, scale_ptr, x_ptr, x_stride, q_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 0) / 127.0, 1e-6)
    q = tl.floor(x / scale + 0.5)
    tl.store(q_ptr + row * q_stride + cols, q, mask=cols < n_cols)
    tl.store(scale_ptr + row, scale)


@triton.jit
def minimum_of_rows(out_ptr, x_ptr, row_stride, col_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lowest = tl.full((BLOCK,), float("inf"), tl.float32)
    for start in range(0, n_cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + c * col_stride, mask=c < n_cols, other=float("inf"))
        lowest = tl.minimum(lowest, x.to(tl.float32))
    tl.store(out_ptr + row, tl.min(lowest, 0))


@triton.jit
def maximum_of_columns(
    out_ptr, x_ptr, n_rows, n_cols, row_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    best = tl.full((BLOCK_N,), -float("inf"), tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        x = tl.load(
            x_ptr + rows[:, None] * row_stride + cols[None, :],
            mask=(rows[:, None] < n_rows) & (cols[None, :] < n_cols),
            other=-float("inf"),
        )
        best = tl.maximum(best, tl.max(x.to(tl.float32), 0))
    tl.store(out_ptr + cols, best, mask=cols < n_cols)


@triton.jit
def huber_loss(out_ptr, x_ptr, y_ptr, n, delta, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    ok = offs < n
    x = tl.load(x_ptr + offs, mask=ok, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=ok, other=0.0).to(tl.float32)
    d = tl.abs(x - y)
    loss = tl.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    tl.store(out_ptr + pid, tl.sum(loss, 0))


@triton.jit
def binary_cross_entropy(out_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    ok = offs < n
    x = tl.load(x_ptr + offs, mask=ok, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=ok, other=0.0).to(tl.float32)
    loss = tl.maximum(x, 0.0) - x * y + tl.log(1.0 + tl.exp(-tl.abs(x)))
    tl.store(out_ptr + pid, tl.sum(tl.where(ok, loss, 0.0), 0))


@triton.jit
def embedding_bag(
    out_ptr, table_ptr, index_ptr, start_ptr, table_stride, out_stride, dim, BLOCK: tl.constexpr
):
    bag = tl.program_id(0)
    dims = tl.arange(0, BLOCK)
    ok = dims < dim
    first = tl.load(start_ptr + bag)
    last = tl.load(start_ptr + bag + 1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for at in range(first, last):
        token = tl.load(index_ptr + at)
        acc += tl.load(table_ptr + token * table_stride + dims, mask=ok, other=0.0)
    tl.store(out_ptr + bag * out_stride + dims, acc, mask=ok)


@triton.jit
def convolution_1d(y_ptr, x_ptr, w_ptr, length, width, x_stride, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for tap in range(0, width):
        source = t - tap
        w = tl.load(w_ptr + tap)
        inside = (source >= 0) & (t < length)
        acc += w * tl.load(x_ptr + row * x_stride + source, mask=inside, other=0.0)
    tl.store(y_ptr + row * y_stride + t, acc, mask=t < length)


@triton.jit
def transpose(
    y_ptr, x_ptr, n_rows, n_cols, x_stride, y_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ok = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None] * x_stride + cols[None, :], mask=ok, other=0.0)
    y_at = y_ptr + cols[:, None] * y_stride + rows[None, :]
    tl.store(y_at, tl.trans(x), mask=(cols[:, None] < n_cols) & (rows[None, :] < n_rows))


@triton.jit
def weighted_sum_backward(
    dw_ptr, dy_ptr, x_ptr, n_rows, n_cols, dy_stride, x_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_ok = cols < n_cols
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        ok = (rows < n_rows)[:, None] & col_ok[None, :]
        dy = tl.load(dy_ptr + rows[:, None] * dy_stride + cols[None, :], mask=ok, other=0.0)
        x = tl.load(x_ptr + rows[:, None] * x_stride + cols[None, :], mask=ok, other=0.0)
        acc += tl.sum(dy.to(tl.float32) * x.to(tl.float32), 0)
    tl.store(dw_ptr + cols, acc, mask=col_ok)


@triton.jit
def masked_softmax_scores(p_ptr, s_ptr, length_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    length = tl.load(length_ptr + row)
    s = tl.load(s_ptr + row * row_stride + cols, mask=inside, other=0.0).to(tl.float32)
    s = tl.where(inside & (cols < length), s, -1e30)
    e = tl.exp(s - tl.max(s, 0))
    tl.store(p_ptr + row * row_stride + cols, e / tl.sum(e, 0), mask=inside)


@triton.jit
def cumulative_logsumexp(y_ptr, x_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry_max = -1e30
    carry = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + cols, mask=cols < n_cols, other=-1e30)
        x = x.to(tl.float32)
        top = tl.maximum(carry_max, tl.max(x, 0))
        e = tl.cumsum(tl.exp(x - top), 0) + carry * tl.exp(carry_max - top)
        tl.store(y_ptr + row * row_stride + cols, top + tl.log(e), mask=cols < n_cols)
        carry = carry * tl.exp(carry_max - top) + tl.sum(tl.exp(x - top), 0)
        carry_max = top
