"""References as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.oracle.reference import ReferenceFailedError, evaluate

X = {"x": np.array([1.0, 4.0])}


@pytest.mark.parametrize(
    ("returned", "count"),
    [
        (np.ones(2, dtype=np.float32), 1),
        ((np.ones(2), 3), 2),
        ([np.ones(2), np.ones((), dtype=np.int32)], 2),
        (1.5, 1),
    ],
)
def test_what_may_be_returned(returned: Any, count: int) -> None:
    out = evaluate(lambda x: returned, X)
    assert len(out) == count
    assert {array.dtype.name for array in out} <= {"float64", "int64", "int32"}


def test_a_reference_may_divide_by_zero_and_write_into_its_inputs() -> None:
    def reference(x: Any) -> Any:
        x -= 1
        return 1 / x

    assert evaluate(reference, X)[0].tolist() == [np.inf, 1 / 3]
    assert X["x"].tolist() == [1.0, 4.0]


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        (lambda x: {}["y"], "KeyError: 'y'"),
        (lambda y: y, "TypeError: .* unexpected keyword argument 'x'"),
        (lambda x: "text", "returns a str as output 0"),
        (lambda x: (x, None), "returns a NoneType as output 1"),
    ],
)
def test_what_fails(reference: Any, words: str) -> None:
    with pytest.raises(ReferenceFailedError, match=words):
        evaluate(reference, X)
