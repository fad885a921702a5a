"""Operators from a function, a reference and example arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.operators import Dim, Domain, Size, SpecError, Tensor, Value
from ptxlint.dynamic.operators.triple import triple
from ptxlint.dynamic.runners.execution import run_case
from ptxlint.dynamic.runners.on_host import HostRunner

F32, I64 = np.float32, np.int64


def gather(x: Any, index: Any, scale: float, n: int) -> Any:
    return x[:, index] * x.dtype.type(scale) + x.dtype.type(n)


EXAMPLE = [np.ones((4, 7), F32), np.array([0, 3, 2]), 0.5, 7]


def test_dimensions_come_from_the_sizes_of_examples() -> None:
    spec = triple(gather, gather, EXAMPLE)
    assert dict(spec.dims) == {
        "x.0": Dim(1, 8, typical=4),
        "x.1": Dim(1, 14, typical=7),
        "index.0": Dim(1, 6, typical=3),
    }
    assert dict(spec.inputs) == {
        "x": Tensor("x.0", "x.1"),
        "index": Tensor("index.0", dtype="int64", domain=Domain(0, 3)),
        "scale": Value(0.5),
        "n": Size("x.1"),
    }
    assert (spec.dtypes, spec.runs_on, spec.name) == (("float32",), "numpy", "")


def test_equal_sizes_are_one_dimension_and_ones_stay() -> None:
    spec = triple(np.matmul, np.matmul, [np.ones((5, 5), F32), np.ones((5, 1), F32)])
    assert list(spec.dims) == ["x1.0"]
    assert [given.axes for given in spec.inputs.values() if isinstance(given, Tensor)] == [
        ("x1.0", "x1.0"),
        ("x1.0", 1),
    ]


def test_right_and_wrong_functions_are_told_apart() -> None:
    def wrong(x: Any, index: Any, scale: float, n: int) -> Any:
        return gather(x, index, scale, n - 1)

    for function, status in ((gather, "pass"), (wrong, "fail")):
        spec = triple(function, gather, EXAMPLE, domains={"index": Domain(0, 3)}, name="gather")
        case = Case("gather", "float32", {"x.0": 3, "x.1": 9, "index.0": 5})
        assert run_case(spec, HostRunner(), case).status == status


def test_arguments_by_name_and_functions_without_names() -> None:
    spec = triple(gather, gather, {"index": EXAMPLE[1], "n": 2, "x": EXAMPLE[0], "scale": 1.0})
    case = Case("", "float32", dict.fromkeys(spec.dims, 4))
    assert run_case(spec, HostRunner(), case).status == "pass"
    largest = triple(max, max, [np.ones((), F32), 0.5])
    assert list(largest.inputs) == ["argument 0", "argument 1"]
    assert run_case(largest, HostRunner(), Case("", "float32", {})).status == "pass"


def test_types() -> None:
    def three(x: Any, y: Any, m: Any) -> Any:
        return x

    halves = [np.ones(3, np.float16), np.ones(3, np.float16), np.ones(3, np.bool_)]
    spec = triple(three, three, halves)
    assert spec.dtypes == ("float16",)
    assert spec.inputs["m"] == Tensor("x.0", dtype="bool")
    mixed = triple(three, three, [*halves[:2], np.ones(3, np.float32)])
    assert mixed.inputs["m"] == Tensor("x.0", dtype="float32")
    wide = triple(three, three, halves, dtypes=("float32", "float16"))
    assert wide.inputs["x"] == Tensor("x.0")


@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        ([1, 2.0, 3, 4], {}, "hold no tensor or array"),
        (np.ones(3), {}, "are a ndarray; give a list or a dict"),
        ([np.array(["a"]), 1, 2, 3], {}, "elements of <U1"),
        ([np.ones(3, np.complex64), 1, 2, 3], {}, "elements of complex64, which no case can hold"),
        (EXAMPLE, {"domains": {"y": Domain(0)}}, "domains speaks of 'y'"),
        (EXAMPLE, {"dtypes": ("int8",)}, "dtype 'int8' is none of"),
    ],
)
def test_what_makes_no_operator(arguments: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        triple(gather, gather, arguments, **more)


def test_a_reference_of_torch_gets_tensors_in_float64() -> None:
    torch = pytest.importorskip("torch")
    seen = []

    def reference(x: Any) -> Any:
        seen.append((x.dtype, x.requires_grad))
        return torch.relu(x)

    spec = triple(torch.relu, reference, [torch.ones(3, dtype=torch.float16)])
    assert (spec.runs_on, spec.dtypes) == ("triton", ("float16",))
    assert spec.reference(**dict.fromkeys(spec.inputs, np.array([-1.0, 2.0]))).tolist() == [0, 2]
    assert seen == [(torch.float64, False)]
    eight = triple(torch.relu, reference, [torch.ones(3).to(torch.float8_e4m3fn)])
    (held,) = eight.inputs.values()
    assert (held.dtype, held.domain) == ("float8_e4m3fn", Domain())
