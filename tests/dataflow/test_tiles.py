"""Tiles of guards, and polynomials and guards in people's words."""

from __future__ import annotations

import pytest

from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.index_text import IndexText
from ptxlint.dataflow.polynomial import AtomTable, Polynomial
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.tiles import Tile, Tiles
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

TABLE = AtomTable()
BITS = [TABLE.atom("bit", ("x", i), 0, 1) for i in range(7)]
TID = TABLE.sum((1 << i, bit) for i, bit in enumerate(BITS))
N = TABLE.plain(TABLE.atom("param", ("n", 0), -(2**31), 2**31 - 1))
M = TABLE.plain(TABLE.atom("param", ("m", 0), -(2**31), 2**31 - 1))
PID = TABLE.plain(TABLE.atom("ctaid", ("x",), 0, 2**31 - 2))
GRID = TABLE.plain(TABLE.atom("nctaid", ("x",), 1, 2**31 - 1))
K = TABLE.plain(TABLE.atom("index", (3,), 0))


def below(index: Polynomial, bound: Polynomial = N) -> Conjunct:
    """`index < bound`."""
    return Conjunct(bound - index - 1)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([TID], Tile("n", 128)),
        ([TID + chunk for chunk in range(0, 1024, 128)], Tile("n", 1024)),
        ([TID * 4, TID * 4 + 512], Tile("n", 1024, 4)),
        ([TID * 4 + at for at in range(4)], Tile("n", 512)),
        ([TID + PID * 1024 + chunk for chunk in range(0, 1024, 128)], Tile("n", 1024)),
        ([TID + K * 128, TID + K * 128 + 128], Tile("n", 128)),
        ([TID + PID * 512 + K * GRID * 512], Tile("n", 512)),
        ([TID + M], Tile("n", 128)),
        ([PID], None),
        ([TID * 0 + 5], None),
    ],
)
def test_tiles(indices: list[Polynomial], expected: Tile | None) -> None:
    guards = [below(index) for index in indices]
    tiles = Tiles(guards)
    assert [tiles.of(guard) for guard in guards] == [expected] * len(guards)


def test_a_guard_without_a_parameter_has_no_tile() -> None:
    guards = [below(TID, TABLE.constant(100)), Conjunct(None, ("predicate", 1, True))]
    assert [Tiles(guards).of(guard) for guard in guards] == [None, None]


def text() -> IndexText:
    """The texts of a kernel whose first value is `%r1`."""
    module = parse(
        ".version 8.0\n.target sm_80\n.entry k()\n{\n.reg .b32 %r<3>;\n.reg .pred %p<3>;\n"
        "mov.u32 %r1, %clock;\nsetp.eq.u32 %p1, %r1, 3;\nret;\n}\n",
        "k.ptx",
    )
    return IndexText(Facts(module, module.functions[0]).get(SsaAnalysis))


CLOCK = TABLE.plain(TABLE.atom("opaque", (0,), 0, 99))


@pytest.mark.parametrize(
    ("poly", "expected"),
    [
        (TID, "tid.x"),
        (TID * 4 + 512, "4*tid.x + 512"),
        (TABLE.sum((1 << i, BITS[i]) for i in range(5)), "tid.x[4:0]"),
        (TABLE.sum((4 << i, BITS[2 + i]) for i in range(3)), "4*tid.x[4:2]"),
        (TABLE.sum([(1, BITS[0]), (1, BITS[1]), (2, BITS[2])]), "tid.x[0] + tid.x[2:1]"),
        (PID * 1024 + TID + N * -2, "1024*ctaid.x + tid.x - 2*n"),
        (PID * N + N * TID * 2 - 7, "n*ctaid.x + 2*n*tid.x - 7"),
        (TID * 0, "0"),
        (CLOCK - K, "%r1 - K3"),
        (TABLE.plain(TABLE.atom("fdiv", (TID + N, 4))) * 3, "3*((n + tid.x) / 4)"),
        (TABLE.plain(TABLE.atom("min", (N, PID * 8))), "min(n, 8*ctaid.x)"),
        (TABLE.plain(TABLE.atom("select", (0, N, M))), "(%r1 ? n : m)"),
    ],
)
def test_polynomials_in_words(poly: Polynomial, expected: str) -> None:
    assert text().polynomial(poly) == expected


@pytest.mark.parametrize(
    ("conjunct", "expected"),
    [
        (below(TID), "tid.x < n"),
        (below(TID + 128), "tid.x + 128 < n"),
        (below(PID * 8 + TID, N - M), "m + 8*ctaid.x + tid.x < n"),
        (Conjunct(N - TID), "tid.x <= n"),
        (Conjunct(N - TID + 3), "tid.x <= n + 3"),
        (Conjunct(N - 4), "n >= 4"),
        (Conjunct(None, ("predicate", 1, True)), "%p1"),
        (Conjunct(None, ("predicate", 1, False)), "!%p1"),
        (Conjunct(None, ("unsigned", "lt", TID, N)), "tid.x < n (unsigned)"),
        (Conjunct(None, ("unequal", N, M)), "n != m"),
        (Conjunct(None, ("nonzero", 0)), "%r1 != 0"),
        (Conjunct(None, ("not", ("unequal", N, M))), "not (n != m)"),
    ],
)
def test_guards_in_words(conjunct: Conjunct, expected: str) -> None:
    assert text().conjunct(conjunct) == expected


def test_conjunctions_in_words() -> None:
    both = frozenset({below(TID), Conjunct(M - 1)})
    found = text()
    assert found.conjunction(both) == "m >= 1 and tid.x < n"
    assert found.conjunction(frozenset()) == ""
    assert found.conjunction(None) == "never"


def test_long_and_deep_polynomials_are_cut() -> None:
    many = TABLE.sum((7 + i * i, TABLE.atom("param", (f"p{i}", 0))) for i in range(40))
    assert text().polynomial(many).endswith("… 28 more terms")
    deep = TID
    for level in range(1000):
        deep = TABLE.plain(TABLE.atom("min", (deep, N + level)))
    assert "…" in text().polynomial(deep)
