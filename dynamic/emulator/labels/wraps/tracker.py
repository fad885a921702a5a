"""What wrapped in one batch: handed on as numbers are, and told where it is an address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from ptxlint.dynamic.emulator.batch import Batch, Mask, Step, holds
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, seen_as
from ptxlint.dynamic.emulator.labels.movement import registers, replaying
from ptxlint.dynamic.emulator.labels.wraps import exact
from ptxlint.dynamic.emulator.labels.wraps.exact import Excess, Number, Whole
from ptxlint.dynamic.emulator.labels.wraps.remainders import Remainders
from ptxlint.dynamic.emulator.operands import guard, reader
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Immediate, Operand, Pair, Register, Vector
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.frame import Frame

_ARITHMETIC: Final = frozenset("add sub mul mad neg min max cvt".split())
"""Make numbers; what is loaded or put together bit by bit may be something else."""
_INTEGERS: Final = frozenset("s32 u32 b32 s64 u64 b64".split())


class Origin(NamedTuple):
    """Where a number left its word first, and in words by how much in one lane."""

    instr: Instr
    text: str


Origins: TypeAlias = "tuple[Origin | None, Origin | None]"
"""Of words that are read as signed, and as unsigned."""


class _Met(NamedTuple):
    """An instruction with the registers it reads, before it is run."""

    frame: Frame
    instr: Instr
    step: Step
    mask: Mask
    inner: Mask
    operands: list[Number]


class Wraps:
    """Follows the integers of one batch."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._of: dict[int, Excess] = {}
        self._from: dict[int, Origins] = {}
        self._remainders: dict[int, Remainders] = {}

    def follow(self, frame: Frame, instr: Instr, step: Step, mask: Mask) -> Iterator[None]:
        """See `Follower`."""
        held = guard(frame, instr)
        inner = mask if held is None else held(self._batch, mask)
        if self._of and holds(inner):
            self._look_at_addresses(frame, instr, inner)
        make = _RULES.get(instr.opcode)
        target = instr.operands[0] if instr.operands else None
        if isinstance(target, Pair):
            target = target.first
        if make is None or not isinstance(target, Register) or not self._is_followed(instr):
            yield
            self._drop(frame, instr, inner)
            return
        operands = [self._number(frame, instr, o, at) for at, o in enumerate(instr.operands[1:])]
        met = _Met(frame, instr, step, mask, inner, operands)
        yield
        if not holds(inner):
            return
        found = make(self, met, self._word(frame, target))
        if found is not None and instr.opcode in ("sub", "add", "mad") and self._is_rest(met):
            found = None
        if found is not None and inner is not None:
            found = Excess(*(np.where(inner, part, 0) for part in found))
        origins = None if found is None or not found.is_any else self._origins(met, found)
        self._drop(frame, instr, inner)
        if found is not None and origins is not None:
            self._give(frame.number(target), found, origins)

    def arrive(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        """See `Follower`."""
        if instr.opcode not in ("shfl", "wgmma", "mma", "ldmatrix"):
            self._drop(frame, instr, mask)

    # Registers --------------------------------------------------------------------------------
    def _word(self, frame: Frame, register: Register) -> Array:
        return self._batch.value(frame.number(register), bits(register.type))

    def _is_followed(self, instr: Instr) -> bool:
        shape = instr.shape
        if any(shape.has(word) for word in ("sat", "cc", "hi")):
            return False
        if instr.opcode == "shfl":
            return True
        return all(kind in _INTEGERS for kind in shape.types)

    def _number(self, frame: Frame, instr: Instr, operand: Operand, at: int) -> Number:
        """The operand behind `at` others as bits of its register, or of a literal."""
        if isinstance(operand, Register):
            return Number(self._word(frame, operand), self._of.get(frame.number(operand)))
        if isinstance(operand, Vector):
            return Number(np.zeros((1, 1), dtype=np.uint64), None)
        width = max((bits(k) for k in instr.shape.types if k != "pred"), default=32)
        try:
            # What is added to a wide product is as wide as that.
            kind = f"b{32 * (1 + at // 2) if instr.shape.has('wide') else width}"
            word = reader(frame, instr, operand, kind)(self._batch)
        except UnsupportedError:
            return Number(np.zeros((1, 1), dtype=RAW[width]), None)
        return Number(word, None, isinstance(operand, Immediate))

    def _drop(self, frame: Frame, instr: Instr, mask: Mask) -> None:
        for register in instr.defs:
            number = frame.number(register)
            old = self._of.get(number)
            if old is None:
                continue
            left = None
            if mask is not None:
                left = Excess(np.where(mask, 0, old.first), np.where(mask, 0, old.second))
            self._set(number, left)

    def _set(self, number: int, excess: Excess | None) -> None:
        if excess is not None and excess.is_any:
            self._of[number] = excess
        else:
            self._of.pop(number, None)
            self._from.pop(number, None)

    def _give(self, number: int, found: Excess, origins: Origins) -> None:
        """What a register lacks from now on, where nothing is known of it."""
        old = self._of.get(number)
        if old is not None:
            found = Excess(found.first + old.first, found.second + old.second)
            before = self._from[number]
            origins = origins[0] or before[0], origins[1] or before[1]
        self._of[number], self._from[number] = found, origins

    def _origins(self, met: _Met, found: Excess) -> Origins:
        """Where what an operation lacks comes from, by how its words are read: from an operand, or
        from itself."""
        before = [
            self._from[number]
            for number in (met.frame.number(r) for r in met.instr.uses)
            if number in self._from
        ]
        if bits(met.instr.defs[0].type) == 64:
            order = (0, 1) if _is_signed(met) else (1, 0)
            known = [pair[at] for at in order for pair in before]
            origin = next((o for o in known if o is not None), None)
            origin = origin or self._own(met, found, found.first | found.second, "a 64-bit")
            return origin, origin
        out = []
        for at, word in enumerate(("a signed 32-bit", "an unsigned 32-bit")):
            own = next((pair[at] for pair in before if pair[at] is not None), None)
            out.append(own or self._own(met, found, found[at], word))
        return out[0], out[1]

    def _own(self, met: _Met, found: Excess, part: Whole, word: str) -> Origin | None:
        """That an operation itself left its word, in the first lane that it did in."""
        lanes = np.broadcast_to((part != 0) & self._batch.lanes(met.inner), self._batch.shape)
        if not lanes.any():
            return None
        is_unsigned = word.startswith("an ")
        words = [
            f"{_exactly(number, lanes, is_unsigned):,}"
            for number in met.operands
            if number.word.dtype.kind != "b"
        ]
        result = Number(self._word(met.frame, met.instr.defs[0]), found)
        made = _exactly(result, lanes, is_unsigned)
        cta, thread = (int(x) for x in np.argwhere(lanes)[0])
        return Origin(
            met.instr,
            f"`{met.instr.shape.mnemonic}` of {' and '.join(words)} comes to {made:,}, which "
            f"{word} word does not hold (program {self._batch.ctas[cta]}, thread {thread})",
        )

    def _is_rest(self, met: _Met) -> bool:
        function: Function = met.frame.function
        found = self._remainders.get(id(function))
        if found is None:
            found = self._remainders[id(function)] = Remainders(function)
        is_rest: bool = found.is_one(met.instr)
        return is_rest

    def is_arithmetic(self, met: _Met, operand: Operand) -> bool:
        """True for a register that arithmetic gave its value."""
        if not isinstance(operand, Register):
            return False
        self._is_rest(met)
        made = self._remainders[id(met.frame.function)].defined(operand, met.instr.index)
        return made is not None and made.opcode in _ARITHMETIC

    def shuffled(self, met: _Met, word: Array) -> Excess | None:
        """What a word of another lane lacks."""
        batch, source = self._batch, met.instr.operands[1]
        excess = met.operands[0].excess
        if excess is None or not isinstance(source, Register):
            return None
        lane = np.broadcast_to(np.arange(batch.threads, dtype=np.uint32), batch.shape)
        words = {met.frame.number(r): batch.registers[met.frame.number(r)] for r in met.instr.uses}
        results = {met.frame.number(r): None for r in met.instr.defs}
        words[met.frame.number(source)] = lane
        with replaying(batch, {**results, **words}):
            met.step(batch, met.mask)
            target = met.instr.operands[0]
            first = target.first if isinstance(target, Pair) else target
            came = self._word(met.frame, first) if isinstance(first, Register) else lane
        taken = np.broadcast_to(came, batch.shape).astype(np.int64)
        return Excess(*(np.take_along_axis(batch.full(part), taken, axis=1) for part in excess))

    # Telling ----------------------------------------------------------------------------------
    def _look_at_addresses(self, frame: Frame, instr: Instr, inner: Mask) -> None:
        """Report addresses, and coordinates of tiles, that are not what was computed."""
        for operand in instr.operands:
            if not isinstance(operand, Address):
                continue
            if isinstance(operand.base, Register):
                self._check(frame, instr, operand.base, operand.offset, inner, False)
            for part in operand.rest:
                for register in registers(part):
                    self._check(frame, instr, register, 0, inner, True)

    def _check(
        self, frame: Frame, instr: Instr, register: Register, offset: int, inner: Mask,
        is_signed: bool,
    ) -> None:  # fmt: skip
        excess = self._of.get(frame.number(register))
        if excess is None:
            return
        number = Number(self._word(frame, register), excess)
        if bits(register.type) == 32:
            wrong = exact.misses(number, offset, is_signed) != 0
        else:
            # An address is unsigned: what is beyond the greatest signed number is one, too.
            is_high = (number.held < 0) & (excess.second == 1)
            wrong = (excess.first != 0) | ((excess.second != 0) & ~is_high)
        flags: Flags = self._batch.lanes(inner) & wrong
        if not flags.any():
            return
        held, made = int(_first(number.word, flags)), _exactly(number, flags)
        if is_signed:
            held = held - (held >> 31 << 32)
        known = self._from.get(frame.number(register), (None, None))
        origin = known[0] or known[1]
        why = "" if origin is None else f": {origin.text}"
        does = "copies a tile at" if is_signed else "accesses memory by"
        self._batch.device.report(
            self._batch, instr, "wrapped",
            f"{does} {register.name} = {held:,}, which would be {made:,} if nothing had wrapped"
            f"{why}", flags, None if origin is None else origin.instr,
            value=held, exact=made,
        )  # fmt: skip


def _first(values: Array, flags: Flags) -> Any:
    return np.broadcast_to(values, flags.shape)[flags][0]


def _exactly(number: Number, flags: Flags, is_unsigned: bool = False) -> int:
    """The exact number in the first of some lanes."""
    if number.word.dtype.itemsize == 4:
        return int(_first(number.unsigned if is_unsigned else number.signed, flags))
    lack, beyond = number.lacks
    held, more, times = (int(_first(part, flags)) for part in (number.held, lack, beyond))
    return held + more + (times << 64)


Rule = Callable[[Wraps, _Met, Array], "Excess | None"]


def _is_wide(met: _Met) -> bool:
    return bits(met.instr.defs[0].type) == 64


def _is_signed(met: _Met) -> bool:
    return bool(met.instr.shape.types[-1][0] == "s")


def _add(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, b = met.operands
    if _is_wide(met):
        return exact.total(a, b)
    return exact.narrow(lambda x, y: x + y, [a, b], word)


def _or(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    """Of words without a common bit this is a sum."""
    a, b = met.operands
    if a.excess is None and b.excess is None:
        return None
    found = _add(wraps, met, word)
    if found is None:
        return None
    apart = a.word & b.word == 0
    return Excess(np.where(apart, found.first, 0), np.where(apart, found.second, 0))


def _sub(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, b = met.operands
    if _is_wide(met):
        return exact.difference(a, b)
    return exact.narrow(lambda x, y: x - y, [a, b], word)


def _neg(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    (a,) = met.operands
    if _is_wide(met):
        return exact.difference(Number(np.zeros((1, 1), dtype=np.uint64), None), a)
    return exact.narrow(lambda x: -x, [a], word)


def _mul(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, b = met.operands
    if met.instr.shape.has("wide"):
        return exact.wide_product(a, b, _is_signed(met), None)
    if _is_wide(met):
        return exact.product(a, b)
    return exact.narrow(lambda x, y: x * y, [a, b], word)


def _mad(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, b, c = met.operands
    if met.instr.shape.has("wide"):
        return exact.wide_product(a, b, _is_signed(met), c)
    if _is_wide(met):
        made = Number(a.word * b.word, exact.product(a, b))
        return exact.total(made, c)
    return exact.narrow(lambda x, y, z: x * y + z, [a, b, c], word)


def _shl(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, count = met.operands
    by = seen_as(count.word, "b32")
    if _is_wide(met):
        return exact.shifted(a, by)
    places = by.astype(np.int64)
    found = exact.narrow(lambda x: x << np.minimum(places, 31), [a], word)
    if found is None:
        return None
    return Excess(*(np.where(places < 32, part, 0) for part in found))


def _shr(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    """A signed number is halved so often; the bits of an unsigned one are moved."""
    a, count = met.operands
    if a.excess is None or not _is_signed(met):
        return None
    places = np.minimum(seen_as(count.word, "b32"), np.uint32(63)).astype(np.int64)
    if _is_wide(met):
        made = (a.held + a.lacks[0]) >> places
        return Excess(made - word.view(np.int64), np.zeros_like(made))
    return exact.narrow(lambda x: x >> places, [a], word)


def _div(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, b = met.operands
    if (a.excess is None and b.excess is None) or not _is_signed(met) or _is_wide(met):
        return None
    return exact.narrow(_quotient, [a, b], word)


def _quotient(x: Any, y: Any) -> Any:
    safe = np.where(y == 0, 1, y)
    return np.where(y == 0, 0, np.sign(x) * np.sign(safe) * (np.abs(x) // np.abs(safe)))


def _minmax(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, b = met.operands
    if a.excess is None and b.excess is None:
        return None
    pick: Any = np.minimum if met.instr.opcode == "min" else np.maximum
    if _is_wide(met) or not _is_signed(met):
        return exact.chosen(a.word == word, a, b)
    return exact.narrow(pick, [a, b], word)


def _selp(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    a, b, flags = met.operands
    return exact.chosen(flags.word, a, b)


def _mov(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    (a,) = met.operands
    return exact.copied(a) if a.word.dtype == word.dtype else None


def _cvt(wraps: Wraps, met: _Met, word: Array) -> Excess | None:
    (a,) = met.operands
    to, source = (bits(kind) for kind in met.instr.shape.types)
    if 8 * a.word.dtype.itemsize != source or 8 * word.dtype.itemsize != to:
        return None
    if to == source:
        return exact.copied(a)
    if to > source:
        return exact.extended(a, _is_signed(met))
    return exact.shortened(a, word, wraps.is_arithmetic(met, met.instr.operands[1]))


_RULES: Final[dict[str, Rule]] = {
    "add": _add, "sub": _sub, "neg": _neg, "mul": _mul, "mad": _mad, "shl": _shl, "shr": _shr,
    "or": _or, "div": _div, "min": _minmax, "max": _minmax, "selp": _selp, "mov": _mov,
    "cvta": _mov, "cvt": _cvt, "shfl": Wraps.shuffled,
}  # fmt: skip
"""By opcode; what others make is a number of its own."""


__all__ = ["Wraps"]
