"""Analyses and the facts they establish about one function, computed on demand and kept.

An analysis is a class with `name`, `requires` and `run`. `Facts.get(Liveness)` runs it at most
once per function, its requirements first, and times it.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from ptxlint.arch import Arch
    from ptxlint.ir.function import Function
    from ptxlint.ir.instruction import Instr
    from ptxlint.ir.module import Module

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

    Every field is None when unknown. `shared` is dynamic shared memory in bytes; `registers` and
    `spills` come from an assembler's output, never from counting PTX.
    """

    __slots__ = ("name", "num_stages", "num_warps", "path", "registers", "shared", "spills")

    def __init__(
        self,
        name: str | None = None,
        num_warps: int | None = None,
        shared: int | None = None,
        num_stages: int | None = None,
        registers: int | None = None,
        spills: int | None = None,
        path: str | None = None,
    ) -> None:
        self.name = name
        self.num_warps = num_warps
        self.shared = shared
        self.num_stages = num_stages
        self.registers = registers
        self.spills = spills
        self.path = path


class SourceWords:
    """What the source calls what the PTX speaks of. This one knows no source."""

    __slots__ = ()

    def parameter(self, name: str) -> str:
        """What the source calls a parameter of the kernel; its PTX name if that is not known."""
        return name

    def mask(self, instr: Instr) -> str:
        """The mask of a load or store as the source has it; "" if that is not known."""
        return ""

    def translate(self, text: str) -> str:
        """A text with all parameters called as in the source."""
        return text


NO_WORDS: Final = SourceWords()


class Facts:
    """All that is known about one function; the one argument that rules get besides it."""

    __slots__ = ("_results", "arch", "function", "metadata", "module", "seconds", "words")

    def __init__(
        self,
        module: Module,
        function: Function,
        arch: Arch | None = None,
        metadata: KernelMetadata | None = None,
        words: SourceWords = NO_WORDS,
    ) -> None:
        self.module = module
        self.function = function
        self.arch = arch
        """Limits of the target, None for one we have no table of."""
        self.metadata = metadata
        self.words = words
        """What the source calls things. The engine puts parameters' names into all that a rule
        says; ask for `mask`."""
        self.seconds: dict[str, float] = {}
        """Wall time of each analysis by name, its requirements excluded."""
        self._results: dict[type[Analysis[Any]], Any] = {}

    def get(self, analysis: type[Analysis[R]]) -> R:
        """The result of an analysis, computed on first use."""
        results = self._results
        if analysis not in results:
            for needed in analysis.requires:
                self.get(needed)
            start = perf_counter()
            results[analysis] = analysis().run(self)
            self.seconds[analysis.name] = perf_counter() - start
        return cast(R, results[analysis])

    def forget(self) -> None:
        """Drop all results. They refer to this object, and would else wait for the collector."""
        self._results.clear()

    def max_threads(self) -> int | None:
        """Threads per CTA: from `.reqntid`/`.maxntid`, else from the metadata's warps."""
        threads = self.function.max_threads()
        if threads is None and self.metadata is not None and self.metadata.num_warps:
            threads = 32 * self.metadata.num_warps
        return threads
