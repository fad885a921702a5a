"""Values as expressions for people: `%p1 ? ld.global.b32 [%rd1] : 0xff800000`."""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.ssa_values import ARGUMENT, MERGE, PHI, RESULT, UNDEFINED, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Expr,
    Immediate,
    Indexed,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.ir.types import bits

_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<",
    "shr": ">>", "div": "/", "rem": "%",
}  # fmt: skip
_COMPARISONS: Final = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip
# Modifiers that do not change what an operator does for a reader.
_PLAIN: Final = frozenset({"lo", "wide", "rn", "ftz", "full", "approx"})


def describe(ssa: Ssa, value: int, depth: int = 3) -> str:
    """A value as an expression, at most `depth` operations deep; then registers stand for values.

    Moves and needless phis are looked through.
    """
    return _Describer(ssa).value(value, depth, False)


class _Describer:
    def __init__(self, ssa: Ssa) -> None:
        self._ssa = ssa
        self._instrs = ssa.cfg.function.instrs

    def value(self, value: int, depth: int, nested: bool) -> str:
        """One value; `nested` puts parentheses around operators."""
        ssa = self._ssa
        value = ssa.resolve(value)
        kind, register = ssa.kind[value], ssa.register[value]
        if kind == UNDEFINED:
            return f"undefined {register}"
        if kind == ARGUMENT:
            return f"argument {register}"
        if kind == RESULT and self._is_leaf(value):
            return self._leaf(value)
        if depth <= 0:
            return register.name
        if kind == RESULT:
            return self._result(value, depth - 1, nested)
        operands = [self.value(v, depth - 1, True) for v in ssa.operands[value]]
        if kind == MERGE:
            return _wrap(f"{operands[0]} ? {operands[1]} : {operands[2]}", nested)
        if kind == PHI:
            return f"phi {register}({', '.join(operands)})"
        return f"insert({register}, {', '.join(operands)})"

    def _is_leaf(self, value: int) -> bool:
        """True for constants, special registers and whole parameters: they cost no depth."""
        instr = self._instrs[self._ssa.instr[value]]
        if self._ssa.operands[value]:
            return False
        return instr.shape.opcode == "mov" or _whole_parameter(instr) is not None

    def _leaf(self, value: int) -> str:
        instr = self._instrs[self._ssa.instr[value]]
        source = _whole_parameter(instr) or instr.operands[-1]
        if isinstance(source, Immediate) and source.kind == "int":
            width = bits(instr.shape.type)
            return hex(source.value & ((1 << width) - 1))
        return _Operands(self, instr, 0).text(source, False)

    def _result(self, value: int, depth: int, nested: bool) -> str:
        instr = self._instrs[self._ssa.instr[value]]
        shape = instr.shape
        written = sum(role == "def" for role in shape.roles)
        render = _Operands(self, instr, depth)
        sources = instr.operands[written:]
        text = _operator(shape.opcode, shape.modifiers, [render.text(o, True) for o in sources])
        if text is not None:
            text = _wrap(text, nested)
        elif sources and isinstance(sources[0], Address):
            rest = "".join(f", {render.text(o, False)}" for o in sources[1:])
            text = f"{shape.mnemonic} {render.text(sources[0], False)}{rest}"
        else:
            inner = ", ".join(render.text(o, False) for o in sources)
            text = f"{shape.mnemonic}({inner})"
        return f"{text}#{self._ssa.result[value]}" if len(instr.defs) > 1 else text


def _whole_parameter(instr: Instr) -> Symbol | None:
    """The parameter that `ld.param.b32 r, [p]` reads; None for anything else."""
    shape = instr.shape
    if shape.opcode != "ld" or shape.space != "param" or len(instr.defs) != 1:
        return None
    source = instr.operands[-1]
    if isinstance(source, Address) and isinstance(source.base, Symbol) and not source.offset:
        return source.base
    return None


def _wrap(text: str, nested: bool) -> str:
    return f"({text})" if nested else text


def _operator(opcode: str, modifiers: tuple[str, ...], operands: list[str]) -> str | None:
    """An instruction that reads well as an operator; None if it does not."""
    words = [m for m in modifiers[:-1] if m not in _PLAIN]
    if opcode == "selp" and len(operands) == 3:
        return f"{operands[2]} ? {operands[0]} : {operands[1]}"
    if opcode in ("mad", "fma") and len(operands) == 3 and not words:
        return f"{operands[0]} * {operands[1]} + {operands[2]}"
    if len(operands) != 2:
        return None
    if opcode == "setp" and words and words[0] in _COMPARISONS and len(words) == 1:
        return f"{operands[0]} {_COMPARISONS[words[0]]} {operands[1]}"
    if opcode in _INFIX and not words:
        return f"{operands[0]} {_INFIX[opcode]} {operands[1]}"
    return None


class _Operands:
    """Operands of one instruction as text, registers replaced by what they hold."""

    def __init__(self, describer: _Describer, instr: Instr, depth: int) -> None:
        self._describer = describer
        self._depth = depth
        values = describer._ssa.use_values[instr.index]
        self._values = dict(zip(instr.uses, values, strict=True))

    def text(self, operand: Operand, nested: bool) -> str:
        """One operand; `nested` puts parentheses around operators."""
        if isinstance(operand, Register):
            value = self._values.get(operand)
            if value is None:
                return operand.name
            return self._describer.value(value, self._depth, nested)
        if isinstance(operand, Immediate):
            return operand.text
        if isinstance(operand, SpecialRegister | Symbol | Label):
            return operand.name
        if isinstance(operand, Sink):
            return "_"
        if isinstance(operand, Address):
            return self._address(operand)
        if isinstance(operand, Negated):
            return operand.sign + self.text(operand.operand, True)
        if isinstance(operand, Selected):
            return f"{self.text(operand.register, True)}.{operand.selector}"
        if isinstance(operand, Pair):
            return f"{self.text(operand.first, True)}|{self.text(operand.second, True)}"
        if isinstance(operand, Indexed):
            return f"{self.text(operand.base, True)}[{self.text(operand.subscript, False)}]"
        if isinstance(operand, Expr):
            return f"{operand.operator}({self._list(operand.operands)})"
        opening, closing = "{}" if isinstance(operand, Vector) else "()"
        return opening + self._list(operand.elements) + closing

    def _list(self, operands: tuple[Operand, ...]) -> str:
        return ", ".join(self.text(operand, False) for operand in operands)

    def _address(self, address: Address) -> str:
        text = self.text(address.base, bool(address.offset or address.rest))
        if address.offset:
            sign = "-" if address.offset < 0 else "+"
            text += f" {sign} {abs(address.offset)}"
        return "[" + ", ".join([text, *(self.text(o, False) for o in address.rest)]) + "]"


__all__ = ["describe"]
