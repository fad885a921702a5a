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

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.dataflow import floats, integer_words
from ptxlint.dataflow.floats import FORMATS, AbstractFloat
from ptxlint.dataflow.guards import ALWAYS, Conjunct, Conjunction, Guards, GuardsAnalysis
from ptxlint.dataflow.joins import Joins, JoinsAnalysis
from ptxlint.dataflow.obstacles import Obstacles
from ptxlint.dataflow.padding_reach import Reach
from ptxlint.dataflow.padding_values import (
    ANY_INDEX,
    DATA,
    Data,
    Dependences,
    Evaluator,
    Found,
    Hypothesis,
    Number,
    as_float,
    conjunct_bits,
    is_finite_word,
    varies,
)
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.reductions import Leaf, Reduction, Reductions, ReductionsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, Ssa
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

PROVED: Final = "proved"
REFUTED: Final = "refuted"
OPEN: Final = "open"
ASSUMES: Final = ("finite data without overflow",)
_BUDGET_PER_INSTRUCTION: Final = 400
_MOST_VALUES: Final = 300
"""So many values are looked at behind one that goes into a reduction."""
_WORST: Final = {REFUTED: 0, OPEN: 1, PROVED: 2}
_SAMPLES: Final[tuple[Callable[[int], float], ...]] = (
    lambda at: 1.0,
    lambda at: 0.5 + (at % 7) * 0.25,
)
"""Numbers for statistics: positive, so that sums of squares and maxima can take them too."""
_DATA_SAMPLES: Final = (-1.0, 0.25, 1.0)
"""What all data may be where a maximum or minimum is refuted."""


class Site(NamedTuple):
    """One masked load: its instruction, the value it makes, its guard and its fill's value."""

    instr: Instr
    value: int
    guard: Conjunction
    fill: int | None


class Pair(NamedTuple):
    """The verdict on one conjunct and one thing that combines lanes.

    `value` is what a lane then holds, `reduction` is None for a contraction or an exchange.
    """

    site: Site
    conjunct: Conjunct
    reduction: Reduction | None
    value: AbstractFloat | None
    status: str
    reason: str
    leaf: Leaf | None = None


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
        self.steps = facts.budget(PaddingAnalysis.name, 50_000, _BUDGET_PER_INSTRUCTION)
        """Steps that are left, shared with the evaluators."""
        self.sites: list[Site] = []
        self.verdicts: list[LoadVerdict] = []
        self._conjuncts: dict[int, dict[Conjunct, list[Site]]] = {}
        self._evaluators: dict[tuple[Any, ...], Evaluator] = {}
        self._bits: dict[Conjunct, int] = {}
        self._shared_is_finite = False
        self._masks: dict[_Family, _Masks] | None = None
        self._orders: dict[Conjunction, list[Conjunct]] = {}
        self._neutral_under: dict[_Family, bool] = {}
        self._bounds: dict[int, tuple[AbstractFloat, ...]] = {}
        reductions = self.reductions
        calls = any(i.shape.row.is_call for i in facts.function.instrs)
        if reductions.all or reductions.contractions or reductions.exchanges or calls:
            self._find_sites()
        if self.sites:
            self._reach = Reach(facts, self.reductions)
            self._obstacles = Obstacles(facts)
            self._dependences = Dependences(self.ssa, self.uniformity, self.reductions)
            self._shared_is_finite = self._reach.is_without_infinities or self._stores_finite()
            self._marks = self._spread()
            self._judge()

    @property
    def shared_is_finite(self) -> bool:
        """True if shared memory holds finite numbers only, as long as the data is finite."""
        return self._shared_is_finite

    def release(self) -> None:
        """Take everything apart that refers to itself."""
        self._drop_evaluators()
        vars(self).clear()

    def _drop_evaluators(self) -> None:
        for evaluator in self._evaluators.values():
            evaluator.release()
        self._evaluators.clear()

    def _stores_finite(self) -> bool:
        """True if all that goes to shared memory is finite as long as what comes from it is.

        What warps hand over within one reduction is left out: nothing else reads it.
        """
        self._shared_is_finite = True
        evaluator = self._evaluator(None, ALWAYS)
        found = all(
            is_finite_word(evaluator.of(value).word)
            for store in self._reach.shared_stores()
            for value in self._reach.payload(store)
        )
        self._drop_evaluators()
        return found

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

    def _touching(self, roots: Iterable[int]) -> dict[Conjunct, list[Site]]:
        """The conjuncts of masked loads whose padding may show in a value.

        The way ends at memory and at what a whole CTA agrees on.
        """
        found = 0
        for root in roots:
            found |= self._marks.get(self.ssa.resolve(root), 0)
        cached = self._conjuncts.get(found)
        if cached is None:
            cached = self._conjuncts[found] = {}
            left = found
            while left:
                lowest = left & -left
                left ^= lowest
                site = self.sites[lowest.bit_length() - 1]
                for conjunct in self._ordered(site.guard):
                    cached.setdefault(conjunct, []).append(site)
        return cached

    def _ordered(self, guard: Conjunction) -> list[Conjunct]:
        """The conjuncts in an order that does not change from run to run."""
        found = self._orders.get(guard)
        if found is None:
            found = self._orders[guard] = sorted(guard, key=repr)
        return found

    def _spread(self) -> dict[int, int]:
        """The sites whose padding may show in each value, as bits: also by way of predicates."""
        marks = {site.value: 1 << at for at, site in enumerate(self.sites) if site.value >= 0}
        # In the order of the text, so that a value is mostly met when all before it are done.
        work = sorted(marks)
        waiting = set(work)
        while work and self.steps.left > 0:
            value = heappop(work)
            waiting.discard(value)
            mark = marks[value]
            for target in self._behind(value):
                self.steps.left -= 1
                if mark & ~marks.get(target, 0):
                    marks[target] = marks.get(target, 0) | mark
                    if target not in waiting:
                        waiting.add(target)
                        heappush(work, target)
        return marks

    def _behind(self, value: int) -> list[int]:
        """The values that are computed from this one or selected by it."""
        ssa = self.ssa
        found: list[int] = []
        for user in ssa.users(value):
            if user < 0:
                found.append(~user)
                continue
            instr = self._facts.function.instrs[user]
            found += ssa.def_values[user]
            if instr.opcode == "bra" and instr.guard is not None:
                found += self._joins.decided_by(instr)
        depends = self.uniformity.dependence
        return [v for v in found if depends(v) & ANY_INDEX and not self._reach.is_source(v)]

    # Judging ----------------------------------------------------------------------------------
    def _judge(self) -> None:
        pairs: dict[int, list[Pair]] = {}
        for reduction in self.reductions.all:
            found: list[tuple[Pair, list[Site]]] = []
            bare: list[Leaf] = []
            for leaf in reduction.leaves:
                own = list(self._leaf_pairs(reduction, leaf))
                found += own
                if not own and not leaf.init:
                    bare.append(leaf)
            doubt = bool(found) and any(not self._is_neutral_anyway(reduction, b) for b in bare)
            for pair, sites in found:
                if doubt and pair.status == PROVED:
                    reason = f"a part of what reaches `{_name(reduction)}` has no mask of its own"
                    pair = pair._replace(status=OPEN, reason=reason)
                for site in sites:
                    pairs.setdefault(site.value, []).append(pair._replace(site=site))
        for group in self._groups():
            verdict = self._verdict(group, [p for s in group for p in pairs.get(s.value, ())])
            if verdict is not None:
                self.verdicts.append(verdict)

    def _leaf_pairs(self, reduction: Reduction, leaf: Leaf) -> Iterator[tuple[Pair, list[Site]]]:
        """The verdicts on one leaf, each with the loads whose conjunct it is about."""
        for conjunct, sites in self._touching(self._roots(leaf)).items():
            known = frozenset.intersection(*(s.guard for s in sites)) - {conjunct}
            pair = self._pair(reduction, leaf, conjunct, known, sites[0])
            if pair is not None:
                yield pair, sites

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
        found += self._through_memory(group)
        if not found:
            return None
        fill = self._fill(group[0])
        worst = min(found, key=lambda p: _WORST[p.status])
        if worst.status == OPEN:
            worst = self._explained(worst, found)
            found.insert(0, worst)
        if self.steps.left <= 0 and worst.status == PROVED:
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

    def _evaluator(
        self,
        false: Conjunct | None,
        known: Conjunction,
        sample: int = -1,
        data: float | None = None,
    ) -> Evaluator:
        key = (false, known, sample, data)
        found = self._evaluators.get(key)
        if found is None:
            if len(self._evaluators) > 64:
                self._drop_evaluators()
            bits = 0 if false is None else self.bits(false)
            found = self._evaluators[key] = Evaluator(
                self.ssa, self.guards, self.uniformity, self.reductions,
                Hypothesis(false, known, bits), self.steps,
                _SAMPLES[sample] if sample >= 0 else None,
                DATA if data is None else Data(data),
                self._shared_is_finite, self._dependences, self._joins,
            )  # fmt: skip
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

    def _pair(
        self,
        reduction: Reduction,
        leaf: Leaf,
        conjunct: Conjunct,
        known: Conjunction,
        site: Site,
    ) -> Pair | None:
        evaluator = self._evaluator(conjunct, known)
        if reduction.type not in FORMATS and reduction.type.removesuffix("x2") not in FORMATS:
            return self._integers(evaluator, reduction, leaf, conjunct, site)
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
        status, reason = self._not_neutral(reduction, leaf, conjunct, known, value, comes.certain)
        return Pair(site, conjunct, reduction, value, status, reason, leaf)

    def _integers(
        self, evaluator: Evaluator, reduction: Reduction, leaf: Leaf, c: Conjunct, site: Site
    ) -> Pair | None:
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
        known = site.guard - {c}
        axis = self._axis(reduction, leaf, c, known)
        if axis == _SAME:
            reason = "the padding lies along an axis that is not combined"
            return Pair(site, c, reduction, None, PROVED, reason, leaf)
        reason = f"padding lanes may change the {operator} of integers"
        if axis == _DIFFERENT and comes.certain and not reduction.partial and _can_be_false(c):
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

    def _neutral(self, reduction: Reduction, value: AbstractFloat) -> str:
        """Why the value does not change the result, "" if it may."""
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
            if not value.nan and self._is_beyond_all(reduction, value, sign):
                return f"no lane of `{name}` can be {'below' if sign > 0 else 'above'} the padding"
        return ""

    def _is_beyond_all(self, reduction: Reduction, value: AbstractFloat, sign: float) -> bool:
        """True if every leaf is at least (for a minimum at most) the padding value."""
        if reduction.partial:
            return False
        key = id(reduction)
        if key not in self._bounds:
            evaluator = self._evaluator(None, ALWAYS)
            out = []
            for leaf in reduction.leaves:
                found = self._leaf(evaluator, reduction, leaf)
                if found is not None:
                    out.append(found.number)
            self._bounds[key] = tuple(out)
        bounds = self._bounds[key]
        if any(b.nan for b in bounds):
            return False
        if reduction.chosen:
            # Where the padding ties its index may be the one that is chosen.
            return False
        if sign > 0:
            return all(b.low >= value.high for b in bounds)
        return all(b.high <= value.low for b in bounds)

    def _not_neutral(
        self,
        reduction: Reduction,
        leaf: Leaf,
        conjunct: Conjunct,
        known: Conjunction,
        value: AbstractFloat,
        comes: bool | None,
    ) -> tuple[str, str]:
        """The verdict where the padding is not known to be neutral."""
        what = f"padding lanes may hold {_short(value)} when they reach `{_name(reduction)}`"
        axis = self._axis(reduction, leaf, conjunct, known)
        if axis == _SAME:
            return PROVED, "the padding lies along an axis that is not combined"
        if axis == _UNCLEAR:
            return OPEN, f"{what}; whether these lanes are combined with others is not known"
        if not _can_be_false(conjunct):
            return OPEN, f"{what}; whether a launch has such lanes is not known"
        if not self._reach.reaches_memory(reduction):
            return OPEN, f"{what}; the result shifts an exponent or does not reach memory"
        if reduction.partial:
            return OPEN, f"{what}; which lanes of the scan take them in is not known"
        if comes is None:
            return OPEN, f"{what}; whether control comes that way is not known"
        for sample in range(len(_SAMPLES)):
            shown = self._certainly_wrong(reduction, leaf, conjunct, known, sample)
            if shown is not None:
                return REFUTED, f"padding lanes hold {shown} when they reach `{_name(reduction)}`"
        return OPEN, what

    def _axis(
        self, reduction: Reduction, leaf: Leaf, conjunct: Conjunct, known: Conjunction
    ) -> str:
        """Whether a conjunct tells apart what a reduction combines."""
        bits = self.bits(conjunct)
        if bits & leaf.lanes and conjunct.polynomial is not None:
            return _DIFFERENT
        if bits & leaf.lanes or (leaf.handed and bits):
            return _UNCLEAR
        if self._reach.depends_on_loops(conjunct, reduction.loops):
            return _UNCLEAR
        if self._reach.is_exchanged_again(reduction):
            return _UNCLEAR
        evaluator = self._evaluator(conjunct, known)
        for other in reduction.leaves:
            found = self._leaf(evaluator, reduction, other)
            if not other.init and (found is None or not found.touched):
                return _UNCLEAR
        return _SAME

    def _certainly_wrong(
        self,
        reduction: Reduction,
        leaf: Leaf,
        conjunct: Conjunct,
        known: Conjunction,
        sample: int,
    ) -> str | None:
        """The padding value in words if it certainly changes the result with these statistics."""
        if reduction.operator in ("add", "mul"):
            value = self._sampled(conjunct, known, sample, None, reduction, leaf)
            neutral = 0.0 if reduction.operator == "add" else 1.0
            if value is None or (value.nan and value.point is None) or value.contains(neutral):
                return None
            return _short(value)
        for data in _DATA_SAMPLES:
            value = self._sampled(conjunct, known, sample, data, reduction, leaf)
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
        false: Conjunct | None,
        known: Conjunction,
        sample: int,
        data: float | None,
        reduction: Reduction,
        leaf: Leaf,
    ) -> AbstractFloat | None:
        found = self._leaf(self._evaluator(false, known, sample, data), reduction, leaf)
        if found is None:
            return None
        return found.number

    # What is not a tree -----------------------------------------------------------------------
    def _through_memory(self, group: list[Site]) -> list[Pair]:
        """Verdicts for ways that end in shared memory, in a contraction or in an unknown tree."""
        reach = self._reach
        values = [s.value for s in group if s.value >= 0]
        ends = reach.ends(values, True)
        out: list[Pair] = []
        site = group[0]
        conjunct = self._ordered(site.guard)[0]

        def note(status: str, reason: str) -> None:
            out.append(Pair(site, conjunct, None, None, status, reason))

        for instr in ends.unknown[:1]:
            note(OPEN, f"the padding goes on, but {self._obstacles.at(instr)}")
        for instr in ends.exchanges[:1]:
            note(OPEN, f"`{instr.opcode}` combines lanes in a way that is not recognised")
        for _ in self._carried_on(group, ends.carried)[:1]:
            note(OPEN, "a loop carries the padding on in a way that is not recognised")
        for _ in ends.atomics[:1]:
            if not ends.are_masked_atomics:
                note(OPEN, "the padding reaches an atomic update")
        stored = [s.instr for s in group if s.value < 0]
        kept = self._kept_nonzero(group, ends.shared, ends.contractions)
        if stored or ends.shared or ends.contractions:
            into = reach.shared_use(ends.shared + stored)
            if kept is None and stored and any(s.instr.shape.guard for s in group):
                kept = "a copy that is masked off leaves old data in shared memory"
            if ends.contractions or into.contracted:
                if kept is not None:
                    note(OPEN, kept)
                elif into.product_goes_on and not into.combined and self._is_masked_again(group):
                    note(PROVED, "padding is 0 in the product, and masked again behind it")
                elif into.combined or into.product_goes_on:
                    note(OPEN, "padding along a row or column of a product goes on to be combined")
                else:
                    note(PROVED, "padding lanes hold 0 when they reach the product")
            elif into.combined:
                note(OPEN, "the padding passes through shared memory in another layout")
        return out

    def _carried_on(self, group: list[Site], phis: list[int]) -> list[int]:
        """The phis whose loops change the guards of these loads from round to round.

        Elsewhere a guard that is false is so in all rounds.
        """
        loops = self.reductions.loops
        guards = {c for site in group for c in site.guard}
        return [
            phi for phi in phis if any(varies(c, loops, (self.ssa.phi_block[phi],)) for c in guards)
        ]

    def _is_masked_again(self, group: list[Site]) -> bool:
        """True if what is made of a product is masked by the load's own bound before it is
        combined again.

        The product has another layout than the load, so that conjuncts are compared by their
        family: the same bound for the same range of indices.
        """
        wanted: dict[tuple[_Family, bool], _Range] = {}
        for site in group:
            for conjunct in site.guard:
                if not self.bits(conjunct):
                    # A stage of the pipeline that is not there is not consumed either.
                    continue
                family = _family(conjunct)
                if family is None:
                    return False
                # Loads ahead of a pipelined loop are a range of their own.
                extent = _range(conjunct)
                key = family, bool(extent.step)
                wanted[key] = extent.hull(wanted.get(key))
        families = {family for family, _ in wanted}
        if len(families) != 1:
            return False
        family = families.pop()
        masks = self._masks_of(family)
        if masks is None or not all(masks.range.is_same(extent) for extent in wanted.values()):
            return False
        if family not in self._neutral_under:
            evaluator = Evaluator(
                self.ssa, self.guards, self.uniformity, self.reductions,
                Hypothesis(None, ALWAYS, masks.bits, masks.conjuncts), self.steps, None, DATA,
                self._shared_is_finite, self._dependences, self._joins,
            )  # fmt: skip
            self._neutral_under[family] = self._is_neutral_behind_products(evaluator)
            evaluator.release()
        return self._neutral_under[family]

    def _masks_of(self, family: _Family) -> _Masks | None:
        """The conjuncts of a family under which the function selects values; None for none."""
        if self._masks is None:
            self._masks = {f: self._joined(found) for f, found in self._find_masks().items()}
        return self._masks.get(family)

    def _joined(self, conjuncts: set[Conjunct]) -> _Masks:
        extent: _Range | None = None
        bits = 0
        for conjunct in conjuncts:
            extent = _range(conjunct).hull(extent)
            bits |= self.bits(conjunct)
        assert extent is not None
        return _Masks(frozenset(conjuncts), extent, bits)

    def _find_masks(self) -> dict[_Family, set[Conjunct]]:
        found: dict[_Family, set[Conjunct]] = {}
        for instr in self._facts.function.instrs:
            if instr.opcode != "selp" or not self.ssa.cfg.is_reachable(instr):
                continue
            predicate = self.reductions.read(instr, instr.operands[3])
            if predicate is None or self._is_size(instr):
                continue
            for conjunct in self.guards.of_predicate(predicate, True) or ():
                family = _family(conjunct)
                if family is not None:
                    found.setdefault(family, set()).add(conjunct)
        return found

    def _is_size(self, instr: Instr) -> bool:
        """True for a `selp` that gives the source size of a `cp.async`, or a part of it."""
        result = self.ssa.def_values[instr.index][0]
        copies = any(reader.opcode == "cp" for reader in self.ssa.instr_users(result))
        return copies or any(fold(arm) for arm in instr.operands[1:3])

    def _is_neutral_behind_products(self, evaluator: Evaluator) -> bool:
        behind = self._reach.behind_products()
        if behind is None:
            return False
        for number in sorted(behind.reductions):
            reduction = self.reductions.all[number]
            for leaf in reduction.leaves:
                if leaf.init:
                    continue
                found = self._leaf(evaluator, reduction, leaf)
                if found is None or not found.touched:
                    return False
                if not self._neutral(reduction, found.number):
                    return False
        return all(
            (word := evaluator.of(value)).touched == 3 and _is_zero_where(word.word, 3)
            for value in behind.factors
        )

    def _kept_nonzero(
        self, group: list[Site], shared: list[Instr], contractions: list[Instr]
    ) -> str | None:
        """Why a padding lane may not hold 0 where it goes to shared memory or into a product."""
        for instr in [*shared, *contractions]:
            operands = self._reach.payload(instr)
            for conjunct, sites in self._touching(operands).items():
                own = [s for s in sites if s in group]
                if not own:
                    continue
                evaluator = self._evaluator(conjunct, own[0].guard - {conjunct})
                for value in operands:
                    found = evaluator.of(value)
                    if not _is_zero_where(found.word, found.touched):
                        return "padding lanes may not hold 0 when they reach shared memory"
        return None

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


def _is_zero_where(word: Any, touched: int) -> bool:
    """True if every touched half of a word is a zero."""
    if not touched or (isinstance(word, int) and word == 0):
        return True
    if type(word) is tuple:
        return all(_is_zero_where(half, 3) for at, half in enumerate(word) if touched >> at & 1)
    if isinstance(word, int):
        return touched != 3 and not word >> 16 * (touched - 1) & 0xFFFF
    return isinstance(word, Number) and word.value.is_zero


class _Family(NamedTuple):
    """What conjuncts on one axis share: all terms but lanes, iterations and the constant."""

    terms: frozenset[tuple[Any, int]]


class _Range(NamedTuple):
    """The constants of a family's conjuncts: the greatest, the least with its lanes, the step of
    a loop."""

    greatest: int
    least: int
    step: int

    def hull(self, other: _Range | None) -> _Range:
        """Both ranges together."""
        if other is None:
            return self
        return _Range(
            max(self.greatest, other.greatest),
            min(self.least, other.least),
            max(self.step, other.step),
        )

    def is_same(self, other: _Range) -> bool:
        """True for the same indices, those of other iterations included."""
        step = max(self.step, other.step)
        shifts = self.greatest - other.greatest, self.least - other.least
        return not any(shift % step if step else shift for shift in shifts)


class _Masks(NamedTuple):
    """Conjuncts of one family under which values are selected, their range and index bits."""

    conjuncts: Conjunction
    range: _Range
    bits: int


def _family(conjunct: Conjunct) -> _Family | None:
    """The family of a conjunct that compares an index with a parameter."""
    poly = conjunct.polynomial
    if poly is None:
        return None
    atoms = poly.table.atoms
    terms = []
    for monomial, coefficient in poly.terms.items():
        kinds = {atoms[n].kind for n in monomial}
        if not kinds or kinds == {"bit"} or (kinds == {"index"} and len(monomial) == 1):
            continue
        terms.append((monomial, coefficient))
    bound = any(len(m) == 1 and atoms[m[0]].kind == "param" and c == 1 for m, c in terms)
    return _Family(frozenset(terms)) if bound else None


def _range(conjunct: Conjunct) -> _Range:
    poly = conjunct.polynomial
    assert poly is not None
    atoms = poly.table.atoms
    low = poly.constant
    step = 0
    for monomial, coefficient in poly.terms.items():
        kinds = {atoms[n].kind for n in monomial}
        if kinds == {"bit"}:
            low += min(coefficient, 0)
        elif kinds == {"index"}:
            step = max(step, abs(coefficient))
    return _Range(poly.constant, low, step)


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
    )

    def run(self, facts: Facts) -> Padding:
        """Judge every masked load."""
        return Padding(facts)


__all__ = ["ASSUMES", "LoadVerdict", "Padding", "PaddingAnalysis", "Pair", "Site"]
