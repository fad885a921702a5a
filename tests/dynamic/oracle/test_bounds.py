"""A right kernel's errors are allowed, a wrong one's are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.cases.arrays import inputs, numbers
from ptxlint.dynamic.cases.values import STRATEGIES
from ptxlint.dynamic.operators import Dim, Domain, Operator, Tensor, Tolerance
from ptxlint.dynamic.oracle.bounds import allowance, growth
from ptxlint.dynamic.oracle.compare import compare
from ptxlint.dynamic.oracle.compared import Compared
from ptxlint.dynamic.oracle.reference import Outputs, evaluate

Function = Callable[..., Any]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def elu(x: Any) -> Any:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def elu_that_cancels(x: Any) -> Any:
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def variance(x: Any) -> Any:
    return x.var(axis=-1)


def matmul(x: Any, w: Any) -> Any:
    return x @ w


def matmul_in_sequence(x: Any, w: Any) -> Any:
    total = np.zeros((x.shape[0], w.shape[1]), dtype=x.dtype)
    for k in range(x.shape[1]):
        total = total + x[:, k, None] * w[k]
    return total


def operator(reference: Function, **more: Any) -> Operator:
    given = {"x": Tensor("m", "n")}
    if reference is matmul:
        given["w"] = Tensor("n", 5)
    return Operator(
        kernel=reference,
        reference=reference,
        dims={"m": Dim(), "n": Dim()},
        inputs=given,
        dtypes=("float32", "float16"),
        **more,
    )


def judged(spec: Operator, case: Case, kernel: Function) -> Compared:
    """A kernel that computes in float32 and returns the dtype, held to the reference."""
    arguments = numbers(inputs(spec, case))
    expected, allowed = bound(spec, case.dtype, arguments)
    with np.errstate(all="ignore"):
        single = {name: value.astype(np.float32) for name, value in arguments.items()}
        got = kernel(**single).astype(case.dtype).astype(np.float64)
    return compare("y", case.dtype, got, expected[0], allowed[0])


def bound(spec: Operator, dtype: str, arguments: Mapping[str, Any]) -> tuple[Outputs, Outputs]:
    def again(given: Mapping[str, Any]) -> Outputs:
        return evaluate(spec.reference, given)

    expected = again(arguments)
    return expected, allowance(spec, dtype, arguments, again, expected)


RIGHT: list[tuple[Function, Function]] = [
    (softmax, softmax), (elu, elu_that_cancels), (variance, variance),
    (matmul, matmul_in_sequence),
]  # fmt: skip
SHAPES = [(1, 1), (3, 7), (8, 64), (5, 1025)]


@pytest.mark.parametrize(("reference", "kernel"), RIGHT)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_right_kernels_are_right_whatever_tensors_hold(
    reference: Function, kernel: Function, dtype: str
) -> None:
    spec = operator(reference)
    for values in STRATEGIES:
        for m, n in SHAPES:
            told = judged(spec, Case("x", dtype, {"m": m, "n": n}, values), kernel)
            assert told.wrong == 0, (values, m, n, told)


def scaled(by: float, function: Function) -> Function:
    return lambda **given: function(**given) * np.float32(by)


@pytest.mark.parametrize(("reference", "kernel"), RIGHT)
@pytest.mark.parametrize(("dtype", "by"), [("float32", 1.001), ("float16", 1.02)])
def test_a_wrong_factor_is_seen(
    reference: Function, kernel: Function, dtype: str, by: float
) -> None:
    for m, n in SHAPES[1:]:
        case = Case("x", dtype, {"m": m, "n": n}, "graded")
        assert judged(operator(reference), case, scaled(by, kernel)).wrong > 0


def test_an_overwritten_accumulator_and_a_filled_softmax_are_seen() -> None:
    def last_only(x: Any, w: Any) -> Any:
        return x[:, -1, None] * w[-1]

    def filled(x: Any) -> Any:
        padded = np.zeros((x.shape[0], x.shape[1] + 1), dtype=x.dtype)
        padded[:, :-1] = x
        return softmax(padded)[:, :-1]

    for dtype in ("float32", "float16"):
        for n in (2, 7, 64, 1025):
            case = Case("x", dtype, {"m": 4, "n": n}, "graded")
            assert judged(operator(matmul), case, last_only).wrong > 0
            case = Case("x", dtype, {"m": 4, "n": n}, "negative")
            assert judged(operator(softmax), case, filled).wrong > 0


def test_overflow_on_the_way_is_not_judged_where_squares_are_out_of_range() -> None:
    def norm(x: Any) -> Any:
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True))

    spec = operator(norm)
    x = np.array([[3e38, 1.0, 2.0], [1.0, 2.0, 3.0], [1e18, 1.0, 1.0]])
    allowed = bound(spec, "float32", {"x": x})[1][0]
    assert np.isinf(allowed).tolist() == [[True] * 3, [False] * 3, [True] * 3]
    assert (allowed[1] < 1e-5).all()
    # What does not depend on them is judged: all are far above 0 here.
    sigmoid = operator(lambda x: 1 / (1 + np.exp(-x)))
    assert (bound(sigmoid, "float32", {"x": np.abs(x)})[1][0] < 1e-5).all()


def test_probes_stay_in_the_domain() -> None:
    spec = Operator(
        kernel=np.arccos,
        reference=lambda x: np.arccos(x),
        inputs={"x": Tensor(3, domain=Domain(-1, 1))},
    )
    allowed = bound(spec, "float32", {"x": np.array([1.0, -1.0, 0.5])})[1][0]
    assert np.isfinite(allowed).all()


def test_a_tolerance_of_the_spec_takes_the_place_of_the_bound() -> None:
    spec = operator(softmax, tolerance={"float16": Tolerance(0.5, 0.25)})
    x = {"x": np.array([[0.0, 0.0]])}
    assert bound(spec, "float16", x)[1][0].tolist() == [[0.625, 0.625]]
    assert bound(spec, "float32", x)[1][0].max() < 1e-5


def test_coarser_arithmetic_widens_the_bound() -> None:
    x = {"x": np.ones((2, 64)), "w": np.ones((64, 5))}
    plain = bound(operator(matmul), "float32", x)[1][0]
    tf32 = bound(operator(matmul, arithmetic={"float32": "tf32"}), "float32", x)[1][0]
    # 64 products of numbers that are off by up to 2^-11 each.
    assert (tf32 > 64 * 2 * 2.0**-11).all()
    assert (plain < 64 * 2.0**-13).all()


@pytest.mark.parametrize("shape", [(1, 1), (71, 6), (5, 131)])
def test_products_of_tensor_cores_that_drop_bits_are_right(shape: tuple[int, int]) -> None:
    """All operands are off toward 0 then, which adds up in every sum."""

    def cut(**given: Any) -> Any:
        words = {n: v.view(np.uint32) & np.uint32(0xFFFFE000) for n, v in given.items()}
        return matmul(**{name: word.view(np.float32) for name, word in words.items()})

    spec = operator(matmul, arithmetic={"float32": "tf32"})
    for seed in range(8):
        for values in ("graded", "negative", "regular"):
            case = Case("x", "float32", {"m": shape[0], "n": shape[1]}, values, seed)
            told = judged(spec, case, cut)
            assert told.wrong == 0, (values, seed, told)
            assert judged(spec, case, scaled(1.01, matmul)).wrong > 0


def test_what_cancels_to_zero_everywhere_may_have_had_any_size() -> None:
    """The logarithm of a sum of one exponential, less what it is taken of, by way of base 2."""

    def softmax_loss(x: Any) -> Any:
        return np.log2(np.exp2(x * x.dtype.type(1.4426950408889634)).sum(axis=-1)) * x.dtype.type(
            0.6931471805599453
        ) - x.max(axis=-1)

    spec = operator(lambda x: np.log(np.exp(x).sum(axis=-1)) - x.max(axis=-1))
    for seed in range(8):
        case = Case("x", "float32", {"m": 9, "n": 1}, "negative", seed)
        assert judged(spec, case, softmax_loss).wrong == 0
        assert judged(spec, case, lambda x: softmax_loss(x) + np.float32(1e-5)).wrong > 0


@pytest.mark.parametrize("terms", [1, 3, 32])
def test_the_worst_of_many_products_with_cut_operands_is_right(terms: int) -> None:
    rng = np.random.default_rng(3)
    x = {"x": rng.normal(size=(300, terms)), "w": rng.normal(size=(terms, 300))}
    words = {n: v.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000) for n, v in x.items()}
    x = {name: value.astype(np.float32).astype(np.float64) for name, value in x.items()}
    cut = {name: word.view(np.float32).astype(np.float64) for name, word in words.items()}
    expected, allowed = bound(operator(matmul, arithmetic={"float32": "tf32"}), "float32", x)
    assert (np.abs(matmul(**cut) - expected[0]) <= allowed[0]).all()
    assert (np.abs(0.05 * expected[0]) > allowed[0]).mean() > 0.5


def test_integer_outputs_are_exact_but_where_rounding_decides() -> None:
    spec = operator(lambda x: x.argmax(axis=-1))
    x = {"x": np.array([[1.0, 1.0 + 2.0**-26, 0.0], [1.0, 2.0, 0.0]])}
    expected, allowed = bound(spec, "float32", x)
    assert expected[0].tolist() == [1, 1]
    assert allowed[0].tolist() == [np.inf, 0.0]


def test_probes_that_cancel_by_chance_take_nothing_away() -> None:
    """Of many sums of products that nearly cancel, some are moved by hardly any probe."""
    x = np.tile([1.0, -1.0, 1.0, -1.0, 2.0**-20], (1, 1))
    w = np.tile([[1.0], [-1.0], [-1.0], [1.0], [1.0]], (1, 5000))
    spec = operator(matmul)
    allowed = bound(spec, "float32", {"x": x, "w": w})[1][0]
    assert allowed.min() > 0.5 * np.median(allowed)


def test_outputs_may_be_truth_values_or_none_at_all() -> None:
    spec = operator(lambda x: (x > 0, x.any(axis=1)))
    x = {"x": np.array([[1.0, -1.0], [0.0, 2.0**-30]])}
    expected, allowed = bound(spec, "float32", x)
    assert [value.tolist() for value in allowed] == [[[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0]]
    told = compare("y", "bool", np.array([[1, 1], [0, 1]]), expected[0], allowed[0])
    assert (told.wrong, told.worst) == (1, (0, 1))
    assert bound(operator(lambda x: ()), "float32", x) == ((), ())


def test_growth() -> None:
    assert [growth(n) for n in (1, 36, 3600)] == [1, 36, 360]
