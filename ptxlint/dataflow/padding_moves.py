"""What elements that come from other threads hold under a condition.

A load from shared memory holds what was stored, evaluated under the condition as it was there. An
element of a product is what it is added to, plus products of a row of one factor and a column of
the other: a condition on rows is put to the first factor, one on columns to the second.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.dataflow import floats
from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.floats import BF16, BYTES, F16, F32, F64, AbstractFloat, Format
from ptxlint.dataflow.fragments import Element, Fragments, carry, elements_of
from ptxlint.dataflow.guards import Guards
from ptxlint.dataflow.lane_hops import LaneHop
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.movements import Movements, Source
from ptxlint.dataflow.padding_marks import Marks
from ptxlint.dataflow.padding_values import (
    DATA,
    UNKNOWN,
    Evaluator,
    Found,
    Number,
    Word,
    as_float,
    half_of,
    is_finite_word,
    join,
    paired,
)
from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.register_words import extended, loaded_bits
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import BITS

_FORMATS: Final = {"f16": F16, "bf16": BF16, "tf32": F32, "f32": F32, "f64": F64, **BYTES}
_DEEP: Final = 40
"""So many movements are followed one behind the other."""
_EVERYWHERE: Final = 3
_CONTRACTIONS: Final = frozenset({"mma", "wgmma", "tcgen05", "wmma"})


class Term(NamedTuple):
    """The product of two elements: whether it is 0, whether it is finite, and what is padding."""

    is_zero: bool
    is_finite: bool
    touched: bool


class Mover:
    """Looks through movements for the evaluators of one function."""

    def __init__(
        self,
        ssa: Ssa,
        guards: Guards,
        reductions: Reductions,
        movements: Movements,
        conditions: Conditions,
    ) -> None:
        self._ssa = ssa
        self._guards = guards
        self._reductions = reductions
        self._movements = movements
        self._conditions = conditions
        self.knows_threads = conditions.width is not None
        self.marks: Marks | None = None
        self._stored_is_finite: bool | None = None
        self._pending: set[tuple[int, int]] = set()
        self._carried: dict[tuple[int, int, int], int] = {}
        self._off: dict[tuple[int, int], bool] = {}

    def needs(self, instr: Instr, value: int) -> tuple[int, ...]:
        """The values that `read` asks the same evaluator for."""
        if self.is_moved(value) or instr.opcode not in _CONTRACTIONS:
            return ()
        return tuple(
            found
            for element in self._registers(instr, value)
            if (found := self._movements.accumulator(instr, element.register)) is not None
        )[:1]

    def is_marked(self, value: int, condition: Condition) -> bool:
        """True if the padding that a condition is about may show in a value."""
        marks = self.marks
        if marks is None:
            return True
        return any(m.condition is condition for m in marks.each(marks.of(value)))

    def read(self, evaluator: Evaluator, instr: Instr, value: int) -> Found | None:
        """What an instruction brings from other threads; None if this is not known."""
        if self._movements.hops(value):
            return self._hopped(evaluator, value)
        if instr.opcode in _CONTRACTIONS:
            return self._product(evaluator, instr, value)
        if instr.opcode == "ldmatrix" or instr.shape.space == "shared":
            return self._loaded(evaluator, instr, value)
        return None

    def ask(self, evaluator: Evaluator, condition: Condition | None, value: int) -> Found:
        """A value under another condition."""
        target = evaluator.under(condition)
        key = id(target), self._ssa.resolve(value)
        if key in self._pending or len(self._pending) >= _DEEP:
            # Round a loop through memory: nothing is taken for granted.
            return Found(UNKNOWN, _EVERYWHERE)
        self._pending.add(key)
        try:
            return target.of(value)
        finally:
            self._pending.discard(key)

    # Lanes ------------------------------------------------------------------------------------
    def is_moved(self, value: int) -> bool:
        """True for what `shfl` and `selp` bring from known lanes, and combine with nothing."""
        return bool(self._movements.hops(value))

    def _hopped(self, evaluator: Evaluator, value: int) -> Found:
        made = BITS.get(self._ssa.register[value].type, 32)
        parts: list[list[Found]] = []
        for hop in self._movements.hops(value):
            while len(parts) < hop.split:
                parts.append([])
            parts[hop.into] += self._from_lane(evaluator, value, hop, made // hop.split)
        found = [_either(part) for part in parts]
        bits = made // len(found)
        while len(found) > 1:
            found = [paired(found[at], found[at + 1], bits) for at in range(0, len(found), 2)]
            bits *= 2
        return found[0]

    def _from_lane(self, evaluator: Evaluator, value: int, hop: LaneHop, made: int) -> list[Found]:
        """What comes from another lane one way into `made` bits of a value; nothing if no thread
        that the condition is about gets it."""
        marks, condition = self.marks, evaluator.condition
        before = None
        if condition is not None:
            known = () if marks is None else marks.each(marks.of(hop.value))
            comes, before = self._movements.before_hop(
                hop, condition, [mark.condition for mark in known]
            )
            if not comes:
                return []
        found = self.ask(evaluator, before, hop.value)
        if condition is not None and before is None and self.is_marked(value, condition):
            # Which lanes it is about there is not known: any of them may hold padding.
            found = Found(found.word, _EVERYWHERE)
        held = BITS.get(self._ssa.register[hop.value].type, 32)
        if hop.parts > 1:
            return [part_of(found, hop.part, hop.parts, held)]
        if held < made:
            return [paired(found, Found(0, 0), held)]
        return [half_of(found, 0, held) if held > made else found]

    # Shared memory ----------------------------------------------------------------------------
    def _loaded(self, evaluator: Evaluator, instr: Instr, value: int) -> Found | None:
        sources = self._movements.sources(instr, self._ssa.result[value], evaluator.condition)
        if sources is None:
            return None
        width = BITS.get(self._ssa.register[value].type, 32)
        bits = loaded_bits(instr, width)
        found = self._as_whole(evaluator, sources, width)
        if found is None:
            count = len(sources)
            if count not in (1, 2, 4):
                return None
            parts = [self._joined(evaluator, part) for part in sources]
            if count == 4:
                parts = [paired(parts[at], parts[at + 1], bits // 4) for at in (0, 2)]
            found = parts[0] if count == 1 else paired(parts[0], parts[1], bits // 2)
        if bits >= width:
            return found
        word = extended(found.word, bits, width, instr.shape.type.startswith("s"))
        return Found(word, found.touched)

    def _as_whole(
        self, evaluator: Evaluator, sources: list[list[Source]], width: int
    ) -> Found | None:
        """The register where its parts are those of one stored value, side by side."""
        count = len(sources)
        if count < 2 or len({len(part) for part in sources}) != 1:
            return None
        out: list[Found] = []
        for ways in zip(*sources, strict=True):
            first = ways[0]
            for at, way in enumerate(ways):
                if way.value is None and first.value is None and way.store is first.store:
                    continue
                if way != first._replace(part=first.part + at):
                    return None
            if first.value is not None and (first.part % count or first.parts % count):
                return None
            whole = first
            if first.value is not None:
                whole = first._replace(part=first.part // count, parts=first.parts // count)
            out.append(self._stored(evaluator, whole))
        return _either(out)

    def _joined(self, evaluator: Evaluator, sources: list[Source]) -> Found:
        return _either([self._stored(evaluator, source) for source in sources])

    def _stored(self, evaluator: Evaluator, source: Source) -> Found:
        if source.maybe:
            return Found(UNKNOWN, _EVERYWHERE)
        if source.value is None:
            return self._copied(evaluator, source)
        if source.value < 0:
            return Found(UNKNOWN, 0)
        found = self.ask(evaluator, source.condition, source.value)
        width = BITS.get(self._ssa.register[source.value].type, 32)
        return part_of(found, source.part, source.parts, width)

    def _copied(self, evaluator: Evaluator, source: Source) -> Found:
        """What a `cp.async` brings: data, or zeros where it is masked off."""
        guard = self._guards.own(source.store)
        if guard is None:
            return Found(0, 0)
        key = source.store.index, -1 if source.condition is None else source.condition.number
        is_off = self._off.get(key)
        if is_off is None:
            target = evaluator.under(source.condition)
            is_off = source.store.guard is None and any(map(target.is_false, guard))
            self._off[key] = is_off
        return Found(0, _EVERYWHERE) if is_off else Found(evaluator.data, 0)

    # Products ---------------------------------------------------------------------------------
    def _registers(self, instr: Instr, value: int) -> list[Element]:
        """The elements that are in one register of the result."""
        fragments = self._movements.fragments(instr)
        if fragments is None:
            return []
        at = self._ssa.result[value]
        return [e for e in fragments.result if e.register == at]

    def _product(self, evaluator: Evaluator, instr: Instr, value: int) -> Found | None:
        fragments = self._movements.fragments(instr)
        elements = self._registers(instr, value)
        if fragments is None or not elements:
            return None
        found = [self._element(evaluator, instr, fragments, e) for e in elements]
        if len(found) == 2:
            return paired(found[0], found[1], BITS.get(instr.shape.types[0], 32))
        return found[0]

    def _element(
        self, evaluator: Evaluator, instr: Instr, fragments: Fragments, element: Element
    ) -> Found:
        """One element of a product under the condition of an evaluator."""
        before = self._accumulated(evaluator, instr, element)
        form = _FORMATS.get(instr.shape.types[0])
        if form is None:
            return Found(UNKNOWN, _EVERYWHERE)
        is_zero, is_finite, touched = True, True, False
        for term in self.terms(evaluator, instr, fragments, element):
            is_zero = is_zero and term.is_zero
            is_finite = is_finite and term.is_finite
            touched = touched or term.touched
        marked = _EVERYWHERE if touched or before.touched else 0
        if is_zero:
            return Found(before.word, marked)
        if is_finite and as_float(before.word, form).is_finite:
            return Found(DATA, marked)
        return Found(Number(form, floats.anything(form)), marked)

    def _accumulated(self, evaluator: Evaluator, instr: Instr, element: Element) -> Found:
        value = self._movements.accumulator(instr, element.register)
        if value is None:
            return Found(0, 0)
        found = evaluator.of(value)
        width = BITS.get(self._ssa.register[value].type, 32)
        found = part_of(found, element.part, element.parts, width)
        if instr.opcode == "wgmma":
            kept = self._movements.is_added_to(instr)
            if kept is False:
                return Found(0, 0)
            if kept is None:
                return Found(join(found.word, 0), found.touched)
        return found

    def terms(
        self, evaluator: Evaluator, instr: Instr, fragments: Fragments, element: Element
    ) -> list[Term]:
        """The products that are summed for one element of the result."""
        if fragments.first is None or fragments.second is None:
            return [self._matrix_term(evaluator, instr)]
        condition = evaluator.condition
        lanes = fragments.lanes
        out = []
        form = _FORMATS.get(instr.shape.types[1])
        rows = self._meeting(condition, element.first, fragments.first, 0, lanes)
        columns = self._meeting(condition, element.second, fragments.second, 1, lanes)
        others = [(c.first, self.factor(evaluator, instr, 1, c, there)) for c, there in columns]
        for first, row in rows:
            a = self.factor(evaluator, instr, 0, first, row)
            out += [_multiplied(a, b, form) for k, b in others if k == first.second]
        return out

    def _matrix_term(self, evaluator: Evaluator, instr: Instr) -> Term:
        """The products of an instruction that reads a factor from shared memory.

        Its padding is not looked for here, so that it may be anywhere.
        """
        return Term(False, self.is_stored_finite(evaluator), True)

    def is_stored_finite(self, evaluator: Evaluator) -> bool:
        """True if nothing but finite numbers goes to shared memory."""
        target = evaluator.under(None)
        if self._stored_is_finite is None and self.marks is not None:
            # While this is worked out, what comes from there is taken for finite.
            self._stored_is_finite = True
            self._stored_is_finite = all(
                value is None or is_finite_word(self.ask(target, None, value).word)
                for _, value, _ in self.marks.stored()
            )
        return bool(self._stored_is_finite)

    def _meeting(
        self,
        condition: Condition | None,
        own: LaneMap,
        elements: tuple[Element, ...],
        side: int,
        lanes: int,
    ) -> list[tuple[Element, Condition | None]]:
        """The elements of a factor in a result's row (or column), with the condition there."""
        out: list[tuple[Element, Condition | None]] = []
        for element in elements:
            along = element.second if side else element.first
            if condition is None or condition.map is None:
                out.append((element, None))
                continue
            key = condition.number, id(own), id(along)
            found = self._carried.get(key)
            if found is None:
                carried = carry(condition.map, own, along, lanes)
                if carried is None:
                    found = -1
                elif carried.map is None:
                    found = -2
                else:
                    moved = self._conditions.moved(condition, carried.map)
                    found = self._conditions.estranged(moved).number
                self._carried[key] = found
            if found != -2:
                out.append((element, None if found < 0 else self._conditions.all[found]))
        return out

    def factor_value(self, instr: Instr, side: int, element: Element) -> int | None:
        """The register of a factor that an element is in."""
        register = elements_of(instr.operands[1 + side])[element.register]
        return self._reductions.read(instr, register)

    def factor(
        self,
        evaluator: Evaluator,
        instr: Instr,
        side: int,
        element: Element,
        condition: Condition | None,
    ) -> Found:
        """An element of a factor under a condition."""
        value = self.factor_value(instr, side, element)
        if value is None:
            return Found(UNKNOWN, 0)
        found = self.ask(evaluator, condition, value)
        width = BITS.get(self._ssa.register[value].type, 32)
        return part_of(found, element.part, element.parts, width)


def _multiplied(a: Found, b: Found, form: Format | None) -> Term:
    touched = bool(a.touched or b.touched)
    first, second = (_numeric(f.word, form) for f in (a, b))
    zero = (first.is_zero and second.is_finite) or (second.is_zero and first.is_finite)
    return Term(zero, first.is_finite and second.is_finite, touched)


def _numeric(word: Word, form: Format | None) -> AbstractFloat:
    """A factor's element as a number; all integers are finite."""
    if form is not None:
        return as_float(word, form)
    return floats.ZERO if isinstance(word, int) and not word else floats.finite(F32)


def part_of(found: Found, part: int, parts: int, width: int) -> Found:
    """Part `part` of `parts` of a word of `width` bits."""
    while parts > 1:
        half = part * 2 // parts
        found = half_of(found, half, width)
        parts //= 2
        part -= half * parts
        width //= 2
    return found


def _either(found: list[Found]) -> Found:
    if not found:
        # No thread for which the condition holds reads here.
        return Found(0, 0)
    word = found[0].word
    touched = found[0].touched
    for other in found[1:]:
        word = join(word, other.word)
        touched |= other.touched
    return Found(word, touched)


__all__ = ["Mover", "Term", "part_of"]
