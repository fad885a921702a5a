"""What a run is watched for besides accesses to memory that is not the launch's own."""

from __future__ import annotations

from typing import NamedTuple


class Sanitize(NamedTuple):
    """Each costs time and memory, so each is asked for. Accesses outside of all allocations,
    misaligned, to what is read only and reads of global memory that is blank are always told."""

    races: bool = False
    """Accesses to one byte that nothing orders."""
    copies: bool = False
    """Data of asynchronous copies and matrix products that is touched before these are done."""
    uninitialised: bool = False
    """What nothing was written to, in registers and memory: told where it decides on a branch, a
    guard or an address, and where it is stored to global memory."""
    nonfinite: bool = False
    """NaN and infinities that are made of finite numbers, where they are stored to global
    memory."""
    overflow: bool = False
    """Integers that wrapped: told where an address is not the one that was computed."""


MEMORY = Sanitize()
"""Accesses alone."""
WORDS: tuple[str, ...] = ("memory", *Sanitize._fields)


def chosen(words: str) -> Sanitize:
    """What words with commas between them ask for; `all` is all of it.

    Raises `ValueError` that names a word which is none of `WORDS`.
    """
    names = [word.strip() for word in words.split(",")]
    for name in names:
        if name not in (*WORDS, "all"):
            raise ValueError(f"{name!r} is none of {', '.join(WORDS)}, all")
    if "all" in names:
        return Sanitize(*(True for _ in Sanitize._fields))
    return Sanitize(**{name: True for name in names if name != "memory"})


__all__ = ["MEMORY", "WORDS", "Sanitize", "chosen"]
