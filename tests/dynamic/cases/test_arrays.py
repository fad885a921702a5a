"""Inputs of a case: domains, types, layouts."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.cases.arrays import Placed, digest, inputs, numbers
from ptxlint.dynamic.cases.layouts import placement
from ptxlint.dynamic.cases.values import STRATEGIES
from ptxlint.dynamic.operators import Dim, Domain, Operator, Size, SpecError, Tensor, Value
from ptxlint.dynamic.operators.spec import FREE, LAYOUTS


def operator(**tensors: Tensor) -> Operator:
    return Operator(
        kernel=print,
        reference=print,
        dims={"m": Dim(0, 99), "n": Dim(0, 99)},
        inputs={**tensors, "eps": Value(1e-5), "size": Size("n")},
        dtypes=("float32", "float16", "bfloat16", "float64"),
    )


X = operator(x=Tensor("m", "n", layouts=LAYOUTS))


def case(dtype: str = "float32", m: int = 5, n: int = 7, **more: object) -> Case:
    return Case("x", dtype, {"m": m, "n": n}, **more)  # type: ignore[arg-type]


def placed(spec: Operator, told: Case, name: str = "x") -> Placed:
    out = inputs(spec, told)[name]
    assert isinstance(out, Placed)
    return out


def test_arguments() -> None:
    given = inputs(X, case())
    assert list(given) == ["x", "eps", "size"]
    assert (given["eps"], given["size"]) == (1e-5, 7)
    told = numbers(given)
    assert told["x"].dtype == np.float64
    assert told["x"].shape == (5, 7)


@pytest.mark.parametrize("dtype", X.dtypes)
def test_numbers_are_those_in_memory(dtype: str) -> None:
    torch_free = placed(X, case(dtype))
    x = torch_free.numbers
    width = {"float16": np.float16, "float64": np.float64}.get(dtype, np.float32)
    assert (x.astype(width).astype(np.float64) == x).all()
    if dtype == "bfloat16":
        assert torch_free.storage.dtype == np.uint16
        high = (torch_free.elements.astype(np.uint32) << 16).view(np.float32)
        assert (high == x).all()
    # Rounded from the same draws.
    exact = placed(X, case("float64")).numbers
    assert np.allclose(x, exact, rtol=2.0**-8, atol=0)


@pytest.mark.parametrize("values", ["regular", "graded", "negative", "integers", "constant"])
def test_twins_get_the_same_bytes(values: str) -> None:
    """The seed, the name of the input and the strategy decide, not the operator nor its layouts."""
    twin = operator(x=Tensor("m", "n"), y=Tensor("m"))
    first, second = (placed(spec, case(values=values)) for spec in (X, twin))
    assert first.elements.tobytes() == second.elements.tobytes()
    assert first.elements.tobytes() != placed(X, case(values=values, seed=1)).elements.tobytes()


def test_digest_is_pinned() -> None:
    assert digest(inputs(X, case("float16", values="graded", seed=11))) == "e1bd98cd3312c355"
    assert (
        digest(inputs(X, case("float16", values="graded", layout="offset"))) != "e1bd98cd3312c355"
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 4), (6,), (), (0, 3), (3, 0)])
def test_layouts_place_each_element_once(layout: str, shape: tuple[int, ...]) -> None:
    where = placement(shape, [layout])
    index = np.arange(int(np.prod(shape))).reshape(shape)
    at = where.offset + sum(
        i * step for i, step in zip(np.indices(shape), where.strides, strict=True)
    )
    at = np.asarray(at).reshape(-1)
    assert len(set(at.tolist())) == index.size
    assert not index.size or 0 <= at.min() <= at.max() < where.elements


def test_layouts_are_what_they_are_called() -> None:
    assert placement((5, 7), []) == ((7, 1), 0, 35)
    assert placement((5, 7), ["padded-rows"]) == ((14, 1), 0, 70)
    assert placement((5, 7), ["transposed"]) == ((1, 5), 0, 35)
    assert placement((2, 5, 7), ["transposed"]) == ((35, 1, 5), 0, 70)
    assert placement((5, 7), ["every-second"]) == ((14, 2), 0, 70)
    assert placement((5, 7), ["offset"]) == ((7, 1), 1, 36)


def test_layouts_go_together() -> None:
    every = placement((2, 5, 7), LAYOUTS)
    # Rows of five, each second element, seven behind: the last axis is that of rows.
    assert every == ((7 * 17, 2, 17), 1, 1 + 2 * 7 * 17)
    both = replace(X, inputs={"x": Tensor("n", 4, layouts=("padded-rows", "offset"))})
    free = placed(both, case(layout=FREE))
    assert (free.strides, free.offset) == ((11, 1), 1)
    plain = replace(X, inputs={"x": Tensor("m", "n")})
    assert placed(plain, case(layout=FREE)).strides == placed(X, case()).strides


def test_gaps_are_poisoned_and_values_the_same_in_each_layout() -> None:
    plain = placed(X, case())
    for layout in LAYOUTS:
        x = placed(X, case(layout=layout))
        assert (x.numbers == plain.numbers).all()
        assert x.gaps.sum() == x.storage.size - 35
        assert np.isnan(x.storage[x.gaps]).all()
        assert not np.isnan(x.storage[~x.gaps]).any()
    whole = operator(i=Tensor("m", "n", dtype="int32", layouts=LAYOUTS))
    gaps = placed(whole, case(layout="padded-rows"), "i")
    assert set(gaps.storage[gaps.gaps].tolist()) == {2**31 - 1}


def test_a_layout_that_a_tensor_does_not_take_leaves_it_contiguous() -> None:
    spec = operator(x=Tensor("m", "n", layouts=("padded-rows",)), y=Tensor("m", "n"))
    assert placed(spec, case(layout="padded-rows"), "x").strides == (14, 1)
    assert placed(spec, case(layout="padded-rows"), "y").strides == (7, 1)


DOMAINS = [
    Domain(), Domain(0), Domain(low=1.5), Domain(high=-1.0), Domain(-1, 1), Domain(0, 1),
    Domain(100, 200), Domain(0.1, 0.3), Domain(nonzero=True), Domain(0, nonzero=True), Domain(3, 3),
]  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("values", STRATEGIES)
def test_domains_are_kept(domain: Domain, dtype: str, values: str) -> None:
    x = placed(operator(x=Tensor("m", "n", domain=domain)), case(dtype, values=values)).numbers
    known = x[~np.isnan(x)]
    assert ((known >= domain.low) & (known <= domain.high)).all()
    assert not domain.nonzero or (known != 0).all()
    assert np.isfinite(x).all() or not STRATEGIES[values].is_finite
    if domain != Domain() and not domain.nonzero:
        assert len(known) == x.size
    # Numbers are spread over a domain that has room.
    if values in ("regular", "graded") and domain.low < domain.high:
        assert len(set(known.tolist())) > 8
        assert (np.abs(known - domain.low) > 1e-3).mean() > 0.8


def test_masked_rows_take_the_least_that_the_domain_has() -> None:
    bounded = operator(x=Tensor("m", "n", domain=Domain(-5, inf)))
    assert (placed(bounded, case(values="masked-rows")).numbers[0] == -5).all()
    assert np.isneginf(placed(X, case(values="masked-rows")).numbers[0]).all()


def test_integers() -> None:
    spec = operator(
        i=Tensor("m", "n", dtype="int64", domain=Domain(below="n")),
        b=Tensor("m", "n", dtype="bool"),
        u=Tensor("m", "n", dtype="uint8"),
        p=Tensor("m", "n", dtype="int32", domain=Domain(3, 2.0**40)),
    )
    for values in STRATEGIES:
        given = numbers(inputs(spec, case(values=values, m=40)))
        assert given["i"].dtype == np.int64
        assert given["i"].min() >= 0
        assert given["i"].max() <= 6
        assert given["u"].max() <= 8
        assert given["p"].min() >= 3
        assert set(given["b"].reshape(-1).tolist()) <= {0, 1}
    edges = numbers(inputs(spec, case(values="boundary", m=40)))["i"]
    assert (edges == 0).mean() > 0.2
    assert (edges == 6).mean() > 0.2


@pytest.mark.parametrize(
    ("spec", "told", "words"),
    [
        (X, case("int8"), "dtype 'int8' is none of float32"),
        (X, case(values="wild"), "x: values 'wild' is none of regular"),
        (X, Case("x", "float32", {"m": 1}), "no size for n"),
        (operator(x=Tensor(3, dtype="complex64")), case(), "x: tensors of complex64"),
        (
            operator(x=Tensor(3, domain=Domain(1.0001, 1.0002))),
            case("float16"),
            "x: no float16 lies from 1.0001 to 1.0002",
        ),
        (
            operator(x=Tensor(3, dtype="int8", domain=Domain(below="n"))),
            case(n=0),
            "x: no integer of int8",
        ),
    ],
)
def test_what_cannot_be_made_is_told(spec: Operator, told: Case, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        inputs(spec, told)


def test_empty_tensors() -> None:
    assert placed(X, case(n=0)).numbers.shape == (5, 0)
    assert placed(X, case(m=0, layout="padded-rows")).storage.size == 0


def test_masks_have_rows_without_an_entry() -> None:
    spec = operator(mask=Tensor("m", "n", dtype="bool"))
    mask = placed(spec, case(m=6, n=50, values="masked-rows"), "mask").elements
    assert mask.any(axis=1).tolist() == [False, True, True, False, True, True]
