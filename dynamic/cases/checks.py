"""What is looked at when a case runs, by name. Those without a reference can be had alone."""

from __future__ import annotations

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


__all__ = ["CHECKS", "LAUNCHED_AGAIN", "WITHOUT_REFERENCE"]
