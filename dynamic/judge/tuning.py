"""What memory holds when an autotuned launch begins: once, and again behind itself.

An autotuner sets some tensors to zero before each run and puts others back after it
(`ptxlint.launches.Autotuned`); all else stays as the run before left it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.inputs import Inputs
from ptxlint.dynamic.emulator.launched import Ran
from ptxlint.launch.binding import Bound
from ptxlint.launches import Tensor


class Tuned:
    """Contents of a launch as its autotuner prepares them; those of `others` without one.

    `kept` are storages that a run before left behind, by their numbers.
    """

    def __init__(
        self, bound: Bound, others: Inputs, kept: Mapping[int, Array] | None = None
    ) -> None:
        tuned = bound.launch.autotuned
        self._others = others
        self._kept = dict(kept or {})
        self._zeroed = _storages(bound, () if tuned is None else tuned.reset)

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """The bytes of a storage."""
        if tensor.storage in self._zeroed:
            return np.zeros(size, dtype=np.uint8)
        if tensor.storage in self._kept:
            return self._kept[tensor.storage]
        return self._others.contents(name, tensor, size)


def behind(bound: Bound, ran: Ran, others: Inputs) -> Tuned:
    """Contents for the run behind one: what it left, but for what is put back."""
    tuned = bound.launch.autotuned
    restored = _storages(bound, () if tuned is None else tuned.restored)
    left = {
        storage: np.array(bytes_)
        for storage, bytes_ in ran.storages.items()
        if storage not in restored
    }
    return Tuned(bound, others, left)


def _storages(bound: Bound, names: tuple[str, ...]) -> frozenset[int]:
    return frozenset(
        region.storage
        for parameter, region in bound.regions.items()
        if not {parameter, region.name}.isdisjoint(names)
    )


__all__ = ["Tuned", "behind"]
