"""Padding: what the lanes that a load masks off carry into reductions.

For each masked load the fill is followed to the reductions that it reaches. Every pair of a
reduction's leaf and a conjunct of the load's guard is judged by itself: the leaf is evaluated with
only that conjunct false. It must then be neutral for the operator, unless the conjunct is the same
for all that is combined: such padding stays in its own lanes.

*proved* assumes finite data without overflow. *refuted* needs a conjunct that some launch makes
false, that tells apart what is combined, numbers for the statistics with which the value is
certainly not neutral, and a result that reaches memory. Everything else is *open*, with what is not
known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.dataflow import floats, integer_words
from ptxlint.dataflow.conditions import Condition, Conditions
from ptxlint.dataflow.floats import FORMATS, AbstractFloat, Format
from ptxlint.dataflow.fragments import elements_of
from ptxlint.dataflow.guards import ALWAYS, Conjunct, Conjunction, Guards, GuardsAnalysis
from ptxlint.dataflow.joins import Joins, JoinsAnalysis
from ptxlint.dataflow.lane_map import lane_width
from ptxlint.dataflow.movements import Movements
from ptxlint.dataflow.obstacles import Obstacles
from ptxlint.dataflow.padded_rows import PaddedRows
from ptxlint.dataflow.padding_axes import Axes
from ptxlint.dataflow.padding_bytes import ByteMarks, has_bytes
from ptxlint.dataflow.padding_chains import Chains
from ptxlint.dataflow.padding_marks import Mark, Marks
from ptxlint.dataflow.padding_moves import Mover
from ptxlint.dataflow.padding_products import Products
from ptxlint.dataflow.padding_reach import Reach
from ptxlint.dataflow.padding_values import (
    DATA,
    UNKNOWN,
    Data,
    Dependences,
    Evaluator,
    Found,
    Hypothesis,
    Session,
    as_float,
    conjunct_bits,
)
from ptxlint.dataflow.padding_words import Words
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.recurrences import Recurrences
from ptxlint.dataflow.reductions import (
    WHOLE,
    Leaf,
    Node,
    Reduction,
    Reductions,
    ReductionsAnalysis,
    narrow_type,
)
from ptxlint.dataflow.rounds import Rounds
from ptxlint.dataflow.shared_provenance import SharedProvenanceAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, Ssa
from ptxlint.dataflow.standing import Standing
from ptxlint.dataflow.tensor_memory import TensorMemoryAnalysis
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.dataflow.vacuity import VACUOUS, Vacuity
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand
from ptxlint.ir.types import BITS

PROVED: Final = "proved"
REFUTED: Final = "refuted"
OPEN: Final = "open"
ASSUMES: Final = ("finite data without overflow",)
_BUDGET_PER_INSTRUCTION: Final = 50
_MOST_OPEN: Final = 4
"""So many leaves alike of reductions at one place are evaluated for a load where none is decided by
that."""
_MOST_VALUES: Final = 300
"""So many values are looked at behind one that goes into a reduction."""
_WORST: Final = {REFUTED: 0, OPEN: 1, PROVED: 2}
_SAMPLES: Final[tuple[Callable[[int], float], ...]] = (
    lambda at: 1.0,
    lambda at: 0.5 + (at % 7) * 0.25,
)
"""Numbers for statistics: positive, so that sums of squares and maxima can take them too."""
_DATA_SAMPLES: Final[tuple[float, ...]] = (-1.0, 0.25, 1.0)
"""What all data may be where a maximum or minimum is refuted."""


class Site(NamedTuple):
    """One masked load: its instruction, the value it makes, its guard and its fill's value."""

    instr: Instr
    value: int
    guard: Conjunction
    fill: int | None


class Pair(NamedTuple):
    """The verdict on one conjunct and one thing that combines lanes.

    `value` is what a lane then holds, `reduction` is None for a contraction or an exchange, which
    is `at`.
    """

    site: Site
    conjunct: Conjunct
    reduction: Reduction | None
    value: AbstractFloat | None
    status: str
    reason: str
    leaf: Leaf | None = None
    at: Instr | None = None


class _Value(NamedTuple):
    """What a leaf is, and whether the false conjunct had a say in it."""

    number: AbstractFloat
    touched: bool


class LoadVerdict(NamedTuple):
    """The verdict on a load of the source: that of its worst pair. `sites` are its instructions."""

    sites: tuple[Site, ...]
    status: str
    reason: str
    pairs: tuple[Pair, ...]
    fill: str

    @property
    def at(self) -> Instr:
        """The first instruction of the load."""
        return self.sites[0].instr

    @property
    def worst(self) -> Pair | None:
        """The pair that decides, None if something else did."""
        return next((p for p in self.pairs if p.status == self.status), None)


class Padding:
    """The masked loads of a function that reach a reduction, with their verdicts."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.ssa: Ssa = facts.get(SsaAnalysis)
        self.guards: Guards = facts.get(GuardsAnalysis)
        self.uniformity: Uniformity = facts.get(UniformityAnalysis)
        self.reductions: Reductions = facts.get(ReductionsAnalysis)
        self._joins: Joins = facts.get(JoinsAnalysis)
        self.steps = facts.budget(PaddingAnalysis.name, 12_000, _BUDGET_PER_INSTRUCTION)
        """Steps that are left, shared with the evaluators."""
        self.sites: list[Site] = []
        self.verdicts: list[LoadVerdict] = []
        self._evaluators: dict[tuple[Any, ...], Evaluator] = {}
        self._relatives: dict[tuple[Any, ...], dict[int, Evaluator]] = {}
        self._bits: dict[Conjunct, int] = {}
        self._sayings: dict[tuple[int, int], Conjunct] = {}
        self._left_open: dict[object, int] = {}
        """By loads, place of the reduction and value: the leaves that were evaluated and left
        open."""
        self._undecided: set[int] = set()
        """The loads of which something is not proved."""
        self.words: Words
        self._has_words = False
        self._session = Session()
        self._bounds: dict[tuple[int, bool], tuple[AbstractFloat, ...]] = {}
        reductions = self.reductions
        calls = any(i.shape.row.is_call for i in facts.function.instrs)
        if reductions.all or reductions.contractions or reductions.exchanges or calls:
            self._find_sites()
        if self.sites:
            self._reach = Reach(facts, self.reductions)
            self._obstacles = Obstacles(facts)
            self._dependences = Dependences(self.ssa, self.uniformity, self.reductions)
            self._conditions = Conditions(lane_width(facts), self.uniformity, self.reductions.loops)
            self._rounds = Rounds(self.ssa, self.reductions.loops, self.guards)
            self._standing = Standing(self.ssa, self.reductions.loops, self.guards, self._rounds)
            self._padded_rows = PaddedRows(self.guards, self.reductions.loops)
            self._vacuity = Vacuity(
                self.ssa, self.reductions.loops, self.guards, self._standing, self.uniformity,
                lane_width(facts), self.steps,
            )  # fmt: skip
            self._movements = Movements(
                facts, self.ssa, self.reductions, self._conditions, self._rounds
            )  # fmt: skip
            self._mover = Mover(
                self.ssa, self.guards, self.reductions, self._movements, self._conditions
            )
            self._marks = Marks(
                self.ssa, self.uniformity, self.reductions, self._conditions, self._movements,
                self._joins, self.steps,
            )  # fmt: skip
            self._mover.marks = self._marks
            self._axes = Axes(
                self.ssa, self.reductions, self._conditions, self._movements, self._marks,
                self.steps,
            )  # fmt: skip
            self._loads = list(self._groups())
            self._put_marks()
            kept = Recurrences(self.ssa, self.reductions)
            free = self._apart()
            self._marks.is_kept = lambda phi, carried, condition: kept.keeps(
                free.under(condition), phi, carried
            )
            self._marks.spread()
            self._marks.note_recurrences(kept.entering)
            self._marks.is_kept = None
            free.release()
            self._bytes = ByteMarks(self.ssa, self.reductions, self._movements, self._marks)
            if has_bytes(facts.function):
                self._marks.of_byte = self._bytes.of
                self._marks.version += 1
            self.words = self._find_words()
            self._has_words = True
            self._bytes.settle(self.words.free)
            self._marks.version += 1
            self._judge()

    def shared_is_finite(self) -> bool:
        """True if shared memory holds finite numbers only, as long as the data is finite."""
        return self._has_words and self.words.shared_is_finite

    def release(self) -> None:
        """Take apart what refers to itself."""
        self._drop_evaluators()
        if self._has_words:
            self._marks.of_byte = None

    def _drop_evaluators(self) -> None:
        for evaluator in self._evaluators.values():
            evaluator.release()
        self._evaluators.clear()
        for relatives in self._relatives.values():
            for evaluator in list(relatives.values()):
                evaluator.release()
        self._relatives.clear()

    def _find_words(self) -> Words:
        """What values hold, freely and where they are padding."""
        words = Words(
            self.ssa, self.guards, self.uniformity, self.reductions, self._dependences,
            self._conditions, self._movements, self._marks, self._joins, self._standing,
            self.steps, self._reach.stored_in_shared,
        )  # fmt: skip
        words.want(self._wanted())
        return words

    def _wanted(self) -> Iterator[int]:
        """What reductions combine and products multiply, where that has marks."""
        marks = self._marks
        for reduction in self.reductions.all:
            if any(marks.of_leaf(leaf) for leaf in reduction.leaves):
                for leaf in reduction.leaves:
                    yield from self._roots(leaf)
        read = self.reductions.read
        for instr in self.reductions.contractions:
            registers = [r for operand in instr.operands[1:3] for r in elements_of(operand)]
            values = [v for v in [read(instr, r) for r in registers] if v is not None]
            # What lies in shared memory is asked for where it is judged.
            if instr.opcode != "mma" or any(map(marks.of, values)):
                yield from values

    # Sites ------------------------------------------------------------------------------------
    def _find_sites(self) -> None:
        ssa = self.ssa
        for instr in self._facts.function.instrs:
            if not ssa.cfg.is_reachable(instr):
                continue
            if instr.opcode == "ld" and instr.shape.space in ("global", "") and instr.guard:
                guard = self.guards.own(instr)
                for value in ssa.def_values[instr.index]:
                    if guard and ssa.kind[value] == MERGE:
                        self.sites.append(Site(instr, value, guard, ssa.old(value)))
            elif instr.opcode == "cp" and _is_copy(instr):
                guard = self.guards.own(instr)
                if guard:
                    self.sites.append(Site(instr, -1, guard, None))

    def _groups(self) -> Iterator[list[Site]]:
        """The sites of one load of the source together."""
        groups: dict[Any, list[Site]] = {}
        for site in self.sites:
            loc = site.instr.loc
            frame = None if loc is None else self._facts.module.python_frame(loc)
            key = site.instr.index if frame is None or frame.line <= 0 else frame
            groups.setdefault(key, []).append(site)
        yield from groups.values()

    def _put_marks(self) -> None:
        """Mark what each load masks with the conditions under which it does."""
        for load, sites in enumerate(self._loads):
            for site in sites:
                bits = 0
                for conjunct in sorted(site.guard, key=repr):
                    condition = self._conditions.of(conjunct, self.bits(conjunct))
                    bits |= 1 << self._marks.number(condition, load)
                if site.value < 0:
                    self._marks.put_copy(site.instr, bits)
                else:
                    self._marks.put(site.value, bits)

    # Judging ----------------------------------------------------------------------------------
    def _judge(self) -> None:
        pairs: dict[int, dict[Any, Pair]] = {}

        def note(load: int, pair: Pair) -> None:
            at = None if pair.at is None else pair.at.index
            key = at, pair.conjunct, pair.leaf, pair.status, pair.reason
            pairs.setdefault(load, {}).setdefault(key, pair._replace(site=self._loads[load][0]))
            if pair.status != PROVED:
                self._undecided.add(load)

        for reduction in self.reductions.all:
            found: list[tuple[Pair, int]] = []
            bare: list[Leaf] = []
            for leaf in reduction.leaves:
                own = list(self._leaf_pairs(reduction, leaf))
                found += own
                if not own and not leaf.init:
                    bare.append(leaf)
            doubt = any(pair.status == PROVED for pair, _ in found) and any(
                not self._is_neutral_anyway(reduction, b) for b in bare
            )
            for pair, load in found:
                if doubt and pair.status == PROVED and pair.reason not in VACUOUS:
                    reason = f"a part of what reaches `{_name(reduction)}` has no mask of its own"
                    pair = pair._replace(status=OPEN, reason=reason)
                note(load, pair)
        for load, pair in self._of_products():
            note(load, pair)
        for load, pair in self._of_other_ways():
            note(load, pair)
        for load, group in enumerate(self._loads):
            verdict = self._verdict(group, list(pairs.get(load, {}).values()))
            if verdict is not None:
                self.verdicts.append(verdict)

    def _leaf_pairs(self, reduction: Reduction, leaf: Leaf) -> Iterator[tuple[Pair, int]]:
        """The verdicts on one leaf, each with the load that it is about."""
        by_condition: dict[int, list[int]] = {}
        for mark in self._marks.each(self._marks.of_leaf(leaf)):
            by_condition.setdefault(mark.condition.number, []).append(mark.load)
        for number, loads in by_condition.items():
            condition = self._conditions.all[number]
            pair = self._pair(reduction, leaf, condition, loads)
            if pair is not None:
                if pair.status != PROVED:
                    self._undecided.update(loads)
                for load in loads:
                    yield pair, load

    def _known(self, condition: Condition, loads: list[int]) -> Conjunction:
        """What holds besides where only this conjunct of the loads' masks is false."""
        conjunct = condition.conjunct
        guards = [s.guard for n in loads for s in self._loads[n] if conjunct in s.guard]
        if conjunct is None or not guards or condition.fixed:
            return ALWAYS
        return frozenset.intersection(*guards) - {conjunct}

    def _of_products(self) -> Iterator[tuple[int, Pair]]:
        """The verdicts on what reaches the factors of products."""
        chains = Chains(self.ssa, self.reductions, self._movements)
        products = Products(self._conditions, self.reductions, self._marks, self.words, chains)
        for instr in self.reductions.contractions:
            seen: set[object] = set()
            for judged in products.judge(instr):
                load = judged.mark.load
                key = judged.mark.condition.number, load, judged[1:]
                if key in seen:
                    continue
                seen.add(key)
                status, reason = (PROVED if judged.holds else OPEN), judged.reason
                block = self.ssa.cfg.block_of[instr.index]
                vacuous = "" if judged.holds else self._vacuity.reason(judged.mark.condition, block)
                if vacuous:
                    status, reason = PROVED, vacuous
                elif judged.infinite and self._spreads(judged.mark, instr):
                    status = REFUTED
                    reason = f"padding lanes hold {judged.infinite} when they reach the product"
                yield load, self._other(judged.mark, instr, status, reason)

    def _spreads(self, mark: Mark, product: Instr) -> bool:
        """True if a launch has lanes that a mark is about, and the product's result is stored."""
        conjunct = mark.condition.conjunct
        if conjunct is None or not self._can_be_false(conjunct):
            return False
        return any(map(self._reach.is_stored, self._results(product)))

    def _results(self, product: Instr) -> Iterator[int]:
        """What holds a product, also where it comes out of tensor memory."""
        yield from self.ssa.def_values[product.index]
        if product.opcode != "tcgen05":
            return
        tensors = self._facts.get(TensorMemoryAnalysis)
        for region in {p.region for p in tensors.products if p.instr is product}:
            for reader in [] if region is None else tensors.reads_of(region):
                yield from self.ssa.def_values[reader.index]

    def _other(self, mark: Mark, at: Instr | None, status: str, reason: str) -> Pair:
        """A verdict on something that is no tree."""
        site = self._loads[mark.load][0]
        return Pair(site, self._said(mark), None, None, status, reason, None, at)

    def _said(self, mark: Mark) -> Conjunct:
        """The conjunct of a load's mask that a mark is about, wherever it has got to."""
        key = mark.condition.number, mark.load
        found = self._sayings.get(key)
        if found is None:
            found = self._sayings[key] = self._find_said(mark)
        return found

    def _find_said(self, mark: Mark) -> Conjunct:
        conjunct = mark.condition.conjunct
        own = [c for site in self._loads[mark.load] for c in site.guard]
        if conjunct in own:
            return conjunct
        if conjunct is not None:
            family = self._conditions.family(mark.condition)
            for c in own:
                if self._conditions.family(self._conditions.of(c, self.bits(c))) == family:
                    return c
        return min(self._loads[mark.load][0].guard, key=repr)

    def _of_other_ways(self) -> Iterator[tuple[int, Pair]]:
        """What is mixed with other lanes' data in ways that are not recognised."""
        marks = self._marks
        block_of = self.ssa.cfg.block_of
        for number, instr in marks.exchanged.items():
            reason = f"`{instr.opcode}` combines lanes in a way that is not recognised"
            yield self._open(marks.all[number], instr, block_of[instr.index], reason)
        for number, instr in marks.unknown.items():
            reason = f"the padding goes on, but {self._obstacles.at(instr)}"
            yield marks.all[number].load, self._other(marks.all[number], instr, OPEN, reason)
        for number, header in marks.carried.items():
            reason = "a loop carries the padding on in a way that is not recognised"
            yield self._open(marks.all[number], None, header, reason)
        for number, instr in marks.updates.items():
            if instr.guard is None:
                reason = "the padding reaches an atomic update"
                yield self._open(marks.all[number], instr, block_of[instr.index], reason)

    def _open(self, mark: Mark, instr: Instr | None, block: int, reason: str) -> tuple[int, Pair]:
        """What is not known of a mark where it is met, unless nothing comes of it."""
        vacuous = self._vacuity.reason(mark.condition, block)
        status = PROVED if vacuous else OPEN
        return mark.load, self._other(mark, instr, status, vacuous or reason)

    def _roots(self, leaf: Leaf) -> list[int]:
        """The values that a leaf is made of: itself, or the factors of what an `fma` adds."""
        if leaf.product is None:
            return [self.ssa.resolve(leaf.node.value)]
        found = [self.reductions.read(leaf.product, o) for o in leaf.product.operands[1:3]]
        return [v for v in found if v is not None]

    def _is_neutral_anyway(self, reduction: Reduction, leaf: Leaf) -> bool:
        """True if a leaf never changes a result, is the same for the whole CTA, or is of loads
        whose mask always holds."""
        if not self._dependences.of(leaf.node.value) or self._is_of_whole_masks(leaf):
            return True
        if reduction.type.removesuffix("x2") not in FORMATS:
            word = self._integer(self._evaluator(None, ALWAYS), reduction, leaf).word
            kind = self._kind(reduction, leaf)
            return bool(integer_words.neutral(reduction.operator, kind, word, []))
        form = FORMATS[reduction.type.removesuffix("x2")]
        if self._neutral(reduction, self._held(reduction, leaf, form, None), False):
            return True
        found = self._leaf(self._evaluator(None, ALWAYS), reduction, leaf)
        return found is not None and bool(self._neutral(reduction, found.number))

    def _is_of_whole_masks(self, leaf: Leaf) -> bool:
        """True if all that goes into a leaf is loaded under a mask that a constant size makes true.

        What other lanes hold beyond that size are loads of their own.
        """
        ssa = self.ssa
        work = [v for v in self._roots(leaf) if self._dependences.of(v)]
        seen = set(work)
        loads = 0
        while work:
            value = work.pop()
            instr = self.reductions.definition(value)
            if instr is not None and instr.opcode == "ld" and instr.shape.space == "global":
                if instr.guard is None or self.guards.own(instr) != ALWAYS:
                    return False
                loads += 1
                continue
            if len(seen) > _MOST_VALUES or self._reach.ends_way(value):
                return False
            for operand in ssa.operands[value]:
                found = ssa.resolve(operand)
                if found not in seen and self._dependences.of(found):
                    seen.add(found)
                    work.append(found)
        return loads > 0

    def _verdict(self, group: list[Site], pairs: list[Pair]) -> LoadVerdict | None:
        found = list(pairs)
        if not found:
            return None
        fill = self._fill(group[0])
        worst = min(found, key=lambda p: _WORST[p.status])
        if worst.status == OPEN:
            worst = self._explained(worst, found)
            found.insert(0, worst)
        spent = self.steps.left <= 0 or not self._marks.is_complete
        if spent and worst.status == PROVED:
            worst = worst._replace(status=OPEN, reason=self.steps.reason)
            found.append(worst)
        return LoadVerdict(tuple(group), worst.status, worst.reason, tuple(found), fill)

    def _explained(self, worst: Pair, pairs: list[Pair]) -> Pair:
        """An open pair, with what in the function could not be followed if something could not."""
        obstacles = self._obstacles
        for pair in pairs:
            if pair.status == OPEN and pair.leaf is not None:
                poly = pair.conjunct.polynomial
                atoms = () if poly is None else poly.all_atoms()
                opaque = (a.data[0] for a in atoms if a.kind == "opaque")
                reason = obstacles.behind([pair.leaf.node.value, *opaque])
                if reason:
                    return pair._replace(reason=f"{pair.reason}; {reason}")
        size = obstacles.block_size()
        if worst.leaf is None or not size:
            return worst
        return worst._replace(reason=f"{worst.reason}; {size}")

    def bits(self, conjunct: Conjunct) -> int:
        """The bits of the thread index on which a conjunct depends."""
        found = self._bits.get(conjunct)
        if found is None:
            found = self._bits[conjunct] = conjunct_bits(conjunct, self.uniformity)
        return found

    def _apart(self) -> Evaluator:
        """An evaluator that shares nothing with those that judge, for questions while marks are
        still missing."""
        return Evaluator(
            self.ssa, self.guards, self.uniformity, self.reductions,
            Hypothesis(None, frozenset(), 0), self.steps, None, DATA, None,
            self._dependences, self._joins, self._mover, None, None, {},
        )  # fmt: skip

    def _evaluator(
        self,
        condition: Condition | None,
        known: Conjunction,
        sample: int = -1,
        data: float | None = None,
    ) -> Evaluator:
        number = -1 if condition is None else condition.number
        key = (number, known, sample, data)
        found = self._evaluators.get(key)
        if found is None:
            relatives = self._relatives.setdefault((sample, data), {})
            found = relatives.get(number) if not known else None
            if found is None:
                conjunct = None if condition is None else condition.conjunct
                bits = 0 if condition is None else condition.bits
                found = Evaluator(
                    self.ssa, self.guards, self.uniformity, self.reductions,
                    Hypothesis(conjunct, known, bits), self.steps,
                    _SAMPLES[sample] if sample >= 0 else None,
                    DATA if data is None else Data(data),
                    self.shared_is_finite, self._dependences, self._joins,
                    self._mover, condition, self._session, relatives,
                )  # fmt: skip
                if not known:
                    relatives[number] = found
            self._evaluators[key] = found
        return found

    def _leaf(self, evaluator: Evaluator, reduction: Reduction, leaf: Leaf) -> _Value | None:
        """The abstract float that a leaf is; None if the reduction is not of floats."""
        form = FORMATS.get(reduction.type.removesuffix("x2"))
        if form is None:
            return None
        if leaf.product is not None:
            value, touched = evaluator.product(leaf.product, leaf.node.part, form)
            return _Value(value, touched)
        found = evaluator.node(leaf.node, form.bits)
        number = as_float(found.word, FORMATS.get(leaf.narrow, form))
        if leaf.absolute:
            number = floats.absolute(number)
        return _Value(number, bool(found.touched))

    def _held(
        self, reduction: Reduction, leaf: Leaf, form: Format, condition: Condition | None
    ) -> AbstractFloat:
        """The number that goes into a reduction of floats where a condition holds, or anywhere."""
        words = self.words
        if leaf.product is not None:
            narrow = FORMATS.get(narrow_type(leaf.product), form)
            part = leaf.node.part
            found = [
                UNKNOWN if v is None else words.node(Node(v, part), form.bits, condition)
                for v in (self.reductions.read(leaf.product, o) for o in leaf.product.operands[1:3])
            ]
            a, b = (as_float(word, narrow) for word in found)
            read = self.reductions.read
            first, second = (read(leaf.product, o) for o in leaf.product.operands[1:3])
            if first is not None and first == second:
                return floats.square(a, floats.Mode(form))
            return floats.multiply(a, b, floats.Mode(form))
        word = words.node(leaf.node, form.bits, condition)
        number = as_float(word, FORMATS.get(leaf.narrow, form))
        return floats.absolute(number) if leaf.absolute else number

    def _pair(
        self,
        reduction: Reduction,
        leaf: Leaf,
        condition: Condition,
        loads: list[int],
    ) -> Pair | None:
        site = self._loads[0][0]
        conjunct = condition.conjunct
        form = FORMATS.get(reduction.type.removesuffix("x2"))
        held: AbstractFloat | None = None
        if form is not None:
            held = self._held(reduction, leaf, form, condition)
            neutral = self._neutral(reduction, held, False)
            if neutral:
                shown = conjunct or min(site.guard, key=repr)
                return Pair(site, shown, reduction, held, PROVED, neutral, leaf)
        if conjunct is None:
            conjunct = min(site.guard, key=repr)
            if self._undecided.issuperset(loads):
                return Pair(site, conjunct, reduction, None, OPEN, condition.lost, leaf)
            if self._is_neutral_anyway(reduction, leaf):
                return None
            return Pair(site, conjunct, reduction, None, OPEN, condition.lost, leaf)
        vacuous = self._vacuity.reason(condition, self._block_of(leaf))
        if vacuous:
            return Pair(site, conjunct, reduction, held, PROVED, vacuous, leaf)
        axis = self._axis(reduction, leaf, condition)
        if axis == _SAME:
            reason = "the padding lies along an axis that is not combined"
            return Pair(site, conjunct, reduction, held, PROVED, reason, leaf)
        if form is not None and self._is_of_padded_rows(reduction, leaf, condition, form):
            reason = "what padding adds goes to rows that are padding themselves"
            return Pair(site, conjunct, reduction, held, PROVED, reason, leaf)
        if held is not None and self._undecided.issuperset(loads):
            # Nothing that could only be proved is evaluated for loads that are open already.
            doubt = self._doubt(reduction, condition, axis)
            if doubt:
                reason = f"{_what(reduction, held)}; {doubt}"
                return Pair(site, conjunct, reduction, held, OPEN, reason, leaf)
        place = reduction.at.loc or id(reduction)
        alike = tuple(loads), place, None if held is None else _short(held)
        if held is not None and self._left_open.get(alike, 0) >= _MOST_OPEN:
            reason = _what(reduction, held)
            return Pair(site, conjunct, reduction, held, OPEN, reason, leaf)
        known = self._known(condition, loads)
        evaluator = self._evaluator(condition, known)
        if reduction.type not in FORMATS and reduction.type.removesuffix("x2") not in FORMATS:
            return self._integers(evaluator, reduction, leaf, condition, site)
        comes = evaluator.comes(leaf.ways)
        found = self._leaf(evaluator, reduction, leaf)
        if found is None or not (found.touched or comes.touched):
            return None
        if comes.certain is False:
            reason = f"no padding lane comes to this part of `{_name(reduction)}`"
            return Pair(site, conjunct, reduction, None, PROVED, reason, leaf)
        value = found.number
        neutral = self._neutral(reduction, value)
        if neutral:
            return Pair(site, conjunct, reduction, value, PROVED, neutral, leaf)
        status, reason = self._not_neutral(reduction, leaf, condition, known, value, comes.certain)
        if status == OPEN:
            self._left_open[alike] = self._left_open.get(alike, 0) + 1
        return Pair(site, conjunct, reduction, value, status, reason, leaf)

    def _is_of_padded_rows(
        self, reduction: Reduction, leaf: Leaf, condition: Condition, form: Format
    ) -> bool:
        """True if padding of a leaf is let through in rows alone that are padding themselves."""
        plain = leaf.product is None and leaf.node.part == WHOLE and not leaf.narrow
        select = self.reductions.definition(self.ssa.resolve(leaf.node.value))
        if select is None or select.opcode != "selp" or not plain or leaf.ways:
            return False

        def is_neutral(operand: Operand) -> bool:
            word = self.words.operand(select, operand, condition)
            return bool(self._neutral(reduction, as_float(word, form), False))

        rows = [
            other
            for other in self._marks.conditions_in(self._marks.of_leaf(leaf))
            if other is not condition
            and self._marks.is_the_same(reduction, other)
            and self._marks.is_shared_by_all(reduction, other)
        ]
        return bool(rows) and self._padded_rows.takes(select, condition, rows, is_neutral)

    def _block_of(self, leaf: Leaf) -> int:
        """The block in which a leaf is made."""
        ssa = self.ssa
        if leaf.product is not None:
            return ssa.cfg.block_of[leaf.product.index]
        value = ssa.resolve(leaf.node.value)
        at = ssa.instr[value]
        return ssa.phi_block[value] if at < 0 else ssa.cfg.block_of[at]

    def _integers(
        self,
        evaluator: Evaluator,
        reduction: Reduction,
        leaf: Leaf,
        condition: Condition,
        site: Site,
    ) -> Pair | None:
        c = condition.conjunct
        assert c is not None
        comes = evaluator.comes(leaf.ways)
        found = self._integer(evaluator, reduction, leaf)
        if not found.touched and not comes.touched:
            return None
        if comes.certain is False:
            reason = f"no padding lane comes to this part of `{_name(reduction)}`"
            return Pair(site, c, reduction, None, PROVED, reason, leaf)
        kind, operator = self._kind(reduction, leaf), reduction.operator
        bounds = [] if reduction.partial else self._integer_bounds(reduction)
        if not reduction.chosen:
            reason = integer_words.neutral(operator, kind, found.word, bounds)
            if reason:
                return Pair(site, c, reduction, None, PROVED, reason, leaf)
        axis = self._axis(reduction, leaf, condition)
        reason = f"padding lanes may change the {operator} of integers"
        if axis == _DIFFERENT and comes.certain and not reduction.partial and self._can_be_false(c):
            valid = self._evaluator(None, self._all_known())
            others = [x for x in reduction.leaves if not x.init]
            raw = kind != "pred" and all(
                isinstance(self._integer(valid, reduction, x).word, Data) for x in others
            )
            wrong = integer_words.certainly_wrong(operator, kind, found.word, raw)
            if wrong and self._reach.reaches_memory(reduction):
                low, _ = integer_words.bounds(found.word, kind)
                reason = f"padding lanes hold {low} when they reach `{_name(reduction)}`"
                return Pair(site, c, reduction, None, REFUTED, reason, leaf)
        return Pair(site, c, reduction, None, OPEN, reason, leaf)

    def _integer(self, evaluator: Evaluator, reduction: Reduction, leaf: Leaf) -> Found:
        """The word of a leaf of integers."""
        return evaluator.node(leaf.node, BITS.get(reduction.type, 32))

    def _kind(self, reduction: Reduction, leaf: Leaf) -> str:
        """The type of a leaf of integers: that of the reduction, or `pred`."""
        is_test = self.ssa.register[leaf.node.value].type == "pred"
        return "pred" if is_test else reduction.type

    def _integer_bounds(self, reduction: Reduction) -> list[tuple[int, int]]:
        """The bounds of all that a reduction of integers combines."""
        evaluator = self._evaluator(None, ALWAYS)
        return [
            integer_words.bounds(
                self._integer(evaluator, reduction, leaf).word, self._kind(reduction, leaf)
            )
            for leaf in reduction.leaves
        ]

    def _neutral(
        self, reduction: Reduction, value: AbstractFloat, is_evaluated: bool = True
    ) -> str:
        """Why the value does not change the result, "" if it may.

        What else is combined is evaluated, or taken from the words that are known.
        """
        operator = reduction.operator
        if operator == "add" and value.is_zero:
            return "padding lanes hold 0 when they reach `sum`"
        if operator == "mul" and value.point == 1.0:
            return "padding lanes hold 1 when they reach the product"
        if operator in ("max", "min"):
            name, sign = operator, 1.0 if operator == "max" else -1.0
            infinite = value.is_negative_infinity if sign > 0 else value.is_positive_infinity
            if infinite:
                return f"padding lanes hold {'-' if sign > 0 else ''}inf when they reach `{name}`"
            if not value.nan and (
                self._is_beyond_all(reduction, value, sign, False)
                or (is_evaluated and self._is_beyond_all(reduction, value, sign, True))
            ):
                return f"no lane of `{name}` can be {'below' if sign > 0 else 'above'} the padding"
        return ""

    def _is_beyond_all(
        self, reduction: Reduction, value: AbstractFloat, sign: float, is_evaluated: bool
    ) -> bool:
        """True if every leaf is at least (for a minimum at most) the padding value."""
        if reduction.partial or reduction.chosen:
            # Where the padding ties, its index may be the one that is chosen.
            return False
        bounds = self._bounds_of(reduction, is_evaluated)
        if any(b.nan for b in bounds):
            return False
        if sign > 0:
            return all(b.low >= value.high for b in bounds)
        return all(b.high <= value.low for b in bounds)

    def _bounds_of(self, reduction: Reduction, is_evaluated: bool) -> tuple[AbstractFloat, ...]:
        """What all leaves of a reduction of floats may hold."""
        key = id(reduction), is_evaluated
        found = self._bounds.get(key)
        if found is None:
            form = FORMATS.get(reduction.type.removesuffix("x2"))
            leaves = reduction.leaves
            if form is None:
                found = ()
            elif is_evaluated:
                evaluator = self._evaluator(None, ALWAYS)
                values = [self._leaf(evaluator, reduction, leaf) for leaf in leaves]
                found = tuple([value.number for value in values if value is not None])
            else:
                found = tuple([self._held(reduction, leaf, form, None) for leaf in leaves])
            self._bounds[key] = found
        return found

    def _not_neutral(
        self,
        reduction: Reduction,
        leaf: Leaf,
        condition: Condition,
        known: Conjunction,
        value: AbstractFloat,
        comes: bool | None,
    ) -> tuple[str, str]:
        """The verdict where the padding is not known to be neutral."""
        what = _what(reduction, value)
        doubt = self._doubt(reduction, condition, self._axis(reduction, leaf, condition))
        if doubt:
            return OPEN, f"{what}; {doubt}"
        if comes is None:
            return OPEN, f"{what}; whether control comes that way is not known"
        for sample in range(len(_SAMPLES)):
            shown = self._certainly_wrong(reduction, leaf, condition, known, sample)
            if shown is not None:
                return REFUTED, f"padding lanes hold {shown} when they reach `{_name(reduction)}`"
        return OPEN, what

    def _doubt(self, reduction: Reduction, condition: Condition, axis: str) -> str:
        """Why padding that is not neutral is not refuted; "" if it may be."""
        assert condition.conjunct is not None
        if axis == _UNCLEAR:
            return "whether these lanes are combined with others is not known"
        if not self._can_be_false(condition.conjunct):
            return "whether a launch has such lanes is not known"
        if not self._reach.reaches_memory(reduction):
            return "the result shifts an exponent or does not reach memory"
        if reduction.partial:
            return "which lanes of the scan take them in is not known"
        return ""

    def _can_be_false(self, conjunct: Conjunct) -> bool:
        """True if a launch may have lanes for which a conjunct does not hold, among others that it
        holds for."""
        return _can_be_false(conjunct) and not self._rounds.stops_by_block(conjunct)

    def _axis(self, reduction: Reduction, leaf: Leaf, condition: Condition) -> str:
        """Whether a condition tells apart what a reduction combines."""
        has_polynomial = (
            condition.conjunct is not None and condition.conjunct.polynomial is not None
        )
        if self._axes.is_apart(reduction, leaf, condition):
            return _SAME
        if condition.fixed and self._lies_in_one(reduction, leaf, condition):
            return _SAME
        if condition.bits & leaf.lanes and has_polynomial:
            return _DIFFERENT
        if condition.bits & leaf.lanes or (leaf.handed and condition.bits):
            return _UNCLEAR
        if not self._marks.is_the_same(reduction, condition):
            return _UNCLEAR
        if self._marks.is_shared_by_all(reduction, condition):
            return _SAME
        if any(self._is_nearer(other, condition) for other in reduction.leaves):
            return _DIFFERENT
        return _UNCLEAR

    def _lies_in_one(self, reduction: Reduction, leaf: Leaf, condition: Condition) -> bool:
        """True if what a condition says of some threads another one says of all of them, and it is
        the same for all that is combined."""
        marks = self._marks
        return any(
            other is not condition
            and self.words.is_implied(condition, other)
            and marks.is_the_same(reduction, other)
            and marks.is_shared_by_all(reduction, other)
            for other in marks.conditions_in(marks.of_leaf(leaf))
        )

    def _is_nearer(self, leaf: Leaf, condition: Condition) -> bool:
        """True for an element that is valid for some size for which a condition holds of another
        one: all that masks it are bounds on smaller indices of the same kind."""
        if leaf.init or leaf.ways or condition.fixed or condition.rounds:
            return False
        own = condition.conjunct
        marks = self._marks.each(self._marks.of_leaf(leaf))
        if own is None or own.polynomial is None or not marks:
            return False
        for mark in marks:
            other = mark.condition
            bound = None if other.conjunct is None else other.conjunct.polynomial
            if bound is None or other.fixed or other.rounds:
                return False
            gap = bound - own.polynomial
            if not gap.is_constant or gap.constant <= 0:
                return False
        return True

    def _certainly_wrong(
        self,
        reduction: Reduction,
        leaf: Leaf,
        condition: Condition,
        known: Conjunction,
        sample: int,
    ) -> str | None:
        """The padding value in words if it certainly changes the result with these statistics."""
        if reduction.operator in ("add", "mul"):
            value = self._sampled(condition, known, sample, None, reduction, leaf)
            neutral = 0.0 if reduction.operator == "add" else 1.0
            if value is None or (value.nan and value.point is None) or value.contains(neutral):
                return None
            return _short(value)
        for data in _DATA_SAMPLES:
            value = self._sampled(condition, known, sample, data, reduction, leaf)
            if value is None or value.nan:
                continue
            true = [self._sampled(None, self._all_known(), sample, data, reduction, x)
                    for x in reduction.leaves if not x.init]  # fmt: skip
            if any(t is None or t.nan for t in true):
                continue
            valid = [t for t in true if t is not None]
            above = reduction.operator == "max" and all(t.high < value.low for t in valid)
            below = reduction.operator == "min" and all(t.low > value.high for t in valid)
            if above or below:
                return _short(value)
        return None

    def _all_known(self) -> Conjunction:
        known: set[Conjunct] = set()
        for site in self.sites:
            known |= site.guard
        return frozenset(known)

    def _sampled(
        self,
        condition: Condition | None,
        known: Conjunction,
        sample: int,
        data: float | None,
        reduction: Reduction,
        leaf: Leaf,
    ) -> AbstractFloat | None:
        found = self._leaf(self._evaluator(condition, known, sample, data), reduction, leaf)
        if found is None:
            return None
        return found.number

    def route(self, pair: Pair) -> str:
        """What the padding goes through and what it reaches, such as `exp → sum`."""
        if pair.reduction is None or pair.leaf is None:
            return ""
        names: list[str] = []
        work = [pair.leaf.node.value]
        seen = set(work)
        if pair.leaf.product is not None:
            names.append("product")
        while work and len(seen) < 200:
            value = self.ssa.resolve(work.pop(0))
            instr = self.reductions.definition(value)
            if instr is None or self.reductions.step(value) is not None:
                continue
            if self._reach.ends_way(value) or not self._dependences.of(value):
                continue
            name = _NAMES.get(instr.opcode)
            if name is not None and name not in names:
                names.append(name)
            for operand in self.ssa.operands[value]:
                if operand not in seen:
                    seen.add(operand)
                    work.append(operand)
        names = [n for n in names if n != "product"] or names
        return " → ".join([*reversed(names), _name(pair.reduction)])

    def _fill(self, site: Site) -> str:
        """The fill in words."""
        if site.fill is None:
            return "0"
        word = self._evaluator(None, ALWAYS).of(site.fill).word
        if not isinstance(word, int):
            return "an unknown value"
        kind = self.ssa.register[site.value].type
        form = floats.F16 if kind in ("b16", "f16") else floats.F32
        if word == 0:
            return "0.0"
        if kind == "b16" and word in (0xFF80, 0x7F80):
            form = floats.BF16
        point = floats.decode(form, word).point
        if point is None or point != point:
            return hex(word)
        return f"{point:g}"


_NAMES: Final = {"ex2": "exp", "lg2": "log", "tanh": "tanh", "rsqrt": "rsqrt", "sqrt": "sqrt"}
_SAME: Final = "same"
_DIFFERENT: Final = "different"
_UNCLEAR: Final = "unclear"


def _can_be_false(conjunct: Conjunct) -> bool:
    """True if some size that a launch passes makes the conjunct false: `size - index - 1 >= 0`.

    With a size of 1 all indices but 0 are beyond it.
    """
    poly: Polynomial | None = conjunct.polynomial
    if poly is None:
        return False
    for atom in poly.atoms():
        if atom.kind == "param" and poly.coefficient(atom) == 1:
            rest = poly - poly.table.plain(atom)
            atoms = rest.all_atoms()
            # What is not understood may be as large as the size: no lane is valid then.
            if rest.range()[0] <= -2 and not any(a is atom or a.kind == "opaque" for a in atoms):
                return True
    return False


def _is_copy(instr: Instr) -> bool:
    return instr.shape.has("async") and not instr.shape.has("bulk") and len(instr.operands) >= 3


def _name(reduction: Reduction) -> str:
    return {"add": "sum", "mul": "product"}.get(reduction.operator, reduction.operator)


def _what(reduction: Reduction, value: AbstractFloat) -> str:
    """What padding may do to a reduction."""
    return f"padding lanes may hold {_short(value)} when they reach `{_name(reduction)}`"


def _short(value: AbstractFloat) -> str:
    """A value in a few words."""
    if value.nan:
        return "NaN"
    if value.finite and not (value.ninf or value.pinf):
        if value.hi - value.lo <= 1e-3 * max(abs(value.lo), abs(value.hi)):
            return f"{(value.lo + value.hi) / 2:.3g}"
        return "another finite number" if value.may_be_zero else "a number other than 0"
    point = value.point
    return f"{point:g}" if point is not None else "another number"


class PaddingAnalysis(Analysis[Padding]):
    """The fills of masked loads, followed to what combines lanes."""

    name: ClassVar[str] = "padding"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        SsaAnalysis,
        GuardsAnalysis,
        UniformityAnalysis,
        ReductionsAnalysis,
        JoinsAnalysis,
        SharedProvenanceAnalysis,
    )

    def run(self, facts: Facts) -> Padding:
        """Judge every masked load."""
        return Padding(facts)


__all__ = ["ASSUMES", "LoadVerdict", "Padding", "PaddingAnalysis", "Pair", "Site"]
