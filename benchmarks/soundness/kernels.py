"""Launches kernels of fixtures/kernels with tensors that end exactly where the kernel stops.

    ptxlint capture benchmarks/soundness/kernels.py --no-gpu --arch sm_90 --out BUNDLE

The launches are recorded, not made. Rows have gaps between them, so that a tensor ends behind its
last row and not behind its last stride. What is wrong by itself stands under "wrong" below; all
else becomes wrong by the seeds of seeds.py.
"""

import importlib.util
from pathlib import Path

import torch
import triton
import triton.language as tl

KERNELS = Path(__file__).resolve().parents[2] / "fixtures" / "kernels"
ROWS, COLUMNS, STRIDE = 7, 1000, 1008
N = 5000


def load(name):
    """A module of kernels by its path below fixtures/kernels."""
    spec = importlib.util.spec_from_file_location(
        f"soundness_{Path(name).name}", KERNELS / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flat(elements, dtype=torch.float32):
    """So many elements in memory of their own."""
    return torch.empty(elements, device="cuda", dtype=dtype)


def rows(count=ROWS, columns=COLUMNS, stride=STRIDE, dtype=torch.float32):
    """Rows with gaps; nothing behind the last."""
    return flat((count - 1) * stride + columns, dtype)


def indices(count, low, high, dtype=torch.int32):
    """Indices that the host knows, from `low` to `high`."""
    numbers = torch.arange(count, dtype=torch.int64) % (high - low + 1) + low
    return numbers.to(dtype).to("cuda")


def tiles(n, block=1024):
    """Programs for n elements."""
    return (triton.cdiv(n, block),)


@triton.jit
def first_of_rows(out_ptr, before_ptr, x_ptr, behind_ptr, stride):
    """The start of a row is worked out in 32 bits; two tensors lie around the one that is read."""
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.load(x_ptr + row * stride))


@triton.jit
def first_of_rows_wide(out_ptr, before_ptr, x_ptr, behind_ptr, stride):
    row = tl.program_id(0).to(tl.int64)
    tl.store(out_ptr + row, tl.load(x_ptr + row * stride))


elementwise = ("relu", "sigmoid", "tanh", "elu", "gelu", "silu", "leaky_relu")
for number, name in enumerate(elementwise):
    kernel = getattr(load(name), f"{name}_kernel")
    dtype = (torch.float32, torch.float16, torch.bfloat16)[number % 3]
    kernel[tiles(N)](flat(N, dtype), flat(N, dtype), N, BLOCK=1024)

for name in ("softmax", "l2norm", "rmsnorm"):
    kernel = getattr(load(name), f"{name}_kernel")
    weight = (flat(COLUMNS),) if name == "rmsnorm" else ()
    eps = () if name == "softmax" else (1e-6,)
    kernel[(ROWS,)](rows(), rows(), *weight, STRIDE, STRIDE, COLUMNS, *eps, BLOCK=1024)

guards, masks, loops = load("twins/guards"), load("twins/masks"), load("twins/loops")
serving, launches, tails = load("twins/serving"), load("twins/launches"), load("twins/tails")
idioms, atomics, scan = load("clean_idioms"), load("atomics"), load("scan")

# Right for whole tiles alone.
for kernel in (guards.map_bare_load, guards.map_bare_store, masks.stride_loop_bare_load):
    kernel[(4,)](flat(4096), flat(4096), 4096, BLOCK=1024)
for kernel in (masks.exact_tile, elementwise and load("twins/elementwise").scale_exact_tile):
    factor = () if kernel is masks.exact_tile else (2.0,)
    kernel[(4,)](flat(4096), flat(4096), *factor, BLOCK=1024)
masks.row_bare_store[(ROWS,)](rows(columns=1024, stride=1040), 1040, 1024, BLOCK=1024)
masks.chunks_bare_load[(ROWS,)](
    rows(columns=1024, stride=1040), rows(columns=1024, stride=1040), 1040, 1024, BLOCK=256
)

for kernel in (
    guards.map_masked,
    masks.stride_loop_masked,
    masks.whole_tiles_first,
    loops.persistent_scale,
):
    kernel[tiles(N)](flat(N), flat(N), N, BLOCK=1024)
guards.scale_exact[tiles(N)](flat(N), N, BLOCK=1024)
masks.row_masked[(ROWS,)](rows(), STRIDE, COLUMNS, BLOCK=1024)
masks.chunks_masked[(ROWS,)](flat(ROWS), rows(), STRIDE, COLUMNS, BLOCK=256)
masks.lengths_of_sequences[tiles(N)](flat(N), indices(N + 1, 0, N), N, BLOCK=1024)
masks.padded_rows[(ROWS,)](flat(6 * 1024 + 999), flat(6 * 1024 + 999), 999, BLOCK=1024)
masks.transpose[(3, 5)](
    flat(149 * 96 + 90), flat(89 * 160 + 150), 160, 96, 90, 150, BLOCK=32, num_warps=4
)
serving.dropout[tiles(N)](flat(N), flat(N), N, 0.5, 7, BLOCK=1024)
serving.gated[(ROWS, 4)](flat(ROWS * COLUMNS), flat(2 * ROWS * COLUMNS), COLUMNS, BLOCK=256)
serving.persistent_softmax[(3,)](rows(), rows(), STRIDE, ROWS, COLUMNS, BLOCK=1024)
serving.quantise_rows[(ROWS,)](
    rows(dtype=torch.int8), flat(ROWS), rows(), STRIDE, COLUMNS, BLOCK=1024
)
serving.largest[(ROWS,)](
    flat(ROWS * 4), flat(ROWS * 4, torch.int32), rows(), STRIDE, COLUMNS, K=4, BLOCK=1024
)
serving.rotate_heads[(ROWS,)](
    rows(columns=6 * 64, stride=400), flat(ROWS * 32), flat(ROWS * 32), 400, 6, D=64
)
serving.norm_backward_sums[(16,)](
    flat(COLUMNS), flat(5 * COLUMNS), 5, COLUMNS, BLOCK_M=32, BLOCK_N=64
)
serving.embedding[(9, 4)](
    flat(9 * COLUMNS), flat(50 * COLUMNS), indices(9, 0, 49), 9, COLUMNS, BLOCK=256
)
serving.write_cache[(9,)](
    flat(50 * COLUMNS), flat(9 * COLUMNS), indices(9, 0, 49, torch.int64), COLUMNS, BLOCK=1024
)
serving.image_columns[(10, 2)](
    flat(17 * 19 * 45), flat(5 * 17 * 19), 17, 19, 5, 19, 17 * 19, 45, 3, BLOCK_M=32, BLOCK_N=64
)
launches.gather[tiles(N)](flat(N), flat(N), indices(N, 0, N - 1), N, BLOCK=1024)
launches.shift_line[tiles(N)](flat(N), flat(N), 0, N, BLOCK=1024)
launches.scale_line[(4,)](flat(4096), flat(4096), 2.0, BLOCK=1024)
launches.copy_heads[(1, 1, 12)](flat(12 * COLUMNS), flat(12 * COLUMNS), COLUMNS, BLOCK=1024)
launches.sum_halves[(2,)](flat(2048), flat(2748), 700, BLOCK=1024)
for kernel in (tails.sum_fill_zero, tails.maximum_fill_infinity, tails.sum_of_exponentials_inside):
    kernel[(ROWS,)](flat(ROWS), rows(), STRIDE, COLUMNS, BLOCK=1024)
tails.argmax_fill_infinity[(ROWS,)](flat(ROWS, torch.int32), rows(), STRIDE, COLUMNS, BLOCK=1024)
tails.variance_in_chunks[(ROWS,)](flat(ROWS), rows(), STRIDE, COLUMNS, BLOCK=256)

idioms.zero_fill_kernel[(ROWS,)](flat(ROWS), flat(ROWS), rows(), STRIDE, COLUMNS, BLOCK=1024)
idioms.welford_kernel[(ROWS,)](flat(ROWS), flat(ROWS), rows(), STRIDE, COLUMNS, BLOCK=1024)
idioms.grid_stride_sincos_kernel[(3,)](flat(N), flat(N), flat(N), N, BLOCK=256)
idioms.wrapped_matmul_kernel[(2, 2)](
    flat(99 * 80 + 70, torch.float16),
    flat(99 * 72 + 64, torch.float16),
    flat(63 * 80 + 70, torch.float16),
    100,
    70,
    64,
    72,
    80,
    80,
    BLOCK_M=64,
    BLOCK_N=64,
    BLOCK_K=32,
)
atomics.histogram_kernel[tiles(N)](flat(100, torch.int32), indices(N, 0, 99), N, 100, BLOCK=1024)
atomics.segment_sum_kernel[tiles(N)](
    flat(100), flat(100), flat(N), indices(N, 0, 99), N, 100, BLOCK=1024
)
atomics.ticket_sum_kernel[tiles(N)](
    flat(1),
    flat(5),
    torch.zeros(1, device="cuda", dtype=torch.int32),
    flat(N),
    N,
    BLOCK=1024,
    BLOCK_PARTIALS=256,
)
scan.cumsum_kernel[(ROWS,)](rows(), rows(), STRIDE, STRIDE, COLUMNS, BLOCK=256)
scan.decay_scan_kernel[(ROWS,)](rows(), rows(), rows(), STRIDE, COLUMNS, BLOCK=256)
load("rope").rope_kernel[(ROWS,)](
    flat(6 * 784 + 5 * 144 + 128),
    flat(6 * 784 + 5 * 144 + 128),
    flat(6 * 80 + 64),
    flat(6 * 80 + 64),
    784,
    144,
    80,
    6,
    64,
    INVERSE=False,
    BLOCK_H=4,
    BLOCK_D=64,
)
norm = load("layer_norm")
norm.layer_norm_fwd_kernel[(ROWS,)](
    rows(),
    rows(),
    flat(COLUMNS),
    flat(COLUMNS),
    flat(ROWS),
    flat(ROWS),
    STRIDE,
    STRIDE,
    COLUMNS,
    1e-5,
    BLOCK=1024,
)
norm.layer_norm_bwd_kernel[(3,)](
    rows(),
    rows(3),
    rows(3),
    rows(),
    rows(),
    flat(COLUMNS),
    flat(ROWS),
    flat(ROWS),
    STRIDE,
    STRIDE,
    STRIDE,
    STRIDE,
    ROWS,
    COLUMNS,
    3,
    BLOCK=1024,
)
norm.layer_norm_bwd_reduce_kernel[(16,)](
    flat(COLUMNS), flat(COLUMNS), rows(5), rows(5), STRIDE, 5, COLUMNS, BLOCK_M=32, BLOCK_N=64
)
entropy = load("cross_entropy")
entropy.cross_entropy_fwd_kernel[(ROWS,)](
    flat(ROWS),
    flat(ROWS),
    rows(),
    indices(ROWS, 0, COLUMNS - 1, torch.int64),
    STRIDE,
    COLUMNS,
    -100,
    BLOCK=256,
)
entropy.cross_entropy_bwd_kernel[(ROWS, 4)](
    rows(),
    flat(ROWS),
    flat(ROWS),
    rows(),
    indices(ROWS, 0, COLUMNS - 1, torch.int64),
    STRIDE,
    STRIDE,
    COLUMNS,
    -100,
    BLOCK=256,
)
load("attention").attention_kernel[(ROWS, 2)](
    flat(1000 + 6 * 80 + 50),
    flat(1000 + 6 * 80 + 50),
    flat(9000 + 99 * 80 + 50),
    flat(9000 + 99 * 80 + 50),
    1000,
    9000,
    80,
    80,
    100,
    50,
    BLOCK_N=128,
    BLOCK_D=64,
)
load("matmul").matmul_kernel[(4, 3)](
    flat(99 * 80 + 70),
    flat(99 * 48 + 40),
    flat(39 * 80 + 70),
    100,
    70,
    40,
    48,
    80,
    80,
    BLOCK_M=32,
    BLOCK_N=32,
)
for dtype in (torch.float16, torch.float32):
    load("matmul_dot").matmul_dot_kernel[(4,)](
        flat(99 * 80 + 70, dtype),
        flat(99 * 48 + 40, dtype),
        flat(39 * 80 + 70, dtype),
        100,
        70,
        40,
        48,
        1,
        80,
        1,
        80,
        1,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
        GROUP_M=8,
        PRECISION="tf32",
        ACC=triton.language.float32,
    )
half = torch.float16
load("flash_attention_dot").flash_fwd_kernel[(2, 3)](
    flat(2 * 8000 + 99 * 80 + 64, half),
    flat(300),
    flat(2 * 8000 + 99 * 80 + 64, half),
    flat(2 * 8000 + 99 * 80 + 64, half),
    flat(2 * 8000 + 99 * 80 + 64, half),
    0.125,
    8000,
    80,
    100,
    CAUSAL=True,
    D=64,
    BLOCK_M=64,
    BLOCK_N=64,
)
load("int4_gemm").int4_gemm_kernel[(7, 2)](
    flat(99 * 96 + 80, half),
    flat(99 * 272 + 256, half),
    flat(31 * 96 + 80, torch.int32),
    flat(96 + 80, half),
    flat(96 + 80, half),
    100,
    80,
    256,
    272,
    96,
    96,
    96,
    GROUP=128,
    BLOCK_M=16,
    BLOCK_N=64,
    BLOCK_K=64,
)
load("moe_gemm").moe_gemm_kernel[(3, 2)](
    flat(49 * 80 + 70, half),
    flat(24 * 48 + 40, half),
    flat(3 * 4000 + 69 * 48 + 40, half),
    flat(50, half),
    indices(192, 0, 60),
    indices(3, 0, 3),
    50,
    70,
    40,
    48,
    4000,
    48,
    80,
    TOP_K=2,
    BLOCK_M=64,
    BLOCK_N=64,
    BLOCK_K=32,
)

# Wrong as they are: by their masks, their strides, their numbers.
guards.scale_off_by_one[tiles(N)](flat(N), N, BLOCK=1024)
masks.chunks_off_by_one[(ROWS,)](rows(), rows(), STRIDE, COLUMNS, BLOCK=256)
masks.rows_off_by_one[(1, 8)](rows(), STRIDE, ROWS, COLUMNS, BLOCK=128)
launches.shift_line[tiles(N)](flat(N), flat(N), 2, N, BLOCK=1024)
launches.shift_line[tiles(N)](flat(N), flat(N), -2, N, BLOCK=1024)
guards.map_bare_load[tiles(N)](flat(N), flat(N), N, BLOCK=1024)
guards.map_bare_store[tiles(N)](flat(N), flat(N), N, BLOCK=1024)
for low, high in ((0, N), (-1, N - 1)):
    launches.gather[tiles(N)](flat(N), flat(N), indices(N, low, high), N, BLOCK=1024)
serving.embedding[(9, 4)](
    flat(9 * COLUMNS), flat(50 * COLUMNS), indices(9, 42, 50), 9, COLUMNS, BLOCK=256
)
launches.copy_heads[(1, 1, 65_536)](flat(65_536 * 8), flat(65_536 * 8), 8, BLOCK=1024)
launches.copy_heads_wide[(65_536,)](flat(65_536 * 8), flat(65_536 * 8), 8, BLOCK=1024)

# Numbers that just fit their word, and numbers that do not.
for count in (524_288, 524_289):
    launches.copy_rows[(count,)](flat(count * 4096), flat(count * 4096), 4096, 4096, BLOCK=4096)
launches.copy_rows_wide[(524_289,)](
    flat(524_289 * 4096), flat(524_289 * 4096), 4096, 4096, BLOCK=4096
)
for kernel, lines in (
    (launches.copy_tiles, 16_743),
    (launches.copy_tiles, 16_744),
    (launches.copy_tiles_wide, 16_744),
):
    kernel[(triton.cdiv(lines, 64), 2004)](
        flat(lines * 128_256, torch.bfloat16),
        flat(lines * 128_256, torch.bfloat16),
        lines,
        128_256,
        128_256,
        BLOCK_M=64,
        BLOCK_N=64,
    )
for kernel, n in (
    (launches.fill, 2**31),
    (launches.fill, 2**31 + 1024),
    (launches.fill_wide, 2**31 + 1024),
):
    kernel[tiles(n)](flat(n), 1.0, n, BLOCK=1024)
# A wrap that lands in another tensor: half a word's range from where it should, 4 GiB away.
for kernel, count in (
    (first_of_rows, 524_288),
    (first_of_rows, 524_289),
    (first_of_rows_wide, 524_289),
):
    elements = (count - 1) * 4096 + 1
    kernel[(count,)](
        flat(count, torch.float16),
        flat(2**32, torch.float16),
        flat(elements, torch.float16),
        flat(2**32, torch.float16),
        4096,
    )
print("done")
