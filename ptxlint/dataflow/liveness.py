"""Liveness: at which points the value of a register may still be read.

A definition that may leave the old value in place (a guard, a partial write) does not end the
life of the value before it. Only registers that some block reads before it writes them take part
in the flow between blocks; the others live and die within one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Block, Cfg
from ptxlint.dataflow.solver import BACKWARD, MAYBE, solve_blocks
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function, Variable
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Register


class Liveness:
    """Live registers at both ends of every block, and within blocks on demand.

    `live_in` and `live_out` are bit sets by block, whose bit k stands for `crossing[k]`.
    Unreachable blocks have no live registers.
    """

    __slots__ = ("_cfg", "bit", "crossing", "live_in", "live_out")

    def __init__(self, cfg: Cfg) -> None:
        self._cfg = cfg
        fn = cfg.function
        exposed, killed = _scan(cfg)
        results = registers_of(fn, fn.returns)
        self.bit = [-1] * len(fn.registers)
        """Register index to bit number; -1 for a register that crosses no block boundary."""
        self.crossing: list[Register] = []
        """The registers that are live across some block boundary, in order of first such use."""
        for indices in ([r.index for r in results], *exposed):
            for index in indices:
                if self.bit[index] < 0:
                    self.bit[index] = len(self.crossing)
                    self.crossing.append(fn.registers[index])
        gen = [self._mask(indices) for indices in exposed]
        kill = [self._mask(indices) for indices in killed]
        boundary = self._mask([r.index for r in results])
        self.live_in, self.live_out = solve_blocks(
            cfg, gen, kill, kind=MAYBE, direction=BACKWARD, boundary=boundary
        )

    def _mask(self, indices: list[int]) -> int:
        """The bit set of these register indices; those that cross no boundary are left out."""
        return bit_mask([bit for index in indices if (bit := self.bit[index]) >= 0])

    def is_live_in(self, block: int, register: Register) -> bool:
        """True if the register's value at the top of the block may be read later."""
        bit = self.bit[register.index]
        return bit >= 0 and bool(self.live_in[block] >> bit & 1)

    def is_live_out(self, block: int, register: Register) -> bool:
        """True if the register's value at the bottom of the block may be read later."""
        bit = self.bit[register.index]
        return bit >= 0 and bool(self.live_out[block] >> bit & 1)

    def registers(self, bits: int) -> list[Register]:
        """The registers of a bit set such as `live_in[b]`."""
        return list(map(self.crossing.__getitem__, bit_numbers(bits)))

    def walk(self, block: Block | int) -> Iterator[tuple[Instr, set[Register]]]:
        """The instructions of a block from last to first, each with what is live *after* it.

        The set is one and the same all along: copy it to keep it. When the walk has ended it
        holds what is live at the top of the block.
        """
        cfg = self._cfg
        if isinstance(block, int):
            block = cfg.blocks[block]
        live = set(self.registers(self.live_out[block.index]))
        if cfg.position[block.index] < 0:
            return
        for instr in reversed(cfg.instructions(block)):
            yield instr, live
            if instr.defs and not instr.may_define:
                live.difference_update(instr.defs)
            live.update(reads(instr))

    def after(self, instr: Instr) -> set[Register]:
        """The registers live just after an instruction; costs a walk over its block."""
        for at, live in self.walk(self._cfg.block_at(instr)):
            if at is instr:
                return live.copy()
        return set()

    def before(self, instr: Instr) -> set[Register]:
        """The registers live just before an instruction; costs a walk over its block."""
        if not self._cfg.is_reachable(instr):
            return set()
        live = self.after(instr)
        if not instr.may_define:
            live.difference_update(instr.defs)
        live.update(reads(instr))
        return live


def reads(instr: Instr) -> tuple[Register, ...]:
    """The registers whose values an instruction needs: `uses` but for one case.

    `wgmma.mma_async` with a literal 0 as scale-d computes `D = A*B` and so only overwrites its
    accumulators (PTX ISA, "wgmma.mma_async").
    """
    shape = instr.shape
    if shape.opcode != "wgmma" or not instr.defs:
        return instr.uses
    at = 5 if "sp" in shape.modifiers else 3
    operands = instr.operands
    scale = operands[at] if at < len(operands) else None
    if not isinstance(scale, Immediate) or scale.value != 0:
        return instr.uses
    # Uses are in operand order: the guard, the accumulators, the rest.
    first = 1 if shape.guard else 0
    return instr.uses[:first] + instr.uses[first + len(instr.defs) :]


def bit_mask(numbers: list[int]) -> int:
    """The bit set of these bit numbers."""
    if len(numbers) < 8:
        mask = 0
        for number in numbers:
            mask |= 1 << number
        return mask
    # One byte array instead of one long integer for each bit.
    low, high = min(numbers), max(numbers)
    raw = bytearray((high - low >> 3) + 1)
    for number in numbers:
        number -= low
        raw[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(raw, "little") << low


def bit_numbers(bits: int) -> list[int]:
    """The numbers of the set bits, ascending."""
    text = f"{bits:b}"[::-1]
    out: list[int] = []
    at = text.find("1")
    while at >= 0:
        out.append(at)
        at = text.find("1", at + 1)
    return out


def registers_of(fn: Function, variables: tuple[Variable, ...]) -> list[Register]:
    """The registers of parameters or results that are passed in registers (`.func (.reg …)`)."""
    names = {v.name for v in variables if v.space == "reg"}
    if not names:
        return []
    return [r for r in fn.registers if r.scope == 0 and r.name in names]


def _scan(cfg: Cfg) -> tuple[list[list[int]], list[list[int]]]:
    """By block, the registers (indices) read before they are written, and those surely written."""
    fn = cfg.function
    exposed: list[list[int]] = [[] for _ in cfg.blocks]
    killed: list[list[int]] = [[] for _ in cfg.blocks]
    # The last block that read, or wrote, each register: saves a set per block.
    read_in = [-1] * len(fn.registers)
    written_in = [-1] * len(fn.registers)
    for block in map(cfg.blocks.__getitem__, sorted(cfg.rpo)):
        here = block.index
        above, written = exposed[here], killed[here]
        for instr in fn.instrs[block.start : block.end]:
            uses = instr.uses
            for register in uses if len(uses) < 3 else reads(instr):
                index = register.index
                if written_in[index] != here and read_in[index] != here:
                    read_in[index] = here
                    above.append(index)
            shape = instr.shape
            if shape.guard or shape.partial:
                continue
            for register in instr.defs:
                index = register.index
                if written_in[index] != here:
                    written_in[index] = here
                    written.append(index)
    return exposed, killed


class LivenessAnalysis(Analysis[Liveness]):
    """Liveness as facts of a function."""

    name: ClassVar[str] = "liveness"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (CfgAnalysis,)

    def run(self, facts: Facts) -> Liveness:
        """Solve for the block boundaries."""
        return Liveness(facts.get(CfgAnalysis))
