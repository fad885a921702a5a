"""Pairs of files with a function of the same name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.operators import Dim, SpecError, Tensor, Value
from ptxlint.dynamic.operators.tritonbench import tritonbench
from ptxlint.dynamic.runners.execution import run_case
from ptxlint.dynamic.runners.on_host import HostRunner

TRUSTED = """
import numpy as np

def helper(x):
    return x

def scaled_sum(x, y, alpha=1.0):
    return x + y * alpha

{line}

def test_scaled_sum():
    results = {{}}
    x, y = np.ones((3, 5), np.float32), np.ones(5, np.float32)
    try:
        results["case 1"] = scaled_sum(x, y, alpha=0.5)
    except Exception:
        pass
    raise AssertionError("a test went on")

results = test_scaled_sum()
""".format(line="#" * 80)
TESTED = """
import numpy as np

def scaled_sum(x, y, alpha=1.0):
    return x + y * np.float32({alpha})

def test_scaled_sum():
    raise AssertionError("its test ran")

results = test_scaled_sum()
"""


def files(directory: Path, trusted: str = TRUSTED, alpha: str = "alpha") -> tuple[str, str]:
    for name, text in (("trusted", trusted), ("tested", TESTED.format(alpha=alpha))):
        (directory / f"{name}.py").write_text(text)
    return str(directory / "trusted.py"), str(directory / "tested.py")


def test_examples_are_those_that_tests_begin_with(tmp_path: Path) -> None:
    spec = tritonbench(*files(tmp_path))
    assert spec.name == "scaled_sum"
    assert dict(spec.inputs) == {
        "x": Tensor("x.0", "x.1"),
        "y": Tensor("x.1"),
        "alpha": Value(0.5),
    }
    assert dict(spec.dims) == {"x.0": Dim(1, 6, typical=3), "x.1": Dim(1, 10, typical=5)}


@pytest.mark.parametrize(("alpha", "status"), [("alpha", "pass"), ("1.0", "fail")])
def test_a_wrong_function_is_told_from_a_right_one(tmp_path: Path, alpha: str, status: str) -> None:
    spec = tritonbench(*files(tmp_path, alpha=alpha))
    case = Case("scaled_sum", "float32", {"x.0": 2, "x.1": 7})
    assert run_case(spec, HostRunner(), case).status == status


def test_arguments_may_be_given(tmp_path: Path) -> None:
    example = [np.ones(4, np.float16), np.ones(4, np.float16)]
    spec = tritonbench(*files(tmp_path), arguments=example)
    assert (list(spec.dims), spec.dtypes) == (["x.0"], ("float16",))
    other = tritonbench(*files(tmp_path), "scaled_sum", example)
    assert other.inputs == spec.inputs


@pytest.mark.parametrize(
    ("trusted", "words"),
    [
        (TRUSTED.replace("scaled_sum(x, y, alpha=0.5)", "1"), r"trusted\.py:19: AssertionError: a"),
        (TRUSTED.replace("def scaled_sum", "def other"), "none is in both; name the function"),
        (TRUSTED.partition("###")[0], r"tested\.py:8: AssertionError: its test ran"),
        (
            TRUSTED.replace("(x, y, alpha=1.0)", "(*x, **y)"),
            "parameter x takes any number of arguments",
        ),
    ],
)
def test_what_makes_no_operator(tmp_path: Path, trusted: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        tritonbench(*files(tmp_path, trusted))


def test_names_that_are_not_there(tmp_path: Path) -> None:
    trusted, tested = files(tmp_path)
    with pytest.raises(SpecError, match=r"tested\.py: no function helper in it"):
        tritonbench(trusted, tested, "helper")
    Path(tested).write_text(TRUSTED)
    with pytest.raises(SpecError, match="several functions are in both: helper, scaled_sum"):
        tritonbench(trusted, tested)
    for path in (trusted, tested):
        Path(path).write_text(TRUSTED.partition("###")[0])
    with pytest.raises(SpecError, match=r"no test_\* calls helper; give example arguments"):
        tritonbench(trusted, tested, "helper")
