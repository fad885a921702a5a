"""`ptxlint emulate`: files and bundles in, a report and outputs out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ptxlint.diagnostics import Finding
from ptxlint.dynamic.emulator.counters import Counters
from ptxlint.dynamic.emulator.findings import findings
from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.inputs import (
    GivenInputs,
    InputError,
    Inputs,
    RandomInputs,
    RecordedInputs,
    is_recorded,
)
from ptxlint.dynamic.emulator.launched import run_launch
from ptxlint.dynamic.emulator.loading import (
    EmulationError,
    load,
    metadata_beside,
    no_kernel,
    refusal,
    translated,
)
from ptxlint.dynamic.emulator.made_up import MadeUp
from ptxlint.dynamic.emulator.run import MOST_TURNS, Emulator
from ptxlint.dynamic.emulator.sanitizer.choice import MEMORY, Sanitize
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.places import Places
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.registry import default_registry
from ptxlint.engine.report import Report, Summary, count_severities
from ptxlint.engine.result import summarise
from ptxlint.engine.source_words import KernelWords, PythonReader
from ptxlint.engine.suppression import PythonSuppressions, Suppressions, bearing_on
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input, InputFault, discover, read
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.launch.binding import BindingError, Bound, bind
from ptxlint.launches import Descriptor, Launch, Tensor

_NO_LAUNCH: Final = (
    "there is no launch: give one with --launch FILE (docs/launch-files.md), or emulate the "
    "directory of a bundle that ptxlint capture wrote"
)


class Emulation(NamedTuple):
    """One launch that was run. `outputs` are the tensors by argument name, of numpy's types where
    it has them, else as bits; `seconds` wall time; `sampled` the CTAs of the grid if only some were
    run, else 0."""

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
    inputs: dict[str, str]
    """Where the contents of each tensor come from, in words; empty if all are made up."""


class Emulated(NamedTuple):
    """All launches that were run, what was found, and what was not run and why."""

    report: Report
    runs: list[Emulation]
    left_out: list[str]
    is_interrupted: bool = False
    """Ctrl-C ended the last run; the ones before it and what it had written are there."""


class How(NamedTuple):
    """What is run, and how. `number` is that of one launch of each kernel, None for all."""

    kernel: str = ""
    number: int | None = None
    launches: tuple[Launch, ...] = ()
    inputs: Inputs = RandomInputs()
    counts: bool = False
    most_turns: int = MOST_TURNS
    sanitize: Sanitize = MEMORY
    progress: Callable[[str], None] | None = None


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

    `kernel` picks kernels by name, `number` one launch of each kernel. What cannot be run is told
    in `left_out`, and the rest is run; raises `EmulationError` if nothing can be.
    """
    session = _Session(
        How(
            kernel, number, launches, inputs or RandomInputs(), counts, most_turns, sanitize,
            progress,
        )
    )  # fmt: skip
    start = time.perf_counter()
    session.all(discover(paths))
    if not session.runs:
        reasons = "\n".join(session.left_out) or _NO_LAUNCH
        raise EmulationError(reasons)
    summary = Summary(
        session.files,
        len(session.kernels),
        *count_severities(session.findings),
        time.perf_counter() - start,
        suppressed=session.suppressed,
        launches=len(session.runs),
        launched=len({(run.path, run.kernel) for run in session.runs}),
        left_out=len(session.left_out),
    )
    report = Report(session.findings, (), session.kernels, summary)
    return Emulated(report, session.runs, session.left_out, session.is_interrupted)


class _Session:
    """What is run so far."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._sources = PythonSources(("",))
        self._reader = PythonReader(self._sources)
        self._python = PythonSuppressions(self._sources, default_registry)
        self._numbers = Fingerprints()
        self._names: dict[str, None] = {}
        """Kernels that were met."""
        self._functions: set[str] = set()
        self.files = 0
        self.findings: list[Finding] = []
        self.suppressed = 0
        self.kernels: list[Any] = []
        self.runs: list[Emulation] = []
        self.left_out: list[str] = []
        self.is_interrupted = False

    def all(self, items: Sequence[Input | InputFault]) -> None:
        """Run what was found, up to an interrupt."""
        if isinstance(self._how.inputs, RecordedInputs):
            files = [item for item in items if isinstance(item, Input)]
            every = [t for item in files for launch in item.launches for t in _tensors(launch)]
            if files and not any(map(is_recorded, every)):
                raise EmulationError(
                    "nothing is recorded of what tensors held: run ptxlint capture with "
                    "--record-inputs and emulate its bundle, or take --inputs random"
                )
        try:
            for item in items:
                if isinstance(item, InputFault):
                    if not item.is_note:
                        hint = f"; {item.hint}" if item.hint else ""
                        self.left_out.append(f"{item.path}: {item.message}{hint}")
                    continue
                self._file(item)
                if self.is_interrupted:
                    return
        except KeyboardInterrupt:
            if not self.runs:
                raise
            self.is_interrupted = True
            return
        self._strays(len(items))

    def _strays(self, files: int) -> None:
        """Say what was named and is nowhere."""
        how, names = self._how, list(self._names)
        if how.kernel and how.kernel not in names and names:
            where = f"{files} files" if files > 1 else "the file"
            self.left_out.append(no_kernel(how.kernel, names, self._functions, where))
        for launch in how.launches:
            if launch.kernel and launch.kernel not in names and names:
                why = no_kernel(launch.kernel, names, self._functions, launch.place)
                self.left_out.append(f"{why}: the launch is for another one")
        if isinstance(how.inputs, GivenInputs):
            self.left_out += how.inputs.unused()

    def _file(self, item: Input) -> None:
        """Run the launches of one file's kernels."""
        text = read(item)
        if isinstance(text, InputFault):
            self.left_out.append(f"{text.path}: {text.message}")
            return
        try:
            module = load(text, item.path)
        except EmulationError as error:
            self.left_out.append(str(error))
            return
        every = module.kernels()
        self._names |= dict.fromkeys(kernel.name for kernel in every)
        self._functions |= {f.name for f in module.functions} - self._names.keys()
        wanted = [k for k in every if self._how.kernel in ("", k.name)]
        if not every:
            self.left_out.append(f"{item.path}: there is no kernel (.entry) in it")
        if not wanted:
            return
        self.files += 1
        places = Places(module, self._sources)
        comments = bearing_on(module, self._python)
        metadata = item.metadata or metadata_beside(item.path)
        for function in wanted:
            line = module.source.position(function.offset).line
            chosen = self._chosen(module, function, item)
            if not chosen:
                continue
            summary = summarise(function, module.arch, item.path, line, metadata)
            self.kernels.append(summary._replace(launches=len(chosen)))
            try:
                emulator = translated(module, function, places)
            except EmulationError as error:
                self.left_out.append(str(error))
                continue
            for launch in chosen:
                if self._how.progress is not None:
                    self._how.progress(f"{function.name} {launch.place}")
                self._run(module, emulator, launch, metadata, places, comments)
                if self.is_interrupted:
                    return

    def _chosen(self, module: Module, function: Function, item: Input) -> list[Launch]:
        """The launches of a kernel that are to be run."""
        how = self._how
        kernels = module.kernels()
        alone = len(kernels) == 1 or how.kernel == function.name
        given = [*item.launches, *how.launches]
        mine = [g for g in given if g.kernel == function.name or (alone and not g.kernel)]
        if not mine and any(not g.kernel for g in given):
            self.left_out.append(
                f"{item.path}: the launch names no `kernel`, and the file has {len(kernels)}: "
                f"write one into it, or pick one with --kernel {function.name}"
            )
        if how.number is None:
            return mine
        if not 0 <= how.number < len(mine):
            if mine:
                self.left_out.append(
                    f"{item.path}: {function.name} has launches 0 to {len(mine) - 1}, not "
                    f"{how.number}"
                )
            return []
        return [mine[how.number]]

    def _run(
        self,
        module: Module,
        emulator: Emulator,
        launch: Launch,
        metadata: KernelMetadata | None,
        places: Places,
        comments: Suppressions,
    ) -> None:
        function, how = emulator.kernel, self._how
        names = KernelWords(module, function, self._reader).parameters(function)
        counters = Counters() if how.counts else None
        start = time.perf_counter()
        try:
            bound = bind(function, launch, names, metadata)
            ran = run_launch(
                emulator,
                bound,
                how.inputs,
                counters=counters,
                most_turns=how.most_turns,
                sanitize=how.sanitize,
                metadata=metadata,
                keeps_interrupted=True,
            )
        except (BindingError, InputError) as error:
            self.left_out.append(f"{module.source.path}: {function.name}: {error}")
            return
        except UnsupportedError as error:
            self.left_out.append(refusal(error, places))
            return
        self.is_interrupted = ran.outcome.is_interrupted
        found, held = findings(
            ran.outcome.faults, module, function, bound, places, self._numbers, comments,
            MadeUp(module, function, bound, how.inputs).behind,
        )  # fmt: skip
        self.findings += found
        self.suppressed += held
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
                _origins(how.inputs, bound),
            )
        )


def _origins(inputs: Inputs, bound: Bound) -> dict[str, str]:
    if not isinstance(inputs, GivenInputs | RecordedInputs):
        return {}
    regions = (*bound.regions.values(), *bound.descriptors.values())
    return {r.name: inputs.origin(r.name, r.tensor) for r in regions if r.storage >= 0}


def _tensors(launch: Launch) -> Iterator[Tensor]:
    for argument in launch.arguments.values():
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, Descriptor):
            yield argument.tensor


__all__ = ["Emulated", "Emulation", "EmulationError", "How", "emulate"]
