"""Numbers as a kernel finds them in memory."""

from __future__ import annotations

import numpy as np
import pytest

from ptxlint.dynamic.emulator.elements import kept_as, to_elements, to_numbers

FLOATS = ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("name", FLOATS)
def test_every_element_comes_back(name: str) -> None:
    kind = kept_as(name)
    word = np.dtype(f"u{kind.itemsize}")
    words = np.linspace(0, np.iinfo(word).max, 70_000, endpoint=False).astype(word)
    numbers = to_numbers(words.view(kind), name)
    told = ~np.isnan(numbers)
    assert told.sum() > 60_000
    assert (to_elements(numbers, name).view(word)[told] == words[told]).all()
    assert np.isnan(to_numbers(to_elements(np.array([np.nan]), name), name)).all()


def test_numbers_are_rounded_to_nearest_even() -> None:
    third = np.array([1 / 3])
    assert to_elements(third, "bfloat16").tolist() == [0x3EAB]
    assert to_elements(third, "float8_e5m2").tolist() == [0x35]
    assert to_elements(third, "float8_e4m3fn").tolist() == [0x2B]
    # Half way between 1 and 1 + 1/8: the even one.
    assert to_elements(np.array([1 + 1 / 16]), "float8_e4m3fn").tolist() == [0x38]


def test_what_is_too_large() -> None:
    assert np.isinf(to_numbers(to_elements(np.array([1e6]), "float8_e5m2"), "float8_e5m2"))
    assert np.isnan(to_numbers(to_elements(np.array([1e6]), "float8_e4m3fn"), "float8_e4m3fn"))


def test_integers_keep_their_sign() -> None:
    assert to_numbers(to_elements(np.array([-3, 5]), "int8"), "int8").tolist() == [-3, 5]
    top = np.array([(1 << 64) - 1], dtype=np.uint64)
    assert to_numbers(to_elements(top, "uint64"), "uint64").tolist() == [(1 << 64) - 1]
