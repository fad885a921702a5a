"""What is known of the storages behind tensors: where they pretend to be, and what is in them.

A byte is *known* if it holds what it would hold on a GPU: not before it is written, not where a
kernel wrote that did not run, and not where something was written that comes of unknown bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .memory import extent

UNINITIALISED = "uninitialised"
ZEROED = "zeroed"
_MOST_CELLS = 1 << 22


class Storage:
    """One storage.

    `fresh` is `uninitialised`, `zeroed` or, once anything else was done, empty. `known` says that
    all bytes are known; `cells` which ones if not all are, None for none.
    """

    __slots__ = ("cells", "fresh", "known", "on_gpu", "reference")

    def __init__(self, reference: Any) -> None:
        self.reference = reference
        self.on_gpu = False
        self.fresh = ""
        self.known = True
        self.cells: Any = None

    def hold(self, cells: Any) -> None:
        """Say which bytes are known: flags of numpy, or None for none."""
        self.known = cells is not None and bool(cells.all())
        self.cells = None if self.known else cells


class Storages:
    """Storages by identity, as long as they live.

    `is_astray` once the host has read a number that is not known: what it puts into tensors from
    then on may come of that. `most_cells` are the bytes of a storage up to which it is told which
    of them are known, if not all are; of larger ones none is, then.
    """

    _SWEEP = 4096

    def __init__(self, most_cells: int = _MOST_CELLS) -> None:
        self.is_astray = False
        self._most_cells = most_cells
        self._known: dict[int, Storage] = {}
        self._sweep_at = self._SWEEP

    def of(self, tensor: Any) -> Storage | None:
        """What is known of a tensor's storage; None for a tensor without one (a sparse one)."""
        from torch.multiprocessing.reductions import StorageWeakRef

        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError, AttributeError):
            return None
        key = storage._cdata
        known = self._known.get(key)
        # The reference keeps the key from being given to another storage.
        if known is None or known.reference.expired():
            if len(self._known) >= self._sweep_at:
                self._sweep()
            known = self._known[key] = Storage(StorageWeakRef(storage))  # type: ignore[no-untyped-call]
            known.known = not self.is_astray
        return known

    def _sweep(self) -> None:
        """Forget storages that are gone."""
        self._known = {k: s for k, s in self._known.items() if not s.reference.expired()}
        self._sweep_at = max(self._SWEEP, 2 * len(self._known))

    def on_gpu(self, tensor: Any) -> bool:
        """True for a tensor that stands for one in the memory of the GPU."""
        known = self.of(tensor)
        return known is not None and known.on_gpu

    def place(self, tensor: Any, on_gpu: bool = True) -> None:
        """Say where a tensor stands for."""
        known = self.of(tensor)
        if known is not None:
            known.on_gpu = on_gpu

    def allocate(self, tensor: Any, fresh: str) -> None:
        """A tensor is all of a storage that is `uninitialised` or `zeroed` now."""
        found = self.of(tensor)
        if found is not None:
            found.fresh = fresh
            found.known = fresh == ZEROED
            found.cells = None

    def take_over(self, tensor: Any, before: Any) -> None:
        """Say of a tensor's storage what is known of another one's."""
        found, known = self.of(tensor), self.of(before)
        if found is not None and known is not None:
            found.on_gpu, found.fresh = known.on_gpu, known.fresh
            found.known, found.cells = known.known, known.cells

    def write(self, tensor: Any, is_known: bool) -> None:
        """All elements of a tensor are written, with what is known or is not."""
        found = self.of(tensor)
        if found is None:
            return
        found.fresh = ""
        if found.known == is_known and (is_known or found.cells is None):
            return
        if is_whole(tensor):
            found.known, found.cells = is_known, None
            return
        size = 0 if tensor.is_meta else int(tensor.untyped_storage().nbytes())
        if not 0 < size <= self._most_cells:
            found.known, found.cells = False, None
            return
        import numpy as np

        cells = np.full(size, found.known) if found.cells is None else found.cells
        _seen(cells, tensor)[...] = is_known
        found.hold(cells)

    def took_place(self, tensor: Any) -> None:
        """A kernel that really ran may have written anywhere into a tensor's storage."""
        found = self.of(tensor)
        if found is not None:
            found.fresh = ""
            found.known, found.cells = True, None

    def spoil(self, tensor: Any) -> None:
        """Something wrote anywhere into a tensor's storage, and nobody knows what."""
        found = self.of(tensor)
        if found is not None:
            found.fresh = ""
            found.known, found.cells = False, None

    def is_known(self, tensor: Any) -> bool:
        """True for a tensor all of whose elements are known."""
        found = self.of(tensor)
        if found is None:
            return False
        return found.known or (found.cells is not None and bool(_seen(found.cells, tensor).all()))


@contextmanager
def unwatched() -> Iterator[None]:
    """Inside, operations are carried out and nobody follows them."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


def is_whole(tensor: Any) -> bool:
    """True when a tensor is all of its storage."""
    elements = int(tensor.numel())
    if elements != extent(tensor.shape, tensor.stride()):
        return False
    return bool(elements * tensor.dtype.itemsize == tensor.untyped_storage().nbytes())


def _seen(cells: Any, tensor: Any) -> Any:
    """The flags of the bytes of a tensor's elements."""
    from numpy.lib.stride_tricks import as_strided

    size = int(tensor.dtype.itemsize)
    shape = (*map(int, tensor.shape), size)
    strides = (*(int(stride) * size for stride in tensor.stride()), 1)
    return as_strided(cells[int(tensor.storage_offset()) * size :], shape, strides)


__all__ = ["UNINITIALISED", "ZEROED", "Storage", "Storages", "is_whole", "unwatched"]
