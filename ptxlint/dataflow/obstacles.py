"""What stands in the way of following values, in words.

Calls, instructions that nobody knows, cycles with several entries and blocks of unknown size leave
questions open. These are the words for which of them it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import PHI, Ssa
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Symbol

NO_BLOCK_SIZE: Final = "the size of a block is not known: the kernel has no `.reqntid`"
_STEPS: Final = 2_000
"""How many values behind one are looked at for a reason."""


def in_the_way_of_load(instr: Instr) -> str:
    """Why it is not known what a load leaves in its register; "" if it is known.

    A volatile one may read what nothing in the kernel wrote, at a time that nothing tells; a
    generic address may point to any memory.
    """
    if instr.opcode not in ("ld", "ldu"):
        return ""
    if "volatile" in instr.shape.modifiers:
        return "what a volatile load leaves is not followed"
    return "" if instr.shape.space else "what a load by a generic address leaves is not followed"


class Obstacles:
    """Reasons for which one function's values are not followed."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._ssa: Ssa = facts.get(SsaAnalysis)
        loops: LoopForest = facts.get(LoopsAnalysis)
        self._irreducible = frozenset(b for region in loops.irreducible for b in region.blocks)
        self._instrs = facts.function.instrs
        self._has_any: bool | None = None
        self._clear: set[int] = set()
        """Values behind which no reason was found."""

    def at(self, instr: Instr) -> str:
        """Why it is not known what an instruction makes of its operands; "" if it is known."""
        shape = instr.shape
        if shape.row.is_call:
            return self._call(instr)
        if not shape.row.known:
            return f"what `{shape.mnemonic}` does is not known"
        if shape.space == "param" and shape.opcode == "st":
            return self._call(self._next_call(instr))
        if shape.space == "param" and shape.opcode == "ld" and not self._is_parameter(instr):
            call = self._last_call(instr)
            return "the result of a call is not followed" if call is None else self._call(call)
        return in_the_way_of_load(instr)

    def behind(self, values: Iterable[int]) -> str:
        """The first reason on the way back from values; "" if there is none."""
        if self._has_any is None:
            self._has_any = bool(self._irreducible) or any(map(self.at, self._instrs))
        if not self._has_any:
            return ""
        ssa, clear = self._ssa, self._clear
        work = [value for value in values if value not in clear]
        seen = set(work)
        for value in work:
            at = ssa.instr[value]
            if at >= 0:
                reason = self.at(self._instrs[at])
                if reason:
                    return reason
                if self._instrs[at].opcode in ("ld", "ldu", "atom"):
                    continue
            elif ssa.kind[value] == PHI and ssa.phi_block[value] in self._irreducible:
                return "a cycle with more than one entry is not followed"
            for operand in ssa.operands[value]:
                if operand not in seen and operand not in clear and len(seen) < _STEPS:
                    seen.add(operand)
                    work.append(operand)
        clear |= seen
        return ""

    def block_size(self) -> str:
        """That nothing bounds how many threads a block has; "" if something does."""
        return NO_BLOCK_SIZE if self._facts.max_threads() is None else ""

    # Calls ------------------------------------------------------------------------------------
    def _call(self, instr: Instr | None) -> str:
        """What a call leads to."""
        symbols = [] if instr is None else [a for a in instr.args if isinstance(a, Symbol)]
        named = [s.name for s in symbols if s.name in self._functions()]
        if not named:
            return "a call through a register is not followed"
        name = named[0]
        if self._calls_itself(name):
            return f"the call of `{name}`, which calls itself, is not followed"
        return f"the call of `{name}` is not followed"

    def _functions(self) -> dict[str, Function]:
        return {f.name: f for f in self._facts.module.functions}

    def _calls_itself(self, name: str) -> bool:
        """True if a function may come to be called while it runs."""
        functions = self._functions()
        work = [name]
        seen: set[str] = set()
        while work:
            function = functions.get(work.pop())
            called = _called(function) if function is not None else set()
            if name in called:
                return True
            work += called - seen
            seen |= called
        return False

    def _next_call(self, instr: Instr) -> Instr | None:
        """The call that an argument is stored for."""
        cfg = self._ssa.cfg
        end = cfg.blocks[cfg.block_of[instr.index]].end
        following = self._instrs[instr.index : end]
        return next((i for i in following if i.shape.row.is_call), None)

    def _last_call(self, instr: Instr) -> Instr | None:
        """The call that a result is loaded of."""
        cfg = self._ssa.cfg
        start = cfg.blocks[cfg.block_of[instr.index]].start
        before = reversed(self._instrs[start : instr.index])
        return next((i for i in before if i.shape.row.is_call), None)

    def _is_parameter(self, instr: Instr) -> bool:
        """True for a load of the function's own parameter."""
        own = {p.name for p in self._facts.function.params}
        return any(isinstance(a, Symbol) and a.name in own for a in instr.args)


def _called(function: Function) -> set[str]:
    """The names in the calls of a function."""
    return {
        atom.name
        for instr in function.instrs
        if instr.shape.row.is_call
        for atom in instr.args
        if isinstance(atom, Symbol)
    }


__all__ = ["NO_BLOCK_SIZE", "Obstacles", "in_the_way_of_load"]
