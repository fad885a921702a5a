"""Runs that will do the same again and again: told at once, not after the most turns.

What batches do next follows from their registers, from who stands where, and from memory. If all of
that is what it was some turns before, it will be so for ever.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ptxlint.dynamic.emulator.arena import Arena

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.schedule import Schedule

_ROUNDS: Final = 512
"""Turns of each batch in which a state must come back."""
_FEWEST: Final = 8
_MOST_LOOKED_AT: Final = 1 << 30
"""Bytes that are looked at in one search."""
_MOST_MEMORY: Final = 1 << 28
"""Bytes of global memory up to which anything is searched for."""


def stands_still(waiting: list[Schedule], arena: Arena) -> tuple[list[Schedule], bool]:
    """Go on turn by turn for a while; those that have not ended then, and whether they never will.

    False says nothing: what counts up or waits long does not come back to a state either.
    """
    memory = sum(a.end - a.start for a in arena.allocations)
    size = sum(_size(schedule.state()) for schedule in waiting)
    rounds = min(_ROUNDS, _MOST_LOOKED_AT // max(size, 1))
    if rounds < _FEWEST or memory > _MOST_MEMORY:
        return waiting, False
    before: tuple[bytes, bytes] | None = None
    for number in range(rounds):
        waiting = [schedule for schedule in waiting if not schedule.run(1)]
        if not waiting:
            return [], False
        now = _digest([schedule.state() for schedule in waiting])
        if before is not None and now == before[0]:
            return waiting, _memory(arena) == before[1]
        if number & (number - 1) == 0:
            # Compared with states that are ever further back, so that a period of any length fits.
            before = now, _memory(arena)
    return waiting, False


def _memory(arena: Arena) -> bytes:
    return _digest([arena.contents(allocation) for allocation in arena.allocations])


def _digest(value: Any) -> bytes:
    out = blake2b(digest_size=16)
    _feed(out, value)
    return out.digest()


def _feed(out: blake2b, value: Any) -> None:
    """Everything that a value is made of; objects of the program are what they are."""
    if isinstance(value, np.ndarray | np.generic):
        out.update(f"{value.dtype.str}{value.shape}".encode())
        out.update(np.ascontiguousarray(value).view(np.uint8).data)
    elif isinstance(value, dict):
        out.update(b"{")
        for key in sorted(value):
            _feed(out, key)
            _feed(out, value[key])
    elif isinstance(value, list | tuple):
        out.update(b"[%d" % len(value))
        for item in value:
            _feed(out, item)
    elif value is None or isinstance(value, int | str):
        out.update(f"{value!r},".encode())
    elif hasattr(value, "__dict__") and not callable(value):
        _feed(out, vars(value))
    else:
        out.update(f"@{id(value)},".encode())


def _size(value: Any) -> int:
    """Bytes of the arrays in a state."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 0


__all__ = ["stands_still"]
