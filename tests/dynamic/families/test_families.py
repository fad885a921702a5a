"""Every family is whole, and its cases are ones that an operator takes."""

from __future__ import annotations

from itertools import islice

import pytest

from ptxlint.dynamic.cases.checks import CHECKS
from ptxlint.dynamic.families import Family, Known
from ptxlint.dynamic.families.registry import FIRST, all_families, deciding
from ptxlint.dynamic.operators import Dim
from ptxlint.dynamic.operators.spec import FREE, LAYOUTS
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge
from ptxlint.rulekit import FAMILIES

NORM = Described(
    "norm", {"rows": Dim(1, 4096), "n": Dim(1, 8192)}, ("float32", "float16"),
    {"x": ("rows", "n"), "w": ("n",)}, ("padded-rows", "transposed"),
)  # fmt: skip
MATMUL = Described(
    "matmul", {"M": Dim(), "N": Dim(16, 1024, multiple=16), "K": Dim(1, 512)}, ("float16",),
    {"a": ("M", "K"), "b": ("K", "N")},
)  # fmt: skip
TILED = KernelKnowledge(
    "matmul_kernel", "0", "sm_90", {"BLOCK_M": "64", "BLOCK_K": "32", "FAST": "True"},
    grids=((1, 9, 1),), scalars=(5, 131, 144),
)  # fmt: skip
WITHOUT_DECISION = {"launch-limit", "resources"}
"""Static families that no run decides."""


def test_all_of_the_families_are_there() -> None:
    assert next(iter(all_families())) == FIRST
    assert set(all_families()) == {
        "semantics", "tail-mask", "block-divisibility", "accumulation", "rescale", "scale",
        "constants", "precision", "exp-range", "masked-rows", "zero-rows", "strides", "aliasing",
        "duplicate-writers", "uninitialised-output", "out-of-bounds", "autotune-rerun",
    }  # fmt: skip


@pytest.mark.parametrize("static", sorted(FAMILIES - WITHOUT_DECISION))
def test_something_decides_each_static_family(static: str) -> None:
    assert deciding(static)


def test_who_names_a_family_first_comes_first() -> None:
    assert [family.id for family in deciding("guard")] == ["out-of-bounds", "tail-mask"]
    assert [family.id for family in deciding("bounds")] == ["out-of-bounds"]
    # Of two that name it first, the one that is called so.
    assert [family.id for family in deciding("tail-mask")] == ["tail-mask", "block-divisibility"]


def test_neither_sizes_nor_values_wait_for_the_others_to_end() -> None:
    cases = list(all_families()["tail-mask"].cases(Known(NORM, (TILED,), "float32")))
    first = cases[0].dims
    assert [case.values for case in cases[:3]] == ["graded", "negative", "graded"]
    assert [case.dims == first for case in cases[:3]] == [True, True, False]
    sizes = {tuple(case.dims.items()) for case in cases}
    assert len(cases) == len(sizes) * 3


@pytest.mark.parametrize("family", all_families().values(), ids=str)
@pytest.mark.parametrize("described", [NORM, MATMUL], ids=lambda described: described.name)
@pytest.mark.parametrize("kernels", [(), (TILED,)], ids=["unknown", "tiled"])
def test_cases_are_distinct_and_within_bounds(
    family: type[Family], described: Described, kernels: tuple[KernelKnowledge, ...]
) -> None:
    cases = list(family.cases(Known(described, kernels, "float16", 7, (1000,))))
    assert len({case.key for case in cases}) == len(cases)
    assert cases or family.id == "strides"
    for case in cases:
        assert all(dim.allows(case.dims[name]) for name, dim in described.dims.items())
        assert (case.dtype, case.seed, case.family) == ("float16", 7, family.id)
        assert set(case.checks) <= set(CHECKS)
        assert case.layout in (*LAYOUTS, FREE)


def test_strides_try_what_the_spec_allows_and_nothing_else() -> None:
    family = all_families()["strides"]
    layouts = [case.layout for case in family.cases(Known(NORM, (), "float32"))]
    assert layouts == ["padded-rows", "transposed"]
    assert not list(family.cases(Known(MATMUL, (), "float32")))


def test_families_for_kernels_leave_numpy_alone() -> None:
    known = Known(NORM._replace(runs_on="numpy"), (), "float32")
    assert not list(all_families()["autotune-rerun"].cases(known))


def test_metadata_is_checked_when_a_family_is_made() -> None:
    with pytest.raises(TypeError, match=r"`why` is missing"):

        class Half(Family):
            id = "half"
            summary = "Half a family."
            decides = ("guard",)

    with pytest.raises(TypeError, match=r"'mask' is none of .*tail-mask") as told:

        class Wrong(Family):
            id = "Wrong"
            summary = "No sentence"
            why = "It is wrong."
            decides = ("mask",)
            checks = ("luck",)

    assert "not kebab-case" in str(told.value)
    assert "`summary` is no sentence" in str(told.value)
    assert "'luck' is none of" in str(told.value)


def test_what_works_in_place_is_run_in_other_orders_once() -> None:
    family = all_families()["semantics"]
    described = NORM._replace(in_place=True)
    plain, other = islice(family.cases(Known(described, (), "float32")), 2)
    assert "programs" in other.checks
    assert "programs" not in plain.checks
    assert all("programs" not in c.checks for c in family.cases(Known(NORM, (), "float32")))
