"""Which bytes of shared memory an instruction reads or writes, and what it writes there.

A *chunk* is a run of bytes that one thread touches at once, at an address that is linear in the
bits of the thread index. Sources: PTX ISA, "st", "ld", "cp.async", "ldmatrix", "stmatrix",
"Asynchronous warpgroup level matrix shared memory layout".
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from ptxlint.dataflow.lane_map import span_value
from ptxlint.dataflow.lane_words import Condition, Word, make
from ptxlint.dataflow.tensor_instruction import described, descriptor_register
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Address, Operand, Register, Vector
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


class Age(NamedTuple):
    """In which round of a loop around a load it was stored what that reads.

    `rounds` ago if the store is inside the loop; if not, the load is in round number `rounds`.
    None if that differs.
    """

    header: int
    rounds: int | None
    inside: bool


class Write(NamedTuple):
    """One store: the chunks that the threads of `lanes` write, `cells` the bytes as bits.

    `maybe`: whether it is done depends on a guard that is not understood. `trouble` says why it is
    not known what it writes, "" if it is. `rounds` as for `Passage`.
    """

    instr: Instr
    lanes: Lanes
    chunks: tuple[Chunk, ...]
    cells: int
    maybe: bool
    trouble: str
    rounds: tuple[Age, ...] = ()


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


def idle_lanes(instr: Instr) -> int:
    """The bits of the lane that are 0 in all lanes of which the address matters.

    With one matrix `ldmatrix` and `stmatrix` take the addresses of 8 lanes, with two of 16.
    """
    if instr.opcode not in ("ldmatrix", "stmatrix"):
        return 0
    return 24 if instr.shape.has("x1") else 16 if instr.shape.has("x2") else 0


def copy_chunks(instr: Instr, word: Word) -> list[Chunk] | None:
    """The chunk that a `cp.async` writes: all of it, what lies past the source size with zeros."""
    size = fold(instr.operands[2]) if len(instr.operands) > 2 else None
    return None if size is None else [Chunk(word, size, 0, 0, 0)]


class MatrixShape(NamedTuple):
    """The shape of a matrix that `wgmma` or `tcgen05.mma` reads from shared memory.

    2^rows rows of A or columns of B, 2^depth elements of `size` bytes and type `kind` along k.
    `across`: elements that are neighbours in memory have the same k, the other major order than the
    usual. If the product is `grouped` each warpgroup has its own.
    """

    operand: int
    rows: int
    depth: int
    size: int
    kind: str
    across: bool
    grouped: bool


def is_descriptor(instr: Instr, operand: int) -> bool:
    """True if an operand of a product is a matrix descriptor, not registers or tensor memory."""
    if instr.opcode == "tcgen05":
        if descriptor_register(instr) is None:
            return False
    elif instr.opcode != "wgmma" or len(instr.operands) < 4:
        return False
    return operand in (1, 2) and isinstance(instr.operands[operand], Register)


def descriptors(instr: Instr) -> list[Register]:
    """The registers that hold matrix descriptors, and that of an instruction's own."""
    found = [instr.operands[at] for at in (1, 2) if is_descriptor(instr, at)]
    own = descriptor_register(instr)
    return [r for r in found if isinstance(r, Register)] + ([] if own is None else [own])


def matrix_shape(instr: Instr, operand: int, descriptor: int | None = None) -> MatrixShape | None:
    """The shape of A (operand 1) or B (operand 2); None for one that is not followed.

    `descriptor` is that of the instruction for `tcgen05.mma`.
    """
    if instr.opcode == "tcgen05":
        found = None if descriptor is None else described(instr, descriptor)
        if found is None:
            return None
        side = operand - 1
        count = found.columns if side else found.rows
        return _shape_of(operand, count, None, found.types[side], found.across[side], False)
    return _group_shape(instr, operand)


def _group_shape(instr: Instr, operand: int) -> MatrixShape | None:
    """See PTX ISA, "wgmma.mma_async": transposition is told by the last immediates, for 16-bit
    types only, B's last."""
    shape = instr.shape
    kind = shape.types[operand] if len(shape.types) > 2 else ""
    names = (re.fullmatch(r"m64n(\d+)k(\d+)", modifier) for modifier in shape.modifiers)
    found = next((name for name in names if name), None)
    if found is None or shape.has("sp"):
        return None
    across = False
    if _ELEMENT_BYTES.get(kind) == 2:
        from_registers = not is_descriptor(instr, 1)
        at = len(instr.operands) - (2 if operand == 1 and not from_registers else 1)
        flag = fold(instr.operands[at])
        if flag not in (0, 1):
            return None
        across = flag == 1
    count = 64 if operand == 1 else int(found[1])
    return _shape_of(operand, count, int(found[2]), kind, across, True)


def _shape_of(
    operand: int, count: int, depth: int | None, kind: str, across: bool, grouped: bool
) -> MatrixShape | None:
    """A shape of so many rows, whose elements along k take 32 bytes."""
    size = _ELEMENT_BYTES.get(kind, 0)
    if not size or not count or count & count - 1 or depth not in (None, 32 // size):
        return None
    bits = (32 // size).bit_length() - 1
    return MatrixShape(operand, count.bit_length() - 1, bits, size, kind, across, grouped)


def descriptor_chunk(shape: MatrixShape, word: Word, width: int) -> Chunk | None:
    """The elements that a descriptor stands for, by row, k and warpgroup; None if not followed.

    See PTX ISA, "Matrix descriptor format", "Shared memory descriptor" of `tcgen05` (whose swizzle
    modes are the same two bits; what it has more is not followed) and "Shared memory matrix
    layout". A thread index has `width` bits; those from 7 on tell warpgroups apart.
    """
    constant = word.add
    if any(word.basis[: 7 if shape.grouped else None]) or (constant & 0x3FFF) + word.moving >> 14:
        return None
    if constant >> 52 & 0x3FF:
        return None
    mode = constant >> 62
    lead, stride = (constant >> 16 & 0x3FFF) << 4, (constant >> 32 & 0x3FFF) << 4
    if constant >> 49 & 7:
        return None
    pitch = {0: 16, 1: 128, 2: 64, 3: 32}[mode]
    size = shape.size.bit_length() - 1
    inner = pitch.bit_length() - 1 - size
    if not shape.across:
        # Rows of one pitch, eight to a group; without a swizzle k goes on in the next column.
        rows = [pitch << i if i < 3 else stride << i - 3 for i in range(shape.rows)]
        depth = [1 << size + i if i < inner else lead << i - inner for i in range(shape.depth)]
    else:
        outer = stride if not mode else lead
        groups = lead if not mode else stride
        rows = [1 << size + i if i < inner else outer << i - inner for i in range(shape.rows)]
        depth = [pitch << i if i < 3 else groups << i - 3 for i in range(shape.depth)]
    above = [entry << 4 for entry in word.basis[7:width]]
    start = (constant & 0x3FFF) << 4
    plain = make(start, word.fix << 4, (*rows, *depth, *above), 32)
    low = plain.add & 1023
    if _overlap(plain.basis) or low & plain.moving:
        return None
    mask = {0: 0, 1: 7, 2: 3, 3: 1}[mode]

    def swizzled(address: int) -> int:
        return address ^ (address >> 7 & mask) << 4

    basis = tuple([swizzled(entry) for entry in plain.basis])
    word = make(plain.add - low, swizzled(low | plain.fix), basis, 32)
    return Chunk(word, shape.size, 0, 0, shape.size)


def _overlap(basis: tuple[int, ...]) -> bool:
    """True if sums of entries are not their exclusive or."""
    union = 0
    for entry in basis:
        if entry & union:
            return True
        union |= entry
    return False


_ELEMENT_BYTES: Final = {
    "f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1,
}  # fmt: skip


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
