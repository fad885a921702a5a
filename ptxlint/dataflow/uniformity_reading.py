"""The operands of an instruction as dependences, planes and constants."""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.lane_bits import ANY_THREAD, collapse, spread
from ptxlint.dataflow.ssa_values import RESULT, Ssa
from ptxlint.dataflow.thread_geometry import Geometry
from ptxlint.ir.instruction import Instr, Pattern
from ptxlint.ir.operand import Immediate, Register, SpecialRegister
from ptxlint.ir.pattern import fold, instantiate

_CARRY_REACH: Final = 64
"""How far back, in instructions, the writer of the carry flag is looked for."""


class Context:
    """What the transfer functions read: the dependences found so far, by SSA value."""

    def __init__(self, ssa: Ssa, geometry: Geometry) -> None:
        self.ssa = ssa
        self.geometry = geometry
        self.deps: list[int] = [0] * len(ssa)
        """Dependence of each value."""
        self.planes: dict[int, int] = {}
        """Planes of the values that have some."""
        self.exchanged: dict[int, tuple[int, int]] = {}
        """Results of `shfl.bfly` by one lane bit: the (resolved) source and that bit."""
        self.active_masks: set[int] = set()
        """The `activemask` instructions met."""
        self.split: set[int] = set()
        """Those in blocks that not all lanes of a warp reach together."""
        self.marked: set[int] = set()
        """Values that have planes or come from a lane exchange."""
        self.carry_readers: dict[int, set[int]] = {}
        """Instructions that write the carry flag to those that read it."""
        fn = ssa.cfg.function
        self.instrs = fn.instrs
        self.parameters = frozenset(v.name for v in fn.params) if fn.is_kernel else None
        self._constants: dict[int, int | None] = {}

    def constant(self, value: int) -> int | None:
        """The integer that a value is, if it is set to one."""
        if value not in self._constants:
            self._constants[value] = self._find_constant(self.ssa.resolve(value))
        return self._constants[value]

    def _find_constant(self, value: int) -> int | None:
        if self.ssa.kind[value] != RESULT or self.ssa.operands[value]:
            return None
        instr = self.instrs[self.ssa.instr[value]]
        if instr.shape.opcode != "mov" or len(instr.operands) != 2:
            return None
        return fold(instr.operands[1])

    def value_planes(self, value: int) -> int:
        """The planes of a value, spread over all positions if nothing better is known."""
        planes = self.planes.get(value)
        return spread(self.deps[value]) if planes is None else planes


class Reading:
    """The operands of one instruction as dependences, planes and constants.

    `extra` is what every operand depends on besides: threads may bring different iterations.
    `special` is False if no operand is a special register.
    """

    __slots__ = ("_context", "_extra", "_special", "_values", "instr", "shape")

    def __init__(self, context: Context, instr: Instr, extra: int, special: bool = True) -> None:
        self._context = context
        self._extra = extra
        self._special = special
        self._values = context.ssa.use_values[instr.index]
        self.instr = instr
        self.shape = instr.shape

    def all(self) -> int:
        """The dependence of everything that is read, the guard excluded."""
        dependence = self._extra
        for value in self.sources():
            dependence |= self._context.deps[value]
        if self._special:
            for pattern in self.shape.patterns:
                dependence |= collapse(self._special_planes(pattern))
        return dependence

    def sources(self) -> tuple[int, ...]:
        """The values read, the guard excluded."""
        return self._values[1:] if self.instr.guard is not None else self._values

    def dependence(self, operand: int) -> int:
        """The dependence of an operand; 0 if there is no such operand."""
        patterns = self.shape.patterns
        return collapse(self.planes(operand)) if operand < len(patterns) else 0

    def planes(self, operand: int) -> int:
        """The planes of an operand."""
        return self._planes(self.shape.patterns[operand]) | spread(self._extra)

    def value(self, operand: int) -> int | None:
        """The SSA value of an operand that is a plain register, else None."""
        pattern = self.shape.patterns[operand]
        if pattern[0] != "s" or len(pattern) != 2:
            return None
        atom = self.instr.args[pattern[1]]
        return self._value_of(atom) if isinstance(atom, Register) else None

    def constant(self, operand: int) -> int | None:
        """The integer that an operand is, None if unknown; 0 dependence does not make one."""
        pattern = self.shape.patterns[operand]
        value = self.value(operand)
        if value is not None:
            return self._context.constant(value)
        if pattern[0] == "s" and len(pattern) == 2:
            atom = self.instr.args[pattern[1]]
            return atom.value if type(atom) is Immediate and atom.kind == "int" else None
        return fold(instantiate(pattern, self.instr.args))

    def kernel_parameters(self) -> frozenset[str] | None:
        """The names of the kernel's parameters; None for a `.func`."""
        return self._context.parameters

    def is_split(self) -> bool:
        """True if the lanes of a warp may not reach the instruction together."""
        self._context.active_masks.add(self.instr.index)
        return self.instr.index in self._context.split

    def names_all_lanes(self, operand: int) -> bool:
        """True if a mask names all lanes, and each warp has them."""
        mask = self.constant(operand) if operand < len(self.shape.patterns) else None
        whole = mask is not None and mask & 0xFFFFFFFF == 0xFFFFFFFF
        return whole and self._context.geometry.has_full_warps

    def note_exchange(self, value: int, lane_bit: int) -> None:
        """Remember that the first result is a value of the lane across one lane bit."""
        context = self._context
        result = context.ssa.written(context.ssa.def_values[self.instr.index][0])
        context.exchanged[result] = (context.ssa.resolve(value), lane_bit)
        context.marked.add(result)

    def carry_in(self) -> int:
        """The dependence of the carry flag that the instruction reads."""
        context, at = self._context, self.instr.index
        start = context.ssa.cfg.block_at(self.instr).start
        for index in range(at - 1, max(start, at - _CARRY_REACH) - 1, -1):
            writer = context.instrs[index]
            if "cc" in writer.shape.modifiers:
                context.carry_readers.setdefault(index, set()).add(at)
                found = Reading(context, writer, self._extra).all()
                for value in (*context.ssa.use_values[index], *context.ssa.def_values[index]):
                    found |= context.deps[value]
                return found
        return ANY_THREAD

    def _value_of(self, register: Register) -> int:
        return self._values[self.instr.uses.index(register)]

    def _planes(self, pattern: Pattern) -> int:
        if pattern[0] == "s":
            atom = self.instr.args[pattern[1]]
            if isinstance(atom, Register):
                whole = self._context.value_planes(self._value_of(atom))
                return whole if len(pattern) == 2 else spread(collapse(whole))
            return self._special_planes(pattern)
        planes = 0
        for part in pattern[1:]:
            if isinstance(part, tuple):
                planes |= self._planes(part)
        return spread(collapse(planes))

    def _special_planes(self, pattern: Pattern) -> int:
        """The planes of the special registers in an operand."""
        if pattern[0] == "s":
            atom = self.instr.args[pattern[1]]
            if type(atom) is not SpecialRegister:
                return 0
            return self._context.geometry.planes(atom.name + "".join(pattern[2:]))
        planes = 0
        for part in pattern[1:]:
            if isinstance(part, tuple):
                planes |= self._special_planes(part)
        return planes
