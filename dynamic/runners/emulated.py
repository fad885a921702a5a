"""Operators run on the emulator: their Triton kernels are compiled for an architecture and run on
the memory of CPU tensors that stand for tensors on a GPU.

Host code runs as it is and sees what kernels wrote: one kernel after the other, `.item()`, views,
autotuners. No GPU, no driver and no assembler are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.diagnostics import Finding
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.places import Places
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.registry import default_registry
from ptxlint.engine.serialise import finding_to_dict
from ptxlint.engine.source_words import KernelWords, PythonReader
from ptxlint.engine.suppression import PythonSuppressions, Suppressions, bearing_on
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.triton_cache import load_metadata
from ptxlint.ir.module import Module
from ptxlint.launch.binding import BindingError, bind
from ptxlint.launches import Extent, Launch, Tensor

from ..capture.execution import Memory
from ..capture.kernels import Kernel, flattened
from ..capture.recording import Options, Recording, recording
from ..capture.writing import write_kernel
from ..cases.arrays import Given, Placed
from ..emulator.findings import findings
from ..emulator.inputs import InputError, PartlyBlank
from ..emulator.launched import run_launch
from ..emulator.loading import EmulationError, load, pick, refusal, translated
from ..emulator.run import LANES, MOST_TURNS, Emulator
from ..emulator.semantics import UnsupportedError
from ..operators.spec import Operator
from .manner import HungError, Manner, NotRunError
from .returned import outputs_of
from .runner import Called
from .tensors import placed_again, storage_of, tensor_of
from .variants import configured

_IN_TURN: Final = 64
"""Parts of a grid that come one after the other, where there is an order."""
_HANG: Final = "the emulator gave up a launch of {}: its programs wait for ever, or for very long"


class _Prepared(NamedTuple):
    """A kernel, ready to run."""

    module: Module
    emulator: Emulator
    metadata: KernelMetadata | None
    names: Mapping[str, str]
    places: Places
    comments: Suppressions


class Emulation:
    """Makes launches on the emulator, and keeps what it saw. `manner` may be changed between
    launches."""

    def __init__(self, work: Path, most_turns: int = MOST_TURNS) -> None:
        """`work` is a directory for what travels beside kernels."""
        self.manner = Manner()
        self.findings: list[Finding] = []
        self.launched: list[str] = []
        """Names of kernels, in the order of their launches."""
        self.launches: list[str] = []
        """For each its code and grid (`Called.launches`)."""
        self.not_run = ""
        """Why a launch was not made, if one was not; also where the host went on."""
        self.hung = ""
        self._work = work
        self._most_turns = most_turns
        self._prepared: dict[str, _Prepared] = {}
        self._sources = PythonSources(("", "."))
        self._python = PythonSuppressions(self._sources, default_registry)
        self._numbers = Fingerprints()

    def begin(self, manner: Manner) -> None:
        """Forget what was seen; from now on launches are made in this manner."""
        self.manner = manner
        self.findings, self.launched, self.not_run, self.hung = [], [], "", ""
        self.launches = []
        self._numbers = Fingerprints()

    def allocated(self, tensor: Any) -> None:
        """Fill new memory, so that nobody takes what it held for a result."""
        import torch

        storage = tensor.untyped_storage()
        if tensor.device.type == "cpu" and storage.nbytes():
            every = torch.empty(0, dtype=torch.uint8)
            every.set_(storage, 0, (storage.nbytes(),), (1,)).fill_(self.manner.poison)

    def launch(self, kernel: Kernel, launch: Launch, memory: Mapping[int, Memory]) -> None:
        """Make a launch. Raises `NotRunError` or `HungError`."""
        self.launched.append(kernel.name)
        self.launches.append(f"{kernel.name} {kernel.hash} {launch.grid}")
        if 0 in launch.grid:
            return
        for _ in range(2 if self.manner.again else 1):
            self._run(kernel, launch, memory)

    def _run(self, kernel: Kernel, launch: Launch, memory: Mapping[int, Memory]) -> None:
        try:
            prepared = self._prepare(kernel)
            function = prepared.emulator.kernel
            flat = launch._replace(arguments=flattened(dict(launch.arguments)))
            bound = bind(function, flat, prepared.names, prepared.metadata)
            ran = run_launch(
                prepared.emulator,
                bound,
                _Held(memory),
                most_ctas=sys.maxsize,
                most_turns=self._most_turns,
                sanitize=self.manner.sanitize,
                metadata=prepared.metadata,
                only=_in_order(bound.grid, self.manner.order),
                lanes=_lanes(bound.grid, bound.block, self.manner.order),
            )
        except (BindingError, InputError, EmulationError) as error:
            raise self._refuse(f"{kernel.name}: {error}") from None
        except UnsupportedError as error:
            places = self._prepared[kernel.hash].places
            raise self._refuse(refusal(error, places)) from None
        for number, allocation in ran.places.items():
            if number in memory and ran.arena is not None:
                _put_back(memory[number], ran.storages[number], ran.arena.written(allocation))
        found, _ = findings(
            ran.outcome.faults, prepared.module, function, bound, prepared.places, self._numbers,
            prepared.comments,
        )  # fmt: skip
        self.findings += found
        if not ran.outcome.is_complete:
            self.hung = _HANG.format(kernel.name)
            raise HungError(self.hung)

    def _refuse(self, reason: str) -> NotRunError:
        # The folder goes with this process, and its name is chance.
        told = reason.replace(f"{self._work}/", "")
        self.not_run = self.not_run or told
        return NotRunError(told)

    def _prepare(self, kernel: Kernel) -> _Prepared:
        """A kernel, translated once. Raises `EmulationError`."""
        found = self._prepared.get(kernel.hash)
        if found is None:
            path = str(self._work / write_kernel(kernel, self._work)["ptx"])
            module = load(kernel.ptx, path)
            function = pick(module, "")
            places = Places(module, self._sources)
            found = self._prepared[kernel.hash] = _Prepared(
                module,
                translated(module, function, places),
                load_metadata(path),
                KernelWords(module, function, PythonReader(self._sources)).parameters(function),
                places,
                bearing_on(module, self._python),
            )
        return found


class _Held(PartlyBlank):
    """Contents of storages: what the memory of this process holds."""

    def __init__(self, memory: Mapping[int, Memory]) -> None:
        self._memory = memory

    def contents(self, name: str, tensor: Tensor, size: int) -> NDArray[np.uint8] | None:
        """The bytes of a storage; blank for Triton's scratch."""
        held = self._memory.get(tensor.storage)
        return None if held is None or len(held.data) != size else held.data

    def written(self, name: str, tensor: Tensor, size: int) -> NDArray[np.bool_] | None:
        """Which bytes of a storage are no leftovers."""
        held = self._memory.get(tensor.storage)
        return None if held is None or len(held.data) != size else held.written

    def made_up(self, name: str, tensor: Tensor) -> str:
        """Nothing is."""
        return ""


def _put_back(memory: Memory, data: NDArray[np.uint8], written: NDArray[np.bool_]) -> None:
    if len(memory.data) == len(data):
        memory.data[...] = data
        memory.storage.hold(written)
        if written.any():
            memory.storage.fresh = ""


def _in_order(grid: Extent, order: str) -> list[Extent] | None:
    """The programs of a grid in another order; None for the usual one."""
    if not order:
        return None
    every = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    if order == "reversed":
        return every[::-1]
    shuffled = np.random.Generator(np.random.Philox(int(order))).permutation(len(every))
    return [every[i] for i in shuffled]


def _lanes(grid: Extent, block: Extent, order: str) -> int:
    """How many lanes run side by side: side by side programs come in no order. In one, each comes
    by itself, or a few do in a grid of many."""
    if not order:
        return LANES
    return -(-prod(grid) // _IN_TURN) * prod(block)


def _told(finding: Finding) -> dict[str, Any]:
    """A finding as plain data, the same whenever it is made: the folder of its PTX is one that
    goes with this process."""
    told: dict[str, Any] = finding_to_dict(finding)
    return {**told, "path": Path(told["path"]).name}


class EmulatorRunner:
    """Calls operators inside of `emulated`."""

    name = "emulator"
    manners = frozenset(Manner._fields) - {"margin"}

    def __init__(self, emulation: Emulation, record: Recording) -> None:
        self._emulation = emulation
        self._record = record

    def call(self, operator: Operator, arguments: Mapping[str, Given], manner: Manner) -> Called:
        """Call an operator on copies of its arguments (`Runner`)."""
        tensors = {n: tensor_of(g) for n, g in arguments.items() if isinstance(g, Placed)}
        for tensor in tensors.values():
            self._record.place(tensor)
        self._emulation.begin(manner)
        try:
            with configured(manner.num_warps, manner.num_stages):
                returned = operator.kernel(**{**arguments, **tensors})
        except Exception:
            # Host code may have tried something else first, or wrapped it.
            if self._emulation.not_run:
                raise NotRunError(self._emulation.not_run) from None
            if self._emulation.hung:
                raise HungError(self._emulation.hung) from None
            raise
        after = {
            name: placed_again(given, storage_of(tensors[name]))
            for name, given in arguments.items()
            if isinstance(given, Placed)
        }
        return Called(
            outputs_of(returned, bool(operator.writes)),
            after,
            tuple(self._emulation.launched),
            tuple(map(_told, self._emulation.findings)),
            launches=tuple(self._emulation.launches),
        )


@contextmanager
def emulated(arch: str, work: Path) -> Iterator[tuple[Emulation, Recording]]:
    """Inside, launches of this process are made on the emulator, compiled for `arch`.

    Raises as `recording` does.
    """
    from ..capture.assembling import assembler_skipped

    emulation = Emulation(work)
    with assembler_skipped(), recording(arch, Options(), execution=emulation) as record:
        yield emulation, record


__all__ = ["Emulation", "EmulatorRunner", "emulated"]
