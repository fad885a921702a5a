"""What a row of a factor holds where some of its elements are padding."""

from __future__ import annotations

import pytest

from ptxlint.dataflow.factor_lines import Line, Place
from ptxlint.dataflow.floats import F32
from ptxlint.dataflow.register_words import DATA, Word
from ptxlint.dataflow.word_table import Cell, WordTable


@pytest.mark.parametrize(
    ("other", "about_other", "told"),
    [
        # What no condition is about is 0 there if it is 0 anywhere.
        (0, [], (True, True)),
        (DATA, [], (False, True)),
        # One element that two conditions are about is one element.
        (DATA, [8], (False, True)),
        (DATA, [7], (True, True)),
    ],
)
def test_elements_that_a_condition_is_not_about(
    other: Word, about_other: list[int], told: tuple[bool, bool]
) -> None:
    table = WordTable()

    def cell(word: Word) -> Cell:
        return [table.of(word)]

    places = [
        Place(1, cell(DATA), 32, 0, 1, [(7, cell(0)), (7, cell(0))]),
        Place(2, cell(other), 32, 0, 1, [(number, cell(0)) for number in about_other]),
    ]
    line = Line(F32, places, True)
    line.refresh(table, {}, 1)
    assert line.under[7] == told
    assert line.free == (False, True)
