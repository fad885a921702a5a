"""NUM409: a mean that counts the padding."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from math import isclose
from typing import Final, NamedTuple

from ptxlint.dataflow.access import Limit, core_of, lanes_of, split_bound
from ptxlint.dataflow.padding import PROVED, Padding, PaddingAnalysis, Pair
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.reductions import WHOLE, Reduction, Reductions, ReductionsAnalysis
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Operand, Register, Vector
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_MOVES: Final = frozenset({"mov", "cvt"})
_MAX_STEPS: Final = 32
"""So many moves are followed from a sum to what divides it."""
_START = """
            .reg .pred %p<2>;
            .reg .b32 %r<24>;
            .reg .b64 %rd<5>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %tid.x;
            and.b32 %r2, %r2, 31;
            setp.lt.s32 %p1, %r2, %r1;
            mul.wide.s32 %rd3, %r2, 4;
            add.s64 %rd1, %rd1, %rd3;
            mov.b32 %r3, 0;
            @%p1 ld.global.b32 %r3, [%rd1];
            shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;
            add.f32 %r5, %r3, %r4;
            shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1;
            add.f32 %r7, %r5, %r6;
            shfl.sync.bfly.b32 %r8, %r7, 4, 31, -1;
            add.f32 %r9, %r7, %r8;
            shfl.sync.bfly.b32 %r10, %r9, 2, 31, -1;
            add.f32 %r11, %r9, %r10;
            shfl.sync.bfly.b32 %r12, %r11, 1, 31, -1;
            add.f32 %r13, %r11, %r12;
"""
_END = """
            st.global.b32 [%rd2], %r14;
            ret;
"""


class PaddingInCount(Rule):
    id = "NUM409"
    name = "padding-in-count"
    severity = "warning"
    confidence = "medium"
    category = "numerics"
    family = "tail-mask"
    needs = (PaddingAnalysis, ReductionsAnalysis, SymbolicAnalysis)
    summary = "A sum over the lanes below an extent is divided by the size of the tile."
    why = (
        "Masked lanes add nothing to the sum, and a mean that divides by the tile counts them all "
        "the same: it is too small by the factor n / BLOCK. With sizes that fill the tile the "
        "result is right. The variance that a norm divides by goes wrong in the same way."
    )
    fix = "Divide by the extent that the mask compares with: tl.sum(x) / n."
    bad = (
        Sample(
            "multiplied by the reciprocal of the tile",
            _START + "            mul.f32 %r14, %r13, 0f3D000000; //~ NUM409" + _END,
        ),
        Sample(
            "divided by the tile",
            _START + "            div.full.f32 %r14, %r13, 0f42000000; //~ NUM409" + _END,
        ),
    )
    good = (
        Sample(
            "divided by the extent",
            _START
            + """
            cvt.rn.f32.s32 %r15, %r1;
            div.full.f32 %r14, %r13, %r15;
"""
            + _END,
        ),
        Sample(
            "scaled by another constant",
            _START + "            mul.f32 %r14, %r13, 0f3E000000;" + _END,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each place that divides such a sum; a verdict for each that divides at all."""
        counts = _Counts(facts)
        seen: set[object] = set()
        for masked in counts.sums():
            for divisor in counts.divisors(masked.reduction.result):
                place = divisor.at.loc or divisor.at.index
                if place in seen:
                    continue
                if divisor.number is not None and isclose(divisor.number, masked.tile):
                    seen.add(place)
                    yield _hit(masked, divisor.at)
                    reason = f"a sum below `{masked.extent}` is divided by the tile"
                    yield Verdict("refuted", reason, divisor.at)
                elif counts.is_made_of(divisor, masked.extent):
                    seen.add(place)
                    yield Verdict("proved", "the sum is divided by its extent", divisor.at)


class Masked(NamedTuple):
    """A sum of lanes, all of those that a mask lets in: `index < extent`, of `tile` lanes."""

    reduction: Reduction
    pair: Pair
    extent: Polynomial
    tile: int


class Divisor(NamedTuple):
    """What a value is divided by: a number, or what a register holds."""

    at: Instr
    number: float | None
    value: int | None


class _Counts:
    """Sums over masked lanes, and what they are divided by."""

    def __init__(self, facts: Facts) -> None:
        self._padding: Padding = facts.get(PaddingAnalysis)
        self._reductions: Reductions = facts.get(ReductionsAnalysis)
        self._symbolic: Symbolic = facts.get(SymbolicAnalysis)
        self._ssa = self._reductions.ssa
        self._instrs = facts.function.instrs

    def sums(self) -> Iterator[Masked]:
        """The sums, with the tile that the mask is about."""
        found: dict[tuple[int, Polynomial], list[tuple[Pair, Limit]]] = {}
        for verdict in self._padding.verdicts:
            for pair in verdict.pairs:
                limit = self._counted(pair)
                if limit is not None and pair.reduction is not None:
                    key = (pair.reduction.result, limit.extent)
                    found.setdefault(key, []).append((pair, limit))
        for (_, extent), members in found.items():
            pair = members[0][0]
            tile = 1 + max(_last(limit) for _, limit in members)
            if pair.reduction is not None:
                yield Masked(pair.reduction, pair, extent, tile)

    def _counted(self, pair: Pair) -> Limit | None:
        """The bound of a mask whose lanes a sum combines and adds nothing for."""
        reduction, leaf = pair.reduction, pair.leaf
        if reduction is None or leaf is None or pair.status != PROVED or pair.value is None:
            return None
        if reduction.operator != "add" or reduction.loops or reduction.partial:
            return None
        if not self._padding.bits(pair.conjunct) & leaf.lanes:
            return None
        limit = split_bound(pair.conjunct)
        # A tile that moves over the grid may be meant to be padded: its last one is a choice.
        if limit is None or core_of(limit.compared).depends or not lanes_of(limit.compared).terms:
            return None
        return limit

    def divisors(self, value: int) -> Iterator[Divisor]:
        """What a value is divided by, behind moves, conversions and shared memory."""
        work, seen = [value], {value}
        while work and len(seen) < _MAX_STEPS:
            current = work.pop()
            for user in self._ssa.instr_users(current):
                if user.opcode in _MOVES and len(user.defs) == 1:
                    onward = [self._ssa.def_values[user.index][0]]
                elif user.opcode == "st" and user.shape.space == "shared":
                    onward = self._read_back.get(self._ssa.resolve(current), [])
                else:
                    onward = []
                    yield from self._divisor(user, current)
                work += [v for v in onward if v not in seen]
                seen.update(onward)

    @cached_property
    def _read_back(self) -> dict[int, list[int]]:
        """By value: what is loaded from shared memory where that value alone was stored."""
        found: dict[int, list[int]] = {}
        for instr in self._instrs:
            if instr.opcode != "ld" or instr.shape.space != "shared":
                continue
            if not self._ssa.cfg.is_reachable(instr):
                continue
            for loaded in map(self._ssa.written, self._ssa.def_values[instr.index]):
                stored = set(self._reductions.stored_before(loaded))
                node = stored.pop() if len(stored) == 1 else None
                if node is not None and node.part == WHOLE:
                    found.setdefault(self._ssa.resolve(node.value), []).append(loaded)
        return found

    def _divisor(self, user: Instr, value: int) -> Iterator[Divisor]:
        operands = user.operands
        if user.opcode in ("mul", "fma"):
            for operand, other in ((operands[1], operands[2]), (operands[2], operands[1])):
                if self._is(user, operand, value) and not self._is(user, other, value):
                    yield from self._inverse(user, other)
        elif user.opcode == "div" and self._is(user, operands[1], value):
            number = self._number(user, operands[2], 4)
            yield Divisor(user, number, self._reductions.read(user, operands[2]))

    def _inverse(self, user: Instr, factor: Operand) -> Iterator[Divisor]:
        """The divisor behind a factor: of a constant, of 1 / x and of rcp(x)."""
        number = self._number(user, factor, 4)
        if number is not None:
            if number:
                yield Divisor(user, 1 / number, None)
            return
        made = self._made(user, factor)
        if made is not None and made.opcode in ("div", "rcp"):
            yield Divisor(user, None, self._reductions.read(made, made.operands[-1]))

    def _is(self, instr: Instr, operand: Operand, value: int) -> bool:
        return self._reductions.read(instr, operand) == self._ssa.resolve(value)

    def _made(self, instr: Instr, operand: Operand) -> Instr | None:
        value = self._reductions.read(instr, operand)
        return None if value is None else self._reductions.definition(value)

    def _number(self, instr: Instr, operand: Operand, depth: int) -> float | None:
        """The constant that an operand is, through moves and divisions of constants."""
        if isinstance(operand, Immediate):
            return _as_number(instr, operand)
        if isinstance(operand, Vector):
            found = {self._number(instr, element, depth) for element in operand.elements}
            return found.pop() if len(found) == 1 else None
        if not isinstance(operand, Register) or depth <= 0:
            return None
        made = self._made(instr, operand)
        if made is None or made.guard is not None:
            return None
        if made.opcode == "mov" and len(made.operands) == 2:
            return self._number(made, made.operands[1], depth - 1)
        if made.opcode == "div" and made.shape.type.startswith("f"):
            above, below = (self._number(made, o, depth - 1) for o in made.operands[1:3])
            return above / below if above is not None and below else None
        if made.opcode == "rcp":
            below = self._number(made, made.operands[1], depth - 1)
            return 1 / below if below else None
        return None

    def is_made_of(self, divisor: Divisor, extent: Polynomial) -> bool:
        """True if a divisor is the extent as a floating-point number."""
        value = divisor.value
        made = None if value is None else self._reductions.definition(value)
        if made is None or made.opcode != "cvt" or not made.shape.types[0].startswith("f"):
            return False
        return self._symbolic.operand(made, 1) == extent


def _as_number(instr: Instr, literal: Immediate) -> float | None:
    """A literal as the number that it stands for; integers are the bits of a 32-bit one."""
    if literal.kind != "int":
        return literal.as_float(instr.shape.type if instr.shape.type.startswith("f") else "f32")
    if not -(1 << 31) <= literal.value < 1 << 32:
        return None
    number: float = struct.unpack("<f", struct.pack("<I", literal.value & 0xFFFFFFFF))[0]
    return number


def _last(limit: Limit) -> int:
    """The greatest index that is compared: the lanes' and what the bound says of the register's."""
    return lanes_of(limit.compared).range()[1] - limit.bound.constant - 1


def _hit(masked: Masked, at: Instr) -> Hit:
    return Hit(
        f"the sum of the lanes below `{masked.extent}` is divided by the tile of {masked.tile}",
        at,
        related=(
            Note(
                f"`{masked.extent}` lanes of {masked.tile} are loaded here", masked.pair.site.instr
            ),
            Note("and added up here", masked.reduction.at),
        ),
        breaks_when=f"`{masked.extent}` is not {masked.tile}",
        key=f"divided by {masked.tile}",
    )
