"""Sizes reach the ends of tiles."""

from __future__ import annotations

from ptxlint.dynamic.families.shapes import (
    around_tiles,
    elements,
    growing,
    rich,
    several_tiles,
    tiles,
    told,
)
from ptxlint.dynamic.operators import Dim
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge

SOFTMAX = Described(
    "softmax", {"rows": Dim(1, 4096), "n": Dim(1, 8192)}, ("float32",), {"x": ("rows", "n")}
)
GELU = Described("gelu", {"n": Dim(1, 1 << 24)}, ("float32",), {"x": ("n",)})
MATMUL = Described(
    "matmul", {"M": Dim(), "N": Dim(), "K": Dim()}, ("float32",), {"a": ("M", "K"), "b": ("K", "N")}
)
ATTENTION = Described(
    "attention", {"H": Dim(1, 64), "S": Dim(1, 4096), "D": Dim(1, 128)}, ("float32",),
    {"q": ("H", "S", "D"), "k": ("H", "S", "D")},
)  # fmt: skip
ROW_KERNEL = KernelKnowledge(
    "softmax_kernel", "0", "sm_90", {"BLOCK": "256"}, grids=((5, 1, 1),), scalars=(131,)
)
TILE_KERNEL = KernelKnowledge(
    "matmul_kernel", "0", "sm_90", {"BM": "64", "BN": "64", "BK": "32", "EVEN": "False"},
    grids=((1, 3, 1),), scalars=(5, 131),
)  # fmt: skip
FLASH = KernelKnowledge(
    "flash", "0", "sm_90", {"BN": "64", "BD": "128"}, grids=((5, 3, 1),), scalars=(5, 97)
)


def test_sizes_without_knowledge_are_odd_and_many() -> None:
    assert rich(SOFTMAX) == {"rows": 5, "n": 131}
    assert rich(GELU) == {"n": 2503}
    assert rich(MATMUL) == {"M": 5, "N": 131, "K": 131}
    assert rich(ATTENTION) == {"H": 3, "S": 5, "D": 97}


def test_sizes_that_come_in_multiples_take_an_odd_number_of_them() -> None:
    described = SOFTMAX._replace(dims={"rows": Dim(4, 4), "n": Dim(16, 4096, multiple=16)})
    assert rich(described) == {"rows": 4, "n": 9 * 16}


def test_tiles_are_powers_of_two_among_constants() -> None:
    assert tiles([TILE_KERNEL, ROW_KERNEL]) == (256, 64, 32)


def test_a_tile_that_grows_with_a_row_asks_for_nothing() -> None:
    assert several_tiles(SOFTMAX, [ROW_KERNEL], rich(SOFTMAX)) == rich(SOFTMAX)


def test_fixed_tiles_get_several_rounds_and_a_part() -> None:
    ran = rich(MATMUL)
    assert told(MATMUL, [TILE_KERNEL], ran) == ("M", "N", "K")
    assert several_tiles(MATMUL, [TILE_KERNEL], ran) == {"M": 135, "N": 135, "K": 135}


def test_a_size_that_no_kernel_is_told_stays() -> None:
    # The keys of flash attention are walked in tiles, its heads are programs.
    raised = several_tiles(ATTENTION, [FLASH], rich(ATTENTION))
    assert raised == {"H": 3, "S": 135, "D": 97}


def test_sizes_around_a_tile() -> None:
    seen = [sizes["n"] for sizes in around_tiles(SOFTMAX, [ROW_KERNEL], (1000,))]
    assert seen == [131, 257, 255, 3, 256, 1, 1000]


def test_growing_sizes_take_rounds() -> None:
    seen = [sizes["K"] for sizes in growing(MATMUL, [TILE_KERNEL])]
    assert seen == [3 * 64 + 5, 5 * 64 + 5, 2 * 64 + 5]


def test_tensors_stay_affordable() -> None:
    huge = KernelKnowledge("k", "0", "sm_90", {"B": "4096"}, scalars=(5, 131))
    for sizes in growing(MATMUL, [huge], (9, 17)):
        assert elements(MATMUL, sizes) <= 1 << 21


def test_a_kernel_that_walks_all_elements_gets_more_than_one_program() -> None:
    flat = KernelKnowledge("gelu", "0", "sm_90", {"BLOCK": "1024"}, scalars=(655,))
    ran = rich(SOFTMAX)
    assert told(SOFTMAX, [flat], ran) == ("n",)
    assert several_tiles(SOFTMAX, [flat], ran) == {"rows": 5, "n": 2055}
