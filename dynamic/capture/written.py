"""What launches write to tensors of integers, without a GPU.

Kernels do not run in a capture. But where the numbers that one writes are integers that come of
integers which the host knows (it sorts, counts, adds up), they are worked out from its PTX, so that
the host goes on with what a GPU would have given it.
"""

from __future__ import annotations

from typing import Any

from ptxlint.facts import Facts
from ptxlint.launches import Launch, Tensor

from .execution import Memory, memory_behind
from .kernels import Kernel, flattened
from .storages import Storages, unwatched

_INTEGERS = ("int", "uint", "bool")
_MOST_STEPS = 2_000_000
"""Steps of up to 4,096 lanes that one recording is given: some minutes."""
_ATTEMPTS = 3
"""Launches of a kernel in a row of which nothing is worked out before it is left alone."""
_MOST_WRITTEN = 1 << 20
_MOST_READ = 1 << 22
"""Bytes of a storage that is followed."""


class Writes:
    """What kernels write, by their hashes."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._facts: dict[str, Facts | None] = {}
        self._names: dict[str, frozenset[int] | None] = {}
        self._steps = _MOST_STEPS
        self._in_vain: dict[str, int] = {}
        """By kernel, how often in a row nothing came of it."""

    def parameters(self, kernel: Kernel) -> frozenset[int] | None:
        """Numbers of the PTX parameters that a kernel may write through; None for any."""
        if kernel.hash not in self._names:
            self._names[kernel.hash] = self._find_parameters(kernel)
        return self._names[kernel.hash]

    def _find_parameters(self, kernel: Kernel) -> frozenset[int] | None:
        from ptxlint.launch.writers import writers_of

        facts = self._facts_of(kernel)
        writers = None if facts is None else writers_of(facts)
        if facts is None or writers is None or writers.loose:
            return None
        every = [parameter.name for parameter in facts.function.params]
        return frozenset(every.index(name) for name in writers.bases)

    def _facts_of(self, kernel: Kernel) -> Facts | None:
        if kernel.hash not in self._facts:
            from ptxlint.frontends.ptx import parse

            module = parse(kernel.ptx, "captured.ptx")
            kernels = module.kernels()
            is_fit = len(kernels) == 1 and not module.problems
            self._facts[kernel.hash] = Facts(module, kernels[0]) if is_fit else None
        return self._facts[kernel.hash]

    def carry_out(
        self, kernel: Kernel, launch: Launch, given: dict[int, Any], written: set[int]
    ) -> set[int]:
        """Write what a launch leaves behind into the memory of `given` tensors; all are given by
        the numbers of their storages in the launch. Returns the storages that were followed; if it
        cannot be worked out, nothing is changed."""
        from ptxlint.launch.binding import BindingError, bind
        from ptxlint.launch.left_behind import BUDGET, run_launch
        from ptxlint.launch.memory import Piece, SharedPiece

        facts = self._facts_of(kernel)
        integers = {
            argument.storage
            for argument in flattened(launch.arguments).values()
            if isinstance(argument, Tensor) and argument.dtype.startswith(_INTEGERS)
        }
        in_vain = self._in_vain.get(kernel.hash, 0)
        if facts is None or not written & integers or in_vain >= _ATTEMPTS or self._steps <= 0:
            return set()
        self._in_vain[kernel.hash] = in_vain + 1
        held = {number: self._held(tensor) for number, tensor in given.items()}
        read, wrote = {}, {}
        for number, one in held.items():
            if one is None or (number not in integers and number not in written):
                continue
            known = _flags(one)
            if number in written:
                if len(one.data) <= _MOST_WRITTEN and number in integers:
                    wrote[number] = SharedPiece(one.data.copy(), known)
            elif len(one.data) <= _MOST_READ and known.any():
                read[number] = Piece(one.data, known)
        if set(wrote) != written & integers:
            return set()
        try:
            flat = launch._replace(arguments=flattened(launch.arguments))
            bound = bind(facts.function, flat, {})
        except BindingError:
            return set()
        done = run_launch(facts, bound, read, wrote, min(BUDGET, self._steps))
        self._steps -= done.steps
        if not done.is_whole:
            return set()
        if any(piece.known.any() for piece in wrote.values()):
            self._in_vain[kernel.hash] = 0
        for number, piece in wrote.items():
            one = held[number]
            assert one is not None
            one.data[:] = piece.data
            one.storage.fresh = ""
            one.storage.hold(piece.known)
        return set(wrote)

    def _held(self, tensor: Any) -> Memory | None:
        """The bytes behind a tensor."""
        storage = self._storages.of(tensor)
        with unwatched():
            if storage is None or tensor.is_meta or tensor.device.type != "cpu":
                return None
            if int(tensor.untyped_storage().nbytes()) > _MOST_READ:
                return None
        return memory_behind(tensor, storage)


def _flags(held: Memory) -> Any:
    """Which bytes are known."""
    import numpy as np

    if held.storage.cells is not None:
        return held.storage.cells.copy()
    return np.full(len(held.data), held.storage.known)
