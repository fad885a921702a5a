"""Registers that move from lane to lane without being combined: conversions of layouts.

Triton converts a layout within a warp by `shfl.sync`: each thread picks a register by `selp` on
bits of its lane, hands it to another lane, and picks again. What a register holds behind that is
what one of some registers held in another thread. `LaneHops.of` says which, where the lane that is
read from is linear in the bits of the thread index and the predicates are parities of them. A lane
may also be given by a number that all threads share, such as a loop's counter (`tl.gather`, a
broadcast of one column). Elements of 16 or 8 bits are picked by `prmt` with a selector that bits of
the lane choose; the halves or bytes of a register then come from there each in its own way.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import partial, reduce
from operator import or_
from typing import Final, NamedTuple

from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.bitwise import low_zeros
from ptxlint.dataflow.guards import Guards, GuardsAnalysis
from ptxlint.dataflow.lane_bits import LANE, WARP_BITS
from ptxlint.dataflow.lane_map import (
    LaneMap,
    compose,
    depends_on_threads,
    lane_width,
    pulled,
    span_value,
)
from ptxlint.dataflow.lane_words import Condition, LaneWords, Word
from ptxlint.dataflow.linear import Piece, aligned_pieces
from ptxlint.dataflow.loop_bounds import last_index
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import PHI, RESULT, Ssa
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

_LANE: Final = 31
_MOST_HOPS: Final = 64
_SUMS: Final = frozenset({"add", "max", "min", "and", "or", "xor"})
_WIDENINGS: Final = frozenset({("u32", "u16"), ("b32", "b16"), ("u32", "b16"), ("b32", "u16")})
_NARROWINGS: Final = frozenset({("u16", "u32"), ("b16", "b32"), ("u16", "b32"), ("b16", "u32")})


class Shift(NamedTuple):
    """A number that all threads share: times the lowest bit of `mask` it is added to the number of
    the thread that is read from, which has none of the bits of `mask` itself."""

    number: Polynomial
    mask: int


class LaneHop(NamedTuple):
    """One way into a register: the threads t with `t & fixed == at` hold what `value` holds in
    the thread `start`, xored with `images[i]` for each set bit i of t that is not fixed.

    The register's low bits are those of the value; what the value is too narrow for is 0. `shift`
    says of what else the thread's number is made, None if of nothing. Where a register's parts come
    in ways of their own this is the way into part `into` of `split`, lowest first, and brings part
    `part` of `parts` of the value, which is as wide.
    """

    value: int
    fixed: int
    at: int
    start: int
    images: tuple[int, ...]
    shift: Shift | None = None
    into: int = 0
    split: int = 1
    part: int = 0
    parts: int = 1

    def source(self, thread: int, shift: int = 0) -> int | None:
        """The thread that holds what a reading thread gets, None if it gets it another way."""
        if thread & self.fixed != self.at:
            return None
        return self.start ^ span_value(self.images, thread) ^ shift

    def push(self, held: LaneMap) -> list[LaneMap] | None:
        """The numbers of the reading threads, from those of the threads that hold the value.

        In pieces, as `held` may be about some threads only; none if no thread reads those. None if
        that is not known. With a shift it is what the map says without it; see `shift_factor`.
        """
        if self.shift is not None and held.fixed:
            return None
        found = compose(held, self.start, self.images)
        if found is not None:
            return [found._replace(fixed=self.fixed, at=self.at)]
        return self._push_some(held)

    def _push_some(self, held: LaneMap) -> list[LaneMap] | None:
        width = len(self.images)
        reading = _Reading(self.at, [1 << i for i in range(width) if not self.fixed >> i & 1])
        for place in range(width):
            if not held.fixed >> place & 1:
                continue
            mask = sum(1 << i for i, image in enumerate(self.images) if image >> place & 1)
            parity = (self.start ^ held.at) >> place & 1
            if not reading.restrict(mask, parity ^ (mask & reading.at).bit_count() & 1):
                return []
        out = []
        image = self.start ^ span_value(self.images, reading.at)
        pieces = reading.pieces(image, self.images)
        for piece in pieces or ():
            found = compose(held, piece.start, piece.images)
            if found is None:
                return None
            out.append(found._replace(fixed=piece.fixed, at=piece.at))
        return None if pieces is None else out

    def pull(self, read: LaneMap) -> LaneMap | None:
        """The numbers that the threads which hold the value must have, those that are read from.

        None if no map fits: if threads that read the same have different numbers, or there is a
        shift.
        """
        if self.shift is not None:
            return None
        return pulled(self.fixed, self.at, self.start, self.images, len(self.images), read)

    def meets(self, held: LaneMap) -> bool:
        """True if some thread reads from those that a map is about."""
        found = self.push(held)
        return found is None or bool(found)

    def shift_factor(self, held: LaneMap) -> int | None:
        """How often a map's numbers take in the shift: number = pushed + factor * shift.

        None if it does not come in as a multiple.
        """
        if self.shift is None:
            return 0
        mask = self.shift.mask
        entries = [entry for i, entry in enumerate(held.basis) if mask >> i & 1]
        first = entries[0]
        if any(entry != first << k for k, entry in enumerate(entries)):
            return None
        found = compose(held, self.start, self.images)
        taken = sum(entries)
        if found is None or taken != reduce(or_, entries):
            return None
        if taken & (found.moving | found.constant):
            return None
        return first


class LaneHops:
    """The movements between lanes of one function, found when asked for."""

    def __init__(self, facts: Facts, combining: Container[int] = ()) -> None:
        """Instructions of `combining`, by index, are not followed: steps of reductions."""
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._combining = combining
        self._loops: LoopForest = facts.get(LoopsAnalysis)
        self._instrs = facts.function.instrs
        width = lane_width(facts)
        self._width = width if width is not None and width >= 5 else 0
        self._words = LaneWords(self._ssa, self._width)
        self._facts = facts
        self._found: dict[int, tuple[LaneHop, ...]] = {}
        self._moving: dict[int, bool] = {}
        self.has_some = any(
            (i.opcode in ("shfl", "prmt") and i.guard is None and i.index not in combining)
            and (_is_choice(i) or self._is_movement(i))
            for i in self._instrs
        )
        """False if no instruction hands registers on to other lanes."""

    def of(self, value: int) -> tuple[LaneHop, ...]:
        """The ways into a register that was moved between lanes; together they are all threads'.

        Nothing for a value that no `shfl` has brought, and where the lanes are not known.
        """
        if not self.has_some:
            return ()
        value = self._ssa.resolve(value)
        found = self._found.get(value)
        if found is None:
            found = () if not self._width or not self._is_moving(value) else self._find(value)
            self._found[value] = found
        return found

    # Which values are followed ----------------------------------------------------------------
    def _is_moving(self, value: int) -> bool:
        """True if a value is a `shfl`'s, or chosen by the lane from such."""
        work, seen = [value], {value}
        while work:
            current = work.pop()
            known = self._moving.get(current)
            instr = self._definition(current)
            moves = instr is not None and (self._is_movement(instr) or _is_choice(instr))
            if known or moves:
                self._moving[value] = True
                return True
            if known is not None or len(seen) > _MOST_HOPS:
                continue
            half = self._unpacked(current)
            followed = () if instr is None else self._followed(instr)
            for operand in followed if half is None else (half,):
                if operand not in seen:
                    seen.add(operand)
                    work.append(operand)
        self._moving[value] = False
        return False

    def _is_movement(self, instr: Instr) -> bool:
        """True for a `shfl` that hands registers on: a tree's step takes the lane with one bit
        flipped, and what is added to what was read is a step of some other kind."""
        if instr.opcode != "shfl":
            return False
        amount = fold(instr.operands[2])
        if not instr.shape.has("idx") and (amount is None or not amount & amount - 1):
            return False
        source = self._read(instr, instr.operands[1])
        result = self._ssa.def_values[instr.index][0]
        for reader in self._ssa.instr_users(result):
            is_sum = reader.opcode in _SUMS or reader.opcode == "fma"
            operands = reader.operands[3:] if reader.opcode == "fma" else reader.operands[1:]
            if is_sum and source in [self._read(reader, o) for o in operands]:
                return False
        return True

    def _definition(self, value: int) -> Instr | None:
        if self._ssa.kind[value] != RESULT or self._ssa.result[value]:
            return None
        instr = self._instrs[self._ssa.instr[value]]
        is_followed = instr.guard is None and instr.index not in self._combining
        return instr if is_followed else None

    def _unpacked(self, value: int) -> int | None:
        """The register whose low half was put where a half of a packed register is taken from."""
        ssa = self._ssa
        if ssa.kind[value] != RESULT:
            return None
        instr = self._instrs[ssa.instr[value]]
        target = instr.operands[0] if instr.opcode == "mov" and instr.guard is None else None
        if not isinstance(target, Vector) or len(target.elements) != 2:
            return None
        packed = self._read(instr, instr.operands[1])
        made = None if packed is None else self._definition(packed)
        if made is None or BITS.get(made.shape.type) != 32:
            return None
        half = ssa.result[value]
        if made.opcode == "mov" and isinstance(made.operands[1], Vector):
            parts = made.operands[1].elements
            return self._read(made, parts[half]) if len(parts) == 2 else None
        selector = fold(made.operands[3]) if made.opcode == "prmt" else None
        if selector is None or len(made.shape.modifiers) != 1:
            return None
        chosen = selector >> 8 * half & 0xFF
        # Bytes 0 and 1 are the low half of the first register, 4 and 5 that of the second one.
        return (
            self._read(made, made.operands[1 + (chosen >> 2 & 1)])
            if chosen in (0x10, 0x54)
            else None
        )

    def _read(self, instr: Instr, operand: Operand) -> int | None:
        if not isinstance(operand, Register):
            return None
        values = self._ssa.use_values[instr.index]
        return self._ssa.resolve(values[instr.uses.index(operand)])

    def _followed(self, instr: Instr) -> tuple[int, ...]:
        """The registers that an instruction may hand on as they are."""
        opcode = instr.opcode
        if opcode == "selp" and len(instr.operands) == 4:
            arms = [self._read(instr, o) for o in instr.operands[1:3]]
            known = tuple(a for a in arms if a is not None)
            return known if len(known) == 2 else ()
        if opcode == "shfl" or _is_copy(instr):
            source = self._read(instr, instr.operands[1])
            return () if source is None else (source,)
        return ()

    # Ways -------------------------------------------------------------------------------------
    def _find(self, value: int) -> tuple[LaneHop, ...]:
        width = BITS.get(self._ssa.register[value].type, 32)
        home = self._loops.innermost(self._ssa.cfg.block_of[self._ssa.instr[value]])
        found, chosen = self._walk(value, home, width, False) or ((), False)
        for grain in (16, 8) if chosen else ():
            parts: list[LaneHop] = []
            for low in range(0, width, grain):
                walked = self._walk(value, home, grain, True, low)
                if walked is None or walked[1] or not walked[0]:
                    break
                parts += walked[0]
            else:
                return tuple(parts)
        return found

    def _walk(
        self, value: int, home: object, size: int, in_parts: bool, low: int = 0
    ) -> tuple[tuple[LaneHop, ...], bool] | None:
        """The ways into a register, or into `size` bits of it from `low` on; None if it has none.

        With them, whether some begin where lanes choose parts of registers of another size.
        """
        width = self._width
        everywhere = _Reading(0, [1 << i for i in range(width)])
        images = tuple([1 << i for i in range(width)])
        bits = BITS.get(self._ssa.register[value].type, 32)
        out: list[LaneHop] = []
        chosen = False
        work = [_Way(value, everywhere, 0, images, bits, None, low, size if in_parts else 0)]
        while work:
            way = work.pop()
            if len(work) + len(out) > _MOST_HOPS:
                return None
            before = self._before(way, home)
            if before is not None:
                work += before
                continue
            instr = self._definition(way.value)
            chosen = chosen or (instr is not None and _is_choice(instr))
            pieces = way.reading.pieces(
                way.start ^ span_value(way.images, way.reading.at), way.images
            )
            if pieces is None:
                return None
            parts = (0, 1, 0, 1)
            if in_parts:
                held = BITS.get(self._ssa.register[way.value].type, 32)
                parts = low // size, bits // size, way.low // size, held // size
            out += [LaneHop(way.value, *piece, way.shift, *parts) for piece in pieces]
        if any(hop.value == value for hop in out):
            return (), chosen
        return tuple(sorted(out, key=lambda h: (h.at, h.fixed, h.value))), chosen

    def _before(self, way: _Way, home: object) -> list[_Way] | None:
        """The same one instruction earlier; None at the end of the way."""
        source = None if way.size else self._unpacked(way.value)
        if source is None:
            if way.size:
                moved = self._part_before(way)
                if moved is not None:
                    return moved
            instr = self._definition(way.value)
            if instr is None:
                return None
            if instr.opcode == "selp":
                return self._chosen(instr, way)
            if self._is_movement(instr):
                return self._shuffled(instr, way, home)
            if not _is_copy(instr):
                return None
            source = self._read(instr, instr.operands[1])
        if source is None:
            return None
        inner = BITS.get(self._ssa.register[source].type, 32)
        own = BITS.get(self._ssa.register[way.value].type, 32)
        if own < inner and own < way.bits and not way.size:
            # What is cut off here is read as 0 further on.
            return None
        if way.size and way.low + way.size > inner:
            return None
        return [way._replace(value=source)]

    def _part_before(self, way: _Way) -> list[_Way] | None:
        """Where a part of a register comes from if it is packed, taken out or permuted."""
        ssa = self._ssa
        if ssa.kind[way.value] != RESULT:
            return None
        instr = self._instrs[ssa.instr[way.value]]
        if instr.guard is not None:
            return None
        if instr.opcode == "prmt":
            return self._permuted(instr, way)
        if instr.opcode != "mov":
            return None
        target, operand = instr.operands[0], instr.operands[1]
        own = BITS.get(ssa.register[way.value].type, 32)
        low = way.low
        if isinstance(target, Vector):
            low += own * ssa.result[way.value]
        elif isinstance(operand, Vector):
            each = own // len(operand.elements)
            operand, low = operand.elements[low // each], low % each
        else:
            return None
        source = self._read(instr, operand)
        inner = 0 if source is None else BITS.get(ssa.register[source].type, 32)
        if source is None or inner > 32 or low + way.size > inner:
            return None
        return [way._replace(value=source, low=low)]

    def _permuted(self, instr: Instr, way: _Way) -> list[_Way] | None:
        """The registers whose parts `prmt` puts together, each for the threads that choose it."""
        if len(instr.shape.modifiers) != 1:
            return None
        choices = self._selectors(instr, instr.operands[3], way)
        out: list[_Way] = []
        for reading, selector in choices or ():
            nibbles = [
                selector >> at & 15 for at in range(way.low // 2, (way.low + way.size) // 2, 4)
            ]
            first = nibbles[0]
            if nibbles != list(range(first, first + len(nibbles))) or nibbles[-1] > 7:
                return None
            if first * 8 % way.size:
                return None
            source = self._read(instr, instr.operands[1 + (first >> 2)])
            if source is None:
                return None
            out.append(way._replace(value=source, reading=reading, low=8 * (first & 3)))
        return out or None

    def _selectors(
        self, instr: Instr, operand: Operand, way: _Way
    ) -> list[tuple[_Reading, int]] | None:
        """What a selector is, by the threads that read from those where it is that."""
        constant = fold(operand)
        if constant is not None:
            return [(way.reading, constant)]
        value = self._read(instr, operand)
        if value is None:
            return None
        word = self._words.plain(value)
        if isinstance(word, Word):
            return self._linear_selectors(word, way)
        made = self._definition(value)
        if made is None or made.opcode != "selp":
            return None
        predicate = self._read(made, made.operands[3])
        condition = None if predicate is None else self._words.plain(predicate)
        if not isinstance(condition, tuple) or isinstance(condition, Word):
            return None
        if way.shift is not None and any(mask & way.shift.mask for mask, _ in condition):
            return None
        out: list[tuple[_Reading, int]] = []
        for holds, reading in _split_by(way, condition):
            arm = fold(made.operands[1 if holds else 2])
            if arm is None:
                return None
            out.append((reading, arm))
        return out

    def _linear_selectors(self, word: Word, way: _Way) -> list[tuple[_Reading, int]] | None:
        constant = word.constant
        if constant is None or word.symbol:
            return None
        out = [(way.reading, constant)]
        # Bits that the same threads have set are one choice.
        for mask, bits in _choices(word, way.low // 2, (way.low + way.size) // 2).items():
            if len(out) > _MOST_HOPS or (way.shift is not None and mask & way.shift.mask):
                return None
            out = [
                (part, selector ^ bits if holds else selector)
                for reading, selector in out
                for holds, part in _split_by(way._replace(reading=reading), ((mask, 1),))
            ]
        return out

    def _chosen(self, instr: Instr, way: _Way) -> list[_Way] | None:
        """Both arms of a `selp`, each for the threads that take it."""
        predicate = self._read(instr, instr.operands[3])
        arms = [self._read(instr, o) for o in instr.operands[1:3]]
        if predicate is None or arms[0] is None or arms[1] is None:
            return None
        condition = self._words.plain(predicate)
        if not isinstance(condition, tuple) or isinstance(condition, Word):
            return None
        if way.shift is not None and any(mask & way.shift.mask for mask, _ in condition):
            return None
        out = []
        for holds, reading in _split_by(way, condition):
            arm = arms[0] if holds else arms[1]
            out.append(way._replace(value=arm, reading=reading))
        return out

    def _shuffled(self, instr: Instr, way: _Way, home: object) -> list[_Way] | None:
        """What `shfl` read, in the lane that it was read from (PTX ISA, "shfl.sync")."""
        source = self._read(instr, instr.operands[1])
        clamp = fold(instr.operands[3])
        if source is None or clamp is None or clamp & _LANE != _LANE:
            return None
        segment = clamp >> 8 & _LANE
        lane, shift = self._lane(instr, home)
        if lane is None:
            return None
        start, basis = lane
        if instr.shape.has("idx"):
            own = segment
        elif instr.shape.has("bfly"):
            own = _LANE
            if any(basis) or shift is not None or start & segment:
                return None
        else:
            return None
        if shift is not None and way.shift is not None:
            return None
        keeps = (1 << self._width) - 1 & ~_LANE | own
        moves = _LANE & ~segment if own != _LANE else _LANE

        def image_of(thread: int) -> int:
            return thread & keeps ^ span_value(basis, thread) & moves

        if way.shift is not None and any(
            image_of(1 << i) != 1 << i for i in range(self._width) if way.shift.mask >> i & 1
        ):
            return None
        if shift is not None and shift.mask & ~moves:
            return None
        images = tuple([image_of(image) for image in way.images])
        return [
            way._replace(
                value=source,
                start=image_of(way.start) ^ start & moves,
                images=images,
                shift=shift or way.shift,
            )
        ]

    def _lane(
        self, instr: Instr, home: object
    ) -> tuple[tuple[int, tuple[int, ...]] | None, Shift | None]:
        """The lane operand: its number in thread 0 with what each bit flips, and a shift."""
        none = (0,) * self._width
        constant = fold(instr.operands[2])
        if constant is not None:
            return (constant & _LANE, none), None
        value = self._read(instr, instr.operands[2])
        if value is None:
            return None, None
        word = self._word(value)
        if word is not None:
            number = word.constant
            if number is None or word.symbol:
                return None, None
            return (number & _LANE, tuple([e & _LANE for e in word.basis])), None
        if self._loops.innermost(self._ssa.cfg.block_of[instr.index]) is not home:
            # The loop's counter has another meaning there.
            return None, None
        return self._shifted(value)

    def _word(self, value: int) -> Word | None:
        """A number that is linear in the bits of the thread, also where each way into a join has
        worked it out for itself."""
        ssa = self._ssa
        values: tuple[int, ...] = (value,)
        if ssa.kind[value] == PHI and self._loops.with_header(ssa.phi_block[value]) is None:
            values = ssa.operands[value]
        found = {self._words.plain(v) for v in values}
        word = found.pop() if len(found) == 1 else None
        return word if isinstance(word, Word) else None

    def _shifted(self, value: int) -> tuple[tuple[int, tuple[int, ...]] | None, Shift | None]:
        """A lane that is linear but for a number which all threads share.

        Both are put together without a carry, so that `or`, `xor` and `add` are the same.
        """
        start, basis = 0, (0,) * self._width
        shared: list[int] = []
        work = [value]
        while work:
            current = work.pop()
            word = self._words.plain(current)
            if isinstance(word, Word):
                number = word.constant
                own = _LANE & (word.moving | (number or 0))
                if number is None or word.symbol or own & (start | reduce(or_, basis)):
                    return None, None
                start |= number & _LANE
                basis = tuple([x | y & _LANE for x, y in zip(basis, word.basis, strict=True)])
                continue
            parts = self._parts(current)
            if parts is None:
                shared.append(current)
                continue
            work += parts
        shift = None
        if len(shared) == 1:
            shift = self._shift(shared[0], start | reduce(or_, basis))
        return (None, None) if shift is None else ((start, basis), shift)

    def _parts(self, value: int) -> tuple[int, ...] | None:
        """What a number is put together from; None if it is looked at as a whole."""
        instr = self._definition(value)
        if instr is None or instr.opcode not in ("or", "xor", "add", "and", "cvt"):
            return None
        if any(t[0] not in "bsu" for t in instr.shape.types) or instr.shape.has("sat"):
            return None
        read = [self._read(instr, o) for o in instr.operands[1:3]]
        known = tuple(v for v in read if v is not None)
        if instr.opcode == "cvt":
            # The low bits stay, whatever the width.
            return known or None
        if instr.opcode == "and":
            is_masked = len(known) == 1 and fold(instr.operands[2]) == _LANE
            return known if is_masked else None
        return known if len(known) == 2 else None

    def _shift(self, value: int, taken: int) -> Shift | None:
        """A number that is the same for all threads as what it adds to a lane."""
        uniformity: Uniformity = self._facts.get(UniformityAnalysis)
        if uniformity.dependence(value) & (LANE | WARP_BITS):
            return None
        symbolic: Symbolic = self._facts.get(SymbolicAnalysis)
        number = symbolic.of(value)
        if any(depends_on_threads(atom, uniformity) for atom in number.atoms()):
            return None
        low, high = self._range(number)
        instr = self._definition(value)
        mask = None if instr is None or instr.opcode != "and" else fold(instr.operands[2])
        if mask is not None and 0 <= mask <= _LANE:
            low, high = max(low, 0), min(high, mask)
        if low < 0 or high > _LANE:
            return None
        step = 1 << min(low_zeros(number), 5)
        bits = (1 << int(high).bit_length()) - 1 & ~(step - 1)
        if not bits or bits & taken:
            return None
        terms = {monomial: factor // step for monomial, factor in number.terms.items()}
        return Shift(Polynomial(number.table, terms), bits)

    def _range(self, number: Polynomial) -> tuple[int, int]:
        """Bounds of a number, with those that branches before a loop give to its counter."""
        low, high = number.range()
        counters = [a for a in number.atoms() if a.kind == "index"]
        if high <= _LANE or len(counters) != 1:
            return low, high
        (counter,) = counters
        rest = number - number.table.plain(counter)
        loop = self._loops.with_header(counter.data[0])
        if loop is None or counter in rest.atoms():
            return low, high
        symbolic: Symbolic = self._facts.get(SymbolicAnalysis)
        guards: Guards = self._facts.get(GuardsAnalysis)
        last = last_index(
            self._ssa, self._loops, loop, symbolic.operand, partial(guards.at_entry, loop)
        )
        return (low, high) if last is None else (low, rest.range()[1] + last)


class _Reading:
    """Threads: `at`, xored with any of the directions."""

    __slots__ = ("at", "directions")

    def __init__(self, at: int, directions: list[int]) -> None:
        self.at = at
        self.directions = directions

    def restrict(self, mask: int, parity: int) -> bool:
        """Keep the threads with `t & mask` of this parity; False if there are none.

        The parity is counted from `at`: 0 keeps that one.
        """
        odd = [d for d in self.directions if (d & mask).bit_count() & 1]
        if not odd:
            return not parity
        pivot = odd[0]
        self.directions = [
            d ^ pivot if (d & mask).bit_count() & 1 else d for d in self.directions if d != pivot
        ]
        if parity:
            self.at ^= pivot
        return True

    def copy(self) -> _Reading:
        """The same, to be restricted."""
        return _Reading(self.at, list(self.directions))

    def pieces(self, image: int, images: tuple[int, ...]) -> list[Piece] | None:
        """The map of these threads that takes `at` to `image`, by fixing single bits."""
        moves = [(d, span_value(images, d)) for d in self.directions]
        return aligned_pieces(self.at, moves, image, len(images))


class _Way(NamedTuple):
    """Where a value is looked for: in the thread `start`, xored with the images of the bits of a
    reading thread. `bits` is how many the reading register has. Of a part it is `size` bits of the
    value from `low` on; `size` is 0 for a whole register."""

    value: int
    reading: _Reading
    start: int
    images: tuple[int, ...]
    bits: int
    shift: Shift | None = None
    low: int = 0
    size: int = 0


def _split_by(way: _Way, condition: Condition) -> Iterator[tuple[bool, _Reading]]:
    """The reading threads for which a condition holds of the thread they read from, and the others.

    The latter in pieces: those that are the first to break one of the parities.
    """
    reading = way.reading.copy()
    for mask, parity in condition:
        own = sum(1 << i for i, image in enumerate(way.images) if (image & mask).bit_count() & 1)
        here = (way.start & mask).bit_count() + (own & reading.at).bit_count() & 1
        broken = reading.copy()
        if broken.restrict(own, here ^ parity ^ 1):
            yield False, broken
        if not reading.restrict(own, here ^ parity):
            return
    yield True, reading


def _choices(word: Word, low: int, high: int) -> dict[int, int]:
    """Bits `low` to `high` of a word that differ between threads, by the bits of the thread's
    index of which they are the parity."""
    out: dict[int, int] = {}
    for at in range(low, high):
        mask = sum(1 << i for i, entry in enumerate(word.basis) if entry >> at & 1)
        if mask:
            out[mask] = out.get(mask, 0) | 1 << at
    return out


def _is_choice(instr: Instr) -> bool:
    """True for a `prmt` of which the bytes are chosen while it runs."""
    return instr.opcode == "prmt" and isinstance(instr.operands[3], Register)


def _is_copy(instr: Instr) -> bool:
    """True for moves of a register and changes between its 16- and 32-bit containers."""
    if instr.opcode not in ("mov", "cvt") or len(instr.operands) != 2:
        return False
    if not all(isinstance(o, Register) for o in instr.operands):
        return False
    types = instr.shape.types
    return instr.opcode == "mov" or tuple(types) in _WIDENINGS | _NARROWINGS


__all__ = ["LaneHop", "LaneHops", "Shift"]
