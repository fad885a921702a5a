"""The facts at each instruction of one function, for all formats of `ptxlint show facts`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ptxlint.dataflow.access import Access, AccessAnalysis
from ptxlint.dataflow.describe import describe
from ptxlint.dataflow.floats import F16, F32, FORMATS, anything, decode
from ptxlint.dataflow.guards import ALWAYS, Conjunct, Conjunction, Guards, GuardsAnalysis
from ptxlint.dataflow.index_text import IndexText
from ptxlint.dataflow.integer_words import Span
from ptxlint.dataflow.joins import JoinsAnalysis
from ptxlint.dataflow.padding import Padding, PaddingAnalysis, Site
from ptxlint.dataflow.padding_values import (
    Data,
    Evaluator,
    Hypothesis,
    Number,
    Word,
    conjunct_bits,
    halves,
    is_pair,
)
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.dataflow.reductions import Reduction, ReductionsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, RESULT, Ssa
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.engine.said import Said
from ptxlint.facts import Budget, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import BITS
from ptxlint.rulekit import Hit
from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.reporters.facts_launch import FactsUnderLaunch

_STEPS: Final = 2_000_000
"""Values that are evaluated for one function at most, over all masks."""
_MOST_MASKS: Final = 200
_SAY_NOTHING: Final = frozenset({"finite", "finite data", "anything"})


class Fact(NamedTuple):
    """One fact: what kind of fact it is, in words, and as data for programs."""

    kind: str
    text: str
    data: dict[str, Any]


class Mask(NamedTuple):
    """A conjunct that masks loads, by the name under which facts speak of it."""

    name: str
    conjunct: Conjunct
    sites: tuple[Site, ...]


class FactsView:
    """Everything that `show facts` prints of one function."""

    def __init__(
        self,
        facts: Facts,
        said: Iterable[Said] = (),
        launched: FactsUnderLaunch | None = None,
    ) -> None:
        self.facts = facts
        self.launched = launched
        """The launch under which integers, guards and accesses are shown, if it is one."""
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._guards: Guards = facts.get(GuardsAnalysis)
        self._symbolic: Symbolic = (
            facts.get(SymbolicAnalysis) if launched is None else launched.symbolic
        )
        self._seen: Guards = self._guards if launched is None else launched.guards
        """The guards that are shown."""
        self._padding: Padding = facts.get(PaddingAnalysis)
        self._uniformity = facts.get(UniformityAnalysis)
        self._pressure = facts.get(PressureAnalysis)
        self._words = IndexText(self._ssa)
        self._steps = Budget(_STEPS)
        self._plain = self._evaluator(Hypothesis(None, ALWAYS, 0))
        self.masks = self._find_masks()
        self._hidden = [(mask, *self._under(mask)) for mask in self.masks]
        self._accesses: dict[int, list[Access]] = {}
        accesses = facts.get(AccessAnalysis) if launched is None else launched.accesses
        for access in (*accesses.in_global, *accesses.in_shared):
            self._accesses.setdefault(access.instr.index, []).append(access)
        self._reductions: dict[int, list[Reduction]] = {}
        for reduction in facts.get(ReductionsAnalysis).all:
            self._reductions.setdefault(reduction.at.index, []).append(reduction)
        self._said: dict[int, list[Fact]] = {}
        for each in said:
            at = each.said.at
            fact = self._of_rule(each)
            self._said.setdefault(-1 if at is None else at.index, []).append(fact)

    # Of the function --------------------------------------------------------------------------
    def of_function(self) -> list[Fact]:
        """What rules say of the function as a whole."""
        return self._said.get(-1, [])

    def mask_text(self, mask: Mask) -> str:
        """A mask's comparison."""
        return self._called(self._words.conjunct(mask.conjunct))

    def path(self, block: int) -> str:
        """What holds on every way to a block; "" if that is nothing."""
        return self._called(self._words.conjunction(self._seen.of_block(block)))

    def _find_masks(self) -> tuple[Mask, ...]:
        by_conjunct: dict[Conjunct, list[Site]] = {}
        for site in self._padding.sites:
            for conjunct in site.guard:
                by_conjunct.setdefault(conjunct, []).append(site)
        ordered = sorted(
            by_conjunct.items(), key=lambda i: (i[1][0].instr.index, self._words.conjunct(i[0]))
        )
        return tuple(
            Mask(f"m{number}", conjunct, tuple(sites))
            for number, (conjunct, sites) in enumerate(ordered[:_MOST_MASKS], 1)
        )

    def _under(self, mask: Mask) -> tuple[Evaluator, set[int]]:
        """Values where a mask is false, and the values that may be other ones there."""
        guards = [site.guard for site in mask.sites]
        known = frozenset.intersection(*guards) - {mask.conjunct}
        bits = conjunct_bits(mask.conjunct, self._uniformity)
        evaluator = self._evaluator(Hypothesis(mask.conjunct, known, bits))
        return evaluator, self._behind([s.value for s in mask.sites if s.value >= 0])

    def _behind(self, values: list[int]) -> set[int]:
        """The values that are computed from these."""
        ssa = self._ssa
        seen, work = set(values), list(values)
        while work:
            for user in ssa.users(work.pop()):
                for found in (~user,) if user < 0 else ssa.def_values[user]:
                    if found not in seen:
                        seen.add(found)
                        work.append(found)
        return seen

    def _evaluator(self, hypothesis: Hypothesis) -> Evaluator:
        facts = self.facts
        return Evaluator(
            self._ssa, self._guards, self._uniformity, facts.get(ReductionsAnalysis),
            hypothesis, self._steps, shared_is_finite=self._padding.shared_is_finite,
            joins=facts.get(JoinsAnalysis),
        )  # fmt: skip

    # Of an instruction ------------------------------------------------------------------------
    def live(self, instr: Instr) -> int:
        """Live 32-bit registers after the instruction."""
        return self._pressure.words(instr)

    def level(self, instr: Instr) -> str:
        """Over which threads the results are the same; "" without results."""
        values = self._ssa.def_values[instr.index]
        if not values:
            return ""
        return max(self._uniformity.value_uniformity(value) for value in values).name.lower()

    def of(self, instr: Instr) -> list[Fact]:
        """All facts at one instruction."""
        if not self._ssa.cfg.is_reachable(instr):
            return []
        out: list[Fact] = []
        for access in self._accesses.get(instr.index, ()):
            out.append(self._access(access))
            out += self._under_launch(access)
        for value in self._ssa.def_values[instr.index]:
            out += self._value(instr, value)
        out += [self._reduction(r) for r in self._reductions.get(instr.index, ())]
        return out + self._said.get(instr.index, [])

    def _called(self, text: str) -> str:
        return self.facts.words.translate(text)

    def _guard(self, guard: Conjunction | None) -> str:
        return self._called(self._words.conjunction(guard))

    def _access(self, access: Access) -> Fact:
        offset = self._called(self._words.polynomial(access.offset))
        base = self._called(access.base) or "unknown base"
        guard = self._guard(access.own)
        where = f"{base} + {offset}" if access.offset.terms else base
        text = f"{access.kind} of {counted(access.width, 'byte')} at {where}"
        data = {
            "access": access.kind,
            "space": access.space,
            "base": self._called(access.base),
            "offset": offset,
            "bytes": access.width,
            "guard": guard,
        }
        return Fact("access", f"{text} where {guard}" if guard else text, data)

    def _under_launch(self, access: Access) -> Iterator[Fact]:
        """Where an access goes under the launch."""
        for status, text in self.launched.of(access) if self.launched is not None else ():
            text = self._called(text)
            yield Fact("launch", f"{status}: {text}", {"status": status, "where": text})

    def _value(self, instr: Instr, value: int) -> Iterator[Fact]:
        """What is known of one result."""
        ssa = self._ssa
        name = ssa.register[value].name
        if ssa.register[value].type == "pred":
            text = self._guard(self._seen.of_predicate(value))
            if text and text != name:
                yield _named("predicate", name, text)
            return
        integer = self._integer(instr, value)
        if integer:
            yield _named("integer", name, integer)
        if ssa.kind[value] == MERGE:
            yield _named("choice", name, self._called(describe(ssa, value)))
        width = BITS.get(ssa.register[value].type, 32)
        number = self._plain.of(value).word
        if isinstance(number, Number) or (is_pair(number) and not _is_of_bytes(number)):
            text = word_text(number, width)
            if not set(text.strip("{}").split(", ")) <= _SAY_NOTHING:
                yield _named("float", name, text)
        held: dict[str, list[str]] = {}
        for mask, evaluator, touched in self._hidden:
            if value in touched:
                found = evaluator.of(value)
                if found.touched:
                    held.setdefault(word_text(found.word, width), []).append(mask.name)
        for text, masks in held.items():
            data = {"register": name, "masks": masks, "value": text}
            yield Fact("padding", f"{name} = {text} without {' or '.join(masks)}", data)

    def _integer(self, instr: Instr, value: int) -> str:
        """The index polynomial of a result; "" for one that the instruction says itself."""
        ssa = self._ssa
        kind = ssa.register[value].type
        if ssa.kind[value] != RESULT or kind[0] not in "bus" or self._is_float(instr):
            return ""
        poly = self._symbolic.of(value)
        if poly.is_constant:
            return ""
        text = self._words.polynomial(poly)
        if text == ssa.register[value].name:
            return ""
        wraps = self._symbolic.wraps.get(instr.index)
        words = sorted({f"{'s' if w.signed else 'u'}{w.bits}" for w in wraps or ()})
        return self._called(text) + (f" (if it fits {', '.join(words)})" if words else "")

    def _is_float(self, instr: Instr) -> bool:
        return any(t in FORMATS or t.endswith("f16x2") for t in instr.shape.types)

    def _reduction(self, reduction: Reduction) -> Fact:
        lanes, loops = reduction.lanes, reduction.loops
        bits = [str(at) for at in range(lanes.bit_length()) if lanes >> at & 1]
        over = [f"lane bit{'s' * (len(bits) > 1)} {', '.join(bits)}"] if lanes else []
        over += ["warps"] if reduction.warps else []
        over += [f"the loop at B{header}" for header in loops]
        leaves = sum(not leaf.init for leaf in reduction.leaves)
        operator = {"add": "sum", "mul": "product"}.get(reduction.operator, reduction.operator)
        text = f"{operator} in {reduction.type} of {counted(leaves, 'value')} a thread"
        data = {
            "operator": reduction.operator,
            "type": reduction.type,
            "leaves": leaves,
            "lanes": lanes,
            "warps": reduction.warps,
            "loops": list(loops),
        }
        return Fact("reduction", f"{text}, over {' and '.join(over)}" if over else text, data)

    def _of_rule(self, each: Said) -> Fact:
        rule, said = each
        if isinstance(said, Hit):
            message = self._called(said.message)
            severity = said.severity or rule.severity
            data = {"rule": rule.id, "severity": severity, "message": message}
            return Fact("finding", f"{severity}[{rule.id}] {message}", data)
        reason = self._called(said.reason)
        data = {"rule": rule.id, "family": rule.family, "status": said.status, "reason": reason}
        return Fact("verdict", f"{said.status}[{rule.id}] {reason}", data)


def _named(kind: str, register: str, value: str) -> Fact:
    return Fact(kind, f"{register} = {value}", {"register": register, "value": value})


def _number_text(number: Number) -> str:
    """A set of numbers: `0..max`, `finite`, `-inf`, `1 or nan`, `anything`."""
    value, most = number.value, number.form.largest
    if value == anything(number.form):
        return "anything"
    if not value.finite or value.lo == value.hi:
        return str(value)
    low = "-max" if value.lo == -most else f"{value.lo:g}"
    high = "max" if value.hi == most else f"{value.hi:g}"
    inner = "finite" if (low, high) == ("-max", "max") else f"{low}..{high}"
    others = [inner] if not value.ninf else ["-inf", inner]
    return " or ".join(
        [*others, *(["+inf"] if value.pinf else []), *(["nan"] if value.nan else [])]
    )


def _is_of_bytes(word: Word) -> bool:
    """True for a word that is known by more than its halves: elements that are no numbers yet."""
    return any(is_pair(half) for half in halves(word, 32))


def word_text(word: Word, width: int) -> str:
    """What a register holds, in words."""
    if type(word) is tuple:
        pair: tuple[Any, ...] = word
        low, high = (word_text(half, width // 2) for half in pair)
        return f"{{{low}, {high}}}"
    if isinstance(word, Number):
        return _number_text(word)
    if isinstance(word, Data):
        return "finite data"
    if isinstance(word, Span):
        return f"{word.low}..{word.high}"
    if isinstance(word, int):
        if not word or width not in (16, 32):
            return str(word)
        point = decode(F32 if width == 32 else F16, word).point
        form = "f32" if width == 32 else "f16"
        return f"{word:#x} ({point:g} as {form})" if point is not None else f"{word:#x}"
    return "anything"
