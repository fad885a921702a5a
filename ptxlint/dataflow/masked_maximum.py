"""Maxima of scores some of which are masked with -inf, and whether one may be -inf itself.

exp(x - m) with m the maximum of all x is harmless unless every x is -inf: then -inf - -inf is NaN.
A maximum is *kept* if some lane holds a score that no mask takes away, whatever the launch. A
maximum that a loop carries from -inf on is *lost* if a launch can mask all of the first round: what
later rounds bring does not mend the NaN in the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.dominance import PostDominatorsAnalysis
from ptxlint.cfg.loops import Loop
from ptxlint.dataflow.float_values import FloatSlice, FloatValues, Scenario, least
from ptxlint.dataflow.floats import F32, FORMATS, AbstractFloat, Format
from ptxlint.dataflow.guards import Conjunct, Conjunction, Guards, GuardsAnalysis, implies
from ptxlint.dataflow.maximum_trees import Maximum, MaximumTrees, Start, is_maximum, lifted
from ptxlint.dataflow.nonfinite import Nonfinite, NonfiniteAnalysis, nonfinite
from ptxlint.dataflow.padding_values import ANY_INDEX, Dependences, Word
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.dataflow.reductions import Node, Reductions, ReductionsAnalysis, narrow_type
from ptxlint.dataflow.ssa_values import MERGE, Ssa
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.dataflow.value_flow import ADDRESS, CHOICE, WHOLE, ValueFlow
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Operand

PROVED: Final = "proved"
REFUTED: Final = "refuted"
OPEN: Final = "open"

_SUMS: Final = frozenset({"add", "sub", "fma"})
_PASSING: Final = frozenset({"mul", "neg", "cvt", "mov", "selp", "shfl", "fma", "add", "sub"})
_SCALING: Final = frozenset({"mul", "neg", "cvt", "mov", "selp", "shfl"})
_HANDING: Final = frozenset({"shfl", "ld", "mov"})
_MAX_WALK: Final = 64
_MAX_TREE: Final = 2_048
_FREE: Final = frozenset({"param", "load", "ctaid"})
_PLAIN: Final = frozenset({"bit", "param", "ctaid"})


class Mask(NamedTuple):
    """A score is -inf unless `predicate` is `kept`; `at` selects."""

    predicate: int
    kept: bool
    at: Instr


class Difference(NamedTuple):
    """`at` subtracts a maximum, in one half if it is packed, and may give -inf - -inf."""

    at: Instr
    result: int
    part: int


class MaximumVerdict(NamedTuple):
    """Whether a maximum may be -inf where exponentials are taken relative to it.

    `at` is the difference that a finding stands at, `mask` the selection that takes scores away,
    `store` where the NaN is written. `bound` names what makes a mask false everywhere.
    """

    maximum: Maximum
    status: str
    reason: str
    at: Instr
    mask: Instr | None = None
    store: Instr | None = None
    bound: str = ""


class MaskedMaxima:
    """The maxima of a function that exponentials are relative to, with their verdicts."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.guards: Guards = facts.get(GuardsAnalysis)
        self.reductions: Reductions = facts.get(ReductionsAnalysis)
        self._nonfinite: Nonfinite = facts.get(NonfiniteAnalysis)
        self.flow: ValueFlow = self._nonfinite.flow
        self.ssa: Ssa = self.flow.ssa
        self._instrs = facts.function.instrs
        self.trees = MaximumTrees(self.reductions, self.flow, self._instrs)
        self.verdicts: list[MaximumVerdict] = []
        self._carried: list[Maximum] = []
        """The maxima that loops carry."""
        self._dependences: Dependences | None = None
        self._known_in: dict[int, Conjunction] = {}
        self._given: dict[tuple[Conjunction, int, int, frozenset[int]], Conjunction] = {}
        self._off: dict[int, dict[Any, list[tuple[Mask, str]]]] = {}
        if self._nonfinite.exponentials and any(is_maximum(i) for i in self._instrs):
            self._judge()

    def line(self, instr: Instr) -> object:
        """The Python line of an instruction, or the instruction where no line is known."""
        return self._nonfinite.line(instr)

    def obstacle(self, instr: Instr) -> str:
        """What on the way to an instruction's operands is not followed; "" if all is."""
        return self._nonfinite.obstacle(instr)

    def load_behind(self, instr: Instr) -> Instr | None:
        """A load that the scores of a selection are made of."""
        return self._nonfinite.load_behind(instr)

    def _judge(self) -> None:
        part = self._nonfinite.exponents
        values = FloatValues(part, Scenario(full=False))
        if not values.settled:
            return
        self._values = values
        groups: dict[int, list[Difference]] = {}
        for difference in self._differences(part):
            for found in self._subtracted(difference):
                groups.setdefault(found, []).append(difference)
        trees = {value: self.trees.of(value) for value in sorted(groups)}
        self._carried = [t for t in trees.values() if len(t.loops) == 1]
        for value, tree in trees.items():
            verdict = self._verdict(tree, groups[value])
            if verdict is not None:
                self.verdicts.append(verdict)

    def _differences(self, part: FloatSlice) -> Iterator[Difference]:
        """The sums and differences that exponentials are taken of, in program order."""
        seen: dict[int, int] = {}
        for value in part.order:
            instr = self.reductions.definition(value)
            if instr is not None and instr.opcode in _SUMS and _format(instr) is not None:
                seen.setdefault(instr.index, value)
        for at in sorted(seen):
            instr = self._instrs[at]
            halves = (0, 1) if instr.shape.type.endswith("x2") else (WHOLE,)
            for half in halves:
                yield Difference(instr, seen[at], half)

    # Maxima -----------------------------------------------------------------------------------
    def _subtracted(self, difference: Difference) -> list[int]:
        """The maxima one of which an instruction subtracts."""
        instr = difference.at
        operands = instr.operands[1:] if instr.opcode != "fma" else instr.operands[3:]
        for operand in reversed(operands):
            value = self.reductions.read(instr, operand)
            if value is None:
                continue
            node = self.reductions.node(Node(value, difference.part))
            found = self.trees.maxima_of(*node) if node.part == WHOLE else []
            if found:
                return found
        return []

    # Masks ------------------------------------------------------------------------------------
    def masks(self, score: int) -> list[Mask] | None:
        """The selections and masked loads that make a score -inf; None if something else may."""
        work = [(self.ssa.resolve(score), WHOLE)]
        seen = set(work)
        out: list[Mask] = []
        for value, part in work:
            if len(seen) > _MAX_WALK:
                break
            mask, onward = self._mask(value, part)
            if mask is not None:
                out.append(mask)
            elif not onward and self._is_low_itself(value):
                return None
            for step in onward:
                if step not in seen:
                    seen.add(step)
                    work.append(step)
        return out

    def _is_low_itself(self, value: int) -> bool:
        """True for a number that may be -inf without a mask: a logarithm, a quotient."""
        number = self._values.number(value, F32)
        return number is not None and number.ninf and not number.nan

    def _mask(self, value: int, part: int) -> tuple[Mask | None, list[tuple[int, int]]]:
        """The mask that a value, or a half of one, is under, and what it masks."""
        ssa = self.ssa
        if ssa.kind[value] == MERGE:
            predicate, if_true, if_false = ssa.operands[value]
            arms = [ssa.resolve(if_true), ssa.resolve(if_false)]
            mask, onward = self._chosen(
                predicate, [(a, self.trees.is_lowest(a)) for a in arms], value
            )
            return mask, [(v, part) for v in onward]
        instr = self.reductions.definition(value)
        if instr is None:
            return None, []
        if instr.opcode == "selp":
            operand = instr.operands[3]
            chosen = self.flow.operand_values(instr)[3]
            if len(chosen) != 1:
                return None, []
            arms_read = [self._arm(instr, o) for o in instr.operands[1:3]]
            if isinstance(operand, Negated):
                arms_read.reverse()
            mask, onward = self._chosen(chosen[0], arms_read, value)
            return mask, [(v, part) for v in onward]
        if instr.opcode not in _PASSING:
            return None, []
        return None, [
            (ssa.resolve(v), at)
            for v, role, at in self.flow.part_sources(value, part)
            if role not in (CHOICE, ADDRESS)
        ]

    def _arm(self, instr: Instr, operand: Operand) -> tuple[int | None, bool]:
        """An arm of a selection, and whether it is -inf."""
        value = self.reductions.read(instr, operand)
        return value, self.trees.is_lowest_operand(instr, operand)

    def _chosen(
        self, predicate: int, arms: Iterable[tuple[int | None, bool]], value: int
    ) -> tuple[Mask | None, list[int]]:
        (yes, yes_lowest), (no, no_lowest) = arms
        onward = [v for v, lowest in ((yes, yes_lowest), (no, no_lowest)) if v is not None]
        if yes_lowest == no_lowest:
            return None, onward
        at = self._instrs[self.ssa.instr[value]]
        kept = no if yes_lowest else yes
        return Mask(self.ssa.resolve(predicate), no_lowest, at), [] if kept is None else [kept]

    # Verdicts ---------------------------------------------------------------------------------
    def _verdict(self, maximum: Maximum, differences: list[Difference]) -> MaximumVerdict | None:
        number = self._number(maximum, maximum.value)
        if number is None or not number.ninf:
            return None
        risks = [self._risk(d) for d in differences]
        risky = [d for d, risk in zip(differences, risks, strict=True) if risk]
        if not risky and None in risks:
            at = differences[risks.index(None)].at
            return MaximumVerdict(maximum, OPEN, "the scores were not followed", at)
        if not risky:
            return MaximumVerdict(
                maximum, PROVED, "a maximum of -inf is replaced before it is subtracted",
                differences[0].at,
            )  # fmt: skip
        at = risky[0].at
        if maximum.scores is None:
            return MaximumVerdict(maximum, OPEN, "the maximum has too many operands", at)
        masks = {}
        for score in maximum.scores:
            found = self.masks(score)
            if found is None:
                return MaximumVerdict(maximum, OPEN, "a score may be -inf without a mask", at)
            masks[score] = found
        if not self._combines(maximum, list(masks.values())):
            return None
        kept = self._kept(maximum, masks)
        if kept:
            return MaximumVerdict(maximum, PROVED, kept, at)
        loop = self._carrying(maximum)
        lost = None if loop is None else self._lost(maximum, loop, risky)
        if lost is not None:
            return lost
        first = next((m.at for found in masks.values() for m in found), None)
        reason = "it was not seen that the masks leave a lane of the maximum"
        return MaximumVerdict(maximum, OPEN, reason, at, first)

    def _number(self, maximum: Maximum, value: int) -> AbstractFloat | None:
        """What a maximum or a score of it may be."""
        form = FORMATS.get(maximum.at.shape.type)
        return None if form is None else self._values.number(value, form)

    def _risk(self, difference: Difference) -> bool | None:
        """True if a difference of numbers may be -inf - -inf; None if that is not known."""
        instr, part = difference.at, difference.part
        form = _format(instr)
        if form is None:
            return None
        values = self._values
        forms = [FORMATS.get(narrow_type(instr), form)] * (len(instr.operands) - 2) + [form]
        operands = [values.operand(instr, at, f, part) for at, f in enumerate(forms, 1)]
        known = [o for o in operands if o is not None]
        if len(known) < len(operands):
            return None
        if instr.opcode == "sub" and not all(o.ninf for o in known):
            return False
        if any(o.nan for o in known):
            return None
        result = values.number(difference.result, form, part)
        return None if result is None else result.nan

    def _combines(self, maximum: Maximum, masks: list[list[Mask]]) -> bool:
        """True for a maximum over lanes, rounds or elements under masks of their own.

        What is masked alike and stays in its lane is padding, whatever becomes of it.
        """
        if maximum.loops or maximum.exchanged:
            return True
        return len({frozenset(m.predicate for m in found) for found in masks}) > 1

    # Kept -------------------------------------------------------------------------------------
    def _kept(self, maximum: Maximum, masks: dict[int, list[Mask]], depth: int = 2) -> str:
        """Why a maximum is above -inf in all rounds; "" if that was not seen."""
        carried = [start.phi for start in maximum.starts]
        root = Node(maximum.value)
        if carried:
            # What one round leaves the next one takes up.
            stays = lifted(maximum, carried)
            if root not in stays or any(n not in stays for s in maximum.starts for n in s.after):
                return ""
        kept = {score for score in masks if self._is_kept(maximum, score, masks[score])}
        if root in lifted(maximum, [n for n in maximum.inner if n.value in kept]):
            return "some lane of the maximum is never masked"
        begun = [s.phi for s in maximum.starts if self._begins(s, depth)]
        if begun and root in lifted(maximum, begun):
            return "the maximum that the loop starts from is never masked"
        return ""

    def _begins(self, start: Start, depth: int) -> bool:
        """True if what a loop starts from is a maximum that is above -inf."""
        return depth > 0 and all(self._is_above(start, node, depth) for node in start.before)

    def _is_above(self, start: Start, node: Node, depth: int) -> bool:
        node = self._selected(start, node)
        instr = self.reductions.definition(node.value)
        if node.part != WHOLE or instr is None or not is_maximum(instr):
            return False
        before = self.trees.of(node.value)
        masks = {}
        for score in before.scores or ():
            found = self.masks(score)
            if found is None:
                return False
            masks[score] = found
        return bool(self._kept(before, masks, depth - 1))

    def _selected(self, start: Start, node: Node) -> Node:
        """What a selection with -inf gives where the loop is entered."""
        mask, onward = self._mask(*node)
        if mask is None or len(onward) != 1:
            return node
        wanted = self.guards.of_predicate(mask.predicate, mask.kept)
        known = self._known(self.ssa.phi_block[start.phi.value])
        if wanted is None or not all(implies(known, conjunct) for conjunct in wanted):
            return node
        return self.reductions.node(Node(*onward[0]))

    def _is_kept(self, maximum: Maximum, score: int, masks: list[Mask]) -> bool:
        """True if in some lane no mask takes this score away, in the first round of a loop."""
        number = self._number(maximum, score)
        if not masks:
            return number is not None and not number.ninf and not number.nan
        wanted: set[Conjunct] = set()
        for mask in masks:
            needed = self.guards.of_predicate(mask.predicate, mask.kept)
            if needed is None:
                return False
            wanted |= needed
        known = self._known(self.ssa.cfg.block_of[maximum.at.index])
        bits = self.combined_bits(maximum)
        first = frozenset(maximum.loops)
        return any(
            all(self._holds(conjunct, known, bits, lane, first) for conjunct in wanted)
            for lane in (0, 1)
        )

    def _known(self, block: int) -> Conjunction:
        """What holds in a block in every round of the loops around it."""
        found = self._known_in.get(block)
        if found is None:
            found = self._known_in[block] = self._find_known(block)
        return found

    def _find_known(self, block: int) -> Conjunction:
        known = set(self.guards.of_block(block) or ())
        loop = self.flow.loops.innermost(block)
        while loop is not None:
            known.update(self._invariants(loop, frozenset(known)))
            loop = loop.parent
        return frozenset(known)

    def _invariants(self, loop: Loop, known: Conjunction) -> Iterator[Conjunct]:
        """What the way back to the head of a loop demands, where the first round has it too."""
        cfg = self.ssa.cfg
        latches = [p for p in cfg.blocks[loop.header].preds if self.flow.loops.contains(loop, p)]
        if len(latches) != 1:
            return
        condition = cfg.edge_condition(latches[0], loop.header)
        branch = cfg.terminator(latches[0])
        predicate = None if branch is None else self.ssa.guard_value(branch)
        if condition is None or predicate is None:
            return
        for conjunct in self.guards.of_predicate(predicate, condition[1]) or ():
            if conjunct.polynomial is None:
                continue
            held = _one_round_before(conjunct.polynomial, loop.header)
            first = _settled(held, 0, 0, frozenset({loop.header}))
            if least(first) >= 0 or implies(known, Conjunct(first)):
                yield Conjunct(held)

    def combined_bits(self, maximum: Maximum) -> int:
        """The bits of the thread index over which the maximum is taken."""
        if self._dependences is None:
            uniformity = self._facts.get(UniformityAnalysis)
            self._dependences = Dependences(self.ssa, uniformity, self.reductions)
        return ANY_INDEX & ~self._dependences.of(maximum.value)

    def _holds(
        self, wanted: Conjunct, known: Conjunction, bits: int, lane: int, first: frozenset[int]
    ) -> bool:
        """True if a conjunct certainly holds in the lane whose combined bits are all `lane`."""
        if wanted.polynomial is None:
            return False
        goal = _settled(wanted.polynomial, bits, lane, first)
        if least(goal) >= 0:
            return True
        key = (known, bits, lane, first)
        given = self._given.get(key)
        if given is None:
            given = self._given[key] = frozenset(
                Conjunct(_settled(c.polynomial, bits, lane, first))
                for c in known
                if c.polynomial is not None
            )
        return implies(given, Conjunct(goal))

    # Lost -------------------------------------------------------------------------------------
    def _carrying(self, maximum: Maximum) -> Loop | None:
        """The loop that carries the maximum."""
        loops = [self.flow.loops.with_header(header) for header in maximum.loops]
        return loops[0] if len(loops) == 1 else None

    def _lost(self, maximum: Maximum, loop: Loop, risky: list[Difference]) -> MaximumVerdict | None:
        """The verdict that a launch masks all of the first round, if one does."""
        part = self._nonfinite.part
        for key, chosen in self._turned_off(maximum, loop).items():
            truths = {mask.predicate: not mask.kept for mask, _ in chosen}
            # What masks this row masks the others of its tile too.
            for other in self._carried:
                if other.loops == maximum.loops:
                    found = self._turned_off(other, loop).get(key, ())
                    truths.update({mask.predicate: not mask.kept for mask, _ in found})
            once = FloatValues(part, Scenario(truths=truths, once=loop.header))
            made = [d for d in risky if _is_nan(once.word(d.result))]
            if not once.settled or not made:
                continue
            later = FloatValues(part, Scenario(starts=self._after(once, loop)))
            store = self._reached(later)
            if store is not None:
                own = [d for d in made if not self._is_of_maxima(d)] or made
                mask, bound = chosen[0]
                reason = f"{bound} may mask the whole first round"
                return MaximumVerdict(
                    maximum, REFUTED, reason, own[0].at, mask.at, store, bound
                )  # fmt: skip
        return None

    def _turned_off(self, maximum: Maximum, loop: Loop) -> dict[Any, list[tuple[Mask, str]]]:
        """By a free number: for each score the mask that it turns off, where it does for all."""
        known = self._off.get(maximum.value)
        if known is not None:
            return known
        demands = list(self._demands(maximum, loop))
        free: dict[Any, dict[int, tuple[Mask, str]]] = {}
        scores = maximum.scores or ()
        for score in scores:
            for mask in self.masks(score) or ():
                if self._is_loaded(mask):
                    free.setdefault("load", {}).setdefault(score, (mask, "a loaded mask"))
                for atom in self._turning_off(mask, loop, demands):
                    # Loaded numbers may be chosen each by itself.
                    key = "load" if atom.kind == "load" else atom
                    free.setdefault(key, {}).setdefault(score, (mask, _named(atom)))
        known = self._off[maximum.value] = {
            key: list(chosen.values())
            for key, chosen in free.items()
            if len(chosen) == len(set(scores))
        }
        return known

    def _is_loaded(self, mask: Mask) -> bool:
        """True if loaded zeros turn a mask off."""
        for conjunct in self.guards.of_predicate(mask.predicate, mask.kept) or ():
            poly = conjunct.polynomial
            if poly is None and conjunct.key[0] == "unequal":
                found = _where_zeros_are_loaded(conjunct.key[1] - conjunct.key[2])
                if found == 0:
                    return True
            elif poly is not None:
                found = _where_zeros_are_loaded(poly)
                if found is not None and found < 0:
                    return True
        return False

    def _turning_off(self, mask: Mask, loop: Loop, demands: list[Polynomial]) -> Iterator[Atom]:
        """What a launch may make so large that the mask takes all lanes of the first round away,
        and leaves those of a later one.

        What else the mask compares must be plain indices and sizes, so that nothing hidden grows
        along.
        """
        for conjunct in self.guards.of_predicate(mask.predicate, mask.kept) or ():
            if conjunct.polynomial is None:
                continue
            poly = _settled(conjunct.polynomial, 0, 0, frozenset({loop.header}))
            for atom in poly.atoms():
                if atom.kind not in _FREE or poly.coefficient(atom) >= 0 or not _is_wide(atom):
                    continue
                plain = all(a is atom or a.kind in _PLAIN for a in poly.atoms())
                alone = sum(atom.number in m for m in poly.terms) == 1
                if not (plain and alone and all(_allows(d, atom, poly) for d in demands)):
                    continue
                if self._comes_back(conjunct.polynomial, atom, loop):
                    yield atom

    def _comes_back(self, mask: Polynomial, atom: Atom, loop: Loop) -> bool:
        """True if later rounds satisfy a mask however large an atom is, and there may be so many:
        another number than the atom bounds the loop."""
        rounds = [a for a in mask.atoms() if a.kind == "index" and a.data[0] == loop.header]
        if not rounds or mask.coefficient(rounds[0]) <= 0:
            return False
        for conjunct in self._latching(loop):
            bound = conjunct.polynomial
            if bound is not None and any(a is rounds[0] for a in bound.atoms()):
                sizes = [a for a in bound.atoms() if a.kind == "param" and a is not atom]
                if not any(bound.coefficient(a) > 0 and mask.coefficient(a) >= 0 for a in sizes):
                    return False
        return True

    def _latching(self, loop: Loop) -> set[Conjunct]:
        """What the ways back to the head of a loop demand."""
        cfg = self.ssa.cfg
        found: set[Conjunct] = set()
        for latch in cfg.blocks[loop.header].preds:
            condition = cfg.edge_condition(latch, loop.header)
            branch = cfg.terminator(latch)
            predicate = None if branch is None else self.ssa.guard_value(branch)
            inside = self.flow.loops.contains(loop, latch)
            if inside and condition is not None and predicate is not None:
                found.update(self.guards.of_predicate(predicate, condition[1]) or ())
        return found

    def _demands(self, maximum: Maximum, loop: Loop) -> Iterator[Polynomial]:
        """What must hold in the first round, on the way into the second one, and at stores."""
        cfg = self.ssa.cfg
        held: set[Conjunct] = set(self.guards.of_block(cfg.block_of[maximum.at.index]) or ())
        held |= self._latching(loop)
        for store, _ in self._nonfinite.stores:
            held.update(self.guards.of_instr(store) or ())
        for conjunct in sorted(held, key=repr):
            if conjunct.polynomial is not None:
                yield _settled(conjunct.polynomial, 0, 0, frozenset(maximum.loops))

    def _after(self, once: FloatValues, loop: Loop) -> dict[int, Word]:
        """What the phis of a loop hold after the first round."""
        starts: dict[int, Word] = {}
        for phi in self.ssa.phis.get(loop.header, ()):
            _, latch = self.flow.carried(phi, loop)
            words = [once.word(v) for v in latch]
            if len(words) == 1 and words[0] is not None:
                starts[phi] = words[0]
        return starts

    def _reached(self, later: FloatValues) -> Instr | None:
        """A store that certainly writes NaN after such a first round."""
        if not later.settled:
            return None
        live = later.live_blocks()
        for store, written in self._nonfinite.stores:
            if self.ssa.cfg.block_of[store.index] not in live:
                continue
            if any(_is_nan(later.word(v)) for v in written):
                return store
        return None

    def _is_of_maxima(self, difference: Difference) -> bool:
        """True for the difference of an old and a new maximum."""
        instr = difference.at
        values = [self.reductions.read(instr, o) for o in instr.operands[1:]]
        nodes = [self.reductions.node(Node(v, difference.part)) for v in values if v is not None]
        return all(self.trees.is_of_maximum(node) for node in nodes)


def _format(instr: Instr) -> Format | None:
    """The format that an instruction computes in, also in halves."""
    kind = instr.shape.types[0] if narrow_type(instr) else instr.shape.type
    return FORMATS.get(kind.removesuffix("x2"))


def _is_nan(word: Word | None) -> bool:
    return word is not None and nonfinite(word) == "nan"


def _is_wide(atom: Atom) -> bool:
    """True if an atom may be as large as any index of a tile."""
    return atom.high >= 1 << 30


def _where_zeros_are_loaded(poly: Polynomial) -> int | None:
    """What an integer is where all loads give 0; None if it is made of something else too, or of
    no load."""
    total, loads = 0, 0
    for monomial, coefficient in poly.terms.items():
        parts = [poly.table.atoms[n] for n in monomial]
        if any(a.kind == "load" for a in parts):
            loads += 1
        elif len(parts) == 1 and parts[0].kind == "select":
            arms = [p for p in parts[0].data if isinstance(p, Polynomial)]
            found = {p.constant if p.is_constant else _where_zeros_are_loaded(p) for p in arms}
            value = found.pop() if len(found) == 1 else None
            if value is None or all(p.is_constant for p in arms):
                return None
            loads += 1
            total += coefficient * value
        elif parts:
            return None
        else:
            total += coefficient
    return total if loads else None


def _allows(demand: Polynomial, atom: Atom, mask: Polynomial) -> bool:
    """True if a demand can be met however large an atom is: by a size that is larger still."""
    if not _lowers(demand, atom):
        return True
    if any(atom in _inner(a) for a in demand.atoms()):
        return False
    sizes = [a for a in demand.atoms() if a.kind == "param" and demand.coefficient(a) > 0]
    return any(mask.coefficient(size) <= 0 and size is not atom for size in sizes)


def _lowers(poly: Polynomial, atom: Atom) -> bool:
    """True if a polynomial may get smaller while an atom grows."""
    for monomial, coefficient in poly.terms.items():
        for number in monomial:
            part = poly.table.atoms[number]
            if part is atom:
                if coefficient < 0:
                    return True
            elif part.kind in ("min", "max"):
                inner = [p if coefficient > 0 else -p for p in part.data]
                if any(_lowers(p, atom) for p in inner):
                    return True
            elif atom in _inner(part):
                return True
    return False


def _inner(atom: Atom) -> set[Atom]:
    """The atoms that an atom is made of."""
    found: set[Atom] = set()
    work = [p for p in atom.data if isinstance(p, Polynomial)]
    while work:
        for part in work.pop().atoms():
            if part not in found:
                found.add(part)
                work += [p for p in part.data if isinstance(p, Polynomial)]
    return found


def _named(atom: Atom) -> str:
    return {"param": f"`{atom}`", "ctaid": "a large program id"}.get(atom.kind, "a loaded number")


def _one_round_before(poly: Polynomial, header: int) -> Polynomial:
    """A polynomial with the iteration number K of a loop replaced by K - 1."""
    atoms = poly.table.atoms
    terms = dict(poly.terms)
    for monomial, coefficient in poly.terms.items():
        rounds = [n for n in monomial if atoms[n].kind == "index" and atoms[n].data[0] == header]
        if len(rounds) > 1:
            # What a square demands is not carried over.
            return Polynomial(poly.table, {(): -1})
        if rounds:
            rest = tuple(n for n in monomial if n != rounds[0])
            terms[rest] = terms.get(rest, 0) - coefficient
    return Polynomial(poly.table, {m: c for m, c in terms.items() if c})


def _settled(poly: Polynomial, bits: int, lane: int, first: frozenset[int]) -> Polynomial:
    """A polynomial with the combined bits of the thread index set, in the first rounds of loops."""
    atoms = poly.table.atoms
    terms: dict[tuple[int, ...], int] = {}
    for monomial, coefficient in poly.terms.items():
        kept = []
        factor = 1
        for number in monomial:
            value = _fixed(atoms[number], bits, lane, first)
            if value is None:
                kept.append(number)
            else:
                factor *= value
        if factor:
            key = tuple(kept)
            terms[key] = terms.get(key, 0) + coefficient * factor
    return Polynomial(poly.table, {m: c for m, c in terms.items() if c})


def _fixed(atom: Atom, bits: int, lane: int, first: frozenset[int]) -> int | None:
    """The value of an atom in that lane and round; None if it has none."""
    if atom.kind == "bit" and atom.data[0] == "x" and bits >> atom.data[1] & 1:
        return lane
    return 0 if atom.kind == "index" and atom.data[0] in first else None


class MaskedMaximaAnalysis(Analysis[MaskedMaxima]):
    """Maxima of masked scores as facts of a function."""

    name: ClassVar[str] = "masked-maxima"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        GuardsAnalysis,
        ReductionsAnalysis,
        NonfiniteAnalysis,
        PostDominatorsAnalysis,
    )

    def run(self, facts: Facts) -> MaskedMaxima:
        """Judge every maximum that exponentials are relative to."""
        return MaskedMaxima(facts)


__all__ = [
    "OPEN", "PROVED", "REFUTED", "Mask", "MaskedMaxima", "MaskedMaximaAnalysis", "MaximumVerdict",
]  # fmt: skip
