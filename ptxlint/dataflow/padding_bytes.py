"""The marks of single bytes of packed registers.

Marks spread by halves of registers, which elements of 8 bits share. Where one of their bytes is
asked for it is looked up backwards, through the instructions that move bytes as wholes and through
shared memory, from where it came. All that is not understood keeps the marks of its half, and no
byte gets marks that its half has not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ptxlint.dataflow.movements import Movements
from ptxlint.dataflow.packing import shifted_left, summed
from ptxlint.dataflow.padding_marks import Marks
from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.register_words import UNKNOWN, Word, loaded_bits
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

_INTEGERS: Final = frozenset(kind + size for kind in "bus" for size in ("8", "16", "32", "64"))
_DEEP: Final = 200
"""So many moves of a byte are followed one behind the other."""


class ByteMarks:
    """The marks of the bytes of a function's registers of 16 and 32 bits."""

    def __init__(
        self, ssa: Ssa, reductions: Reductions, movements: Movements, marks: Marks
    ) -> None:
        self._ssa = ssa
        self._reductions = reductions
        self._movements = movements
        self._marks = marks
        self._free: Callable[[int], Word] | None = None
        self._known: dict[tuple[int, int], int] = {}
        self._pending: set[tuple[int, int]] = set()

    def settle(self, free: Callable[[int], Word]) -> None:
        """Say what values may hold in any lane: where no carry can come from, sums move bytes."""
        self._free = free
        self._known.clear()

    def of(self, value: int, byte: int) -> int:
        """The marks of a byte of a value, as bits; of a quarter of one that is not of 32 bits."""
        value = self._ssa.resolve(value)
        width = self._width(value)
        if width != 32:
            return self._marks.of_half(value, byte >> 1)
        return self._of_byte(value, byte)

    def _of_byte(self, value: int, byte: int) -> int:
        """The marks of a byte of a value of any width."""
        value = self._ssa.resolve(value)
        width = self._width(value)
        if width < 16:
            return self._marks.of(value)
        upper = self._marks.of_half(value, byte * 16 // width)
        if width > 32:
            return upper
        if not upper:
            return 0
        key = value, byte
        found = self._known.get(key)
        if found is not None:
            return found
        if key in self._pending or len(self._pending) >= _DEEP:
            return upper
        self._pending.add(key)
        found = self._find(value, byte, upper)
        self._pending.discard(key)
        found = self._known[key] = upper if found is None else found & upper
        return found

    def _width(self, value: int) -> int:
        return BITS.get(self._ssa.register[value].type, 32)

    def _find(self, value: int, byte: int, upper: int) -> int | None:
        """The marks of where a byte comes from; None if that is not known."""
        ssa = self._ssa
        kind = ssa.kind[value]
        if kind == PHI:
            if self._is_header(value):
                return None
            return self._of_all(ssa.operands[value], byte) | self._marks.put_on(value)
        if kind == MERGE:
            predicate, *arms = ssa.operands[value]
            return (
                self._of_all(arms, byte)
                | self._marks.of(predicate)
                | self._masked(value, byte, upper)
            )
        if kind != RESULT:
            return None
        instr = ssa.cfg.function.instrs[ssa.instr[value]]
        if self._movements.hops(value):
            # Marks of its operands are about other threads.
            return None
        if instr.opcode in ("ld", "ldmatrix"):
            return self._loaded(instr, value, byte, upper)
        rule = _RULES.get(instr.opcode)
        return None if rule is None else rule(self, instr, value, byte)

    def _of_all(self, values: tuple[int, ...] | list[int], byte: int) -> int:
        found = 0
        for value in values:
            found |= self._of_byte(value, byte)
        return found

    def _is_header(self, phi: int) -> bool:
        position = self._ssa.cfg.position
        block = self._ssa.phi_block[phi]
        return any(
            source < 0 or position[source] >= position[block]
            for source in self._ssa.phi_sources(block)
        )

    def _masked(self, value: int, byte: int, upper: int) -> int:
        """What a masked load puts on a byte of what its register then holds."""
        marks = self._marks.put_on(value)
        ssa = self._ssa
        load = ssa.cfg.function.instrs[ssa.instr[value]]
        kind = load.shape.type
        if not marks or load.opcode != "ld" or kind.startswith("s"):
            return marks
        if byte * 8 < BITS.get(kind, 32):
            return marks
        # Zeros lie above what is loaded, and so they may in what takes its place.
        fill = self._constant_of(ssa.old(value))
        return 0 if fill is not None and not fill >> 8 * byte & 0xFF else marks

    def _constant_of(self, value: int | None) -> int | None:
        made = None if value is None else self._reductions.definition(self._ssa.resolve(value))
        if made is None or made.opcode != "mov" or made.guard is not None:
            return None
        return fold(made.operands[-1])

    # Operands ---------------------------------------------------------------------------------
    def operand(self, instr: Instr, operand: Operand, byte: int) -> int:
        """The marks of a byte of an operand."""
        value = self._reductions.read(instr, operand)
        return 0 if value is None else self._of_byte(value, byte)

    def place(self, value: int) -> int:
        """Which result of its instruction a value is."""
        return self._ssa.result[value]

    def of_tests(self, instr: Instr) -> int:
        """The marks of the predicates that an instruction reads."""
        found = 0
        for value in self._ssa.use_values[instr.index]:
            if self._ssa.register[value].type == "pred":
                found |= self._marks.of(value)
        return found

    def free(self, instr: Instr, at: int) -> Word:
        """What operand `at` may hold in any lane."""
        value = self._reductions.read(instr, instr.operands[at])
        if value is not None:
            return UNKNOWN if self._free is None else self._free(value)
        constant = self.constant(instr, at)
        width = BITS.get(instr.shape.type, 32)
        return UNKNOWN if constant is None else constant & (1 << width) - 1

    def constant(self, instr: Instr, at: int) -> int | None:
        """Operand `at` if it is a constant."""
        return self._reductions.constant(instr, instr.operands[at])

    # Other threads ----------------------------------------------------------------------------
    def _loaded(self, instr: Instr, value: int, byte: int, upper: int) -> int | None:
        """The marks of a byte that is loaded from shared memory."""
        if instr.opcode == "ld" and instr.shape.space != "shared":
            return None
        width = self._width(value)
        bits = loaded_bits(instr, width)
        if byte * 8 >= bits:
            if not instr.shape.type.startswith("s"):
                return 0
            byte = bits // 8 - 1
        at = self._ssa.result[value]
        parts = self._movements.arrivals(instr, at)
        if parts is None or bits % len(parts):
            return None
        size = bits // len(parts)
        ways = parts[byte * 8 // size]
        half = byte * 8 // size * 2 // len(parts)
        numbers = 0
        marks = self._marks
        together = marks.together(instr, at, half)
        for way, put in marks.active(instr, at, half):
            if way not in ways:
                continue
            if way.value is None:
                return None
            if way.value < 0:
                continue
            each = self._width(self._ssa.resolve(way.value)) // way.parts
            inside = (way.part * each + byte * 8 % size) // 8
            source = self._of_byte(way.value, inside) & put if each >= 8 else put
            for _, final in marks.put_through(together, way.route, source):
                for number in final:
                    numbers |= 1 << number
        found = 0
        for mark in marks.each(upper):
            if mark.condition.lost or numbers >> mark.condition.number & 1:
                found |= 1 << marks.number(*mark)
        return found


_Rule = Callable[[ByteMarks, Instr, int, int], "int | None"]


def has_bytes(function: Function) -> bool:
    """True if a function loads or stores single bytes, which then may have marks of their own."""
    shapes = {id(i.shape): i.shape for i in function.instrs}
    return any(BITS.get(s.type, 32) == 8 for s in shapes.values() if s.opcode in ("ld", "st"))


def _moved(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    target, source = instr.operands[0], instr.operands[-1]
    size = BITS.get(instr.shape.type, 32) // 8
    if isinstance(source, Vector):
        each = size // len(source.elements)
        return marks.operand(instr, source.elements[byte // each], byte % each)
    if isinstance(target, Vector):
        at = marks.place(value)
        return marks.operand(instr, source, at * (size // len(target.elements)) + byte)
    return marks.operand(instr, source, byte)


def _converted(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    types = instr.shape.types
    if len(types) != 2 or not _INTEGERS.issuperset(types):
        return None
    size = min(BITS.get(t, 32) for t in types) // 8
    if byte >= size:
        to, of = types
        signed = (to if BITS.get(to, 32) < BITS.get(of, 32) else of).startswith("s")
        if not signed:
            return 0
        byte = size - 1
    return None if instr.shape.has("sat") else marks.operand(instr, instr.operands[1], byte)


def _permuted(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    selector = marks.constant(instr, 3)
    if selector is None or len(instr.shape.modifiers) != 1:
        return None
    chosen = selector >> 4 * byte & 7
    return marks.operand(instr, instr.operands[1 + (chosen >> 2)], chosen & 3)


def _shifted(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    amount = marks.constant(instr, 2)
    if amount is None or amount % 8:
        return None
    size = BITS.get(instr.shape.type, 32) // 8
    source = instr.operands[1]
    if instr.opcode == "shl":
        at = byte - amount // 8
        return 0 if at < 0 else marks.operand(instr, source, at)
    at = byte + amount // 8
    if at >= size:
        if not instr.shape.type.startswith("s"):
            return 0
        at = size - 1
    return marks.operand(instr, source, at)


def _masked(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    first, second = instr.operands[1:3]
    for at in (1, 2):
        constant = marks.constant(instr, at)
        if constant is not None and not constant >> 8 * byte & 0xFF:
            return 0
    return marks.operand(instr, first, byte) | marks.operand(instr, second, byte)


def _united(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int:
    first, second = instr.operands[1:3]
    return marks.operand(instr, first, byte) | marks.operand(instr, second, byte)


def _selected(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    return marks.of_tests(instr) | _united(marks, instr, value, byte)


def _added(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    width = BITS.get(instr.shape.type, 32)
    if summed(marks.free(instr, 1), marks.free(instr, 2), width) is None:
        return None
    return _united(marks, instr, value, byte)


def _multiplied(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    """A product with a power of two, to which a word may be added."""
    width = BITS.get(instr.shape.type, 32)
    for at in (1, 2):
        factor = marks.constant(instr, at)
        if factor is None or factor <= 0 or factor & factor - 1 or not instr.shape.has("lo"):
            continue
        amount = factor.bit_length() - 1
        if amount % 8:
            return None
        first = byte - amount // 8
        moved = 0 if first < 0 else marks.operand(instr, instr.operands[3 - at], first)
        if len(instr.operands) == 3:
            return moved
        shifted = shifted_left(marks.free(instr, 3 - at), width, amount)
        if summed(shifted, marks.free(instr, 3), width) is None:
            return None
        return moved | marks.operand(instr, instr.operands[3], byte)
    return None


def _inserted(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    start, count = marks.constant(instr, 3), marks.constant(instr, 4)
    if start is None or count is None or start % 8 or count % 8:
        return None
    at = byte - (start & 0xFF) // 8
    if 0 <= at < (count & 0xFF) // 8:
        return marks.operand(instr, instr.operands[1], at)
    return marks.operand(instr, instr.operands[2], byte)


def _extracted(marks: ByteMarks, instr: Instr, value: int, byte: int) -> int | None:
    start, count = marks.constant(instr, 2), marks.constant(instr, 3)
    size = BITS.get(instr.shape.type, 32)
    if start is None or count is None or start % 8 or count % 8 or start + count > size:
        return None
    if byte >= count // 8:
        if not instr.shape.type.startswith("s") or not count:
            return 0
        byte = count // 8 - 1
    return marks.operand(instr, instr.operands[1], start // 8 + byte)


_RULES: Final[dict[str, _Rule]] = {
    "mov": _moved,
    "cvt": _converted,
    "prmt": _permuted,
    "shl": _shifted,
    "shr": _shifted,
    "and": _masked,
    "or": _united,
    "xor": _united,
    "selp": _selected,
    "add": _added,
    "mul": _multiplied,
    "mad": _multiplied,
    "bfi": _inserted,
    "bfe": _extracted,
}

__all__ = ["ByteMarks", "has_bytes"]
