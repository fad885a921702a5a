"""Tolerances from samples, and their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.operators import Operator, Tensor, Tolerance
from ptxlint.dynamic.oracle.bounds import allowance
from ptxlint.dynamic.oracle.calibration import (
    CalibrationError,
    applied,
    calibrated,
    read,
    written,
)
from ptxlint.dynamic.oracle.compare import compare
from ptxlint.dynamic.oracle.compared import Compared

Ran = list[tuple[Case, tuple[Compared, ...]]]


def compared(share: float, nonfinite: int = 0) -> Compared:
    return Compared("y", 9, nonfinite, share / 2, share / 4, 3.0, nonfinite, share=share)


def ran(shares: list[float], dtype: str = "float32", operator: str = "f") -> Ran:
    return [
        (Case(operator, dtype, {"n": 3}, "graded", seed), (compared(0.0), compared(share)))
        for seed, share in enumerate(shares)
    ]


def test_a_tolerance_is_the_95th_percentile_times_one_and_a_half() -> None:
    shares = [0.01 * number for number in range(1, 41)]
    shares[-1] = 0.9
    (told,) = calibrated(ran(shares))
    assert (told.operator, told.dtype) == ("f", "float32")
    # Of 40 cases 38 are at most 0.38.
    assert told.scale == pytest.approx(1.5 * 0.38)
    sample = told.sample
    assert (sample.cases, sample.seeds, sample.values) == (40, tuple(range(40)), ("graded",))
    assert (sample.p95, sample.largest, sample.beyond) == (pytest.approx(0.38), 0.9, 1)
    assert (sample.max_abs, sample.max_rel, sample.max_ulp) == (0.45, 0.225, 3.0)


def test_each_operator_and_dtype_has_its_own() -> None:
    told = calibrated([*ran([0.1] * 8, "float16"), *ran([0.2] * 8), *ran([0.3] * 8, operator="a")])
    assert [(t.operator, t.dtype, round(t.scale, 9)) for t in told] == [
        ("a", "float32", 0.45),
        ("f", "float16", 0.15),
        ("f", "float32", 0.3),
    ]


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    told = calibrated([*ran([0.1] * 8, "float16"), *ran([0.2] * 9)])
    path = tmp_path / "tolerances.json"
    path.write_text(written(told))
    assert read(str(path)) == told
    assert json.loads(path.read_text())["tolerances"][0]["sample"]["cases"] == 8


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ([], "nothing was compared"),
        (ran([0.1] * 7), r"f \(float32\): 7 cases, give at least 8"),
        (
            [*ran([0.1] * 8), (Case("f", "float32", {"n": 3}, seed=99), (compared(0.1, 1),))],
            "seed 99, values regular, {'n': 3}: it is not right there",
        ),
        (ran([0.1] * 8 + [float("inf")]), "seed 8, .* it is not right there"),
    ],
)
def test_samples_that_give_none(sample: Ran, words: str) -> None:
    with pytest.raises(CalibrationError, match=words):
        calibrated(sample)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "version None of a file of tolerances, not 1: write it again"),
        ('{"version": 2, "tolerances": []}', "version 2 of a file"),
        ('{"version": 1}', "no file of tolerances: no 'tolerances'"),
        ('{"version": 1, "tolerances": [3]}', "no file of tolerances"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(CalibrationError, match=rf"t\.json: {words}"):
        read(str(path))
    with pytest.raises(CalibrationError, match=r"none\.json: No such file"):
        read(str(tmp_path / "none.json"))


def bound(operator: Operator, dtype: str = "float32") -> float:
    x = np.array([2.0])
    return float(
        allowance(operator, dtype, {"x": x}, lambda given: (given["x"] * 3,), (x * 3,))[0][0]
    )


def test_a_scale_is_a_share_of_the_bound_and_keeps_the_rounding_of_results() -> None:
    plain = Operator(kernel=print, reference=print, inputs={"x": Tensor(1)}, name="f")
    (told,) = calibrated(ran([0.2] * 8))
    assert bound(applied(plain, [told])) == pytest.approx(0.3 * bound(plain))
    assert bound(applied(plain, [told._replace(operator="g")])) == bound(plain)
    assert bound(applied(plain, [told._replace(dtype="float16")])) == bound(plain)
    # Half a unit in the last place of 6 is 2^-22.
    least = bound(applied(plain, [told._replace(scale=0.0)]))
    assert 2.0**-22 <= least < 2.0**-21
    fixed = Operator(
        kernel=print, reference=print, inputs=plain.inputs, name="f", tolerance=Tolerance(0.5)
    )
    assert bound(applied(fixed, [told])) == 0.5


def test_shares_of_errors() -> None:
    expected, allowed = np.array([1.0, 2.0, np.nan, 5.0]), np.array([0.5, 1.0, 1.0, np.inf])
    got = expected + np.array([0.1, 0.7, 0.0, 9.0])
    assert compare("y", "float32", got, expected, allowed).share == pytest.approx(0.7)
    assert compare("y", "float32", got * 2, expected, allowed).share == pytest.approx(3.4)
    empty = np.zeros((0, 3))
    assert compare("y", "float32", empty, empty, empty).share == 0.0
