"""What holds where a condition does in several threads, against all threads and sizes."""

from __future__ import annotations

from random import Random

from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.guards import Conjunct
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.symbolic import SymbolicAnalysis
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

WIDTH = 5
TEXT = """.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u32 n) .reqntid 32
{
ret;
}
"""


def conditions_of_a_size() -> tuple[Conditions, Condition]:
    """Conditions of 32 threads, and "the thread's number is at least n"."""
    module = parse(TEXT, "k.ptx")
    facts = Facts(module, module.functions[0])
    table = facts.get(SymbolicAnalysis).table
    conditions = Conditions(WIDTH, facts.get(UniformityAnalysis), facts.get(LoopsAnalysis))
    bound = table.plain(table.atom("param", ("n", 0), 0, 1 << 31)) - 1
    for place in range(WIDTH):
        bound = bound - table.plain(table.atom("bit", ("x", place), 0, 1)) * (1 << place)
    return conditions, conditions.of(Conjunct(bound), (1 << WIDTH) - 1)


def maps(random: Random) -> LaneMap:
    """A map whose bits several threads may flip."""
    basis = [random.choice((0, 1, 2, 4, 8, 16, 3, 6)) for _ in range(WIDTH)]
    return LaneMap(random.randrange(32), tuple(basis))


def holds(condition: Condition, thread: int, size: int) -> bool:
    to = condition.map
    assert to is not None
    return to.holds_for(thread) and to.value(thread) >= size


def test_what_holds_in_all_of_some_threads() -> None:
    conditions, own = conditions_of_a_size()
    random = Random(3)
    known = 0
    for _ in range(300):
        condition = conditions.moved(own, maps(random))
        lanes = random.randrange(32)
        least = conditions.least(condition, lanes)
        if least is None:
            continue
        known += 1
        for thread in range(32):
            group = [t for t in range(32) if not (t ^ thread) & ~lanes]
            for size in range(0, 33, 3):
                # It is what all have in common, no more and no less.
                every = all(holds(condition, t, size) for t in group)
                assert every == holds(least, thread, size)
    assert known > 30


def test_pieces_are_the_condition() -> None:
    conditions, own = conditions_of_a_size()
    random = Random(4)
    for _ in range(60):
        condition = conditions.moved(own, maps(random))
        pieces = list(conditions.pieces(condition, random.randrange(32)))
        for thread in range(32):
            assert sum(p.map is not None and p.map.holds_for(thread) for p in pieces) == 1
            for size in range(0, 33, 5):
                found = any(holds(p, thread, size) for p in pieces)
                assert found == holds(condition, thread, size)
