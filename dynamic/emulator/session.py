"""`ptxlint emulate`: files and bundles in, a report and outputs out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.diagnostics import Finding
from ptxlint.dynamic.emulator.counters import Counters
from ptxlint.dynamic.emulator.findings import findings
from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.inputs import (
    GivenInputs,
    InputError,
    Inputs,
    RandomInputs,
    ZeroInputs,
)
from ptxlint.dynamic.emulator.launched import run_launch
from ptxlint.dynamic.emulator.run import MOST_TURNS, Emulator
from ptxlint.dynamic.emulator.sanitizer.choice import MEMORY, Sanitize
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.places import Places
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.report import Report, Summary, count_severities
from ptxlint.engine.result import summarise
from ptxlint.engine.source_words import KernelWords, PythonReader
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input, InputFault, discover, read
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_cache import MetadataError, load_metadata
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.ir.verifier import verify
from ptxlint.launch.binding import BindingError, bind
from ptxlint.launches import Launch


class EmulationError(ValueError):
    """A run that could not be done: the text says what is wrong, where, and what to do."""


class Emulation(NamedTuple):
    """One launch that was run. `outputs` are the tensors' bits by argument name; `seconds` wall
    time; `sampled` the CTAs of the grid if only some were run, else 0."""

    kernel: str
    path: str
    place: str
    outputs: dict[str, Array]
    counters: Counters | None
    ctas: int
    sampled: int
    is_complete: bool
    seconds: float
    module: Module
    places: Places


class Emulated(NamedTuple):
    """All launches that were run, what was found, and what was not run and why."""

    report: Report
    runs: list[Emulation]
    left_out: list[str]


def read_inputs(word: str, seed: int) -> Inputs:
    """`random`, `zeros`, or the path of an .npz whose arrays are named as arguments are.

    Raises `EmulationError`.
    """
    if word == "random":
        return RandomInputs(seed)
    if word == "zeros":
        return ZeroInputs()
    try:
        with np.load(word, allow_pickle=False) as file:
            arrays: Mapping[str, NDArray[Any]] = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise EmulationError(
            f"--inputs {word}: not an .npz file that can be read: {error}"
        ) from None
    return GivenInputs(arrays, RandomInputs(seed), word)


def emulate(
    paths: Sequence[str | Input],
    *,
    kernel: str = "",
    number: int | None = None,
    launches: tuple[Launch, ...] = (),
    inputs: Inputs | None = None,
    counts: bool = False,
    most_turns: int = MOST_TURNS,
    sanitize: Sanitize = MEMORY,
    progress: Callable[[str], None] | None = None,
) -> Emulated:
    """Run the launches of bundles, or `launches` on files.

    `kernel` picks kernels by name, `number` one launch of each kernel. Raises `EmulationError` if
    nothing can be run.
    """
    session = _Session(
        kernel, number, launches, inputs or RandomInputs(), counts, most_turns, sanitize
    )
    start = time.perf_counter()
    for item in discover(paths):
        if isinstance(item, InputFault):
            if not item.is_note:
                raise EmulationError(f"{item.path}: {item.message}")
            continue
        session.file(item, progress)
    if not session.runs:
        reasons = "\n".join(session.left_out) or "there is no launch: give one with --launch FILE"
        raise EmulationError(reasons)
    summary = Summary(
        session.files,
        len(session.kernels),
        *count_severities(session.findings),
        time.perf_counter() - start,
        launches=len(session.runs),
        launched=len({(run.path, run.kernel) for run in session.runs}),
    )
    report = Report(session.findings, (), session.kernels, summary)
    return Emulated(report, session.runs, session.left_out)


class _Session:
    """What is run so far."""

    def __init__(
        self,
        kernel: str,
        number: int | None,
        launches: tuple[Launch, ...],
        inputs: Inputs,
        counts: bool,
        most_turns: int,
        sanitize: Sanitize,
    ) -> None:
        self._kernel = kernel
        self._number = number
        self._launches = launches
        self._inputs = inputs
        self._counts = counts
        self._most_turns = most_turns
        self._sanitize = sanitize
        self._sources = PythonSources(("",))
        self._reader = PythonReader(self._sources)
        self._numbers = Fingerprints()
        self.files = 0
        self.findings: list[Finding] = []
        self.kernels: list[Any] = []
        self.runs: list[Emulation] = []
        self.left_out: list[str] = []

    def file(self, item: Input, progress: Callable[[str], None] | None) -> None:
        """Run the launches of one file's kernels."""
        text = read(item)
        if isinstance(text, InputFault):
            raise EmulationError(f"{text.path}: {text.message}")
        module = parse(text, item.path)
        wanted = [k for k in module.kernels() if not self._kernel or k.name == self._kernel]
        if not wanted:
            return
        problems = [p for p in (*module.problems, *verify(module)) if not p.note]
        if problems:
            line, column = module.source.position(problems[0].offset)
            self.left_out.append(f"{item.path}:{line}:{column}: {problems[0].message}")
            return
        self.files += 1
        places = Places(module, self._sources)
        metadata = item.metadata or _beside(item.path)
        for function in wanted:
            line = module.source.position(function.offset).line
            chosen = self._chosen(module, function, item)
            if not chosen:
                continue
            summary = summarise(function, module.arch, item.path, line, metadata)
            self.kernels.append(summary._replace(launches=len(chosen)))
            try:
                emulator = Emulator(module, function)
            except UnsupportedError as error:
                place = places.of(error.instr)
                reason = f": {error.reason}" if error.reason else ""
                self.left_out.append(
                    f"{place.path}:{place.line}:{place.column}: `{error.instr.shape.mnemonic}` is "
                    f"not run by the emulator{reason}"
                )
                continue
            for launch in chosen:
                if progress is not None:
                    progress(f"{function.name} {launch.place}")
                self._run(module, emulator, launch, metadata, places)

    def _chosen(self, module: Module, function: Function, item: Input) -> list[Launch]:
        alone = len(module.kernels()) == 1
        given = [*item.launches, *self._launches]
        mine = [g for g in given if g.kernel == function.name or (alone and not g.kernel)]
        if self._number is None:
            return mine
        if not 0 <= self._number < len(mine):
            if mine:
                self.left_out.append(
                    f"{item.path}: {function.name} has launches 0 to {len(mine) - 1}, not "
                    f"{self._number}"
                )
            return []
        return [mine[self._number]]

    def _run(
        self,
        module: Module,
        emulator: Emulator,
        launch: Launch,
        metadata: KernelMetadata | None,
        places: Places,
    ) -> None:
        function = emulator.kernel
        names = KernelWords(module, function, self._reader).parameters(function)
        counters = Counters() if self._counts else None
        start = time.perf_counter()
        try:
            bound = bind(function, launch, names, metadata)
            ran = run_launch(
                emulator,
                bound,
                self._inputs,
                counters=counters,
                most_turns=self._most_turns,
                sanitize=self._sanitize,
                metadata=metadata,
            )
        except (BindingError, InputError) as error:
            self.left_out.append(f"{module.source.path}: {function.name}: {error}")
            return
        except UnsupportedError as error:
            place = places.of(error.instr)
            self.left_out.append(f"{place.path}:{place.line}:{place.column}: {error}")
            return
        self.findings += findings(
            ran.outcome.faults, module, function, bound, places, self._numbers
        )
        self.runs.append(
            Emulation(
                function.name,
                module.source.path,
                launch.place,
                ran.outputs,
                counters,
                ran.outcome.ctas,
                ran.sampled,
                ran.outcome.is_complete,
                time.perf_counter() - start,
                module,
                places,
            )
        )


def _beside(path: str) -> KernelMetadata | None:
    """The metadata beside a file, if there is any that can be used."""
    try:
        return load_metadata(path) if os.path.exists(path) else None
    except MetadataError:
        return None


__all__ = ["Emulated", "Emulation", "EmulationError", "emulate", "read_inputs"]
