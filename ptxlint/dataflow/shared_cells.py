"""Which bytes of shared memory an instruction reads or writes, and what it writes there.

A *chunk* is a run of bytes that one thread touches at once, at an address that is linear in the
bits of the thread index. Sources: PTX ISA, "st", "ld", "cp.async", "ldmatrix", "stmatrix",
"Asynchronous warpgroup level matrix shared memory layout".
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from ptxlint.dataflow.lane_map import span_value
from ptxlint.dataflow.lane_words import Condition, Word, make
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Address, Operand, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

MAX_SHARED: Final = 1 << 18
"""More bytes than the shared memory of any CTA has."""


class Chunk(NamedTuple):
    """`width` bytes at the address `word`.

    `operand` is the first register of a vector operand that is touched, `part` its first 16-bit
    half (byte in `operand_bytes` units); each further `element` bytes are the next register.
    `element` is 0 where all bytes belong to one operand, as with `cp.async`.
    """

    word: Word
    width: int
    operand: int
    first: int
    element: int

    def place(self, offset: int) -> tuple[int, int]:
        """(operand, byte in it) of the byte at this offset in the chunk."""
        at = self.first + offset
        if not self.element:
            return self.operand, at
        return self.operand + at // self.element, at % self.element


class Lanes(NamedTuple):
    """Some threads: `start` with any of the directions xored in."""

    start: int
    directions: tuple[int, ...]


class Write(NamedTuple):
    """One store: the chunks that the threads of `lanes` write, `cells` the bytes as bits.

    `maybe`: whether it is done depends on a guard that is not understood. `trouble` says why it is
    not known what it writes, "" if it is.
    """

    instr: Instr
    lanes: Lanes
    chunks: tuple[Chunk, ...]
    cells: int
    maybe: bool
    trouble: str


def all_lanes(width: int) -> Lanes:
    """All threads of a CTA."""
    return Lanes(0, tuple(1 << i for i in range(width)))


def lanes_where(condition: Condition, width: int) -> Lanes | None:
    """The threads for which a condition holds; None if there are none."""
    # Gauss elimination: rows (mask, parity) with a pivot each that no other row has.
    rows: list[tuple[int, int, int]] = []
    for mask, parity in condition:
        for pivot, other, bit in rows:
            if mask >> pivot & 1:
                mask ^= other
                parity ^= bit
        if not mask:
            if parity:
                return None
            continue
        pivot = mask.bit_length() - 1
        rows = [(p, m ^ mask, b ^ parity) if m >> pivot & 1 else (p, m, b) for p, m, b in rows]
        rows.append((pivot, mask, parity))
    pivots = {pivot for pivot, _, _ in rows}
    start = sum(1 << pivot for pivot, _, parity in rows if parity)
    directions = []
    for at in range(width):
        if at not in pivots:
            forced = sum(1 << pivot for pivot, mask, _ in rows if mask >> at & 1)
            directions.append(1 << at | forced)
    return Lanes(start, tuple(directions))


def vector_chunks(instr: Instr, data: Operand, word: Word) -> list[Chunk]:
    """The chunk of a plain load or store."""
    size = max(1, BITS.get(instr.shape.type, 32) // 8)
    count = len(data.elements) if isinstance(data, Vector) else 1
    return [Chunk(word, size * count, 0, 0, size)]


def matrix_chunks(instr: Instr, data: Operand, word: Word) -> list[Chunk] | None:
    """The chunks of `ldmatrix` and `stmatrix`, by the thread that holds the data.

    The address of row r of matrix i comes from lane 8 i + r. None for shapes other than 8 by 8
    elements of 16 bits, or where rows are not known to be 16 bytes aligned.
    """
    shape = instr.shape
    if not shape.has("m8n8") or shape.type != "b16" or len(word.basis) < 5:
        return None
    if (word.add | word.fix | word.moving) & 15:
        return None
    count = len(data.elements) if isinstance(data, Vector) else 1
    rows, matrices, above = word.basis[:3], word.basis[3:5], word.basis[5:]
    if shape.has("trans"):
        basis = (rows[1], rows[2], 2, 4, 8, *above)
    else:
        basis = (4, 8, *rows, *above)
    out = []
    for at in range(count):
        fix = word.fix ^ (matrices[0] if at & 1 else 0) ^ (matrices[1] if at & 2 else 0)
        if not shape.has("trans"):
            out.append(Chunk(make(word.add, fix, basis, 32, word.symbol), 4, at, 0, 4))
            continue
        for half in (0, 1):
            moved = fix ^ (rows[0] if half else 0)
            out.append(Chunk(make(word.add, moved, basis, 32, word.symbol), 2, at, 2 * half, 4))
    return out


def copy_chunks(instr: Instr, word: Word) -> list[Chunk] | None:
    """The chunk that a `cp.async` writes: all of it, what lies past the source size with zeros."""
    size = fold(instr.operands[2]) if len(instr.operands) > 2 else None
    return None if size is None else [Chunk(word, size, 0, 0, 0)]


def shared_address(instr: Instr) -> Address | None:
    """The operand that is an address in shared memory, of those that are followed."""
    shape = instr.shape
    if shape.opcode in ("st", "stmatrix") or (
        shape.opcode == "cp" and shape.has("async") and not shape.has("bulk")
    ):
        found = instr.operands[0]
    elif shape.opcode in ("ld", "ldmatrix"):
        found = instr.operands[1]
    else:
        return None
    return found if isinstance(found, Address) else None


def writes_shared(instr: Instr) -> bool:
    """True if an instruction may change data in shared memory.

    Barrier objects are no data: nothing but operations on barriers may touch them.
    """
    shape = instr.shape
    if shape.row.is_call or not shape.row.known:
        return True
    if shape.opcode == "mbarrier" or (
        shape.opcode in ("cp", "tcgen05") and ("mbarrier" in shape.modifiers or shape.has("commit"))
    ):
        return False
    return not _SHARED.isdisjoint(memory_of(shape).writes)


_SHARED: Final = frozenset({"shared", ""})


def cells_of(word: Word, width: int, lanes: Lanes) -> int:
    """The bytes that a chunk covers in all of these threads, without `word.add`, as bits."""
    starts = [word.fix ^ span_value(word.basis, lanes.start)]
    for direction in lanes.directions:
        step = span_value(word.basis, direction)
        if step and starts[0] ^ step not in starts:
            starts += [at ^ step for at in starts]
    run = (1 << width) - 1
    return reduce(or_, [run << at for at in starts], 0)
