"""The schemas of `diff` and `compare`: what they say of real reports is in the other tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ptxlint.comparison.architectures import compare_architectures
from ptxlint.comparison.report import compare
from tests.comparison.machine_builds import fixture
from tests.comparison.schemas import DOCS, compare_data, diff_data, validator


def _diff() -> dict[str, Any]:
    return diff_data(compare([fixture("softmax")], [fixture("softmax_buggy")], ptxas=None))


def _compare() -> dict[str, Any]:
    paths = [fixture("argmax", arch) for arch in ("sm_80", "sm_90")]
    return compare_data(compare_architectures(paths, ptxas=None))


def _objects(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield data
        data = list(data.values())
    if isinstance(data, list):
        for part in data:
            yield from _objects(part)


_COUNTS = ("classes", "tensor", "copies")
"""Objects whose members are names of classes and opcodes."""


@pytest.mark.parametrize(("name", "make"), [("diff", _diff), ("compare", _compare)])
def test_every_member_is_in_the_schema(name: str, make: Callable[[], dict[str, Any]]) -> None:
    data = make()
    counts = {id(o[key]) for o in _objects(data) for key in _COUNTS if key in o}
    places = [o for o in _objects(data) if id(o) not in counts]
    assert len(places) > 3
    for place in places:
        place["of_nobody"] = 1
        assert not validator(name).is_valid(data)
        del place["of_nobody"]
    assert validator(name).is_valid(data)


@pytest.mark.parametrize(("name", "make"), [("diff", _diff), ("compare", _compare)])
def test_what_is_always_there_is_required(name: str, make: Callable[[], dict[str, Any]]) -> None:
    data = make()
    for key in list(data):
        other = copy.deepcopy(data)
        del other[key]
        assert not validator(name).is_valid(other)
    other = copy.deepcopy(data)
    other["version"] = 2
    assert not validator(name).is_valid(other)


@pytest.mark.parametrize("name", ["diff", "compare"])
def test_the_page_names_the_schema(name: str) -> None:
    assert f"[{name}.schema.json]({name}.schema.json)" in (DOCS / f"{name}.md").read_text()
