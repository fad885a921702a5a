"""Cases as data, and the keys that tell them apart."""

from __future__ import annotations

import json

import pytest

from ptxlint.dynamic.cases import Case

CASE = Case("softmax", "float16", {"rows": 3, "n": 7}, "graded", 5, "padded-rows", ("reference",))


def test_there_and_back() -> None:
    assert Case.from_json(json.loads(json.dumps(CASE.to_json()))) == CASE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dtype", "float32"),
        ("dims", {"rows": 7, "n": 3}),
        ("values", "regular"),
        ("seed", 6),
        ("layout", "contiguous"),
    ],
)
def test_inputs_are_told_apart(field: str, value: object) -> None:
    other = CASE._replace(**{field: value})
    assert other.inputs_key != CASE.inputs_key
    assert other.key != CASE.key


def test_operators_share_inputs_and_families_share_runs() -> None:
    twin = CASE._replace(operator="softmax_buggy")
    assert twin.inputs_key == CASE.inputs_key
    assert twin.key != CASE.key
    assert CASE._replace(family="tail-mask").key == CASE.key
    assert CASE._replace(checks=("reference", "repeat")).key != CASE.key
    assert CASE._replace(dims={"n": 7, "rows": 3}).key == CASE.key


def test_keys_stay_what_they_are() -> None:
    # They are written into files that later versions read.
    assert CASE.inputs_key == "8bb78364986e4448"
