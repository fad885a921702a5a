"""From what the static half left open to the families that decide it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from ptxlint.dynamic.families.kit import Family
from ptxlint.dynamic.families.registry import deciding
from ptxlint.dynamic.runners.knowledge import KernelKnowledge, Said

from .verdict import Place

NOT_RUN: Final = {
    "resources": "costs time, not results",
    "launch-limit": "a launch that the device refuses raises, which is seen when it runs",
}
"""Static families that no stress test decides, and why none is needed."""
SEMANTICS: Final = "semantics"


_Any = TypeVar("_Any")


class Open(NamedTuple):
    """An open obligation, or a warning, of one kernel, with the families that decide it."""

    said: Said
    kernel: KernelKnowledge
    families: tuple[type[Family], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that the obligation suggests."""
        suggested = self.said.get("suggest") or {}
        return tuple(dict.fromkeys(size for sizes in suggested.values() for size in sizes))


def errors(kernels: Iterable[KernelKnowledge]) -> Iterator[tuple[KernelKnowledge, Said]]:
    """Errors among findings: properties that are refuted. Each rule and line once."""
    yield from _once(
        kernels, lambda kernel: kernel.findings, lambda said: said["severity"] == "error"
    )


def open_obligations(kernels: Iterable[KernelKnowledge]) -> Iterator[Open]:
    """What is left to run, without semantics, which always is: open verdicts, and refuted ones
    whose finding is no error. Each rule, line and status once."""

    def is_open(said: Said) -> bool:
        return bool(said["status"] != "proved" and said["family"] not in (*NOT_RUN, SEMANTICS))

    known = list(kernels)
    told = {_key(kernel, said) for kernel, said in errors(known)}
    for kernel, said in _once(known, lambda kernel: kernel.obligations, is_open):
        if _key(kernel, said) not in told:
            yield Open(said, kernel, deciding(said["family"]))


def by_turns(sources: Iterable[Iterable[_Any]]) -> Iterator[_Any]:
    """The first of each source, then the second ones, until all have ended."""
    waiting = [iter(source) for source in sources]
    while waiting:
        for one in list(waiting):
            try:
                yield next(one)
            except StopIteration:
                waiting.remove(one)


def proved(kernels: Iterable[KernelKnowledge]) -> int:
    """How many properties are proved."""
    shown = _once(kernels, lambda kernel: kernel.obligations, lambda o: o["status"] == "proved")
    return len(list(shown))


def _once(
    kernels: Iterable[KernelKnowledge],
    what: Callable[[KernelKnowledge], Iterable[Said]],
    wanted: Callable[[Said], bool],
) -> Iterator[tuple[KernelKnowledge, Said]]:
    """What is said of kernels and wanted, each place, status and reason once."""
    seen = set()
    for kernel in kernels:
        for said in filter(wanted, what(kernel)):
            key = (*_key(kernel, said), said.get("status"), said.get("reason"))
            if key not in seen:
                seen.add(key)
                yield kernel, said


def _key(kernel: KernelKnowledge, said: Said) -> tuple[object, ...]:
    place = place_of(said, kernel)
    return (kernel.name, said["rule"], said["family"], place or said.get("line"))


def place_of(said: Said, kernel: KernelKnowledge | None = None) -> Place | None:
    """The Python place of a finding or obligation; None if it has none.

    A build out of Triton's cache names the file where it was compiled first; a copy of that file
    which `kernel` was loaded from is the one to look at.
    """
    source = said.get("source")
    if not source:
        return None
    path = source["path"]
    if kernel is not None and os.path.basename(path) == os.path.basename(kernel.path):
        path = kernel.path
    return Place(near(path), source["line"], source.get("column") or 0)


def near(path: str) -> str:
    """A path as people write it: relative where it lies below the working directory."""
    below = os.path.relpath(path)
    return path if below.startswith(os.pardir) else below


__all__ = [
    "NOT_RUN",
    "SEMANTICS",
    "Open",
    "by_turns",
    "errors",
    "near",
    "open_obligations",
    "place_of",
    "proved",
]
