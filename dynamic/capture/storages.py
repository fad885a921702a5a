"""What is known of the storages behind tensors: where they pretend to be, and what is in them."""

from __future__ import annotations

from typing import Any

UNINITIALISED = "uninitialised"
ZEROED = "zeroed"


class Storage:
    """One storage.

    `fresh` is `uninitialised`, `zeroed` or, once anything else was done, empty. `known` is False
    when it holds what a kernel would have written, or what comes of that.
    """

    __slots__ = ("fresh", "known", "on_gpu", "reference")

    def __init__(self, reference: Any) -> None:
        self.reference = reference
        self.on_gpu = False
        self.fresh = ""
        self.known = True


class Storages:
    """Storages by identity, as long as they live."""

    _SWEEP = 4096

    def __init__(self) -> None:
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

    def fill(self, tensor: Any, fresh: str, is_known: bool = True) -> None:
        """Say what a tensor's storage holds, as a whole unless `fresh` is empty."""
        found = self.of(tensor)
        if found is not None:
            found.fresh = fresh
            found.known = is_known and (found.known or bool(fresh))

    def is_known(self, tensor: Any) -> bool:
        """True for a tensor that holds what it would hold on a GPU."""
        found = self.of(tensor)
        return found is not None and found.known
