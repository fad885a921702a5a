"""What a value holds in a lane where one conjunct of a load's guard is false.

A `Hypothesis` says that one conjunct is false and others are true. Under it values are evaluated
backwards from where they are wanted, over *words*: exact bits, abstract floats, pairs of halves,
finite data. What a lane gets from other lanes, and does not depend on the bits of the thread index
that the conjunct talks about, is a statistic: finite by assumption, or a given number when a
witness is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow import floats
from ptxlint.dataflow.conditions import Condition, excludes
from ptxlint.dataflow.exchanges import moved_lanes
from ptxlint.dataflow.floats import (
    BYTES,
    F16,
    F32,
    F64,
    FORMATS,
    AbstractFloat,
    Format,
    Mode,
)
from ptxlint.dataflow.guards import Conjunct, Conjunction, Guards, implies
from ptxlint.dataflow.integer_words import Span, bounds
from ptxlint.dataflow.joins import Joins
from ptxlint.dataflow.lane_bits import LANE, WARP_BITS
from ptxlint.dataflow.obstacles import in_the_way_of_load
from ptxlint.dataflow.packing import bits_of, integer
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.reductions import WHOLE, Node, Reductions, narrow_type
from ptxlint.dataflow.register_words import (
    DATA,
    UNKNOWN,
    Data,
    Either,
    Number,
    Unknown,
    Word,
    as_float,
    extended,
    halves,
    is_finite_word,
    is_pair,
    join,
    lowest,
    packed,
    widened_word,
)
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.dataflow.uniformity import Uniformity
from ptxlint.facts import Budget
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Operand, Register, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

ANY_INDEX: Final = LANE | WARP_BITS
"""All bits of the linear thread index."""
_CONTRACTIONS: Final = frozenset({"mma", "wgmma", "tcgen05", "wmma"})


class Hypothesis(NamedTuple):
    """`false` (if given) does not hold, every conjunct of `known` does.

    `bits` are the bits of the thread index on which `false` depends. `falsified` are further
    conjuncts that do not hold.
    """

    false: Conjunct | None
    known: Conjunction
    bits: int
    falsified: Conjunction = frozenset()


class Found(NamedTuple):
    """A word, and where in it the false conjunct had a say: bit 0 low half, bit 1 high half."""

    word: Word
    touched: int


class Arrival(NamedTuple):
    """Whether control comes some way (None: it may), and if the false conjunct has a say in it."""

    certain: bool | None
    touched: bool


_NOWHERE: Final = 0
_LOW: Final = 1
_HIGH: Final = 2
_EVERYWHERE: Final = 3


def _everywhere(parts: Iterable[Found]) -> int:
    """Touched all over if any part is touched anywhere."""
    return _EVERYWHERE if any(p.touched for p in parts) else _NOWHERE


def half_of(found: Found, at: int, width: int) -> Found:
    """One half of a word."""
    touched = _EVERYWHERE if found.touched >> at & 1 else _NOWHERE
    return Found(halves(found.word, width)[at], touched)


def paired(low: Found, high: Found, bits: int) -> Found:
    """Two parts of `bits` bits as one word."""
    touched = (_LOW if low.touched else 0) | (_HIGH if high.touched else 0)
    return Found(packed(low.word, high.word, bits), touched)


def conjunct_bits(conjunct: Conjunct, uniformity: Uniformity) -> int:
    """The bits of the thread index on which a conjunct may depend."""
    if conjunct.polynomial is not None:
        return _polynomial_bits(conjunct.polynomial, uniformity)
    kind, *data = conjunct.key
    if kind == "predicate":
        return uniformity.dependence(data[0]) & ANY_INDEX
    bits = 0
    for part in data:
        if isinstance(part, Polynomial):
            bits |= _polynomial_bits(part, uniformity)
        elif kind == "nonzero":
            return ANY_INDEX
    return bits


def _polynomial_bits(poly: Polynomial, uniformity: Uniformity) -> int:
    bits = 0
    for atom in poly.all_atoms():
        if atom.kind == "bit":
            axis, at = atom.data
            # In a CTA of one dimension the axis is the linear index.
            bits |= 1 << at if axis == "x" else ANY_INDEX
        elif atom.kind in ("load", "opaque") or atom.kind == "select":
            bits |= uniformity.dependence(atom.data[0]) & ANY_INDEX
    return bits


def negation(conjunct: Conjunct) -> Conjunct:
    """What holds where the conjunct does not."""
    if conjunct.polynomial is not None:
        return Conjunct(-conjunct.polynomial - 1)
    kind, *data = conjunct.key
    if kind == "predicate":
        return Conjunct(None, ("predicate", data[0], not data[1]))
    return Conjunct(None, ("not", conjunct.key))


class Dependences:
    """On which bits of the thread index values depend, with two more facts than `Uniformity` has.

    A `redux` over all lanes gives what the warp's lanes hold together; and a packed register whose
    halves are both combined with what another lane holds is the same in both lanes.
    """

    def __init__(self, ssa: Ssa, uniformity: Uniformity, reductions: Reductions) -> None:
        self._ssa = ssa
        self._uniformity = uniformity
        self._reductions = reductions
        self._is_refined = reductions.has_packed_steps or any(
            e.opcode == "redux" for e in reductions.exchanges
        )
        self._known: dict[int, int] = {}
        self.of_index: dict[int, bool] = {}
        """By predicate: whether it compares nothing but indices and sizes."""

    def of(self, value: int) -> int:
        """The bits of the linear thread index that a value may depend on."""
        base = self._uniformity.dependence(value) & ANY_INDEX
        if not self._is_refined or not base:
            return base
        known = self._known
        stack = [value]
        while stack:
            current = stack[-1]
            if current in known:
                stack.pop()
                continue
            needed = [v for v in self._looked_through(current) if v not in known]
            if needed:
                stack += needed
            else:
                known[current] = self._refine(current)
        return known[value]

    def _looked_through(self, value: int) -> tuple[int, ...]:
        """The values that alone decide this one; none where nothing is gained."""
        ssa = self._ssa
        if ssa.kind[value] != RESULT or not self._uniformity.dependence(value) & ANY_INDEX:
            return ()
        instr = ssa.cfg.function.instrs[ssa.instr[value]]
        steps = self._packed_steps(value)
        if steps is not None:
            return tuple(step.source for step in steps)
        if instr.opcode == "redux":
            return ssa.operands[value][:1]
        if instr.opcode in _PURE and instr.guard is None:
            return ssa.operands[value]
        return ()

    def _packed_steps(self, value: int) -> tuple[Any, Any] | None:
        low, high = (self._reductions.step_at(Node(value, part)) for part in (0, 1))
        return None if low is None or high is None else (low, high)

    def _refine(self, value: int) -> int:
        base = self._uniformity.dependence(value) & ANY_INDEX
        steps = self._packed_steps(value)
        if steps is not None:
            found = 0
            for step in steps:
                # The lanes that a `down` tree leaves out hold something else.
                agreed = step.lanes if step.exchange.shape.has("bfly") else 0
                found |= self._known[step.source] & ~agreed
            return base & found
        operands = self._looked_through(value)
        if not operands:
            return base
        found = 0
        for operand in operands:
            found |= self._known[operand]
        instr = self._ssa.cfg.function.instrs[self._ssa.instr[value]]
        if instr.opcode == "redux":
            found &= ~LANE
            mask = self._reductions.constant(instr, instr.operands[2])
            if mask is None or mask & 0xFFFFFFFF != 0xFFFFFFFF:
                return base
        return base & found


HOPPING: Final = frozenset({"shfl", "selp", "prmt", "cvt", "mov"})
"""What may hand on a register of another lane as it is."""
_PURE: Final = frozenset({"mov", "add", "sub", "mul", "fma", "max", "min", "div", "rcp", "cvt"})


def varies(conjunct: Conjunct, loops: LoopForest, headers: tuple[int, ...]) -> bool:
    """True if a conjunct may change from one iteration of these loops to the next."""
    if not headers:
        return False
    if conjunct.polynomial is not None:
        return _polynomial_varies(conjunct.polynomial, loops, headers)
    kind, *data = conjunct.key
    if kind == "unsigned" or kind == "unequal":
        parts = [p for p in data if isinstance(p, Polynomial)]
        return any(_polynomial_varies(p, loops, headers) for p in parts)
    return True


def _polynomial_varies(poly: Polynomial, loops: LoopForest, headers: tuple[int, ...]) -> bool:
    for atom in poly.atoms():
        if atom.kind == "index" and atom.data[0] in headers:
            return True
        if atom.block >= 0 and any(_is_inside(loops, atom.block, h) for h in headers):
            return True
        parts = [p for p in atom.data if isinstance(p, Polynomial)]
        if any(_polynomial_varies(p, loops, headers) for p in parts):
            return True
    return False


def _is_inside(loops: LoopForest, block: int, header: int) -> bool:
    loop = loops.with_header(header)
    return loop is None or loops.contains(loop, block)


_INDEX_KINDS: Final = frozenset({"bit", "ctaid", "nctaid", "ntid", "param", "symbol", "index"})


def _is_of_index(conjunct: Conjunct) -> bool:
    """True for a comparison of indices and sizes."""
    if conjunct.polynomial is not None:
        return _has_indices_only(conjunct.polynomial)
    kind, *data = conjunct.key
    if kind == "unsigned" or kind == "unequal":
        return all(_has_indices_only(p) for p in data if isinstance(p, Polynomial))
    return False


def _has_indices_only(poly: Polynomial) -> bool:
    for atom in poly.all_atoms():
        if atom.kind in ("load", "opaque", "select"):
            return False
        made = any(isinstance(part, Polynomial) for part in atom.data)
        if atom.kind not in _INDEX_KINDS and not made:
            return False
    return True


_NO_HYPOTHESIS: Final = Hypothesis(None, frozenset(), 0)
_ROUNDS: Final = 6
"""So often the values that a loop carries are evaluated before they are given up."""


class Moves(Protocol):
    """What looks through shared memory and tensor-core products for an evaluator."""

    knows_threads: bool
    """True if the number of threads in a block is known."""

    def needs(self, instr: Instr, value: int) -> tuple[int, ...]:
        """The values that `read` asks the same evaluator for."""

    def read(self, evaluator: Evaluator, instr: Instr, value: int) -> Found | None:
        """What an instruction brings from other threads; None if this is not known."""

    def is_marked(self, value: int, condition: Condition) -> bool:
        """True if the padding that a condition is about may show in a value."""

    def is_moved(self, value: int) -> bool:
        """True for what comes from known lanes, and is combined with nothing."""


class Session:
    """What evaluators that ask each other take for granted of loops, until each round keeps it."""

    __slots__ = ("active", "assumed", "known")

    def __init__(self) -> None:
        self.active = False
        self.assumed: list[tuple[Evaluator, int]] = []
        """Headers' phis, with the evaluator that has assumed a word for them."""
        self.known: list[tuple[Evaluator, int]] = []
        """The values evaluated since."""


class Evaluator:
    """Values under one hypothesis. `steps` counts the values evaluated by all that share it.

    `samples` numbers the statistics of a witness; without it they are any finite numbers. `data`
    is what loads give.
    """

    def __init__(
        self,
        ssa: Ssa,
        guards: Guards,
        uniformity: Uniformity,
        reductions: Reductions,
        hypothesis: Hypothesis,
        steps: Budget,
        samples: Callable[[int], float] | None = None,
        data: Data = DATA,
        shared_is_finite: Callable[[], bool] | None = None,
        dependences: Dependences | None = None,
        joins: Joins | None = None,
        moves: Moves | None = None,
        condition: Condition | None = None,
        session: Session | None = None,
        relatives: dict[int, Evaluator] | None = None,
    ) -> None:
        self.ssa = ssa
        self._moves = moves
        self.condition = condition
        self._session = session or Session()
        self._relatives: dict[int, Evaluator] = {} if relatives is None else relatives
        """By condition: evaluators that differ in nothing else."""
        self._guards = guards
        self._dependences = dependences or Dependences(ssa, uniformity, reductions)
        self._reductions = reductions
        self._instrs = ssa.cfg.function.instrs
        self.hypothesis = hypothesis
        self._is_of_any_lane = (
            moves is not None
            and moves.knows_threads
            and not any((hypothesis.false, *hypothesis[1:]))
        )
        self._steps = steps
        self._samples = samples
        self._data = data
        self._is_shared_finite = shared_is_finite
        self._memo: dict[int, Found] = {}
        self._truths: dict[int, tuple[bool | None, bool]] = {}
        self._joins = joins
        self._carried: dict[int, Found] = {}
        """What loops' headers are taken to hold, by phi."""
        self._uniformity = uniformity
        self._constant: dict[int, Evaluator] = {}
        """By loop header: the evaluator for what holds in all iterations."""
        self._family: dict[Hypothesis, Evaluator] = {}
        """The evaluators for other hypotheses that were made on the way."""

    def release(self) -> None:
        """Take all evaluators apart that were made of this one, which refer to each other."""
        work = [self]
        while work:
            current = work.pop()
            for made in (current._family, current._relatives, current._constant):
                work += made.values()
                made.clear()

    def of(self, value: int) -> Found:
        """The word that a value holds.

        What a loop carries is first taken to be what comes in, and then widened until each round
        keeps it.
        """
        session = self._session
        if session.active:
            # What asked will look into what is taken for granted here as well.
            return self._run(value)
        session.active = True
        found = self._run(value)
        rounds = 0
        while _widen(session, rounds):
            rounds += 1
            for evaluator, stale in session.known:
                evaluator._memo.pop(stale, None)
            session.known.clear()
            found = self._run(value)
        session.active = False
        session.assumed.clear()
        session.known.clear()
        return found

    def _grow(self, phi: int, round_number: int) -> bool:
        """Let a header hold what its loop brings as well; True if it did not yet."""
        held = self._carried[phi]
        found = self._joined([held, *(self._run(v) for v in self.ssa.operands[phi])])
        if round_number and found.word != held.word:
            found = Found(widened_word(held.word, found.word), found.touched)
        if round_number >= _ROUNDS and found != held:
            found = Found(UNKNOWN, _EVERYWHERE)
        self._carried[phi] = found
        return found != held

    @property
    def data(self) -> Data:
        """What loads give."""
        return self._data

    def under(self, condition: Condition | None) -> Evaluator:
        """The evaluator for another condition, of which nothing else is known."""
        key = -1 if condition is None else condition.number
        found = self._relatives.get(key)
        if found is None:
            conjunct = None if condition is None else condition.conjunct
            bits = 0 if condition is None else condition.bits
            found = self._relative(Hypothesis(conjunct, frozenset(), bits), condition)
            self._relatives[key] = found
        return found

    def _relative(self, hypothesis: Hypothesis, condition: Condition | None) -> Evaluator:
        """An evaluator for another hypothesis."""
        return Evaluator(
            self.ssa, self._guards, self._uniformity, self._reductions, hypothesis,
            self._steps, self._samples, self._data, self._is_shared_finite,
            self._dependences, self._joins,
            self._moves, condition, self._session, self._relatives,
        )  # fmt: skip

    def _run(self, value: int) -> Found:
        """The word of a value with what is taken for granted of loops."""
        stack = [self.ssa.resolve(value)]
        opened: set[int] = set()
        """What waits for what it needs; of this, what has no word yet is on the stack."""
        memo = self._memo
        while stack:
            current = stack[-1]
            if current in memo:
                opened.discard(current)
                stack.pop()
                continue
            self._steps.left -= 1
            if self._steps.left <= 0 or len(stack) > 50_000:
                return Found(UNKNOWN, _EVERYWHERE)
            needed = [v for v in self._needs(current) if v not in memo]
            if needed:
                # A value that needs itself stands on a cycle that no loop header cuts.
                if not opened.isdisjoint(needed):
                    memo[current] = Found(UNKNOWN, _EVERYWHERE)
                    self._session.known.append((self, current))
                    continue
                opened.add(current)
                stack += needed
                continue
            memo[current] = self._evaluate(current)
            self._session.known.append((self, current))
        return memo[self.ssa.resolve(value)]

    def node(self, node: Node, width: int) -> Found:
        """The word of a node: a value or a half of one."""
        found = self.of(node.value)
        return found if node.part == WHOLE else half_of(found, node.part, width * 2)

    def comes(self, ways: tuple[tuple[int, int], ...]) -> Arrival:
        """Whether control comes through these arms of joins."""
        certain: bool | None = True
        touched = False
        for block, at in ways:
            region = None if self._joins is None else self._joins.region(block)
            if region is None or self._joins is None:
                certain = None
                continue
            undecided = False
            for branch in region.branches.values():
                if self._is_missing(branch.predicate):
                    self.of(branch.predicate)
                truth, by_false = self._outcome(branch.predicate)
                of_data = self._is_of_data(branch.predicate)
                touched = touched or (by_false and of_data)
                # A branch that compares sizes is the launch's to take.
                if truth is None and (of_data or not self.is_uniform(branch.predicate)):
                    undecided = True
            arms = self._joins.open_arms(block, lambda predicate: self._outcome(predicate)[0])
            if not arms[at]:
                return Arrival(False, touched)
            if undecided and sum(arms) > 1:
                certain = None
        return Arrival(certain, touched)

    def product(self, instr: Instr, part: int, form: Format) -> tuple[AbstractFloat, bool]:
        """The product that an `fma` adds."""
        values = [self._source(instr, o) for o in instr.operands[1:3]]
        if part != WHOLE:
            values = [half_of(v, part, form.bits * 2) for v in values]
        narrow = FORMATS.get(narrow_type(instr), form)
        a, b = (as_float(v.word, narrow) for v in values)
        touched = any(v.touched for v in values)
        same = self._same(instr)
        mode = Mode(form)
        return (floats.square(a, mode) if same else floats.multiply(a, b, mode)), touched

    def _same(self, instr: Instr) -> bool:
        read = self._reductions.read
        first, second = (read(instr, o) for o in instr.operands[1:3])
        return first is not None and first == second

    # Order ------------------------------------------------------------------------------------
    def _needs(self, value: int) -> tuple[int, ...]:
        ssa = self.ssa
        kind = ssa.kind[value]
        resolve = ssa.resolve
        if kind == PHI:
            return self._phi_needs(value)
        if kind == MERGE:
            predicate, if_true, if_false = ssa.operands[value]
            if self._is_missing(predicate):
                return (resolve(predicate),)
            truth, _ = self._outcome(predicate)
            if truth is None:
                return resolve(if_true), resolve(if_false)
            return (resolve(if_true if truth else if_false),)
        if kind != RESULT:
            return ()
        instr = self._instrs[ssa.instr[value]]
        if self._is_source(instr, value):
            if self._moves is None or (instr.opcode == "shfl" and not self._is_moved(value)):
                return self._brought(instr)
            return self._moves.needs(instr, value)
        if instr.opcode == "selp":
            return self._selected(instr)
        is_test = not self._is_data(value)
        if is_test and (self._truth(value)[0] is not None or not self._is_of_data(value)):
            return ()
        uses = ssa.use_values[instr.index]
        return tuple(resolve(v) for v in uses if is_test or self._is_data(v))

    def _phi_needs(self, phi: int) -> tuple[int, ...]:
        """The arms that may come in, or first the predicates that decide it."""
        resolve = self.ssa.resolve
        if self._is_header(phi):
            if self.is_uniform(phi) or self._without_varying(phi) is not self:
                return ()
            return tuple(map(resolve, self._from_outside(phi)))
        region = None if self._joins is None else self._joins.region(self.ssa.phi_block[phi])
        if region is not None:
            missing = [b.predicate for b in region.branches.values()]
            missing = [p for p in missing if self._is_missing(p)]
            if missing:
                return tuple(map(resolve, missing))
        return tuple(map(resolve, self._arms(phi)))

    def _arms(self, phi: int) -> list[int]:
        """The operands of a join that control may come with."""
        operands = self.ssa.operands[phi]
        if self._joins is None:
            return list(operands)
        block = self.ssa.phi_block[phi]
        arms = self._joins.open_arms(block, lambda predicate: self._outcome(predicate)[0])
        return [v for v, is_open in zip(operands, arms, strict=True) if is_open]

    def _is_missing(self, predicate: int) -> bool:
        """True for a predicate that data decide and that is not evaluated yet."""
        if self._truth(predicate)[0] is not None:
            return False
        return self.ssa.resolve(predicate) not in self._memo and self._is_of_data(predicate)

    def _is_of_data(self, predicate: int) -> bool:
        """True unless a predicate compares nothing but indices and sizes."""
        known = self._dependences.of_index
        found = known.get(predicate)
        if found is None:
            needed = self._guards.of_predicate(predicate, True)
            found = known[predicate] = not needed or all(_is_of_index(c) for c in needed)
        return not found

    def _outcome(self, predicate: int) -> tuple[bool | None, bool]:
        """Whether a predicate holds, by guards or by data, and if the false conjunct has a say."""
        truth, by_false = self._truth(predicate)
        if truth is not None:
            return truth, by_false
        found = self._memo.get(self.ssa.resolve(predicate))
        if found is None:
            return None, False
        word = found.word
        return (bool(word) if isinstance(word, int) else None), bool(found.touched)

    def _is_data(self, value: int) -> bool:
        return self.ssa.register[value].type != "pred"

    def _selected(self, instr: Instr) -> tuple[int, ...]:
        predicate = instr.operands[3]
        truth: bool | None = None
        if isinstance(predicate, Register):
            value = self._guards.symbolic.value_read(instr, predicate)
            if self._is_missing(value):
                return (self.ssa.resolve(value),)
            truth, _ = self._outcome(value)
        arms = instr.operands[1:3] if truth is None else (instr.operands[1 if truth else 2],)
        found = [self._reductions.read(instr, o) for o in arms]
        return tuple(v for v in found if v is not None)

    def _is_header(self, phi: int) -> bool:
        block = self.ssa.phi_block[phi]
        return self._reductions.loops.with_header(block) is not None or self._back_edge(block)

    def _back_edge(self, block: int) -> bool:
        position = self.ssa.cfg.position
        return any(p < 0 or position[p] >= position[block] for p in self.ssa.phi_sources(block))

    def is_uniform(self, value: int) -> bool:
        """True if the value does not depend on the bits that the false conjunct talks about."""
        bits = self.hypothesis.bits or ANY_INDEX
        if not self._dependences.of(value) & bits:
            return True
        return self._is_of_any_lane and self._reductions.step(value) is not None

    def _is_source(self, instr: Instr, value: int) -> bool:
        """True if the evaluation does not look into the instruction."""
        opcode = instr.opcode
        if opcode in ("ld", "ldu", "redux", "ldmatrix", "atom", "call") or opcode in _CONTRACTIONS:
            return True
        if opcode in HOPPING and self._is_moved(value):
            return True
        if opcode == "shfl":
            return bool(moved_lanes(instr) & (self.hypothesis.bits or ANY_INDEX))
        if self.is_uniform(value):
            uses = self.ssa.use_values[instr.index]
            return not all(self.is_uniform(v) for v in uses)
        return False

    def _is_moved(self, value: int) -> bool:
        return self._moves is not None and self._moves.is_moved(value)

    # Values -----------------------------------------------------------------------------------
    def _evaluate(self, value: int) -> Found:
        ssa = self.ssa
        kind = ssa.kind[value]
        uniform = self.is_uniform(value)
        if kind == PHI:
            if self._is_header(value):
                return self._header(value, uniform)
            return self._entered(value)
        if kind == MERGE:
            return self._merged(value)
        if kind != RESULT:
            return Found(UNKNOWN, _NOWHERE)
        instr = self._instrs[ssa.instr[value]]
        if self._is_source(instr, value):
            if not uniform and self._moves is not None:
                moved = self._moves.read(self, instr, value)
                if moved is not None:
                    return moved
            # Where this lane's own element is padding, so may be the one that it gets.
            brought = [self._memo[v] for v in self._brought(instr) if not uniform]
            touched = _everywhere(brought)
            if touched and self._samples is not None:
                # A statistic is about lanes that are valid.
                return Found(UNKNOWN, touched)
            return Found(self._read_source(instr, value, uniform), touched)
        if not self._is_data(value):
            return self._tested(instr, value)
        found = self._transfer(instr, value)
        if uniform and self._samples is None and isinstance(found.word, Number):
            number = found.word
            if number.value.point is None:
                settled = floats.assume_finite(number.value, number.form)
                return Found(Number(number.form, settled), found.touched)
        if uniform and isinstance(found.word, (Unknown, Either)):
            return Found(self._statistic(value), found.touched)
        return found

    def _brought(self, instr: Instr) -> tuple[int, ...]:
        """What an exchange between lanes brings from one of them."""
        if instr.opcode != "shfl":
            return ()
        source = self._reductions.read(instr, instr.operands[1])
        return () if source is None else (source,)

    def _from_some_lane(self, instr: Instr) -> Word:
        """What `shfl` brings of which nothing is known but that some lane holds it."""
        return self._find_relative(_NO_HYPOTHESIS)._source(instr, instr.operands[1]).word

    def _entered(self, phi: int) -> Found:
        """A join: what may come in."""
        found = self._joined([self._memo[self.ssa.resolve(v)] for v in self._arms(phi)])
        region = None if self._joins is None else self._joins.region(self.ssa.phi_block[phi])
        if region is None or found.touched == _EVERYWHERE:
            return found
        predicates = [b.predicate for b in region.branches.values()]
        if any(self._outcome(p)[1] for p in predicates if self._is_of_data(p)):
            return Found(found.word, _EVERYWHERE)
        return found

    def _header(self, phi: int, uniform: bool) -> Found:
        """What a loop carries."""
        if uniform:
            return Found(self._statistic(phi), _NOWHERE)
        if self._reductions.loops.with_header(self.ssa.phi_block[phi]) is None:
            return Found(UNKNOWN, _NOWHERE)
        held = self._carried.get(phi)
        if held is not None:
            return held
        outer = self._without_varying(phi)
        if outer is not self:
            marked = (
                self._moves is not None
                and self.condition is not None
                and self._moves.is_marked(phi, self.condition)
            )
            return Found(outer.of(phi).word, _EVERYWHERE if marked else _NOWHERE)
        outside = [self._memo[self.ssa.resolve(v)] for v in self._from_outside(phi)]
        found = self._joined(outside) if outside else Found(UNKNOWN, _EVERYWHERE)
        self._carried[phi] = found
        self._session.assumed.append((self, phi))
        return found

    def _from_outside(self, phi: int) -> list[int]:
        """The operands of a loop's header that come into the loop."""
        block = self.ssa.phi_block[phi]
        loops = self._reductions.loops
        loop = loops.with_header(block)
        if loop is None:
            return []
        pairs = zip(self.ssa.operands[phi], self.ssa.phi_sources(block), strict=True)
        return [v for v, source in pairs if source < 0 or not loops.contains(loop, source)]

    def _without_varying(self, phi: int) -> Evaluator:
        """This evaluator, or one whose hypothesis holds in all iterations of the phi's loop.

        What is false or known in one iteration says nothing of those before it.
        """
        loop = self._reductions.loops.with_header(self.ssa.phi_block[phi])
        if loop is None:
            return self
        found = self._constant.get(loop.header)
        if found is None:
            found = self._constant[loop.header] = self._find_constant(loop.header)
        return found

    def _find_constant(self, header: int) -> Evaluator:
        false, known, bits, falsified = self.hypothesis
        loops = self._reductions.loops
        if false is not None and varies(false, loops, (header,)):
            false, bits = None, 0
        hypothesis = Hypothesis(
            false,
            frozenset(c for c in known if not varies(c, loops, (header,))),
            bits,
            frozenset(c for c in falsified if not varies(c, loops, (header,))),
        )
        return self._find_relative(hypothesis)

    def _find_relative(self, hypothesis: Hypothesis) -> Evaluator:
        """The evaluator that differs in its hypothesis."""
        if hypothesis == self.hypothesis:
            return self
        if hypothesis == _NO_HYPOTHESIS and self._moves is not None:
            return self.under(None)
        found = self._family.get(hypothesis)
        if found is None:
            self._family.setdefault(self.hypothesis, self)
            condition = None if hypothesis.false is None else self.condition
            found = self._family[hypothesis] = self._relative(hypothesis, condition)
            found._family = self._family
        return found

    def _joined(self, found: list[Found]) -> Found:
        word = found[0].word
        for other in found[1:]:
            word = join(word, other.word)
        touched = 0
        for other in found:
            touched |= other.touched
        return Found(word, touched)

    def _merged(self, merge: int) -> Found:
        predicate, if_true, if_false = self.ssa.operands[merge]
        truth, by_false = self._outcome(predicate)
        memo, resolve = self._memo, self.ssa.resolve
        is_left = in_the_way_of_load(self._instrs[self.ssa.instr[merge]])
        if truth is None:
            both = self._joined([memo[resolve(if_true)], memo[resolve(if_false)]])
            both = Found(UNKNOWN, both.touched) if is_left else both
            return Found(both.word, _EVERYWHERE) if by_false else both
        chosen = if_true if truth else if_false
        found = memo[resolve(chosen)]
        if is_left and chosen == self.ssa.old(merge):
            found = Found(UNKNOWN, found.touched)
        return Found(found.word, _EVERYWHERE if by_false else found.touched)

    def _statistic(self, value: int) -> Word:
        return DATA if self._samples is None else Data(self._samples(value))

    def _read_source(self, instr: Instr, value: int, uniform: bool) -> Word:
        if instr.opcode == "ld" and instr.shape.space in ("global", "") and not uniform:
            return self._as_loaded(instr, value, self._data)
        if uniform:
            return self._as_loaded(instr, value, self._statistic(value))
        if instr.opcode == "ld" and instr.shape.space == "shared":
            return self._from_memory()
        if instr.opcode == "shfl":
            return self._from_some_lane(instr)
        if instr.opcode == "ldmatrix":
            return self._from_memory()
        return DATA if instr.opcode in _CONTRACTIONS else UNKNOWN

    def _from_memory(self) -> Word:
        """What comes from shared memory of which nobody knows where it was stored."""
        is_finite = self._is_shared_finite is not None and self._is_shared_finite()
        return DATA if is_finite else UNKNOWN

    def _as_loaded(self, instr: Instr, value: int, word: Word) -> Word:
        """What a load makes of what it reads in a register that is wider than its type."""
        kind = instr.shape.type
        bits = BITS.get(kind, 32)
        if bits >= 32 or instr.opcode not in ("ld", "ldu") or kind.startswith("s"):
            return word
        return extended(word, bits, BITS.get(self.ssa.register[value].type, 32))

    # Predicates -------------------------------------------------------------------------------
    def _truth(self, predicate: int) -> tuple[bool | None, bool]:
        """Whether a predicate holds, and whether that is because of the false conjunct."""
        found = self._truths.get(predicate)
        if found is None:
            found = self._truths[predicate] = self._decide(predicate)
        return found

    def is_false(self, conjunct: Conjunct) -> bool:
        """True if a conjunct certainly does not hold."""
        false = self.hypothesis.false
        if false is None:
            return False
        if implies(frozenset({conjunct}), false):
            return True
        return self.condition is not None and excludes(self.condition, conjunct)

    def _decide(self, predicate: int) -> tuple[bool | None, bool]:
        hypothesis = self.hypothesis
        for truth in (True, False):
            needed = self._guards.of_predicate(predicate, truth)
            if needed is None:
                return not truth, False
            if any(map(self.is_false, needed)):
                return not truth, True
            if not hypothesis.falsified.isdisjoint(needed):
                return not truth, True
        known = hypothesis.known
        if hypothesis.false is not None and not (self.condition and self.condition.fixed):
            known = known | {negation(hypothesis.false)}
        for truth in (True, False):
            needed = self._guards.of_predicate(predicate, truth)
            if needed is not None and all(implies(known, c) for c in needed):
                return truth, False
        return None, False

    # Transfer ---------------------------------------------------------------------------------
    def held_by(self, instr: Instr, operand: Operand) -> Found:
        """What an operand of an instruction holds."""
        return self._source(instr, operand)

    def _source(self, instr: Instr, operand: Operand) -> Found:
        if isinstance(operand, Register):
            read = self._reductions.read(instr, operand)
            if read is None:
                return Found(UNKNOWN, _NOWHERE)
            return self._memo[read] if read in self._memo else self.of(read)
        if isinstance(operand, Immediate) and operand.kind != "int":
            if operand.kind == "dec":
                form = FORMATS.get(instr.shape.type, F32)
                number = floats.exactly(operand.as_float(instr.shape.type))
                return Found(Number(form, number), False)
            return Found(operand.value, False)
        constant = fold(operand)
        if constant is None:
            return Found(UNKNOWN, _NOWHERE)
        width = BITS.get(instr.shape.type, 32)
        return Found(constant & (1 << max(width, 16)) - 1, False)

    def _transfer(self, instr: Instr, value: int) -> Found:
        shape = instr.shape
        opcode = shape.opcode
        if opcode == "selp":
            return self._select(instr)
        if opcode == "mov":
            return self._move(instr, value)
        if opcode == "shfl":
            return self._source(instr, instr.operands[1])
        sources = [self._source(instr, o) for o in instr.operands[1:]]
        touched = _everywhere(sources)
        if len(instr.defs) != 1:
            return Found(UNKNOWN, touched)
        if opcode == "cvt":
            return _converted(instr, sources)
        kind = shape.type
        if narrow_type(instr):
            narrow = [Number(F32, as_float(s.word, FORMATS[kind])) for s in sources[:-1]]
            return Found(self._float(instr, F32, [*narrow, sources[-1].word]), touched)
        if kind.endswith("x2") and kind[:-2] in FORMATS:
            form = FORMATS[kind[:-2]]
            parts = []
            for at in (0, 1):
                half = [half_of(s, at, form.bits * 2) for s in sources]
                word = self._float(instr, form, [h.word for h in half])
                parts.append(Found(word, _everywhere(half)))
            return paired(parts[0], parts[1], form.bits)
        if kind in FORMATS:
            return Found(self._float(instr, FORMATS[kind], [s.word for s in sources]), touched)
        return _integer(instr, sources)

    def _tested(self, instr: Instr, value: int) -> Found:
        """A predicate: 1, 0 or unknown."""
        truth, by_false = self._truth(value)
        if truth is not None:
            return Found(int(truth), _EVERYWHERE if by_false else _NOWHERE)
        if not self._is_of_data(value):
            return Found(UNKNOWN, _NOWHERE)
        if instr.opcode == "setp":
            return self._compared(instr, value)
        sources = [self._source(instr, o) for o in instr.operands[1:]]
        touched = _everywhere(sources)
        words = [s.word for s in sources]
        rule = _LOGIC.get(instr.opcode)
        known = [w for w in words if isinstance(w, int)]
        if rule is None or not words:
            return Found(UNKNOWN, touched)
        if len(known) == len(words):
            return Found(rule(*known) & 1, touched)
        # One known operand may decide.
        decides = {"and": 0, "or": 1}.get(instr.opcode)
        return Found(decides if decides in known and decides is not None else UNKNOWN, touched)

    def _compared(self, instr: Instr, value: int) -> Found:
        """`setp`: of numbers, or of integers that are known."""
        shape = instr.shape
        first, second = (self._source(instr, o) for o in instr.operands[1:3])
        touched = _everywhere((first, second))
        relation = shape.modifiers[0]
        truth: bool | None = None
        if shape.type in FORMATS:
            form = FORMATS[shape.type]
            mode = Mode(form, True, shape.has("ftz"))
            a, b = (floats.flushed(as_float(f.word, form), mode) for f in (first, second))
            truth = floats.compare(relation, a, b)
        else:
            words = [bits_of(f.word) for f in (first, second)]
            truth = _integers_compared(relation, shape.type, *words)
        if len(instr.operands) == 4:
            other = self._source(instr, instr.operands[3])
            touched = _everywhere((first, second, other))
            operator = next((m for m in ("and", "or", "xor") if shape.has(m)), "")
            given = bool(other.word) if isinstance(other.word, int) else None
            truth = _combined(operator, truth, given)
            if self.ssa.result[value]:
                truth = None
        elif self.ssa.result[value] and truth is not None:
            truth = not truth
        return Found(UNKNOWN if truth is None else int(truth), touched)

    def _select(self, instr: Instr) -> Found:
        predicate = instr.operands[3]
        truth, by_false = None, False
        if isinstance(predicate, Register):
            value = self._guards.symbolic.value_read(instr, predicate)
            truth, by_false = self._outcome(value)
        if truth is None:
            both = self._joined([self._source(instr, o) for o in instr.operands[1:3]])
            return Found(both.word, _EVERYWHERE) if by_false else both
        found = self._source(instr, instr.operands[1 if truth else 2])
        return Found(found.word, _EVERYWHERE if by_false else found.touched)

    def _move(self, instr: Instr, value: int) -> Found:
        target, source = instr.operands[0], instr.operands[-1]
        width = BITS.get(instr.shape.type, 32)
        if isinstance(source, Vector):
            parts = [self._source(instr, o) for o in source.elements]
            if len(parts) not in (2, 4):
                return Found(UNKNOWN, _everywhere(parts))
            bits = width // len(parts)
            while len(parts) > 1:
                parts = [paired(parts[at], parts[at + 1], bits) for at in range(0, len(parts), 2)]
                bits *= 2
            return parts[0]
        found = self._source(instr, source)
        if isinstance(target, Vector):
            count = len(target.elements)
            if count not in (2, 4):
                return Found(UNKNOWN, _everywhere([found]))
            at = next(i for i, e in enumerate(target.elements) if e is self.ssa.register[value])
            if count == 4:
                found = half_of(found, at >> 1, width)
                width //= 2
            return half_of(found, at & 1, width)
        return found

    def _float(self, instr: Instr, form: Format, words: list[Word]) -> Word:
        opcode = instr.opcode
        if opcode not in _FLOAT:
            return UNKNOWN
        same = opcode in ("mul", "fma") and len(words) > 1 and self._same(instr)
        finite = False
        if opcode in ("div", "rcp"):
            mode = _mode(instr, form)
            values = [floats.flushed(as_float(w, form), mode) for w in words]
            finite = self._by_statistic(instr, values)
        return computed(instr, form, words, same, finite)

    def _by_statistic(self, instr: Instr, values: list[AbstractFloat]) -> bool:
        """True if a finite number is divided by a statistic, which is taken not to be zero."""
        divisor = self._reductions.read(instr, instr.operands[-1])
        if divisor is None or self._samples is not None or not self.is_uniform(divisor):
            return False
        return values[-1].is_finite and not values[-1].is_zero and values[0].is_finite


_COMPUTED: Final[dict[tuple[Any, ...], tuple[Word, list[Word]]]] = {}
"""Results by shape, format and the identities of the operands, which are kept alive beside them."""
_MOST_COMPUTED: Final = 20_000


def computed(instr: Instr, form: Format, words: list[Word], same: bool, finite: bool) -> Word:
    """The result of arithmetic in a format; `same`: the first two operands are one value.

    With `finite` the result is taken to be finite. Unrolled code computes the same of the same
    words again and again, so results are remembered.
    """
    key = (instr.shape, form.name, same, finite, *map(id, words))
    known = _COMPUTED.get(key)
    if known is None:
        if len(_COMPUTED) > _MOST_COMPUTED:
            _COMPUTED.clear()
        known = _COMPUTED[key] = _compute(instr, form, words, same, finite), words
    return known[0]


def is_arithmetic(instr: Instr) -> bool:
    """True for an operation on numbers of one format that has one result."""
    shape = instr.shape
    known = shape.opcode in _FLOAT and shape.type in FORMATS and len(instr.defs) == 1
    return known and not narrow_type(instr)


def _mode(instr: Instr, form: Format) -> Mode:
    shape = instr.shape
    nearest = not any(shape.has(m) for m in ("rz", "rm", "rp"))
    return Mode(form, nearest, shape.has("ftz"))


def _compute(instr: Instr, form: Format, words: list[Word], same: bool, finite: bool) -> Number:
    shape = instr.shape
    mode = _mode(instr, form)
    values = [floats.flushed(as_float(w, form), mode) for w in words]
    found = _FLOAT[instr.opcode](instr, values, mode, same)
    if finite:
        found = floats.assume_finite(found, form)
    if shape.has("sat"):
        found = floats.saturate(found)
    if shape.has("relu"):
        found = floats.rectified(found)
    return Number(form, found)


_LOGIC: Final[dict[str, Callable[..., int]]] = {
    "mov": lambda a: a,
    "not": lambda a: ~a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _combined(operator: str, truth: bool | None, given: bool | None) -> bool | None:
    """The truth of a comparison combined with another predicate."""
    if operator == "and":
        if truth is False or given is False:
            return False
        return None if truth is None or given is None else True
    if operator == "or":
        if truth or given:
            return True
        return None if truth is None or given is None else False
    return None if truth is None or given is None or not operator else truth != given


def _integers_compared(relation: str, kind: str, a: Word, b: Word) -> bool | None:
    """What `setp` gives for two integers of a type."""
    if relation in ("lo", "ls", "hi", "hs"):
        kind = "u" + kind[1:]
        relation = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}[relation]
    first, second = bounds(a, kind), bounds(b, kind)
    if relation in ("gt", "ge"):
        first, second = second, first
        relation = {"gt": "lt", "ge": "le"}[relation]
    if relation == "lt":
        return True if first[1] < second[0] else False if first[0] >= second[1] else None
    if relation == "le":
        return True if first[1] <= second[0] else False if first[0] > second[1] else None
    apart = first[1] < second[0] or second[1] < first[0]
    equal = None if not apart and (first[0] != first[1] or first != second) else not apart
    if relation not in ("eq", "ne") or equal is None:
        return None
    return equal == (relation == "eq")


def _widen(session: Session, round_number: int) -> bool:
    """Let newly met headers hold what their loops bring; True if one did not yet."""
    changed = False
    at = 0
    while at < len(session.assumed):
        evaluator, phi = session.assumed[at]
        at += 1
        changed = evaluator._grow(phi, round_number) or changed
    return changed


_Rule = Callable[[Instr, list[AbstractFloat], Mode, bool], AbstractFloat]


def _extreme(instr: Instr, values: list[AbstractFloat], mode: Mode, same: bool) -> AbstractFloat:
    keep = instr.shape.has("NaN")
    if instr.shape.has("abs"):
        values = [floats.absolute(v) for v in values]
    combine = floats.maximum if instr.opcode == "max" else floats.minimum
    found = values[0]
    for value in values[1:]:
        found = combine(found, value, keep)
    return found


def _multiply(instr: Instr, values: list[AbstractFloat], mode: Mode, same: bool) -> AbstractFloat:
    if same:
        return floats.square(values[0], mode)
    return floats.multiply(values[0], values[1], mode)


def _quotient(instr: Instr, values: list[AbstractFloat], mode: Mode, same: bool) -> AbstractFloat:
    if instr.shape.has("full") or instr.shape.has("approx"):
        return floats.approximate_quotient(values[0], values[1], mode)
    return floats.divide(values[0], values[1], mode)


def _inverse(instr: Instr, values: list[AbstractFloat], mode: Mode, same: bool) -> AbstractFloat:
    if instr.shape.has("approx"):
        return floats.approximate_reciprocal(values[0], mode)
    return floats.reciprocal(values[0], mode)


_FLOAT: Final[dict[str, _Rule]] = {
    "add": lambda i, v, m, s: floats.add(v[0], v[1], m),
    "sub": lambda i, v, m, s: floats.add(v[0], floats.negate(v[1]), m),
    "mul": _multiply,
    "fma": lambda i, v, m, s: floats.multiply_add(v[0], v[1], v[2], m, s),
    "mad": lambda i, v, m, s: floats.multiply_add(v[0], v[1], v[2], m, False),
    "div": _quotient,
    "rcp": _inverse,
    "max": _extreme,
    "min": _extreme,
    "neg": lambda i, v, m, s: floats.negate(v[0]),
    "abs": lambda i, v, m, s: floats.absolute(v[0]),
    "ex2": lambda i, v, m, s: floats.exp2(v[0], m),
    "lg2": lambda i, v, m, s: floats.log2(v[0], m),
    "sqrt": lambda i, v, m, s: floats.square_root(v[0], m),
    "rsqrt": lambda i, v, m, s: floats.reciprocal_root(v[0], m),
    "tanh": lambda i, v, m, s: floats.tangent(v[0], m),
    "sin": lambda i, v, m, s: floats.wave(v[0], 0.0),
    "cos": lambda i, v, m, s: floats.wave(v[0], 1.0),
}


def _converted(instr: Instr, sources: list[Found]) -> Found:
    shape = instr.shape
    touched = _everywhere(sources)
    if len(shape.types) != 2:
        return Found(UNKNOWN, touched)
    to, of = shape.types
    source = sources[0]
    if to in FORMATS and of in FORMATS:
        return Found(_rounded(instr, source.word, FORMATS[of], FORMATS[to]), touched)
    if to[-2:] == "x2" and of == "f32" and len(sources) == 2:
        form = FORMATS.get(to[:-2]) or BYTES.get(to[:-2])
        if form is None:
            return Found(UNKNOWN, touched)
        # The first source goes to the high half.
        high, low = (Found(_rounded(instr, s.word, F32, form), s.touched) for s in sources)
        return paired(low, high, form.bits)
    if to == "f16x2" and of[:-2] in BYTES and of[-2:] == "x2":
        return _from_bytes(source, BYTES[of[:-2]])
    held, made = (_width(o) for o in (instr.operands[1], instr.operands[0]))
    if to in FORMATS:
        return Found(_from_integer(source.word, of, FORMATS[to], held), touched)
    if of in FORMATS or "x2" in of or "x2" in to or len(sources) != 1:
        return Found(UNKNOWN, touched)
    bits, width = BITS.get(of, 32), BITS.get(to, 32)
    if shape.has("sat"):
        return Found(UNKNOWN, touched)
    # A result that is wider than its type is extended as that says, all others as the source is.
    signed = (to if width < bits else of).startswith("s")
    return _resized(source, bits, width, signed, held or bits, made or width)


def _width(operand: Operand) -> int:
    """The width of a register operand, 0 for anything else."""
    return BITS.get(operand.type, 32) if isinstance(operand, Register) else 0


def _from_bytes(source: Found, form: Format) -> Found:
    """Two numbers of 8 bits as two of 16."""
    word = source.word
    if isinstance(word, Data):
        return source
    low, high = (
        byte if isinstance(byte, Data) else Number(F16, as_float(byte, form))
        for byte in halves(word, 16)
    )
    return Found((low, high), _EVERYWHERE if source.touched & _LOW else _NOWHERE)


def _from_integer(word: Word, of: str, form: Format, held: int) -> Word:
    bits = BITS.get(of, 32)
    word = lowest(word, held or bits, bits)
    while type(word) is tuple:
        pair: tuple[Any, ...] = word
        if pair[1] != 0:
            break
        # Nothing but zeros above: the number is that of the lower half.
        word, of = pair[0], "u" + of[1:]
    if isinstance(word, int):
        number = word & (1 << bits) - 1
        if of.startswith("s") and number >> (bits - 1):
            number -= 1 << bits
        if abs(number) < 1 << form.precision:
            return Number(form, floats.exactly(float(number)))
    if isinstance(word, Data) and word.sample is not None and of[0] in "su":
        return Data(float(max(1, round(word.sample))))
    return DATA if of[0] in "su" else UNKNOWN


def _rounded(instr: Instr, word: Word, of: Format, to: Format) -> Word:
    shape = instr.shape
    if any(shape.has(m) for m in ("rni", "rzi", "rmi", "rpi")):
        return Number(to, floats.anything(to))
    if isinstance(word, Data):
        return word
    nearest = not any(shape.has(m) for m in ("rz", "rm", "rp"))
    found = floats.convert(as_float(word, of), Mode(to, nearest, shape.has("ftz")))
    if shape.has("sat"):
        found = floats.saturate(found)
    if shape.has("relu"):
        found = floats.rectified(found)
    return Number(to, found)


def _resized(found: Found, of: int, to: int, signed: bool, held: int, made: int) -> Found:
    """An integer in another width: `of` bits of a register of `held` bits, as `to` bits.

    `made` is the width of the register that takes them; one that is wider is extended.
    """
    word = found.word
    touched = found.touched
    if of < held:
        word = lowest(word, held, of)
    if to < of:
        word = lowest(word, of, to)
        touched = _EVERYWHERE if touched & _LOW or (touched and held != 2 * to) else _NOWHERE
    elif isinstance(word, Span) and not signed and not word.high >> of:
        return Found(word, touched)
    narrow = min(of, to)
    if narrow >= made:
        return Found(word, touched)
    if isinstance(word, Unknown):
        return Found(UNKNOWN if signed else Span(0, (1 << narrow) - 1), touched)
    touched = _LOW if touched and made == 2 * narrow else touched
    return Found(extended(word, narrow, made, signed), touched)


def _integer(instr: Instr, sources: list[Found]) -> Found:
    word = integer(instr.shape, [s.word for s in sources])
    touched = 0
    for source in sources:
        touched |= source.touched
    return Found(word, _touched_by(instr, sources) if touched else _NOWHERE)


def _touched_by(instr: Instr, sources: list[Found]) -> int:
    """The halves of the result of an integer operation in which the false conjunct has a say."""
    opcode, first = instr.opcode, sources[0].touched
    last = sources[-1].word
    if not isinstance(last, int) or BITS.get(instr.shape.type, 32) != 32:
        return _EVERYWHERE
    if opcode == "prmt" and len(sources) == 3:
        both = first | sources[1].touched << 2
        low, high = (
            both >> (last >> at + 1 & 3) & 1 or both >> (last >> at + 5 & 3) & 1 for at in (0, 8)
        )
        return (_LOW if low else 0) | (_HIGH if high else 0)
    if len(sources) == 2:
        if opcode == "shl" and last == 16:
            return _EVERYWHERE if first & _LOW else _NOWHERE
        if opcode == "and" and last == 0xFFFF0000:
            return _EVERYWHERE if first & _HIGH else _NOWHERE
        if opcode == "and" and last == 0xFFFF:
            return first & _LOW
        if opcode == "shr" and last == 16 and not instr.shape.type.startswith("s"):
            return _LOW if first & _HIGH else _NOWHERE
    return _EVERYWHERE


__all__ = [
    "DATA", "F16", "F64", "UNKNOWN", "Data", "Dependences", "Either", "Evaluator", "Found",
    "Hypothesis", "Number", "Session", "Unknown", "Word", "as_float", "computed", "conjunct_bits",
    "half_of", "halves", "is_arithmetic", "is_finite_word", "is_pair", "join",
    "negation", "paired", "varies", "widened_word",
]  # fmt: skip
