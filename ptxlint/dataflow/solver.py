"""The solver of bit-vector dataflow problems over a control-flow graph.

Facts are bits of Python integers. A problem says for each instruction, or for each block, which
facts it makes (`gen`) and which it ends (`kill`); afterwards `gen | (before & ~kill)` holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Final, Literal, TypeAlias

from ptxlint.cfg.graph import Block, Cfg
from ptxlint.ir.instruction import Instr

Kind: TypeAlias = Literal["maybe", "must"]
Direction: TypeAlias = Literal["forward", "backward"]

MAYBE: Final = "maybe"
"""A fact holds if it holds on some path."""
MUST: Final = "must"
"""A fact holds if it holds on every path."""
FORWARD: Final = "forward"
BACKWARD: Final = "backward"

GenKill: TypeAlias = Callable[[Instr], tuple[int, int]]
"""For an instruction the facts that it makes and those that it ends."""


class Solution:
    """The facts at both ends of every block, in text order whatever the direction.

    Blocks that the entry does not reach have no facts (`maybe`) or all of them (`must`).
    """

    __slots__ = ("_cfg", "_direction", "_gen_kill", "after", "before")

    def __init__(
        self,
        cfg: Cfg,
        gen_kill: GenKill,
        direction: Direction,
        before: list[int],
        after: list[int],
    ) -> None:
        self._cfg = cfg
        self._gen_kill = gen_kill
        self._direction = direction
        self.before = before
        """Facts at the top of each block."""
        self.after = after
        """Facts at the bottom of each block."""

    def points(self, block: Block | int) -> list[tuple[int, int]]:
        """The facts before and after each instruction of a block, in text order."""
        if isinstance(block, int):
            block = self._cfg.blocks[block]
        forward = self._direction == FORWARD
        instrs = self._cfg.instructions(block)
        facts = self.before[block.index] if forward else self.after[block.index]
        out: list[tuple[int, int]] = []
        for instr in instrs if forward else reversed(instrs):
            gen, kill = self._gen_kill(instr)
            then = gen | (facts & ~kill)
            out.append((facts, then) if forward else (then, facts))
            facts = then
        if not forward:
            out.reverse()
        return out

    def before_instr(self, instr: Instr) -> int:
        """The facts just before an instruction; costs a walk over its block."""
        block = self._cfg.block_at(instr)
        return self.points(block)[instr.index - block.start][0]

    def after_instr(self, instr: Instr) -> int:
        """The facts just after an instruction; costs a walk over its block."""
        block = self._cfg.block_at(instr)
        return self.points(block)[instr.index - block.start][1]


def run_analysis(
    cfg: Cfg,
    gen_kill: GenKill,
    *,
    kind: Kind,
    direction: Direction,
    boundary: int = 0,
    universe: int = 0,
) -> Solution:
    """Solve a problem that is given per instruction.

    `boundary` holds at the entry (`forward`) or wherever control leaves (`backward`). `universe`
    is the set of all facts and must be given for `must` problems.
    """
    count = len(cfg.blocks)
    gens, kills = [0] * count, [0] * count
    for index in cfg.rpo:
        instrs = cfg.instructions(index)
        gens[index], kills[index] = _summary(
            gen_kill, iter(instrs) if direction == FORWARD else reversed(instrs)
        )
    before, after = solve_blocks(
        cfg,
        gens,
        kills,
        kind=kind,
        direction=direction,
        boundary=boundary,
        universe=universe,
    )
    return Solution(cfg, gen_kill, direction, before, after)


def _summary(gen_kill: GenKill, instrs: Iterator[Instr]) -> tuple[int, int]:
    """The composition of the instructions' effects, in the order in which facts flow."""
    all_gen = all_kill = 0
    for instr in instrs:
        gen, kill = gen_kill(instr)
        all_gen = gen | (all_gen & ~kill)
        all_kill |= kill
    return all_gen, all_kill


def solve_blocks(
    cfg: Cfg,
    gen: list[int],
    kill: list[int],
    *,
    kind: Kind,
    direction: Direction,
    boundary: int = 0,
    universe: int = 0,
) -> tuple[list[int], list[int]]:
    """Solve a problem that is given per block; facts at the top and the bottom of each block.

    Lists are indexed by block. See `run_analysis` for the rest.
    """
    blocks = cfg.blocks
    if direction == FORWARD:
        order, place = cfg.rpo, cfg.position
        sources = [b.preds for b in blocks]
        dependents = [b.succs for b in blocks]
        edge = {cfg.entry}
    else:
        order = cfg.rpo[::-1]
        last = len(order) - 1
        place = [last - p if p >= 0 else -1 for p in cfg.position]
        sources = [b.succs for b in blocks]
        dependents = [b.preds for b in blocks]
        edge = set(cfg.exits)
    solve = _solve_maybe if kind == MAYBE else _solve_must
    work = Worklist(order, place)
    start, end = solve(work, sources, dependents, edge, gen, kill, boundary, universe)
    return (start, end) if direction == FORWARD else (end, start)


def _solve_maybe(
    work: Worklist,
    sources: list[list[int]],
    dependents: list[list[int]],
    edge: set[int],
    gen: list[int],
    kill: list[int],
    boundary: int,
    universe: int,
) -> tuple[list[int], list[int]]:
    """Least solution by union; facts where they enter each block and where they leave it."""
    enter = [0] * len(gen)
    leave = [0] * len(gen)
    while work:
        index = work.pop()
        facts = boundary if index in edge else 0
        for source in sources[index]:
            facts |= leave[source]
        enter[index] = facts
        # `facts & ~kill` without the negative number, which costs Python twice the time.
        facts = gen[index] | (facts ^ (facts & kill[index]))
        if facts != leave[index]:
            leave[index] = facts
            for dependent in dependents[index]:
                work.push(dependent)
    return enter, leave


def _solve_must(
    work: Worklist,
    sources: list[list[int]],
    dependents: list[list[int]],
    edge: set[int],
    gen: list[int],
    kill: list[int],
    boundary: int,
    universe: int,
) -> tuple[list[int], list[int]]:
    """Greatest solution by intersection; facts where they enter each block and leave it."""
    enter = [universe] * len(gen)
    leave = [universe] * len(gen)
    while work:
        index = work.pop()
        facts = boundary if index in edge else universe
        for source in sources[index]:
            facts &= leave[source]
        enter[index] = facts
        facts = gen[index] | (facts ^ (facts & kill[index]))
        if facts != leave[index]:
            leave[index] = facts
            for dependent in dependents[index]:
                work.push(dependent)
    return enter, leave


class Worklist:
    """Blocks to visit, in sweeps through a given order.

    A block that is pushed while the sweep has passed it waits for the next one: so a loop's
    header is looked at once for all of its latches, not once for each.
    """

    __slots__ = ("_next", "_now", "_order", "_place", "_swept", "_waiting")

    def __init__(self, order: list[int], place: list[int], start: list[int] | None = None) -> None:
        """`place` is the position in `order` by block, -1 for blocks to ignore.

        `start` is what waits at first; all blocks if it is None.
        """
        self._order = order
        self._place = place
        self._swept = -1
        self._next: list[int] = []
        if start is None:
            self._now = list(range(len(order)))
            self._waiting = bytearray(b"\1") * len(order)
        else:
            self._now = []
            self._waiting = bytearray(len(order))
            for index in start:
                self.push(index)

    def __bool__(self) -> bool:
        return bool(self._now) or bool(self._next)

    def pop(self) -> int:
        """Take the next block of the sweep."""
        if not self._now:
            self._now, self._next = self._next, self._now
        place = heappop(self._now)
        self._swept = place
        self._waiting[place] = 0
        return self._order[place]

    def push(self, index: int) -> None:
        """Add a block unless it waits already."""
        place = self._place[index]
        if place >= 0 and not self._waiting[place]:
            self._waiting[place] = 1
            heappush(self._now if place > self._swept else self._next, place)
