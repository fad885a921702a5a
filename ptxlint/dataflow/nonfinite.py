"""Where infinities and NaN begin in certain scenarios, and which stores they reach.

A *fault* is an instruction that makes a NaN or an infinity of finite numbers, or a NaN of
infinities, in a scenario in which the stored value certainly is one: every number that is loaded
is 0, or 100, or -100.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.dominance import PostDominatorsAnalysis
from ptxlint.dataflow.float_values import FloatSlice, FloatValues, Scenario
from ptxlint.dataflow.floats import FORMATS, AbstractFloat, Format, Mode, exp2
from ptxlint.dataflow.guards import GuardsAnalysis
from ptxlint.dataflow.obstacles import Obstacles
from ptxlint.dataflow.padding_values import Data, Number, Word
from ptxlint.dataflow.reductions import WHOLE, Reductions, ReductionsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import RESULT
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.dataflow.value_flow import DATA, ValueFlow, ValueFlowAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape

DIFFERENCE: Final = "inf - inf"
QUOTIENT: Final = "inf / inf"
ZERO: Final = "division by 0"
OVERFLOW: Final = "overflow of exp"

_DIVISIONS: Final = frozenset({"div", "rcp", "rsqrt"})
_SUMS: Final = frozenset({"add", "sub", "fma", "mad"})
_STORES: Final = frozenset({"st", "atom", "red"})
_MAX_WALK: Final = 4_096
LARGE: Final = 100.0
"""Beyond ln(2**128) = 88.7, so that exp overflows, and exact in every format down to bf16."""


class Fault(NamedTuple):
    """`at` makes a NaN or an infinity that `store` writes.

    `result` is what is stored, "NaN" or "an infinity". `path` are the instructions from `at` to the
    store. `cause` is what made the infinities or the zero that `at` reads, if it is another one.
    `data` is what every number that is loaded is.
    """

    kind: str
    at: Instr
    result: str
    store: Instr
    path: tuple[Instr, ...]
    cause: Instr | None
    data: float


class Nonfinite:
    """The faults of a function, by scenario; each is looked for when it is asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.flow: ValueFlow = facts.get(ValueFlowAnalysis)
        self.reductions: Reductions = facts.get(ReductionsAnalysis)
        self.ssa = self.flow.ssa
        self._instrs = facts.function.instrs
        self.stores = self._find_stores()
        """The reachable stores to global memory, with the values that they write."""
        self._part: FloatSlice | None = None
        self._divisors: FloatValues | None = None
        self._faults: dict[float, list[Fault]] = {}
        self._reductions_behind: dict[tuple[int, ...], Instr | None] = {}
        self._exponentials_behind: dict[tuple[int, ...], Instr | None] = {}
        self.divisions = [
            i
            for i in facts.instructions(lambda s: s.opcode in _DIVISIONS and s.type in FORMATS)
            if self.ssa.cfg.is_reachable(i)
        ]
        """Divisions of numbers, reciprocals and reciprocal roots, in program order."""
        self.exponentials = [
            i
            for i in facts.instructions(lambda shape: shape.opcode == "ex2")
            if self.ssa.cfg.is_reachable(i)
        ]
        """The exponentials, in program order."""
        self._divided: FloatSlice | None = None
        self._exponents: FloatSlice | None = None

    def faults(self, data: float) -> list[Fault]:
        """The faults where every number that is loaded is `data`, in program order."""
        found = self._faults.get(data)
        if found is None:
            scenario = Scenario(Data(data))
            found = self.faults_in(scenario, data) if self._begins(scenario, data) else []
            self._faults[data] = found
        return found

    def _begins(self, scenario: Scenario, data: float) -> bool:
        """True if something divides by 0, or overflows where data are large.

        That takes fewer values than all that is stored is made of.
        """
        if data == 0.0:
            values = FloatValues(self._divisor_part, scenario)
            forms = ((d, len(d.operands) - 1) for d in self.divisions)
            return any(self._is_zero(values, d, at) for d, at in forms)
        values = FloatValues(self.exponents, scenario)
        return any(self._overflows(values, i) for i in self.exponentials)

    @property
    def exponents(self) -> FloatSlice:
        """What exponentials are taken of is made of these values."""
        if self._exponents is None:
            read = [v for i in self.exponentials for v in self.flow.operand_values(i)[1]]
            self._exponents = FloatSlice(self._facts, read)
        return self._exponents

    def _is_zero(self, values: FloatValues, division: Instr, at: int) -> bool:
        divisor = values.operand(division, at, FORMATS[division.shape.type])
        return divisor is not None and divisor.is_zero

    def _overflows(self, values: FloatValues, instr: Instr) -> bool:
        """True if an exponential certainly is infinite, in some half if it is packed."""
        form = FORMATS.get(instr.shape.type.removesuffix("x2"))
        if form is None:
            return False
        parts = (0, 1) if instr.shape.type.endswith("x2") else (WHOLE,)
        read = [values.operand(instr, 1, form, part) for part in parts]
        return any(a is not None and exp2(a, Mode(form)).is_positive_infinity for a in read)

    @property
    def _divisor_part(self) -> FloatSlice:
        """What divisors are made of."""
        if self._divided is None:
            targets = [v for i in self.divisions for v in self.flow.operand_values(i)[-1]]
            self._divided = FloatSlice(self._facts, targets)
        return self._divided

    def faults_in(self, scenario: Scenario, data: float = 0.0) -> list[Fault]:
        """The faults of a scenario, in program order."""
        values = FloatValues(self.part, scenario)
        if not values.settled:
            return []
        live = values.live_blocks()
        found: dict[int, Fault] = {}
        for store, written in self.stores:
            if self.ssa.cfg.block_of[store.index] not in live or self._is_off(store, values):
                continue
            for value in written:
                fault = self._trace(values, store, value, data)
                if fault is not None:
                    found.setdefault(fault.at.index, fault)
        return [found[at] for at in sorted(found)]

    @property
    def part(self) -> FloatSlice:
        """What is stored is made of these values."""
        if self._part is None:
            guards = [self.ssa.guard_value(store) for store, _ in self.stores]
            targets = [v for _, vs in self.stores for v in vs]
            targets += [v for v in guards if v is not None]
            self._part = FloatSlice(self._facts, targets)
        return self._part

    def _find_stores(self) -> list[tuple[Instr, list[int]]]:
        out = []
        for instr in self._facts.instructions(_stores_outside):
            if not self.ssa.cfg.is_reachable(instr):
                continue
            operands = self.flow.operand_values(instr)
            first = 2 if instr.opcode == "atom" else 1
            values = [self.ssa.resolve(v) for vs in operands[first:] for v in vs]
            out.append((instr, [v for v in values if self.ssa.register[v].type != "pred"]))
        return out

    def _is_off(self, store: Instr, values: FloatValues) -> bool:
        """True if the store's guard is certainly false."""
        predicate = self.ssa.guard_value(store)
        if predicate is None:
            return False
        word = values.word(predicate)
        return isinstance(word, int) and bool(word) != (store.shape.guard == "@")

    # Back from the store ----------------------------------------------------------------------
    def _trace(self, values: FloatValues, store: Instr, value: int, data: float) -> Fault | None:
        word = values.word(value)
        if word is None or not nonfinite(word):
            return None
        path: list[Instr] = []
        if nonfinite(word) == _NAN:
            value = self._follow(values, value, _NAN, path)
            return self._of_nan(values, store, value, path, data)
        value = self._follow(values, value, _INFINITE, path)
        found = self._of_infinity(values, value)
        if found is None:
            return None
        return Fault(found, self._made(value), "an infinity", store, _forwards(path), None, data)

    def _follow(self, values: FloatValues, value: int, kind: str, path: list[Instr]) -> int:
        """The value from which a NaN or infinity was handed down to this one."""
        seen = {value}
        while True:
            if self.ssa.kind[value] == RESULT:
                path.append(self._made(value))
            operands = [v for v in values.inputs(value) if v not in seen]
            before = next((v for v in operands if _is(values, v, kind)), None)
            if before is None or len(seen) > _MAX_WALK:
                return value
            seen.add(before)
            value = before

    def _of_nan(
        self, values: FloatValues, store: Instr, value: int, path: list[Instr], data: float
    ) -> Fault | None:
        """The fault that made a NaN of numbers."""
        if self.ssa.kind[value] != RESULT:
            return None
        instr = self._made(value)
        opcode = instr.opcode
        form = FORMATS.get(instr.shape.type.removesuffix("x2"))
        if form is None:
            return None
        operands = [self._read(values, instr, at, form) for at in range(1, len(instr.operands))]
        if any(o is None for o in operands):
            return None
        numbers = [o for o in operands if o is not None]
        kind, at, cause = "", instr, None
        if opcode in ("add", "sub") or (opcode in _SUMS and _is_infinite(numbers[2])):
            kind = DIFFERENCE
        elif opcode == "div":
            kind = ZERO if numbers[1].is_zero else QUOTIENT if _is_infinite(numbers[1]) else ""
            if kind == QUOTIENT:
                cause = self._overflow(values, instr, 2)
        elif opcode in ("mul", "fma", "mad"):
            infinite = 1 if _is_infinite(numbers[0]) else 2
            kind, at, cause = self._of_product(values, instr, infinite)
        if not kind:
            return None
        return Fault(kind, at, "NaN", store, _forwards(path), cause, data)

    def _of_product(
        self, values: FloatValues, instr: Instr, infinite: int
    ) -> tuple[str, Instr, Instr | None]:
        """The fault behind 0 * inf: a division by 0, or a quotient of infinities."""
        factor = self.reductions.read(instr, instr.operands[infinite])
        if factor is None:
            return "", instr, None
        origin = self._follow(values, factor, _INFINITE, [])
        kind = self._of_infinity(values, origin)
        if kind == ZERO:
            return ZERO, self._made(origin), None
        other = self.reductions.read(instr, instr.operands[3 - infinite])
        if kind != OVERFLOW or other is None:
            return "", instr, None
        division = self.reductions.definition(other)
        if division is None or division.opcode not in _DIVISIONS:
            return "", instr, None
        overflow = self._overflow(values, division, len(division.operands) - 1)
        return (QUOTIENT, instr, overflow) if overflow is not None else ("", instr, None)

    def _of_infinity(self, values: FloatValues, value: int) -> str | None:
        """What made an infinity of finite numbers."""
        instr = self.reductions.definition(value)
        if instr is None:
            return None
        if instr.opcode == "ex2":
            return OVERFLOW
        if instr.opcode not in _DIVISIONS:
            return None
        form = FORMATS.get(instr.shape.type)
        if form is None:
            return None
        divisor = self._read(values, instr, len(instr.operands) - 1, form)
        return ZERO if divisor is not None and divisor.is_zero else None

    def _overflow(self, values: FloatValues, instr: Instr, at: int) -> Instr | None:
        """The exponential that made an operand infinite."""
        value = self.reductions.read(instr, instr.operands[at])
        if value is None:
            return None
        origin = self._follow(values, value, _INFINITE, [])
        made = self.reductions.definition(origin)
        return made if made is not None and made.opcode == "ex2" else None

    def _read(
        self, values: FloatValues, instr: Instr, at: int, form: Format
    ) -> AbstractFloat | None:
        return values.operand(instr, at, form)

    def _made(self, value: int) -> Instr:
        return self._instrs[self.ssa.instr[value]]

    def line(self, instr: Instr) -> object:
        """The Python line of an instruction, or the instruction where no line is known."""
        frame = self._facts.module.python_frame(instr.loc)
        known = frame is not None and frame.line > 0
        return (frame.path, frame.line) if frame is not None and known else instr.index

    # Where a number comes from ----------------------------------------------------------------
    def reduction_behind(self, division: Instr) -> Instr | None:
        """The last reduction that a divisor is made of, None if it is made of none."""
        # Unrolled code divides each element by one and the same value.
        divisor = tuple(self.ssa.resolve(v) for v in self.flow.operand_values(division)[-1])
        if divisor not in self._reductions_behind:
            members = self.reductions.members
            found = self._back(division, lambda i: i.index in members or i.opcode == "redux")
            if found is not None and found.index in members:
                found = self.reductions.all[members[found.index]].at
            self._reductions_behind[divisor] = found
        return self._reductions_behind[divisor]

    def obstacle(self, instr: Instr) -> str:
        """What on the way to an instruction's operands is not followed; "" if all is."""
        return Obstacles(self._facts).behind(self.ssa.use_values[instr.index])

    def exponential_behind(self, division: Instr) -> Instr | None:
        """An exponential that a divisor is made of, None if it is made of none."""
        divisor = tuple(self.ssa.resolve(v) for v in self.flow.operand_values(division)[-1])
        if divisor not in self._exponentials_behind:
            found = self._back(division, lambda i: i.opcode == "ex2")
            self._exponentials_behind[divisor] = found
        return self._exponentials_behind[divisor]

    def load_behind(self, instr: Instr) -> Instr | None:
        """A load of global memory that an instruction's operands are made of, the last first."""
        return self._back(instr, lambda i: i.opcode == "ld" and i.shape.space == "global")

    def _back(self, instr: Instr, is_wanted: Callable[[Instr], bool]) -> Instr | None:
        """The first instruction so found on the way back, from the last operand on."""
        operands = self.flow.operand_values(instr)
        if instr.opcode in ("selp", "slct"):
            operands = operands[:3]
        if instr.opcode in _DIVISIONS:
            operands = operands[-1:]
        work = [self.ssa.resolve(v) for values in reversed(operands) for v in values]
        seen = set(work)
        for value in work:
            made = self.reductions.definition(value)
            if made is not None and is_wanted(made):
                return made
            if len(seen) > _MAX_WALK:
                break
            for source in self._data_of(value):
                if source not in seen:
                    seen.add(source)
                    work.append(source)
        return None

    def _data_of(self, value: int) -> list[int]:
        """What a value is computed from, also through shared memory, predicates apart."""
        made = self.reductions.definition(value)
        if made is not None and made.opcode in ("ld", "ldu", "ldmatrix"):
            return [self.ssa.resolve(n.value) for n in self.reductions.stored_before(value)]
        sources = self.flow.sources(value)
        return [self.ssa.resolve(source) for source, role in sources if role in DATA]

    def divisor(self, division: Instr) -> AbstractFloat | None:
        """What a divisor may be for any finite data; None if that was not found out."""
        if self._divisors is None:
            self._divisors = FloatValues(self._divisor_part, Scenario(full=False))
        form = FORMATS.get(division.shape.type)
        if form is None or not self._divisors.settled:
            return None
        return self._divisors.operand(division, len(division.operands) - 1, form)


_NAN: Final = "nan"
_INFINITE: Final = "inf"


def nonfinite(word: Word) -> str:
    """`nan` or `inf` if a word, or a half of it, certainly is one; else empty.

    What may be NaN or an infinity, but no number, counts as an infinity.
    """
    if type(word) is tuple:
        pair: tuple[Any, ...] = word
        kinds = {nonfinite(half) for half in pair}
        return _NAN if _NAN in kinds else _INFINITE if _INFINITE in kinds else ""
    if not isinstance(word, Number) or word.value.finite or word.value.is_finite:
        return ""
    return _INFINITE if word.value.ninf or word.value.pinf else _NAN


def _stores_outside(shape: Shape) -> bool:
    return shape.opcode in _STORES and shape.space in ("global", "")


def _is(values: FloatValues, value: int, kind: str) -> bool:
    word = values.word(value)
    return word is not None and nonfinite(word) == kind


def _is_infinite(number: AbstractFloat) -> bool:
    """True for infinities alone, of either sign or of an unknown one."""
    return not (number.finite or number.nan or number.is_finite)


def _forwards(path: list[Instr]) -> tuple[Instr, ...]:
    return tuple(reversed(path))


class NonfiniteAnalysis(Analysis[Nonfinite]):
    """Infinities and NaN as facts of a function."""

    name: ClassVar[str] = "nonfinite"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        SsaAnalysis,
        GuardsAnalysis,
        UniformityAnalysis,
        ReductionsAnalysis,
        ValueFlowAnalysis,
        PostDominatorsAnalysis,
    )

    def run(self, facts: Facts) -> Nonfinite:
        """Nothing is evaluated before it is asked for."""
        return Nonfinite(facts)


__all__ = [
    "DIFFERENCE", "LARGE", "OVERFLOW", "QUOTIENT", "ZERO", "Fault", "Nonfinite",
    "NonfiniteAnalysis", "nonfinite",
]  # fmt: skip
