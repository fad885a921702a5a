"""Failing cases made smaller."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from ptxlint.dynamic.campaign.reduce import Reduction
from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.operators import Dim
from ptxlint.dynamic.runners import Compared, Outcome
from ptxlint.dynamic.runners.knowledge import Described

MATMUL = Described(
    "matmul", {"M": Dim(), "N": Dim(16, 1024, multiple=16), "K": Dim()}, ("float32",), {}
)


def outcome(case: Case, fails: Callable[[Case], str]) -> Outcome:
    kind = fails(case)
    return Outcome(case, "fail" if kind else "pass", kind)


def smallest(
    fails: Callable[[Case], str],
    budget: int = 40,
    takes: Callable[[Mapping[str, int]], bool] = lambda dims: True,
    **sizes: int,
) -> tuple[dict[str, int], int]:
    case = Case("matmul", "float32", {"M": 135, "N": 144, "K": 135, **sizes}, layout="offset")
    reduction = Reduction(MATMUL, outcome(case, fails), lambda c: outcome(c, fails), takes, budget)
    found = reduction.search()
    assert found.status == "fail"
    assert found.case.layout == "contiguous" or reduction.runs == budget or found.kind == "hang"
    return dict(found.case.dims), reduction.runs


@pytest.mark.parametrize(
    ("fails", "dims"),
    [
        (lambda case: "reference", {"M": 1, "N": 16, "K": 1}),
        (lambda case: "reference" if case.dims["K"] > 32 else "", {"M": 1, "N": 16, "K": 33}),
        (lambda case: "reference" if case.dims["N"] % 32 else "", {"M": 1, "N": 16, "K": 1}),
        (lambda case: "reference" if case.dims["N"] >= 48 else "", {"M": 1, "N": 48, "K": 1}),
        (
            lambda case: "reference" if case.dims["M"] & (case.dims["M"] - 1) else "",
            {"M": 3, "N": 16, "K": 1},
        ),
        # Another failure on the way is not the one that is made smaller.
        (
            lambda case: "raises" if case.dims["K"] == 1 else "reference",
            {"M": 1, "N": 16, "K": 2},
        ),
    ],
)  # fmt: skip
def test_the_smallest_sizes_are_found(fails: Callable[[Case], str], dims: dict[str, int]) -> None:
    assert smallest(fails)[0] == dims


def test_sizes_that_must_be_powers_of_two_become_smaller_ones() -> None:
    def takes(dims: Mapping[str, int]) -> bool:
        return dims["K"] & (dims["K"] - 1) == 0

    found, _ = smallest(lambda c: "reference" if c.dims["K"] > 20 else "", 40, takes, K=1024)
    assert found == {"M": 1, "N": 16, "K": 32}


def test_a_nan_does_not_become_a_number_that_is_slightly_off() -> None:
    def fails(case: Case) -> Outcome:
        odd = int(case.dims["K"] > 8 and case.values == "overflow")
        compared = (Compared("0", 9, 1, 0.5, 0.5, 9.0, nonfinite=odd),)
        return Outcome(case, "fail", "reference", compared=compared)

    case = Case("matmul", "float32", {"M": 135, "N": 144, "K": 135}, "overflow")
    found = Reduction(MATMUL, fails(case), fails, lambda dims: True).search()
    assert (found.case.dims["K"], found.case.values) == (9, "overflow")


def test_the_budget_is_kept() -> None:
    dims, runs = smallest(lambda case: "reference" if case.dims["K"] > 100 else "", 5)
    assert runs == 5
    assert dims["K"] > 100


def test_what_takes_long_is_tried_once_more_and_no_further() -> None:
    dims, runs = smallest(lambda case: "hang" if case.dims["M"] > 1 else "", 40)
    assert (dims, runs) == ({"M": 135, "N": 144, "K": 135}, 1)
    assert smallest(lambda case: "hang")[0] == {"M": 1, "N": 16, "K": 1}
