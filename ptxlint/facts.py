"""Analyses and the facts they establish about one function, computed on demand and kept.

An analysis is a class with `name`, `requires` and `run`. `Facts.get(Liveness)` runs it at most
once per function, its requirements first, and times it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import process_time
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from ptxlint.arch import Arch
    from ptxlint.ir.function import Function
    from ptxlint.ir.instruction import Instr, Shape
    from ptxlint.ir.module import Module
    from ptxlint.launches import Launch
    from ptxlint.resources import Resources

R = TypeVar("R")


class Analysis(Generic[R]):
    """Base of all analyses. `R` is the type of what `run` establishes."""

    name: ClassVar[str]
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = ()

    def run(self, facts: Facts) -> R:
        """Establish the facts; reads others with `facts.get`."""
        raise NotImplementedError


class KernelMetadata:
    """What travels beside a kernel: Triton's cache .json or a captured bundle.

    Every field is None when unknown. `shared` is dynamic shared memory in bytes; `registers`,
    `spills`, `stack` and `barriers` come from an assembler's output, never from counting PTX.
    """

    __slots__ = (
        "barriers",
        "name",
        "num_stages",
        "num_warps",
        "path",
        "registers",
        "shared",
        "spills",
        "stack",
    )

    def __init__(
        self,
        name: str | None = None,
        num_warps: int | None = None,
        shared: int | None = None,
        num_stages: int | None = None,
        registers: int | None = None,
        spills: int | None = None,
        path: str | None = None,
        stack: int | None = None,
        barriers: int | None = None,
    ) -> None:
        self.name = name
        self.num_warps = num_warps
        self.shared = shared
        self.num_stages = num_stages
        self.registers = registers
        self.spills = spills
        self.stack = stack
        self.barriers = barriers
        self.path = path

    def resources(self) -> Resources:
        """What it says of the resources that the kernel takes."""
        from ptxlint.resources import METADATA, Amount, Resources

        registers, spills, stack, barriers, shared = (
            None if number is None else Amount(number, METADATA)
            for number in (self.registers, self.spills, self.stack, self.barriers, self.shared)
        )
        return Resources(
            "",
            registers=registers,
            stack=stack,
            spill_stores=spills,
            barriers=barriers,
            dynamic_shared=shared,
        )


class SourceWords:
    """What the source calls what the PTX speaks of. This one knows no source."""

    __slots__ = ()

    def parameter(self, name: str) -> str:
        """What the source calls a parameter of the kernel; its PTX name if that is not known."""
        return name

    def parameters(self, function: Function) -> dict[str, str]:
        """The names of a kernel's parameters in the source, by those in the PTX, where known."""
        return {}

    def learn(self, names: dict[str, str]) -> None:
        """Take names of parameters by those in the PTX from a launch, if there are no others."""

    def mask(self, instr: Instr) -> str:
        """The mask of a load or store as the source has it; "" if that is not known."""
        return ""

    def guard(self, instr: Instr) -> str:
        """A label for an access: "guard `i < n`", the mask as the source has it, or ""."""
        mask = self.mask(instr)
        return f"guard `{mask}`" if mask else ""

    def translate(self, text: str) -> str:
        """A text with all parameters called as in the source."""
        return text


NO_WORDS: Final = SourceWords()


class Budget:
    """Steps that an analysis may take in one function.

    They are counted, not timed, so that verdicts are the same on every machine. An analysis that
    has spent its budget answers that it does not know.
    """

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    @property
    def spent(self) -> bool:
        """True once there are no steps left."""
        return self.left <= 0

    @property
    def reason(self) -> str:
        """Why something is open."""
        return f"the work budget of {self.limit:,} steps is spent"


class Facts:
    """All that is known about one function; the one argument that rules get besides it."""

    __slots__ = (
        "_by_shape",
        "_opcodes",
        "_results",
        "_shared",
        "arch",
        "budgets",
        "effort",
        "exact",
        "function",
        "launches",
        "metadata",
        "module",
        "seconds",
        "words",
    )

    def __init__(
        self,
        module: Module,
        function: Function,
        arch: Arch | None = None,
        metadata: KernelMetadata | None = None,
        words: SourceWords = NO_WORDS,
        effort: float = 1.0,
        launches: tuple[Launch, ...] = (),
    ) -> None:
        self.module = module
        self.function = function
        self.arch = arch
        """Limits of the target, None for one we have no table of."""
        self.metadata = metadata
        self.exact: Resources | None = None
        """What an assembler, a log or a cubin says of the function."""
        self.words = words
        """What the source calls things. The engine puts parameters' names into all that a rule
        says; ask for `mask`."""
        self.effort = effort
        """What the budgets are multiplied with."""
        self.launches = launches
        """The launches that this kernel is checked under, all of which fit its parameters."""
        self.budgets: dict[str, Budget] = {}
        """The budgets of the analyses that have one, by name."""
        self.seconds: dict[str, float] = {}
        """Processor time of each analysis by name, its requirements excluded."""
        self._results: dict[type[Analysis[Any]], Any] = {}
        self._shared: frozenset[type[Analysis[Any]]] = frozenset()
        """Analyses whose results belong to other facts of the same function."""
        self._by_shape: dict[Shape, list[Instr]] | None = None
        self._opcodes: frozenset[str] = frozenset()

    @property
    def by_shape(self) -> dict[Shape, list[Instr]]:
        """The instructions of each shape, in program order."""
        found = self._by_shape
        if found is None:
            found = self._by_shape = {}
            for instr in self.function.instrs:
                shape = instr.shape
                if shape in found:
                    found[shape].append(instr)
                else:
                    found[shape] = [instr]
        return found

    @property
    def opcodes(self) -> frozenset[str]:
        """The opcodes that occur: often all that it takes to see that a rule has nothing to say."""
        if not self._opcodes:
            self._opcodes = frozenset(shape.opcode for shape in self.by_shape)
        return self._opcodes

    def instructions(self, wanted: Callable[[Shape], object]) -> list[Instr]:
        """The instructions of the shapes that are wanted, in program order."""
        found = [instrs for shape, instrs in self.by_shape.items() if wanted(shape)]
        if len(found) == 1:
            return list(found[0])
        return sorted((i for instrs in found for i in instrs), key=lambda instr: instr.index)

    def get(self, analysis: type[Analysis[R]]) -> R:
        """The result of an analysis, computed on first use."""
        results = self._results
        if analysis not in results:
            for needed in analysis.requires:
                self.get(needed)
            start = process_time()
            results[analysis] = analysis().run(self)
            self.seconds[analysis.name] = process_time() - start
        return cast(R, results[analysis])

    def know(self, analysis: type[Analysis[R]], result: R) -> None:
        """Keep a result that somebody has already."""
        self._results[analysis] = result

    def budget(self, name: str, start: int, per_instruction: int) -> Budget:
        """A new budget of an analysis: so many steps, and some for each instruction."""
        limit = int((start + per_instruction * len(self.function.instrs)) * self.effort)
        found = self.budgets[name] = Budget(max(1, limit))
        return found

    def spent(self, analyses: Iterable[type[Analysis[Any]]]) -> Budget | None:
        """A budget that one of these analyses, or one that they rest on, has spent."""
        work = list(analyses)
        seen = set(work)
        for analysis in work:
            budget = self.budgets.get(analysis.name)
            if budget is not None and budget.spent:
                return budget
            for needed in analysis.requires:
                if needed not in seen:
                    seen.add(needed)
                    work.append(needed)
        return None

    @property
    def resources(self) -> Resources | None:
        """Registers, spills, shared memory and the like from who knows them: an assembler, a log
        or a cubin, else the metadata; None if neither is there."""
        beside = self.metadata
        if beside is None:
            return self.exact
        told = beside.resources()
        return told if self.exact is None else self.exact.completed(told)

    def forget(self) -> None:
        """Drop all results, and take them apart.

        They refer to each other and to this object, and would else wait for the collector, which
        costs more than all analyses of a small kernel.
        """
        results = [found for kind, found in self._results.items() if kind not in self._shared]
        self._results.clear()
        for result in results:
            release = getattr(result, "release", None)
            if release is not None:
                release()
            if hasattr(result, "__dict__"):
                vars(result).clear()

    def instead(self, analysis: type[Analysis[R]], make: Callable[[Facts], R]) -> Facts:
        """The same function seen with another result of an analysis.

        What does not rest on that analysis is shared, also what is forgotten; the rest is found
        anew when asked for.
        """
        other = Facts(
            self.module,
            self.function,
            self.arch,
            self.metadata,
            self.words,
            self.effort,
            self.launches,
        )
        self.get(analysis)
        changed = {analysis}
        for found in self._results:
            if _rests_on(found, changed):
                changed.add(found)
            else:
                other._results[found] = self._results[found]
        other._shared = frozenset(other._results)
        other._by_shape, other._opcodes = self._by_shape, self._opcodes
        start = process_time()
        other._results[analysis] = make(other)
        other.seconds[analysis.name] = process_time() - start
        return other

    def max_threads(self) -> int | None:
        """Threads per CTA: from `.reqntid`/`.maxntid`, which a cubin has too, else from the
        metadata's warps."""
        threads = self.function.max_threads()
        if threads is None and self.exact is not None:
            threads = self.exact.threads
        if threads is None and self.metadata is not None and self.metadata.num_warps:
            threads = 32 * self.metadata.num_warps
        return threads


def _rests_on(analysis: type[Analysis[Any]], changed: set[type[Analysis[Any]]]) -> bool:
    """True if an analysis asks for one of others, or one that it asks for does."""
    work = [analysis]
    seen = set(work)
    for current in work:
        if current in changed:
            return True
        for needed in current.requires:
            if needed not in seen:
                seen.add(needed)
                work.append(needed)
    return False
