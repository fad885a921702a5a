"""Which elements of its matrices each thread hands to a tensor-core product.

The layouts are those of the PTX ISA, "Matrix Fragments for mma.m16n8k16" and its siblings, and
"Register Fragments for wgmma.mma_async.m64nNk16"; `tcgen05.mma` has nothing in registers. A thread
is known by the bits of its index; a coordinate of an element (row, column, or k, along which
products are summed) is a `LaneMap` all of whose entries are single bits, so that each bit of a
coordinate is one bit of the thread or fixed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ptxlint.dataflow.lane_map import LaneMap, span_value
from ptxlint.dataflow.tensor_instruction import descriptor_register
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Operand, Register, Vector

_WIDTHS: Final = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64,
    "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
}  # fmt: skip
"""Bits of an element; other types (4-bit and 6-bit ones, single bits) are not known here."""
_SHAPE: Final = re.compile(r"m(\d+)n(\d+)k(\d+)")
_UNKNOWN: Final = frozenset({"sp", "sp::ordered_metadata", "block_scale", "and", "xor"})
_GROUP: Final = (2, 3, 4)
"""The bits of the lane number that say which group of four threads it is in ("groupID")."""
_PLACE: Final = (0, 1)
"""The bits that say where in its group it is ("threadID_in_group")."""


class Element(NamedTuple):
    """One element of a matrix that every thread holds: part `part` of `parts` of a register.

    The coordinates are (row, k) for the first factor, (k, column) for the second one, (row,
    column) for the accumulator and the result.
    """

    register: int
    part: int
    parts: int
    first: LaneMap
    second: LaneMap


class Fragments(NamedTuple):
    """The elements by matrix, register by register. A factor in shared memory has none.

    `lanes` are the bits of the thread index that the layouts use: those of the lane, for `wgmma`
    those of the warp in its group as well. Threads that differ in others work on other products.
    """

    first: tuple[Element, ...] | None
    second: tuple[Element, ...] | None
    result: tuple[Element, ...]
    lanes: int


_ALL_IN_MEMORY: Final = Fragments(None, None, (), 0)
"""The layouts of `tcgen05.mma`, whose result lies in tensor memory."""
_known: Final[dict[tuple[Shape, int, bool], Fragments | None]] = {}


def fragments_of(instr: Instr, width: int) -> Fragments | None:
    """The layouts of a product in a CTA whose thread index has `width` bits; None if not known."""
    shape = instr.shape
    if shape.opcode == "tcgen05" and descriptor_register(instr) is not None:
        return _ALL_IN_MEMORY if isinstance(instr.operands[1], Register) else None
    if shape.opcode not in ("mma", "wgmma"):
        return None
    in_registers = len(instr.operands) > 2 and isinstance(instr.operands[1], Vector)
    key = shape, width, in_registers
    if key not in _known:
        _known[key] = _find(shape, width, in_registers)
    return _known[key]


def elements_of(operand: Operand) -> tuple[Operand, ...]:
    """The registers of a fragment: an operand may be a vector or a single one."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _find(shape: Shape, width: int, in_registers: bool) -> Fragments | None:
    group = shape.opcode == "wgmma"
    size = next((m for m in map(_SHAPE.fullmatch, shape.modifiers) if m is not None), None)
    types = shape.types
    if size is None or len(types) < 3 or not _UNKNOWN.isdisjoint(shape.modifiers):
        return None
    if any(t not in _WIDTHS for t in types[:3]):
        return None
    m, n, k = map(int, size.groups())
    bits = _WIDTHS[types[1]]
    if bits != _WIDTHS[types[2]] or width < (7 if group else 5):
        return None
    if not group and (m not in (8, 16) or (m, bits) == (8, 16) or not shape.has("col")):
        # m8n8k4 of halves spreads its rows over groups of eight threads.
        return None
    layout = _Layout(width, group)
    rows = 1 if m == 8 else 2
    first = layout.first(rows, k, bits) if in_registers else None
    second = None if group else layout.second(k, bits)
    result = layout.result(rows, n, _WIDTHS[types[0]])
    return Fragments(first, second, result, 0x7F if group else 0x1F)


class _Layout:
    """Makes the elements of one instruction's matrices."""

    def __init__(self, width: int, group: bool) -> None:
        self._width = width
        self._warps = (5, 6) if group else ()

    def _map(self, constant: int, *bits: tuple[tuple[int, ...], int]) -> LaneMap:
        """A coordinate that starts at `constant`; `bits` are thread bits with the first's size."""
        basis = [0] * self._width
        for places, size in bits:
            for at, place in enumerate(places):
                basis[place] = size << at
        return LaneMap(constant, tuple(basis))

    def _row(self, upper: int) -> LaneMap:
        return self._map(8 * upper, (_GROUP, 1), (self._warps, 16))

    def first(self, rows: int, k: int, bits: int) -> tuple[Element, ...]:
        """A factor of `rows` blocks of 8 rows: these change from register to register first."""
        parts = max(1, 32 // bits)
        out = []
        for register in range(rows * k // (4 * parts)):
            upper, block = register % rows, register // rows
            for part in range(parts):
                along = self._map(4 * parts * block + part, (_PLACE, parts))
                out.append(Element(register, part, parts, self._row(upper), along))
        return tuple(out)

    def second(self, k: int, bits: int) -> tuple[Element, ...]:
        """A factor of 8 columns, one for each group of threads."""
        parts = max(1, 32 // bits)
        column = self._map(0, (_GROUP, 1))
        return tuple(
            Element(register, part, parts,
                    self._map(4 * parts * register + part, (_PLACE, parts)), column)
            for register in range(k // (4 * parts))
            for part in range(parts)
        )  # fmt: skip

    def result(self, rows: int, n: int, bits: int) -> tuple[Element, ...]:
        """The accumulator: pairs of neighbouring columns, of the upper rows, then the lower."""
        parts = max(1, 32 // bits)
        out = []
        for number in range(rows * n // 4):
            odd, upper, block = number % 2, number // 2 % rows, number // (2 * rows)
            column = self._map(8 * block + odd, (_PLACE, 2))
            out.append(Element(number // parts, number % parts, parts, self._row(upper), column))
        return tuple(out)


def in_memory(side: int, rows: int, depth: int, above: int) -> tuple[Element, int]:
    """The one element that stands for all of a factor in shared memory, and the bits that it uses.

    `side` is 0 for the first factor, 1 for the second. Its coordinates are over the matrix's index:
    2^rows rows (or columns) in the low bits, 2^depth places along k in the next ones, and `above`
    bits that tell products apart.
    """
    width = rows + depth + above
    along = LaneMap(0, tuple([1 << i if i < rows else 0 for i in range(width)]))
    k = LaneMap(0, tuple([1 << i - rows if 0 <= i - rows < depth else 0 for i in range(width)]))
    first, second = (k, along) if side else (along, k)
    return Element(0, 0, 1, first, second), (1 << rows + depth) - 1


class Carried(NamedTuple):
    """What carrying a map along an axis gives: a map, or nothing where the elements differ."""

    map: LaneMap | None


APART: Final = Carried(None)
"""The elements of the other matrix have other coordinates."""


def carry(
    what: LaneMap, source: LaneMap, target: LaneMap, lanes: int, target_lanes: int | None = None
) -> Carried | None:
    """A map over the threads that hold a matrix's elements, as one over another's holders.

    `what` says something of each element by its coordinate along the axis that the two matrices
    share; `source` and `target` are that coordinate for the threads of the two, `lanes` the bits
    that the layouts use. None if what is said depends on the other coordinate as well. Where bits
    of the other coordinate are fixed, what is said is taken to hold for all of them.

    The elements of a factor in shared memory are known by an index of their own (`in_memory`).
    `target_lanes` are then the bits of the target's index that its layout uses, `lanes` those of
    the source's. The other bits of both tell products apart, and are the same ones in order; None,
    too, if the target has too few of them for what is said.
    """
    if target_lanes is None:
        target_lanes = lanes
    basis = [0] * len(target.basis)
    fixed = at = 0
    others = [place for place in range(len(basis)) if not target_lanes >> place & 1]
    slopes: dict[int, int] = {}
    wanted: dict[int, int] = {}
    for place, entry in enumerate(what.basis):
        if not lanes >> place & 1:
            if not others:
                # The target is one of fewer products: of which ones, the layouts do not say.
                if entry or what.fixed >> place & 1:
                    return None
                continue
            other = others.pop(0)
            basis[other] = entry
            fixed |= (what.fixed >> place & 1) << other
            at |= (what.at >> place & 1) << other
            continue
        bit = source.basis[place]
        if not bit:
            if entry:
                return None
        elif what.fixed >> place & 1:
            wanted[bit] = bit * (what.at >> place & 1)
        else:
            slopes[bit] = entry
    constant = what.constant
    moving = source.moving | target.moving
    bit = 1
    while bit <= max(source.constant, target.constant, moving):
        if not source.moving & bit:
            wanted[bit] = source.constant & bit
        bit <<= 1
    for place, bit in enumerate(target.basis):
        if not bit or not target_lanes >> place & 1:
            continue
        if bit in wanted:
            fixed |= 1 << place
            at |= 1 << place if wanted[bit] else 0
        else:
            basis[place] = slopes.get(bit, 0)
    still = ~target.moving
    for bit, value in wanted.items():
        if still & bit and target.constant & bit != value:
            return APART
    for bit, slope in slopes.items():
        if still & bit and target.constant & bit:
            constant ^= slope
    return Carried(LaneMap(constant, tuple(basis), fixed, at))


def depends_on(what: LaneMap, coordinate: LaneMap, lanes: int) -> bool:
    """True if what a map says differs along a coordinate within one instruction."""
    return any(
        entry and lanes >> place & 1 and coordinate.basis[place]
        for place, entry in enumerate(what.basis)
    )


__all__ = [
    "APART", "Carried", "Element", "Fragments", "carry", "depends_on", "elements_of",
    "fragments_of", "in_memory", "span_value",
]  # fmt: skip
