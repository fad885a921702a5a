"""Cases of plain numpy operators: what each check sees, and what operators do besides."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.cases.checks import CHECKS
from ptxlint.dynamic.operators import Dim, Domain, Operator, Tensor, Tolerance, Value
from ptxlint.dynamic.runners.checking import CHECKED
from ptxlint.dynamic.runners.execution import run_case
from ptxlint.dynamic.runners.manner import HungError, NotRunError
from ptxlint.dynamic.runners.on_host import HostRunner
from ptxlint.dynamic.runners.outcome import Outcome

ONCE = ("reference", "canaries", "poison", "sanitizer")


def double(x: Any) -> Any:
    return x * 2


def run(
    kernel: Callable[..., Any],
    checks: tuple[str, ...] = ONCE,
    dtype: str = "float32",
    layout: str = "contiguous",
    **changes: Any,
) -> Outcome:
    given: dict[str, Any] = {
        "kernel": kernel,
        "reference": double,
        "inputs": {"x": Tensor("n", 4, layouts=("padded-rows",))},
        "dims": {"n": Dim(1, 64)},
        "dtypes": ("float32", "bfloat16"),
        "name": "double",
        "runs_on": "numpy",
    }
    case = Case("double", dtype, {"n": 5}, layout=layout, checks=checks)
    return run_case(Operator(**{**given, **changes}), HostRunner(), case)


def said(outcome: Outcome) -> tuple[str, str]:
    return outcome.status, outcome.kind


def test_each_check_that_a_case_may_ask_for_is_made() -> None:
    assert list(CHECKED) == list(CHECKS)


def test_a_right_operator_passes_all_of_them() -> None:
    checks = tuple(name for name in CHECKS if name != "warps")
    outcome = run(double, checks, layout="padded-rows")
    assert said(outcome) == ("pass", "")
    (compared,) = outcome.compared
    assert (compared.elements, compared.wrong, compared.max_abs) == (20, 0, 0.0)
    assert outcome.outputs_key == run(double).outputs_key != ""
    assert outcome.launches == 0


def test_a_wrong_element_is_told_with_its_place() -> None:
    def kernel(x: Any) -> Any:
        out = x * 2
        out[3, 1] = 17
        return out

    outcome = run(kernel)
    assert said(outcome) == ("fail", "reference")
    assert outcome.reason.startswith("1 of 20 elements of output 0 are wrong; at [3, 1] it is 17,")
    assert outcome.compared[0].worst == (3, 1)
    assert outcome.outputs_key != run(double).outputs_key


def test_products_that_only_tf32_explains_are_told_how_to_allow_them() -> None:
    def product(x: Any, y: Any) -> Any:
        return x @ y.T

    def cut(x: Any, y: Any) -> Any:
        parts = [(v.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for v in (x, y)]
        return product(*parts)

    given = {"x": Tensor("n", 40), "y": Tensor("n", 40)}
    plain = run(cut, reference=product, inputs=given)
    assert said(plain) == ("fail", "reference")
    assert plain.reason.endswith('if they are meant, give arithmetic={"float32": "tf32"}')
    meant = run(cut, reference=product, inputs=given, arithmetic={"float32": "tf32"})
    assert said(meant) == ("pass", "")
    wrong = run(lambda x, y: cut(x, y) * np.float32(1.1), reference=product, inputs=given)
    assert "tf32" not in wrong.reason


def test_checks_come_in_the_order_of_the_case_up_to_the_first_that_fails() -> None:
    def kernel(x: Any) -> Any:
        x[0, 0] = 3
        return x + 1

    assert run(kernel, ("canaries", "reference")).kind == "canaries"
    assert run(kernel, ("reference", "canaries")).kind == "reference"
    assert run(kernel, ("canaries",)).compared == ()


def test_what_lies_between_rows_must_stay() -> None:
    def kernel(x: Any) -> Any:
        wide = np.lib.stride_tricks.as_strided(x, (1, 5), x.strides)
        out = x * 2
        wide[0, 4] = 1
        return out

    outcome = run(kernel, layout="padded-rows")
    assert said(outcome) == ("fail", "canaries")
    assert outcome.reason == "1 element around and between those of x changed"


def test_what_the_spec_says_is_written_is_an_output() -> None:
    def kernel(x: Any) -> None:
        x *= 2

    assert said(run(kernel, writes=("x",))) == ("pass", "")
    outcome = run(lambda x: None, writes=("x",))
    assert said(outcome) == ("fail", "reference")
    assert "of x are wrong" in outcome.reason


def test_an_element_that_is_never_written() -> None:
    def kernel(x: Any) -> Any:
        out = np.empty_like(x)
        out[:-1] = x[:-1] * 2
        return out

    outcome = run(kernel, ("poison",))
    assert said(outcome) == ("fail", "poison")
    assert outcome.reason == "4 of 20 elements of output 0 are never written, the first at [4, 0]"


def test_what_comes_of_memory_that_is_never_written() -> None:
    def kernel(x: Any) -> Any:
        total = np.empty(x.shape, x.dtype)
        total *= 0
        total += x
        return total

    outcome = run(kernel, ("poison",))
    assert said(outcome) == ("fail", "poison")
    assert outcome.reason.startswith("what memory held before comes out: 20 of 20 elements")


def test_a_nan_by_right_is_no_poison() -> None:
    assert said(run(lambda x: x + np.float32("nan"), ("poison",))) == ("pass", "")


def test_surroundings_that_decide() -> None:
    def kernel(x: Any) -> Any:
        wide = np.lib.stride_tricks.as_strided(x, (5, 5), x.strides)
        return x * 2 + np.where(np.isnan(wide[:, 4:]), 0, 1).astype(x.dtype)

    assert said(run(kernel, ("surroundings",), layout="padded-rows")) == ("fail", "surroundings")
    assert said(run(kernel, ("surroundings",))) == ("pass", "")


def test_other_bits_when_run_again() -> None:
    calls: list[int] = []

    def kernel(x: Any) -> Any:
        calls.append(1)
        return x * 2 + (1e-6 if len(calls) > 2 else 0)

    outcome = run(kernel, ("repeat",))
    assert said(outcome) == ("fail", "repeat")
    assert outcome.reason.startswith("run again, ")
    assert len(calls) == 3
    calls.clear()
    loose = {"deterministic": False, "tolerance": Tolerance(1e-3)}
    assert said(run(kernel, ("repeat",), **loose)) == ("pass", "")


@pytest.mark.parametrize(
    ("reference", "kind", "reason"),
    [
        (lambda x: x[:, 0] / {}["a"], "reference raises", "the reference raises KeyError: 'a'"),
        (lambda x: x[:1], "shapes", "output 0 has the shape (5, 4), the reference (1, 4)"),
        (lambda x: (x, x), "shapes", "the operator has 1 output, the reference 2"),
    ],
)
def test_a_reference_that_cannot_judge(
    reference: Callable[..., Any], kind: str, reason: str
) -> None:
    outcome = run(double, reference=reference)
    assert (*said(outcome), outcome.reason) == ("undecided", kind, reason)


def raising(x: Any) -> Any:
    raise ValueError("no such size")


def leaving(x: Any) -> Any:
    sys.exit(3)


def greedy(x: Any) -> Any:
    raise MemoryError


def greedy_on_torch(x: Any) -> Any:
    raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")


def hanging(x: Any) -> Any:
    raise HungError("k waits for ever")


def refused(x: Any) -> Any:
    raise NotRunError("k: `tcgen05` is not run")


@pytest.mark.parametrize(
    ("kernel", "expected", "reason"),
    [
        (raising, ("fail", "raises"), "the operator raises ValueError: no such size ("),
        (leaving, ("fail", "exit"), "the operator ended the process: exit(3) ("),
        (greedy, ("fail", "memory"), "the operator asks for more memory"),
        (greedy_on_torch, ("fail", "memory"), "the operator asks for more memory"),
        (hanging, ("fail", "hang"), "k waits for ever"),
        (refused, ("undecided", "unsupported"), "k: `tcgen05`"),
        (lambda x: "x", ("undecided", "shapes"), "the operator returned a str as output 0"),
        (lambda x: None, ("undecided", "shapes"), "the operator returned None as output 0;"),
    ],
)
def test_what_operators_do_besides(
    kernel: Callable[..., Any], expected: tuple[str, str], reason: str
) -> None:
    outcome = run(kernel)
    assert said(outcome) == expected
    assert outcome.reason.startswith(reason)


def test_cases_that_an_operator_does_not_take() -> None:
    assert said(run(double, dtype="float16")) == ("undecided", "case")
    domain: Mapping[str, Any] = {"inputs": {"x": Tensor("n", domain=Domain(low=5, high=4.5e0 + 1))}}
    assert said(run(double, **domain)) == ("pass", "")
    assert said(run(double, dtype="bfloat16")) == ("undecided", "case")


def test_an_outcome_goes_through_json() -> None:
    outcome = run(lambda x: x)
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_inputs_have_a_key_of_their_bytes() -> None:
    keys = {run(double, dtype="float32").inputs_key, run(double, dtype="float32").inputs_key}
    assert len(keys) == 1
    assert run(double, layout="padded-rows").inputs_key not in keys
    assert run(double, inputs={"x": Tensor("n", 4), "scale": Value(2)}).inputs_key not in keys
