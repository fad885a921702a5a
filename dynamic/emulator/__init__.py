"""Runs compiled PTX on numpy arrays, lane by lane: no GPU, no compiler, no second parser.

`emulate(kernel, grid, args)` is the way in from Python, `ptxlint emulate` from the command line.

Reading order: `formats` and `rounding` (numbers), `semantics` (what each opcode computes),
`translate` (a function becomes steps), `batch` (the state of some CTAs), `schedule` (who goes on),
`arena` (memory), `run` (a launch), `kernel_call` (a call from Python).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.kernel_call import EmulationError, Result, emulate

__all__ = ["EmulationError", "Result", "emulate"]


def __getattr__(name: str) -> object:
    """The names above, loaded when they are asked for: most parts are used without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ptxlint.dynamic.emulator import kernel_call

    return getattr(kernel_call, name)
