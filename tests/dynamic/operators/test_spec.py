"""What an operator's description accepts, and what it says of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.dynamic.operators import Dim, Domain, Operator, Size, SpecError, Tensor, Tolerance


def _same(x: Any) -> Any:
    return x


def _operator(**changed: Any) -> Operator:
    given: dict[str, Any] = {
        "kernel": _same,
        "reference": _same,
        "inputs": {"x": Tensor("rows", "n")},
        "dims": {"rows": Dim(1, 64), "n": Dim(8, 100, multiple=8)},
    }
    return Operator(**{**given, **changed})


@pytest.mark.parametrize(
    ("dim", "size", "nearest"),
    [
        (Dim(1, 64), 7, 7),
        (Dim(1, 64), 0, 1),
        (Dim(1, 64), 100, 64),
        (Dim(8, 100, multiple=8), 13, 16),
        (Dim(8, 100, multiple=8), 12, 16),
        (Dim(8, 100, multiple=8), 11, 8),
        (Dim(8, 100, multiple=8), 100, 96),
        (Dim(8, 100, multiple=8), 1, 8),
    ],
)
def test_the_allowed_size_next_to_one(dim: Dim, size: int, nearest: int) -> None:
    assert dim.nearest(size) == nearest
    assert dim.allows(nearest)


def test_shapes_follow_the_dimensions() -> None:
    tensor = Tensor("rows", lambda dims: 2 * dims["n"], 3)
    assert tensor.shape({"rows": 4, "n": 8}) == (4, 16, 3)


def test_sizes_that_go_together() -> None:
    operator = _operator(where=lambda dims: dims["rows"] <= dims["n"])
    assert operator.allows({"rows": 8, "n": 8})
    assert not operator.allows({"rows": 9, "n": 8})
    assert not operator.allows({"rows": 8, "n": 12})


def test_a_tolerance_for_all_or_by_dtype() -> None:
    one = Tolerance(absolute=1e-3)
    assert _operator(tolerance=one).tolerance_for("float16") == one
    by_dtype = _operator(tolerance={"float16": one})
    assert by_dtype.tolerance_for("float16") == one
    assert by_dtype.tolerance_for("float32") is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kernel": 3}, "kernel is not callable"),
        ({"inputs": {}}, "no inputs"),
        ({"inputs": {"x": Tensor("cols")}}, "x speaks of 'cols'; dims are rows, n"),
        ({"inputs": {"x": Tensor(3), "n": Size("m")}}, "n speaks of 'm'"),
        ({"inputs": {"i": Tensor(3, domain=Domain(below="m"))}}, "i speaks of 'm'"),
        ({"dtypes": ("int32",)}, "dtype 'int32' is none of"),
        ({"dtypes": ()}, "no dtypes"),
        ({"runs_on": "jax"}, "runs_on is 'jax'"),
        ({"writes": ("y",)}, "writes names 'y'"),
        ({"name": "softmax", "kernel": None}, "softmax: kernel"),
    ],
)
def test_what_is_wrong_is_said(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        _operator(**changed)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Dim(5, 3), "0 <= low <= high"),
        (lambda: Dim(5, 7, multiple=8), "no multiple of 8"),
        (lambda: Dim(1, 8, typical=9), "typical=9"),
        (lambda: Domain(1.0, 0.0), "low is above high"),
        (lambda: Tensor("n", layouts=("diagonal",)), "layout 'diagonal'"),
        (lambda: Tensor("n", dtype="float3"), "dtype 'float3'"),
        (lambda: Tolerance(relative=-1.0), "finite numbers from 0 on"),
        (lambda: Tensor(lambda dims: -1).shape({}), "an integer from 0 on"),
    ],
)
def test_parts_that_are_wrong(make: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        make()
