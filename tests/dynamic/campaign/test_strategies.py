"""Strategies choose sizes and values by what they may look at, and give as many cases as asked."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.dynamic.campaign.adequacy import notes
from ptxlint.dynamic.campaign.strategies import CASES, STRATEGIES, cases
from ptxlint.dynamic.operators import Dim
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge

NORM = Described(
    "norm", {"rows": Dim(1, 4096), "n": Dim(1, 8192)}, ("float32",), {"x": ("rows", "n")}
)


def kernel(**more: Any) -> KernelKnowledge:
    return KernelKnowledge("norm_kernel", "0", "sm_90", {"BLOCK": "256"}, scalars=(131,), **more)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_gives_so_many_distinct_inputs(strategy: str) -> None:
    made = cases(strategy, NORM, (kernel(),), "float32", takes=lambda dims: dims["n"] != 17)
    assert len(made) == CASES == len({case.inputs_key for case in made})
    assert all(case.dims["n"] != 17 for case in made)
    assert {case.checks for case in made} == {("reference",)}


def test_targeted_is_the_minimum_run_with_other_seeds() -> None:
    made = cases("targeted", NORM, (kernel(),), "float32")
    assert {(case.dims["n"], case.values) for case in made} == {(131, "graded")}
    assert [case.seed for case in made] == list(range(CASES))


def test_a_fixed_tile_is_targeted_by_several_of_it() -> None:
    tiled = kernel()._replace(constants={"BLOCK": "64"})
    assert {case.dims["n"] for case in cases("targeted", NORM, (tiled,), "float32")} == {135}


def test_a_kernel_that_had_several_programs_once_is_not_said_to_have_run_alone() -> None:
    first = kernel(grids=((1, 1, 1),))
    again = kernel(grids=((1, 1, 1), (11, 1, 1)))
    told = "norm_kernel ran with one program"
    assert told in notes(NORM, [first], {"rows": 1, "n": 131})
    assert told not in notes(NORM, [first, again], {"rows": 5, "n": 2055})
