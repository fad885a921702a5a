"""Who wrote which cells of a storage, from a record of stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.emulator.arena import ORIGIN, Allocation
from ptxlint.dynamic.emulator.record import Record, Touched
from ptxlint.dynamic.judge.written import Doubly, Written

PLACE = Allocation("x", ORIGIN + 256, ORIGIN + 256 + 64)


def stores(*entries: tuple[str, int, int, int], size: int = 4, reads: bool = False) -> Record:
    """Each is an instruction, a program, a byte of the storage, and what is written there."""
    record = Record()
    for instr, cta, offset, value in entries:
        one: Any = instr
        columns = (np.array([n]) for n in (cta, 7, 256 + offset))
        values = np.array([value], dtype=f"u{size}")
        record.touched.append(Touched(one, *columns, size, reads, True, values))
    return record


def test_cells_are_as_wide_as_all_stores_allow() -> None:
    assert Written(stores(("a", 0, 0, 1), ("a", 0, 8, 1)), PLACE).unit == 4
    assert Written(stores(("a", 0, 2, 1), size=2), PLACE).unit == 2
    assert Written(stores(), PLACE).unit == 16


def test_bytes_that_are_written() -> None:
    written = Written(stores(("a", 0, 4, 1)), PLACE)
    assert np.flatnonzero(written.is_written(np.arange(-8, 80))).tolist() == [12, 13, 14, 15]


def test_atomics_and_stores_elsewhere_do_not_count() -> None:
    assert not Written(stores(("a", 0, 4, 1), reads=True), PLACE).is_written(np.arange(64)).any()
    assert not Written(stores(("a", 0, 64, 1)), PLACE).is_written(np.arange(64)).any()


@pytest.mark.parametrize("second", [0, 1])
def test_a_cell_that_two_programs_write(second: int) -> None:
    written = Written(stores(("a", 0, 4, 9), ("a", second, 4, 9)), PLACE)
    assert written.doubly == (Doubly(4, 0, 1) if second else None)


def test_programs_that_write_a_cell_in_one_access() -> None:
    record = Record()
    one: Any = "a"
    cta, thread, place = np.array([3, 5]), np.array([0, 0]), np.array([264, 264])
    values = np.array([1, 1], dtype=np.uint32)
    record.touched.append(Touched(one, cta, thread, place, 4, False, True, values))
    found = Written(record, PLACE).doubly
    assert found is not None
    assert (found.offset, {found.first, found.second}) == (8, {3, 5})


def test_programs_that_repeat_each_other_and_those_that_do_not() -> None:
    same = stores(("a", 0, 4, 9), ("b", 0, 4, 8), ("b", 1, 4, 8), ("a", 1, 4, 9))
    assert Written(same, PLACE).differing() is None
    other = stores(("a", 0, 4, 9), ("a", 1, 4, 8))
    assert Written(other, PLACE).differing() == Doubly(4, 0, 1)
    elsewhere = stores(("a", 0, 4, 9), ("b", 1, 4, 9))
    assert Written(elsewhere, PLACE).differing() == Doubly(4, 0, 1)
    once = stores(("a", 0, 4, 9), ("a", 1, 8, 9))
    assert Written(once, PLACE).differing() is None


def test_who_writes_a_byte() -> None:
    written = Written(stores(("a", 2, 4, 9)), PLACE)
    one: Any = "a"
    assert written.does(one, 2, 7, 6)
    assert not written.does(one, 2, 7, 8)
    assert not written.does(one, 2, 6, 6)
    assert not written.does(one, 1, 7, 6)
