"""In which manner an operator is run, and why a run may not come to its end."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..emulator.sanitizer.choice import MEMORY, Sanitize

NAN_BYTE: Final = 0xFF
"""Bytes that make a NaN of every floating-point type, and -1 of integers."""


class Manner(NamedTuple):
    """How an operator is run."""

    poison: int = NAN_BYTE
    """The byte that new memory is filled with."""
    margin: int = NAN_BYTE
    """The byte that fills what lies around memory, where that can be chosen."""
    order: str = ""
    """Of programs: empty as they come, `reversed`, or a number that they are shuffled by."""
    again: bool = False
    """Each launch is made twice."""
    num_warps: int | None = None
    num_stages: int | None = None
    """In place of what the host asks for."""
    sanitize: Sanitize = MEMORY


class NotRunError(Exception):
    """A launch that a runner cannot make; the text says why."""


class HungError(Exception):
    """A launch that was given up because it does not end."""


class DeviceError(Exception):
    """A device that reports an error which does not go away: all that follows in this process
    fails, whatever it is."""


__all__ = ["NAN_BYTE", "DeviceError", "HungError", "Manner", "NotRunError"]
