"""Liveness, pressure, the solver and reaching definitions against naive references.

The references work instruction by instruction on random small functions. For reaching definitions
they run the function in every possible way, predicates included.
"""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ptxlint.cfg.build import build
from ptxlint.cfg.graph import Cfg
from ptxlint.dataflow.liveness import Liveness, bit_mask, bit_numbers
from ptxlint.dataflow.pressure import Pressure
from ptxlint.dataflow.reaching import UNINITIALISED, Reaching
from ptxlint.dataflow.solver import (
    BACKWARD,
    FORWARD,
    MAYBE,
    MUST,
    Direction,
    Kind,
    run_analysis,
)
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register
from ptxlint.ir.types import words

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{
.reg .pred %p<3>;
.reg .b16 %rs<3>;
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
"""
GUARDS = ("", "", "", "@%p1 ", "@!%p1 ", "@%p2 ", "@!%p2 ")
PLAIN = (
    "mov.u32 %r1, 1;",
    "mov.u32 %r2, 2;",
    "mov.u32 %r2, %r1;",
    "add.s32 %r1, %r1, %r2;",
    "add.s32 %r3, %r2, 7;",
    "mov.b64 %rd1, {%r1, %r2};",
    "mov.b64 {%r2, %r3}, %rd1;",
    "cvt.u16.u32 %rs1, %r1;",
    "st.global.b32 [%rd1], %r3;",
    "st.global.b16 [%rd1], %rs1;",
    "setp.lt.s32 %p1, %r1, 4;",
    "setp.lt.s32 %p2, %r2, 4;",
)


@st.composite
def bodies(draw: st.DrawFn, most_blocks: int = 6, guarded_setp: bool = True) -> str:
    """A kernel's body of labelled blocks with random instructions and ends."""
    size = draw(st.integers(1, most_blocks))
    label = st.integers(0, size - 1)
    lines: list[str] = []
    for index in range(size):
        lines.append(f"L{index}:")
        for text in draw(st.lists(st.sampled_from(PLAIN), max_size=5)):
            guard = draw(st.sampled_from(GUARDS))
            lines.append(text if text.startswith("setp") and not guarded_setp else guard + text)
        if size > 1:
            guard = draw(st.sampled_from(GUARDS))
            end = draw(st.sampled_from(("", "bra", "bra", "bra", "ret;", "trap;")))
            if end:
                lines.append(guard + (f"bra L{draw(label)};" if end == "bra" else end))
    return "\n".join(lines)


def graph_of(body: str) -> Cfg:
    module = parse(f"{HEAD}{body}\n}}\n")
    assert not module.problems, module.problems
    return build(module.functions[0])


examples = settings(derandomize=True, deadline=None)


def reachable(cfg: Cfg) -> Iterator[Instr]:
    return (i for i in cfg.function.instrs if cfg.is_reachable(i))


def next_of(cfg: Cfg, index: int) -> tuple[list[int], bool]:
    """The instructions that may run after one, and whether the function may end there.

    Empty blocks are passed through.
    """
    block = cfg.blocks[cfg.block_of[index]]
    if index + 1 < block.end:
        return [index + 1], False
    found: list[int] = []
    ends = bool(block.leave)
    work, seen = list(block.succs), set()
    while work:
        at = work.pop()
        if at not in seen:
            seen.add(at)
            if len(cfg.blocks[at]):
                found.append(cfg.blocks[at].start)
            else:
                work += cfg.blocks[at].succs
                ends = ends or bool(cfg.blocks[at].leave)
    return found, ends


def is_live_after(cfg: Cfg, index: int, register: Register) -> bool:
    """Search for a path to a read that passes no sure write."""
    work, seen = next_of(cfg, index)[0], set()
    while work:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        instr = cfg.function.instrs[at]
        if register in instr.uses:
            return True
        if instr.may_define or register not in instr.defs:
            work += next_of(cfg, at)[0]
    return False


@examples
@given(bodies().map(graph_of))
def test_liveness_and_pressure(cfg: Cfg) -> None:
    liveness = Liveness(cfg)
    pressure = Pressure(cfg, liveness)
    peak = 0
    for instr in cfg.function.instrs:
        live = set()
        if cfg.is_reachable(instr):
            registers = cfg.function.registers
            live = {r for r in registers if is_live_after(cfg, instr.index, r)}
        assert liveness.after(instr) == live
        occupied = live | set(instr.defs) if cfg.is_reachable(instr) else set()
        counts = pressure.counts(instr)
        assert counts.words == sum(words(r.type) for r in occupied) == pressure.words(instr)
        assert counts.predicates == sum(r.type == "pred" for r in occupied)
        assert counts.b64 == 2 * sum(r.type == "b64" for r in occupied)
        assert counts.b16 == sum(r.type == "b16" for r in occupied)
        assert counts.b16 + counts.b32 + counts.b64 + counts.b128 == counts.words
        at_point = {v.register for v in pressure.live_at(instr)}
        assert at_point == occupied
        peak = max(peak, counts.words)
    assert pressure.peak.words == peak
    for block in cfg.blocks:
        check_block_ends(cfg, liveness, block.index)


def check_block_ends(cfg: Cfg, liveness: Liveness, index: int) -> None:
    """The sets at a block's ends are those of its outermost instructions."""
    block = cfg.blocks[index]
    if not len(block) or index not in cfg.reachable:
        return
    first, last = cfg.function.instrs[block.start], cfg.function.instrs[block.end - 1]
    assert set(liveness.registers(liveness.live_in[index])) == liveness.before(first)
    assert set(liveness.registers(liveness.live_out[index])) == liveness.after(last)
    for register in cfg.function.registers:
        assert liveness.is_live_in(index, register) == (register in liveness.before(first))
        assert liveness.is_live_out(index, register) == (register in liveness.after(last))


def naive_solution(
    cfg: Cfg,
    table: list[tuple[int, int]],
    kind: Kind,
    direction: Direction,
    boundary: int,
    universe: int,
) -> dict[int, tuple[int, int]]:
    """Facts before and after each reachable instruction, by iterating over all edges."""
    top = 0 if kind == MAYBE else universe
    indices = [i.index for i in reachable(cfg)]
    edges = [(a, b) for a in indices for b in next_of(cfg, a)[0]]
    ends = {a for a in indices if next_of(cfg, a)[1]}
    start = next((b for b in (next_of_entry(cfg),) if b is not None), None)
    enter, leave = dict.fromkeys(indices, top), dict.fromkeys(indices, top)
    changed = True
    while changed:
        changed = False
        for index in indices:
            if direction == FORWARD:
                sources = [leave[a] for a, b in edges if b == index]
                sources += [boundary] if index == start else []
            else:
                sources = [leave[b] for a, b in edges if a == index]
                sources += [boundary] if index in ends else []
            facts = top
            for source in sources:
                facts = facts | source if kind == MAYBE else facts & source
            gen, kill = table[index]
            out = gen | (facts & ~kill)
            if (facts, out) != (enter[index], leave[index]):
                enter[index], leave[index] = facts, out
                changed = True
    if direction == FORWARD:
        return {i: (enter[i], leave[i]) for i in indices}
    return {i: (leave[i], enter[i]) for i in indices}


def next_of_entry(cfg: Cfg) -> int | None:
    """The first instruction; the entry block of these functions is empty only if all are."""
    return 0 if cfg.function.instrs else None


@examples
@given(
    bodies().map(graph_of),
    st.sampled_from((MAYBE, MUST)),
    st.sampled_from((FORWARD, BACKWARD)),
    st.data(),
)
def test_solver(cfg: Cfg, kind: Kind, direction: Direction, data: st.DataObject) -> None:
    count = len(cfg.function.instrs)
    # A block without instructions takes part in the reference only between others.
    assume(count and len(cfg.blocks[0]))
    bits = st.integers(0, 15)
    table = data.draw(st.lists(st.tuples(bits, bits), min_size=count, max_size=count))
    boundary = data.draw(bits)
    solution = run_analysis(
        cfg,
        lambda instr: table[instr.index],
        kind=kind,
        direction=direction,
        boundary=boundary,
        universe=15,
    )
    expected = naive_solution(cfg, table, kind, direction, boundary, 15)
    for instr in reachable(cfg):
        before, after = expected[instr.index]
        assert solution.before_instr(instr) == before
        assert solution.after_instr(instr) == after


State = tuple[int, tuple[int, ...], tuple[bool, ...]]


def run_in_every_way(cfg: Cfg) -> dict[tuple[int, int], set[int]]:
    """By instruction and register read, the last writers over all runs.

    A comparison may come out either way; a predicate that was never written may be anything.
    """
    fn = cfg.function
    predicates = [r.index for r in fn.registers if r.type == "pred"]
    place = {index: at for at, index in enumerate(predicates)}
    found: dict[tuple[int, int], set[int]] = {}
    values: list[tuple[bool, ...]] = [()]
    for _ in predicates:
        values = [(*v, bit) for v in values for bit in (False, True)]
    unwritten = (UNINITIALISED,) * len(fn.registers)
    work: list[State] = [(0, unwritten, v) for v in values]
    seen = set(work)
    while work:
        at, writers, value = work.pop()
        if at >= len(fn.instrs):
            continue
        instr = fn.instrs[at]
        guard = instr.guard
        runs = guard is None or value[place[guard.index]] == (instr.shape.guard == "@")
        for register in instr.uses if runs else (guard,):
            if register is not None:
                found.setdefault((at, register.index), set()).add(writers[register.index])
        for state in step(instr, runs, writers, value, place):
            if state not in seen:
                seen.add(state)
                work.append(state)
    return found


def step(
    instr: Instr,
    runs: bool,
    writers: tuple[int, ...],
    value: tuple[bool, ...],
    place: dict[int, int],
) -> list[State]:
    """The states after an instruction."""
    following = instr.index + 1
    if not runs:
        return [(following, writers, value)]
    kind = instr.shape.row.terminator
    if kind in ("return", "exit", "trap"):
        return []
    if kind == "branch":
        return [(instr.args[-1].target, writers, value)]  # type: ignore[union-attr]
    after = list(writers)
    for register in instr.defs:
        after[register.index] = instr.index
    values = [value]
    for register in instr.defs:
        if register.index in place:
            at = place[register.index]
            values = [(*v[:at], b, *v[at + 1 :]) for v in values for b in (False, True)]
    return [(following, tuple(after), v) for v in values]


@examples
@given(bodies(most_blocks=5).map(graph_of))
def test_no_writer_is_missing(cfg: Cfg) -> None:
    reaching = Reaching(cfg, Liveness(cfg))
    truth = run_in_every_way(cfg)
    for (at, index), writers in truth.items():
        instr, register = cfg.function.instrs[at], cfg.function.registers[index]
        found = set(reaching.defs_of(instr, register))
        assert writers <= found, (at, register, writers, found)
        state = reaching.initialisation(instr, register)
        assert state != "always" or UNINITIALISED not in writers
        assert state != "never" or writers == {UNINITIALISED}
        if UNINITIALISED in writers:
            assert register in reaching.uninitialised_candidates()
        for writer in writers - {UNINITIALISED}:
            assert instr in reaching.uses_of(cfg.function.instrs[writer])


@examples
@given(bodies(most_blocks=1, guarded_setp=False).map(graph_of))
def test_in_one_block_no_writer_is_invented(cfg: Cfg) -> None:
    reaching = Reaching(cfg, Liveness(cfg))
    truth = run_in_every_way(cfg)
    for instr in cfg.function.instrs:
        for register in instr.uses:
            writers = truth.get((instr.index, register.index), set())
            assert set(reaching.defs_of(instr, register)) == writers


@examples
@given(bodies().map(graph_of))
def test_guards_only_ever_narrow_the_classic_solution(cfg: Cfg) -> None:
    reaching = Reaching(cfg, Liveness(cfg))
    fn = cfg.function
    sites = [(i.index, r.index) for i in fn.instrs for r in dict.fromkeys(i.defs)]
    sites += [(UNINITIALISED, r.index) for r in fn.registers]
    bit = {site: number for number, site in enumerate(sites)}

    def gen_kill(instr: Instr) -> tuple[int, int]:
        written = {r.index for r in instr.defs}
        gen = bit_mask([bit[instr.index, index] for index in written])
        if instr.may_define:
            return gen, 0
        return gen, bit_mask([bit[s] for s in sites if s[1] in written])

    boundary = bit_mask([bit[UNINITIALISED, r.index] for r in fn.registers])
    solution = run_analysis(cfg, gen_kill, kind=MAYBE, direction=FORWARD, boundary=boundary)
    for instr in reachable(cfg):
        facts = {sites[number] for number in bit_numbers(solution.before_instr(instr))}
        for register in instr.uses:
            classic = {at for at, index in facts if index == register.index}
            assert set(reaching.defs_of(instr, register)) <= classic


@examples
@given(st.sets(st.integers(0, 300)))
def test_bit_masks(numbers: set[int]) -> None:
    mask = bit_mask(list(numbers))
    assert mask == sum(1 << n for n in numbers)
    assert bit_numbers(mask) == sorted(numbers)
