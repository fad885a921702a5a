"""What is looked at when a case runs, by name. Those without a reference can be had alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CHECKS: Final = {
    "reference": "outputs meet the float64 reference within what is allowed",
    "canaries": "what lies around and between the elements of tensors is as it was, and so are "
    "inputs that are no outputs",
    "poison": "outputs have no element that holds what memory held when it was allocated",
    "surroundings": "outputs stay as they are when what lies around the inputs is NaN",
    "sanitizer": "the emulator sees no access out of bounds and nothing uninitialised that matters",
    "repeat": "the same run gives the same bits again",
    "programs": "the programs of a grid in another order give the same",
    "warps": "other numbers of warps and stages give the same within what is allowed",
    "rerun": "each launch run again, as an autotuner does, leaves the same",
}
"""Each check, and what holds where it passes."""
WITHOUT_REFERENCE: Final = tuple(name for name in CHECKS if name != "reference")
LAUNCHED_AGAIN: Final = ("surroundings", "repeat", "programs", "warps", "rerun")
"""Those that launch kernels more than once."""
EMULATOR: Final = "emulator"
CUDA: Final = "cuda"
NUMPY_RUNNER: Final = "numpy"
"""For operators of plain numpy, which have no kernels."""
RUNNERS: Final = (EMULATOR, CUDA, NUMPY_RUNNER)
_NOT_BY: Final[dict[str, tuple[str, ...]]] = {
    EMULATOR: (),
    CUDA: ("sanitizer", "programs"),
    NUMPY_RUNNER: ("sanitizer", "programs", "warps", "rerun"),
}


def possible(checks: Iterable[str], runner: str) -> tuple[str, ...]:
    """Those of the checks that a runner can make, in their order."""
    return tuple(check for check in checks if check not in _NOT_BY[runner])


__all__ = [
    "CHECKS",
    "CUDA",
    "EMULATOR",
    "LAUNCHED_AGAIN",
    "NUMPY_RUNNER",
    "RUNNERS",
    "WITHOUT_REFERENCE",
    "possible",
]  # fmt: skip
