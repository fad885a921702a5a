"""A difference by lines of the source: which constants, which instructions, where."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.comparison.difference import CodeDifference
from ptxlint.comparison.half_moves import moved_word
from ptxlint.comparison.places import Where, where
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Immediate
from ptxlint.structure.alignment import Changed
from ptxlint.structure.canonical import constants as operand_constants

_DOUBLES: Final = frozenset(("DADD", "DMUL", "DFMA", "DSETP", "DMMA"))
"""Machine code names its types in the opcode."""
_DIGITS: Final = 7
_ALL_DIGITS: Final = 9
"""So many digits of a float32 are shown, and so many tell each from its neighbours."""
_SMALL: Final = 1 << 20
"""Integers below this are taken for integers, whatever they would be as floats."""


class ConstantChange(NamedTuple):
    """A constant that is another one, at so many instructions of one line."""

    old: str
    new: str
    old_where: Where
    new_where: Where
    mnemonic: str
    times: int


class InstructionChange(NamedTuple):
    """Instructions of one line that one side has more of. `constant` is the number in them, where
    there is but one and it is a float."""

    mnemonic: str
    where: Where
    times: int
    constant: str = ""


def constants(difference: CodeDifference) -> list[ConstantChange]:
    """The constants that have changed, those of one line and pair of values together."""
    counts: Counter[tuple[str, str, Where, Where, str]] = Counter()
    for change in changed(difference):
        old, new = values(change.old_constant, change.new_constant, change.old)
        counts[
            old,
            new,
            where(difference.old.module, change.old),
            where(difference.new.module, change.new),
            change.old.shape.mnemonic,
        ] += 1
    return [ConstantChange(*key, times) for key, times in counts.items()]


def changed(difference: CodeDifference) -> Iterator[Changed]:
    """The constants that have changed one by one; two halves of one word are one."""
    told: set[int] = set()
    for change in difference.alignment.changed:
        old, new = moved_word(change.old), moved_word(change.new)
        if old is None or new is None:
            yield change
        elif id(change.old) not in told:
            told.add(id(change.old))
            yield Changed(change.old, change.new, old, new)


def instructions(
    difference: CodeDifference,
) -> tuple[list[InstructionChange], list[InstructionChange]]:
    """What the old side has alone, and the new one, by line, most first."""
    return (
        _by_line(difference.old.module, difference.alignment.removed),
        _by_line(difference.new.module, difference.alignment.added),
    )


class OperandChange(NamedTuple):
    """An instruction of both sides that reads, writes or leads to something else, so many times on
    one line."""

    mnemonic: str
    old_where: Where
    new_where: Where
    times: int


def operands(difference: CodeDifference) -> list[OperandChange]:
    """The instructions of both sides that have other operands, by line, most first."""
    counts = Counter(
        (
            new.shape.mnemonic,
            where(difference.old.module, old),
            where(difference.new.module, new),
        )
        for old, new in difference.alignment.rewired
    )
    return [OperandChange(*key, times) for key, times in counts.most_common()]


def _by_line(module: Module, instrs: tuple[Instr, ...]) -> list[InstructionChange]:
    counts = Counter((i.shape.mnemonic, where(module, i), _only_float(i)) for i in instrs)
    return [
        InstructionChange(mnemonic, place, times, constant)
        for (mnemonic, place, constant), times in counts.most_common()
    ]


def _only_float(instr: Instr) -> str:
    word = moved_word(instr)
    found = operand_constants(instr) if word is None else (word,)
    if len(found) != 1 or not _is_float(found[0], _width(instr)):
        return ""
    return _float(found[0], _width(instr))


def values(old: Immediate, new: Immediate, instr: Instr) -> tuple[str, str]:
    """Two constants in words: as floats where one of them is one, or has the bits of one."""
    width = _width(instr)
    if not _is_float(old, width) and not _is_float(new, width):
        return old.text, new.text
    for digits in (_DIGITS, _ALL_DIGITS):
        before, after = _float(old, width, digits), _float(new, width, digits)
        if before != after:
            return before, after
    # Two NaN, or a number with two spellings.
    return f"{before} ({old.text})", f"{after} ({new.text})"


def _width(instr: Instr) -> int:
    """The bits of the floats that an instruction works on."""
    return 64 if instr.opcode in _DOUBLES or instr.shape.type.endswith("64") else 32


def _is_float(constant: Immediate, width: int) -> bool:
    if constant.kind != "int":
        return True
    bits = constant.value & ((1 << width) - 1)
    if bits < _SMALL or bits > (1 << width) - _SMALL:
        return False
    exponent = bits >> 23 & 0xFF if width == 32 else bits >> 52 & 0x7FF
    # The bits of an ordinary number, or of an infinity.
    middle, reach = (127, 40) if width == 32 else (1023, 200)
    return abs(exponent - middle) < reach or bits & (1 << width - 1) - 1 == (
        0x7F800000 if width == 32 else 0x7FF << 52
    )


def _float(constant: Immediate, width: int, digits: int = _DIGITS) -> str:
    if constant.kind == "int":
        bits = constant.value & ((1 << width) - 1)
        form = ("<I", "<f") if width == 32 else ("<Q", "<d")
        (number,) = struct.unpack(form[1], struct.pack(form[0], bits))
    else:
        number = constant.as_float()
        width = 32 if constant.kind == "f32" else width
    if math.isfinite(number) and width == 32:
        return f"{number:.{digits}g}"
    return repr(number)


__all__ = [
    "ConstantChange",
    "InstructionChange",
    "OperandChange",
    "Where",
    "changed",
    "constants",
    "instructions",
    "operands",
    "values",
    "where",
]  # fmt: skip
