"""Register pressure: how many 32-bit registers the live values need at every instruction.

Counted is the point just after an instruction, its own results included even if nothing reads
them: they need a place to be written to. A 64-bit value takes two registers, a 128-bit value
four. A 16-bit or 8-bit value takes a whole one: the register file is addressed in words of 32
bits, and the assembler does not pack unrelated small values into one. Predicates live in a file
of their own and are counted apart.

In PTX this is an estimate of what the assembler will allocate: it schedules, rematerialises and
spills. In machine code registers are those of the hardware; those that a warp has for all its
threads, uniform (`UR`, `UP`) and for convergence (`B`), are left out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Block, Cfg
from ptxlint.dataflow.liveness import Liveness, LivenessAnalysis, bit_mask, reads
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Register
from ptxlint.ir.types import bits, words
from ptxlint.source import SourceFrame

# All counts of a point are kept in one integer, so that one addition updates them together.
# The total stands at the top: comparing two points compares their totals first.
_FIELD = 24
_LIMIT = (1 << _FIELD) - 1
_CLASSES = ("predicates", "b16", "b32", "b64", "b128")
_TOTAL = _FIELD * len(_CLASSES)
_MOST_COPIES = 64
"""Definitions that are looked at for the place of one value."""


class Counts(NamedTuple):
    """Live 32-bit words at one point, in all and by the width of the registers.

    `b16` counts registers of 8 and 16 bits. `predicates` are not part of `words`.
    """

    words: int
    b16: int
    b32: int
    b64: int
    b128: int
    predicates: int


class LiveValue(NamedTuple):
    """A register that is live at some point, the 32-bit words it takes, and who wrote it.

    `definitions` are the instructions that may have written the value, in text order.
    """

    register: Register
    words: int
    definitions: tuple[Instr, ...]


class Holder(NamedTuple):
    """A place in the source whose values are live at some point, and the words they take.

    `frame` is None for values without a known place; `first` is the first instruction there that
    makes one of them.
    """

    frame: SourceFrame | None
    words: int
    values: tuple[LiveValue, ...]
    first: Instr | None


class Pressure:
    """Counts of live registers at every instruction; unreachable ones count nothing."""

    __slots__ = ("_cfg", "_liveness", "_packed", "peak_instr")

    def __init__(self, cfg: Cfg, liveness: Liveness) -> None:
        self._cfg = cfg
        self._liveness = liveness
        self._packed = _count(cfg, liveness)
        self.peak_instr: Instr | None = None
        """The first instruction after which the most words are live; None without any."""
        if self._packed:
            totals = [packed >> _TOTAL for packed in self._packed]
            self.peak_instr = cfg.function.instrs[totals.index(max(totals))]

    @property
    def peak(self) -> Counts:
        """The counts at `peak_instr`."""
        return _unpack(0) if self.peak_instr is None else self.counts(self.peak_instr)

    def words(self, instr: Instr) -> int:
        """Live 32-bit words just after the instruction."""
        return self._packed[instr.index] >> _TOTAL

    def counts(self, instr: Instr) -> Counts:
        """Live words by register class just after the instruction."""
        return _unpack(self._packed[instr.index])

    def live_at(self, instr: Instr) -> list[LiveValue]:
        """What is live just after the instruction, largest values first, then in text order.

        Costs a walk over the function.
        """
        if not self._cfg.is_reachable(instr):
            return []
        fn = self._cfg.function
        live = {r for r in self._liveness.after(instr).union(instr.defs) if not _is_of_warp(fn, r)}
        definitions = self._definitions(instr, live)
        values = [LiveValue(r, _words(r), tuple(definitions[r])) for r in live]
        values.sort(key=lambda v: (-v.words, _first(v), v.register.index))
        return values

    def holders(self, instr: Instr, module: Module) -> list[Holder]:
        """What is live just after the instruction by source line, most words first.

        A value with several definitions is put to the first one on a known line (compilers give
        line 0 to what they make themselves), a copy without a line to what it copies.
        """
        by_line: dict[tuple[str, int] | None, list[LiveValue]] = {}
        frames: dict[tuple[str, int] | None, SourceFrame | None] = {None: None}
        firsts: dict[tuple[str, int] | None, Instr] = {}
        for value in self.live_at(instr):
            key = None
            origin = self._origin(value, module)
            if origin is not None:
                frame, first = origin
                key = (frame.path, frame.line)
                frames.setdefault(key, frame)
                if key not in firsts or first.index < firsts[key].index:
                    firsts[key] = first
            by_line.setdefault(key, []).append(value)
        holders = [
            Holder(frames[key], sum(v.words for v in values), tuple(values), firsts.get(key))
            for key, values in by_line.items()
        ]
        holders.sort(key=lambda h: (-h.words, h.frame is None, h.frame or ()))
        return holders

    def _origin(self, value: LiveValue, module: Module) -> tuple[SourceFrame, Instr] | None:
        """The first definition of a value on a known line, and that line."""
        work = list(value.definitions)
        seen = set(work)
        for instr in work:
            frame = module.python_frame(instr.loc)
            if frame is not None and frame.line > 0:
                return frame, instr
            if instr.opcode != "mov" or len(instr.uses) != 1 or len(work) > _MOST_COPIES:
                continue
            (source,) = instr.uses
            for before in self._definitions(instr, {source})[source]:
                if before not in seen:
                    seen.add(before)
                    work.append(before)
        return None

    def origins(self, instr: Instr, module: Module, most: int) -> list[tuple[int, Instr]]:
        """Where the values come from that are live just after an instruction: 32-bit words, and
        the first instruction, for each of the source lines that hold most (of the instructions, if
        no line is known)."""
        holders = self.holders(instr, module)
        found = [(holder.words, holder.first) for holder in holders if holder.first is not None]
        if not found:
            by_instr: dict[Instr, int] = {}
            for value in self.live_at(instr):
                for definition in value.definitions[:1]:
                    by_instr[definition] = by_instr.get(definition, 0) + value.words
            ranked = sorted(by_instr.items(), key=lambda pair: (-pair[1], pair[0].index))
            found = [(words, at) for at, words in ranked]
        return found[:most]

    def _definitions(self, instr: Instr, live: set[Register]) -> dict[Register, list[Instr]]:
        """The definitions that reach the point behind an instruction."""
        blocks, instrs = self._cfg.blocks, self._cfg.function.instrs
        found: dict[Register, set[int]] = {r: set() for r in live}
        start = self._cfg.block_at(instr)
        wanted = _collect(instrs[start.start : instr.index + 1], live, found)
        seen: dict[int, set[Register]] = {}
        work = [(block, wanted) for block in start.preds]
        while work:
            index, wanted = work.pop()
            known = seen.setdefault(index, set())
            fresh = wanted - known
            if not fresh:
                continue
            known |= fresh
            block = blocks[index]
            left = _collect(instrs[block.start : block.end], fresh, found)
            work += [(above, left) for above in block.preds] if left else []
        return {r: [instrs[at] for at in sorted(where)] for r, where in found.items()}


def _collect(
    instrs: list[Instr], wanted: set[Register], found: dict[Register, set[int]]
) -> set[Register]:
    """Note who defines the registers at the end of these instructions; returns those that may hold
    a value from above."""
    left = set(wanted)
    for at in reversed(instrs):
        for register in left.intersection(at.defs):
            found[register].add(at.index)
            if not at.may_define:
                left.discard(register)
    return left


def _is_of_warp(fn: Function, register: Register) -> bool:
    """True for a register of machine code that all threads of a warp share."""
    return fn.is_machine and register.name.startswith(("U", "B"))


def _first(value: LiveValue) -> int:
    return value.definitions[0].index if value.definitions else -1


def _words(register: Register) -> int:
    return words(register.type) * register.vector


def _unpack(packed: int) -> Counts:
    predicates, b16, b32, b64, b128 = (
        packed >> _FIELD * place & _LIMIT for place in range(len(_CLASSES))
    )
    return Counts(packed >> _TOTAL, b16, b32, b64, b128, predicates)


@lru_cache(maxsize=256)
def _weight(type_name: str, vector: int) -> int:
    """What one live register adds to a packed count."""
    if type_name == "pred":
        return vector
    width = max(16, bits(type_name))
    place = _CLASSES.index(f"b{width}") if f"b{width}" in _CLASSES else _CLASSES.index("b32")
    size = words(type_name) * vector
    return size << _FIELD * place | size << _TOTAL


def _count(cfg: Cfg, liveness: Liveness) -> list[int]:
    """The packed counts after each instruction."""
    fn = cfg.function
    packed = [0] * len(fn.instrs)
    weights = [0 if _is_of_warp(fn, r) else _weight(r.type, r.vector) for r in fn.registers]
    by_weight: dict[int, list[int]] = {}
    for bit, register in enumerate(liveness.crossing):
        by_weight.setdefault(weights[register.index], []).append(bit)
    masks = {weight: bit_mask(numbers) for weight, numbers in by_weight.items()}
    seen_in = [-1] * len(fn.registers)
    alive = bytearray(len(fn.registers))
    for index in cfg.rpo:
        live_out = liveness.live_out[index]
        total = 0
        for weight, mask in masks.items():
            total += weight * (live_out & mask).bit_count()
        _mark_live(cfg, cfg.blocks[index], liveness, seen_in, alive)
        _count_block(cfg, cfg.blocks[index], total, weights, alive, packed)
    return packed


def _mark_live(
    cfg: Cfg, block: Block, liveness: Liveness, seen_in: list[int], alive: bytearray
) -> None:
    """Set `alive` of every register that the block mentions to its state at the bottom."""
    live_out, bit_of, here = liveness.live_out[block.index], liveness.bit, block.index
    raw = live_out.to_bytes(live_out.bit_length() // 8 + 1, "little")
    size = len(raw)
    for instr in cfg.function.instrs[block.start : block.end]:
        for register in instr.defs + instr.uses:
            index = register.index
            if seen_in[index] != here:
                seen_in[index] = here
                bit = bit_of[index]
                byte = bit >> 3
                alive[index] = 0 <= byte < size and raw[byte] >> (bit & 7) & 1


def _count_block(
    cfg: Cfg,
    block: Block,
    total: int,
    weights: list[int],
    alive: bytearray,
    packed: list[int],
) -> None:
    """Walk a block backward from `total` live registers at its bottom."""
    for instr in reversed(cfg.function.instrs[block.start : block.end]):
        ending: tuple[Register, ...] | list[Register] = instr.defs
        if ending:
            unread: list[Register] = []
            for register in ending:
                index = register.index
                if not alive[index]:
                    alive[index] = 1
                    total += weights[index]
                    unread.append(register)
            packed[instr.index] = total
            shape = instr.shape
            if shape.guard or shape.partial:
                ending = unread
            for register in ending:
                index = register.index
                if alive[index]:
                    alive[index] = 0
                    total -= weights[index]
        else:
            packed[instr.index] = total
        uses = instr.uses
        for register in uses if len(uses) < 3 else reads(instr):
            index = register.index
            if not alive[index]:
                alive[index] = 1
                total += weights[index]


class PressureAnalysis(Analysis[Pressure]):
    """Register pressure as facts of a function."""

    name: ClassVar[str] = "pressure"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis, LivenessAnalysis)

    def run(self, facts: Facts) -> Pressure:
        """Count at every instruction."""
        return Pressure(facts.get(CfgAnalysis), facts.get(LivenessAnalysis))
