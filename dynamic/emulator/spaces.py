"""State spaces in generic addresses.

Shared, local and parameter memory have windows in the generic address space, as on the device;
global memory is what lies above them (PTX ISA, "Generic Addressing").
"""

from __future__ import annotations

from typing import Final

WINDOWS: Final = {"shared": 1 << 24, "local": 1 << 28, "param": 1 << 29}
"""Where a space begins in generic addresses; `global` and `const` begin at 0."""
WINDOW_SIZE: Final = 1 << 24


def window(space: str) -> int:
    """What to add to an address in a space to make it generic."""
    return WINDOWS.get(space, 0)


__all__ = ["WINDOWS", "WINDOW_SIZE", "window"]
