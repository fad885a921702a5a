"""Polynomials in lanes: what they come to, and how large and deep they may be."""

from __future__ import annotations

import numpy as np

from ptxlint.cfg.dominance import PostDominatorsAnalysis
from ptxlint.dataflow.polynomial import AtomTable
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.launch.binding import bind
from ptxlint.launch.lane_numbers import LaneNumbers
from ptxlint.launch.lanes import Lanes
from ptxlint.launches import Launch

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() .reqntid 8
{
ret;
}
"""


def numbers(rounds: int = 0) -> LaneNumbers:
    """Eight threads of two CTAs, in a round of the loop of block 0."""
    module = parse(TEXT, "k.ptx")
    facts = Facts(module, module.kernels()[0])
    facts.get(PostDominatorsAnalysis)
    bound = bind(facts.function, Launch((100, 1, 1), (8, 1, 1), {}, shared=0), {})
    lanes = Lanes(bound, [(3, 0, 0), (99, 0, 0)])
    return LaneNumbers(lanes, {0: np.full((2, 8), rounds)}, {}, facts.get(SsaAnalysis))


def values(found: object) -> list[list[int]]:
    """The numbers of all lanes."""
    shown = np.broadcast_to(found.found, (2, 8))  # type: ignore[attr-defined]
    return [[int(x) for x in row] for row in shown]


def test_threads_ctas_and_rounds() -> None:
    table = AtomTable()
    cta = table.plain(table.atom("ctaid", ("x",), 0, 99))
    bit = table.plain(table.atom("bit", ("x", 1), 0, 1))
    index = table.plain(table.atom("index", (0,), 0, 7))
    poly = cta * 100 + bit * index * -10 + 4
    found = numbers(rounds=5).of(poly)
    row = [0, 0, -50, -50, 0, 0, -50, -50]
    assert values(found) == [[304 + x for x in row], [9904 + x for x in row]]


def test_numbers_beyond_64_bits_are_exact() -> None:
    table = AtomTable()
    cta = table.plain(table.atom("ctaid", ("x",), 0, 99))
    large = cta * (1 << 70) + 1
    assert values(numbers().of(large))[0][0] == (3 << 70) + 1
    atom = table.atom("fdiv", (large - 2, 1 << 8), 0, 1 << 80)
    assert values(numbers().of(table.plain(atom)))[0][0] == ((3 << 70) - 1) >> 8


def test_divisions_round_as_their_kind_does() -> None:
    table = AtomTable()
    cta = table.plain(table.atom("ctaid", ("x",), 0, 99))
    low = -cta
    floor = table.plain(table.atom("fdiv", (low, 2), -50, 0))
    towards_zero = table.plain(table.atom("div", (low, table.constant(2)), -50, 0))
    assert values(numbers().of(floor))[0][0] == -2
    assert values(numbers().of(towards_zero))[0][0] == -1


def test_a_division_by_zero_is_not_known() -> None:
    table = AtomTable()
    bit = table.plain(table.atom("bit", ("x", 0), 0, 1))
    found = numbers().of(table.plain(table.atom("div", (table.constant(6), bit), 0, 6)))
    assert found is not None
    assert found.known is not None
    known = np.broadcast_to(found.known, (2, 8))[0]
    assert known.tolist() == [False, True] * 4


def test_atoms_in_atoms_take_no_stack() -> None:
    table = AtomTable()
    poly = table.plain(table.atom("ctaid", ("x",), 0, 99))
    for _ in range(2000):
        poly = table.plain(table.atom("fdiv", (poly + 1, 1), 0, 5000))
    assert values(numbers().of(poly))[0][0] == 2003


def test_what_is_no_number_of_a_lane_is_not_known() -> None:
    table = AtomTable()
    assert numbers().of(table.plain(table.atom("param", ("n", 0), 0, 9))) is None
    assert numbers().of(table.plain(table.atom("index", (7,), 0, 9))) is None
