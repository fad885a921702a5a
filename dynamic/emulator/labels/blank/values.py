"""What a computation makes of labelled bits: those of its result that they can bear on.

A label is a word as wide as the value, with a bit set for each one that is not known. Where the
known bits settle a result (`and` with 0, a comparison whose bounds do not meet) it has no label.
Floating-point operations label all of a result, each half of a packed pair by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, dtype, raw
from ptxlint.dynamic.emulator.semantics import Lanewise
from ptxlint.ir.instruction import Instr
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import FLOATS, bits


class Known(NamedTuple):
    """An operand: its values as the computation takes them, and which of their bits are not known,
    as a word of the same width (booleans for predicates)."""

    values: Array
    label: Array

    @property
    def word(self) -> Array:
        """The bits of the values."""
        return raw(self.values)

    @property
    def low(self) -> Array:
        """The values with zeros for what is not known."""
        return self.word & ~self.label

    @property
    def high(self) -> Array:
        """The values with ones for what is not known."""
        return self.word | self.label


Rule: TypeAlias = Callable[[Instr, Lanewise, "list[Known]"], Array]

_PARTS: Final = {
    "f16x2": 16, "bf16x2": 16, "u16x2": 16, "s16x2": 16, "f32x2": 32, "e4m3x2": 8, "e5m2x2": 8,
}  # fmt: skip


def outcome(instr: Instr, found: Lanewise, operands: list[Known]) -> list[Array]:
    """The labels of the results, one a destination, each as wide as its type."""
    if instr.opcode == "setp":
        return _setp(instr, found, operands)
    rule = _RULES.get(instr.opcode)
    kind = found.results[0]
    is_integer = kind not in FLOATS and kind not in _PARTS and not _is_floating(instr)
    if rule is not None and (is_integer or instr.opcode in _ALL_TYPES):
        return [rule(instr, found, operands)]
    return [_whole(result, operands) for result in found.results]


def _is_floating(instr: Instr) -> bool:
    return any(kind in FLOATS or kind in _PARTS for kind in instr.shape.types)


def _ones(flags: Flags, kind: str) -> Array:
    """All bits of a type where flags hold."""
    word = RAW[bits(kind)]
    if word.kind == "b":
        return flags
    return np.where(flags, word.type(np.iinfo(word).max), word.type(0))


def _any(operands: list[Known]) -> Flags:
    flags: Flags = np.zeros((1, 1), dtype=bool)
    for operand in operands:
        flags = flags | (operand.label != 0)
    return flags


def _whole(result: str, operands: list[Known]) -> Array:
    """All of a result that any of them bears on; of packed numbers each part by itself."""
    width = _PARTS.get(result)
    if width is None or any(o.label.dtype.itemsize * 8 != bits(result) for o in operands):
        return _ones(_any(operands), result)
    union = _union(operands)
    parts = np.ascontiguousarray(union).view(RAW[width])
    filled = _ones(parts != 0, f"b{width}")
    return np.ascontiguousarray(filled).view(union.dtype)


def _union(operands: list[Known]) -> Array:
    first, *others = operands
    union = first.label
    for other in others:
        union = union | other.label
    return union


# Logic ----------------------------------------------------------------------------------------
def _logic(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    """Bit by bit: what the operation can come to with either value of each bit not known."""
    arity = 3 if instr.opcode == "lop3" else 2
    table = fold(instr.operands[4]) if instr.opcode == "lop3" else _TABLES[instr.opcode]
    assert table is not None
    can = [(~o.low, o.high) for o in operands[:arity]]
    out: list[Any] = [None, None]
    for at in range(1 << arity):
        met: Any = None
        for place, either in enumerate(can):
            bit = either[at >> (arity - 1 - place) & 1]
            met = bit if met is None else met & bit
        holds = table >> at & 1
        out[holds] = met if out[holds] is None else out[holds] | met
    if out[0] is None or out[1] is None:
        return np.zeros_like(operands[0].label)
    both: Array = out[0] & out[1]
    return both


_TABLES: Final = {"and": 0b1000, "or": 0b1110, "xor": 0b0110}
"""By opcode, the result for each pair of bits, the first operand's being the upper one."""


def _same(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    return operands[0].label


# Sums and products ----------------------------------------------------------------------------
def _carried(label: Array) -> Array:
    """All bits from the lowest one on: a carry goes no other way."""
    out: Array = label | (~label + label.dtype.type(1))
    return out


def _add(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    if found.reads_carry or found.writes_carry or instr.shape.has("sat"):
        return _whole(found.results[0], operands)
    return _sum(*operands)


def _sum(a: Known, b: Known) -> Array:
    out: Array = a.label | b.label | (a.low + b.low) ^ (a.high + b.high)
    return out


def _sub(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    if found.reads_carry or found.writes_carry or instr.shape.has("sat"):
        return _whole(found.results[0], operands)
    a, b = operands
    out: Array = a.label | b.label | (a.low - b.high) ^ (a.high - b.low)
    return out


def _product(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    """Bits from the lowest that is not known; none for a product with zero."""
    kind = found.results[0]
    a, b = operands[:2]
    union = a.label | b.label
    if instr.shape.has("hi"):
        label = _ones(union != 0, kind)
    else:
        label = _carried(union.astype(RAW[bits(kind)]))
    is_zero = (a.high == 0) | (b.high == 0)
    return np.where(is_zero, label.dtype.type(0), label)


def _mad(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    if found.reads_carry or found.writes_carry or instr.shape.has("sat"):
        return _whole(found.results[0], operands)
    return _carried(_product(instr, found, operands) | operands[2].label)


def _negative(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    return _carried(operands[0].label)


def _minmax(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    """Where the bounds of the operands do not meet, the label of the one that is taken."""
    if instr.shape.has("relu"):
        return _whole(found.results[0], operands)
    (a_low, a_high), (b_low, b_high) = (_bounds(o) for o in operands)
    a, b = (o.label for o in operands)
    smaller, greater = (a, b) if instr.opcode == "min" else (b, a)
    label = np.where(b_high <= a_low, greater, _whole(found.results[0], operands))
    return np.where(a_high <= b_low, smaller, label)


def _bounds(operand: Known) -> tuple[Array, Array]:
    """The least and the greatest number that an integer may be, in its own order."""
    kind = operand.values.dtype
    if kind.kind != "i":
        return operand.low, operand.high
    top = operand.label.dtype.type(1 << (8 * kind.itemsize - 1))
    low = operand.low | operand.label & top
    high = (operand.word | operand.label & ~top) & ~(operand.label & top)
    return low.view(kind), high.view(kind)


# Moving bits ----------------------------------------------------------------------------------
def _moved(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    """What moves bits about moves labels alike, if it is known where to."""
    data = _DATA[instr.opcode]
    args = [
        o.label.view(o.values.dtype) if at < data else o.values for at, o in enumerate(operands)
    ]
    label = raw(np.asarray(found.compute(*args)))
    by = _any(operands[data:]) if len(operands) > data else np.zeros((1, 1), dtype=bool)
    return np.where(by, _ones(by, f"b{8 * label.dtype.itemsize}"), label)


_DATA: Final = {"shl": 1, "shr": 1, "shf": 2, "bfe": 1, "bfi": 2, "prmt": 2, "brev": 1}
"""By opcode, how many of the first operands are what is moved."""


def _chosen(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    """Of what is chosen; where the choice is not known, of either, and where they differ."""
    a, b, by = operands
    label = np.where(by.values, a.label, b.label)
    return np.where(by.label, a.label | b.label | a.word ^ b.word, label)


def _converted(instr: Instr, found: Lanewise, operands: list[Known]) -> Array:
    to, source = instr.shape.types[0], instr.shape.types[-1]
    kind = found.results[0]
    if to in _PARTS:
        return _to_parts(to, source, operands, kind)
    is_plain = not (instr.shape.has("sat") or to in FLOATS or source in FLOATS)
    if not is_plain:
        return _whole(kind, operands)
    (operand,) = operands
    wide = operand.label.view(operand.values.dtype).astype(dtype(to))
    return wide.view(RAW[bits(kind)])


def _to_parts(to: str, source: str, operands: list[Known], kind: str) -> Array:
    """Packed numbers: the first of two sources is the upper one; one source has as many parts."""
    word, width = RAW[bits(kind)], _PARTS[to]
    if len(operands) == 2:
        parts = [_any([o]) for o in reversed(operands)]
    else:
        (operand,) = operands
        step = 4 * operand.label.dtype.itemsize
        split = operand.label.dtype.type((1 << step) - 1)
        lower = operand.label & split != 0
        parts = [lower, operand.label & ~split != 0]
    out: Any = np.zeros((1, 1), dtype=word)
    for at, flags in enumerate(parts):
        out = out | np.where(flags, word.type((1 << width) - 1), word.type(0)) << word.type(
            width * at
        )
    return out


# Comparing ------------------------------------------------------------------------------------
def _setp(instr: Instr, found: Lanewise, operands: list[Known]) -> list[Array]:
    a, b = operands[:2]
    if instr.shape.type in ("f16x2", "bf16x2"):
        halves = [np.uint32(0xFFFF), np.uint32(0xFFFF0000)]
        labels = [(a.label & half != 0) | (b.label & half != 0) for half in halves]
    else:
        label = _any([a, b])
        if found.sources[0] not in FLOATS:
            label = label & ~_is_settled(instr, a, b)
        labels = [label] * len(found.results)
    if len(operands) == 2:
        return labels
    joined = operands[2]
    out = []
    compared: Any = found.compute
    for at, label in enumerate(labels):
        # A join is not known if it comes out differently, or if two unknown ones meet.
        met = []
        for flips in (False, True):
            other = joined.values ^ (joined.label & flips)
            results = compared(a.values, b.values, other)
            met.append(results[at] if isinstance(results, tuple) else results)
        settles = joined.values == _settling(instr)
        by_comparison = label & ~(settles & ~joined.label)
        out.append(by_comparison | (met[0] != met[1]) | (label & joined.label))
    return out


def _settling(instr: Instr) -> Any:
    """The predicate that settles what it is joined with; none does for `xor`."""
    if instr.shape.has("and"):
        return np.False_
    return np.True_ if instr.shape.has("or") else np.int8(2)


def _is_settled(instr: Instr, a: Known, b: Known) -> Flags:
    """Where integers compare in one way whatever the bits not known are."""
    if instr.shape.has("eq") or instr.shape.has("ne"):
        differs: Flags = (a.word ^ b.word) & ~(a.label | b.label) != 0
        return differs
    (a_low, a_high), (b_low, b_high) = _bounds(a), _bounds(b)
    if any(instr.shape.has(name) for name in ("lt", "ge", "lo", "hs")):
        return (a_high < b_low) | (a_low >= b_high)
    out: Flags = (a_high <= b_low) | (a_low > b_high)
    return out


_ALL_TYPES: Final = frozenset(("selp", "cvt", "prmt"))
"""Whose rules look at the types themselves."""
_RULES: Final[dict[str, Rule]] = {
    "and": _logic, "or": _logic, "xor": _logic, "lop3": _logic, "not": _same, "add": _add,
    "sub": _sub, "mul": _product, "mad": _mad, "neg": _negative, "min": _minmax, "max": _minmax,
    **dict.fromkeys(_DATA, _moved), "selp": _chosen, "cvt": _converted,
}  # fmt: skip
"""By opcode; others label all of what they can bear on."""


__all__ = ["Known", "outcome"]
