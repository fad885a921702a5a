"""Which bits of memory are blank: shared and local memory by labels of their own, global memory by
what its bytes know of themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.access import Addresses, Lanes, gather
from ptxlint.dynamic.emulator.arena import BLANK, ORIGIN, WRITTEN
from ptxlint.dynamic.emulator.batch import Batch
from ptxlint.dynamic.emulator.effects.memory import spaces
from ptxlint.dynamic.emulator.formats import Flags

Bytes = NDArray[np.uint8]


class MemoryLabels:
    """The labels of one batch's memory. What is written has none, until `write` gives it one."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.shared: Bytes = np.full_like(batch.shared, 255)
        self._local: Bytes | None = None
        self._untouched: dict[str, Flags] = {"shared": np.ones(len(batch.shared), dtype=bool)}

    @property
    def local(self) -> Bytes:
        """Of local memory of all lanes, made when it is used."""
        if self._local is None:
            self._local = np.full_like(self._batch.local, 255)
            self._untouched["local"] = np.ones(len(self._local), dtype=bool)
        return self._local

    def of_lanes(self) -> tuple[Bytes, Bytes]:
        """What is kept of local memory, for what moves its bytes without an access."""
        labels = self.local
        return self._untouched["local"].view(np.uint8), labels

    def _of(self, space: str) -> Bytes:
        return self.shared if space == "shared" else self.local

    def wrote(self, space: str, place: Addresses, size: int) -> None:
        """Bytes of shared or local memory were written, by offsets in all of it."""
        at = place[:, None] + np.arange(size)
        self._of(space)[at] = 0
        self._untouched[space][at] = False

    def read(
        self, lanes: Lanes, space: str, where: Addresses, size: int
    ) -> tuple[Bytes | None, str]:
        """The labels of so many bytes at each address (a row a lane; None: no bit has one), and the
        space of the first that nothing was ever written to ("": of none). "" is the generic
        space."""
        out: Bytes | None = None
        untouched = ""
        for found, inside, there in spaces(space, where) if len(where) else ():
            place = self._place(lanes.only(inside), found, there, size)
            if place is None:
                continue
            if found == "global":
                state = gather(self._batch.device.arena.state, place, size).view(np.uint8)
                # What is outside or was freed is told as that, and reads as zeros.
                row = np.where(state & (BLANK | WRITTEN) == BLANK, 255, 0)
                row = row.astype(np.uint8).reshape(-1, size)
                never = bool(row.any())
            else:
                row = gather(self._of(found), place, size).view(np.uint8).reshape(-1, size)
                row = np.where((place >= 0)[:, None], row, 0)
                at = np.maximum(place, 0)[:, None] + np.arange(size)
                never = bool((self._untouched[found][at] & (row != 0)).any())
            if row.any():
                if out is None:
                    out = np.zeros((len(where), size), dtype=np.uint8)
                out[inside] = row
                untouched = untouched or (found if never else "")
        return out, untouched

    def write(self, lanes: Lanes, space: str, where: Addresses, labels: Bytes) -> None:
        """Give what was written just now labels, a row a lane; global memory keeps none."""
        size = labels.shape[1]
        for found, inside, there in spaces(space, where) if len(where) else ():
            if found not in ("shared", "local"):
                continue
            place = self._place(lanes.only(inside), found, there, size)
            assert place is not None
            good = place >= 0
            at = place[good][:, None] // size * size + np.arange(size)
            self._of(found)[at] = labels[inside][good]

    def keeps(self, lanes: Lanes, space: str, where: Addresses) -> Flags:
        """True for lanes whose address lies in memory that keeps labels."""
        out = np.zeros(len(lanes.index), dtype=bool)
        for found, inside, _ in spaces(space, where) if len(where) else ():
            if found in ("shared", "local"):
                out |= inside
        return out

    def _place(self, lanes: Lanes, space: str, where: Addresses, size: int) -> Addresses | None:
        """Where accesses lie in the memory of a space, -1 for those beyond its end; None for a
        space that is never blank."""
        batch = self._batch
        if space == "global":
            place = where - ORIGIN
            return np.clip(place, 0, len(batch.device.arena.state) - size)
        if space == "shared":
            limit, start = batch.device.shared, lanes.cta * batch.shared_stride
        elif space == "local":
            limit, start = batch.program.local, lanes.index * batch.local_stride
        else:
            return None
        return np.where((where >= 0) & (where + size <= limit), start + where, -1)


__all__ = ["Bytes", "MemoryLabels"]
