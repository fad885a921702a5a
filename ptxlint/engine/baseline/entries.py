"""A baseline as data: kernels with what was said of them, and findings."""

from __future__ import annotations

from typing import NamedTuple

Counts = tuple[int, int, int]
"""Verdicts of one rule that are proved, refuted, open."""

Strange = tuple[str, str, str]
"""A kernel, its architecture and a rule."""


class Measures(NamedTuple):
    """A kernel in numbers. `identity` is a hash of all but names and debugging information, `shape`
    of that without the constants; `accesses` are those to global memory (or memory of no named
    space), of which `guarded` stand under a predicate; registers (a thread) and spills (bytes) are
    None if nobody knows them."""

    identity: str
    shape: str
    instructions: int
    accesses: int
    guarded: int
    registers: int | None = None
    spills: int | None = None


class KernelEntry(NamedTuple):
    """One kernel on one architecture. `launches` counts those that it was checked under."""

    kernel: str
    arch: str
    measures: Measures
    verdicts: tuple[tuple[str, Counts], ...] = ()
    launches: int = 0
    is_machine: bool = False
    """Machine code, of which other things are said than of PTX."""
    orders: tuple[tuple[str, str], ...] = ()
    """Of rules with verdicts of several kinds their first letters, in the order of the text."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same kernel in another build."""
        return self.kernel, base(self.arch)


class FindingEntry(NamedTuple):
    """One finding, on all its architectures; `line` is the text of its Python line, "" where that
    is not known; `is_lined` if the build had line information. `kernel` is "" for what is said of a
    file."""

    kernel: str
    rule: str
    fingerprint: str
    severity: str
    archs: tuple[str, ...] = ()
    line: str = ""
    is_lined: bool = True


class Baseline(NamedTuple):
    """All entries, sorted; `path` and `text` are those of the file."""

    kernels: tuple[KernelEntry, ...] = ()
    findings: tuple[FindingEntry, ...] = ()
    path: str = ""
    text: str = ""

    def line_of(self, word: str) -> int:
        """The line of the file that a word stands in, from 1; the first if it is in none."""
        at = self.text.find(word)
        return self.text.count("\n", 0, at) + 1 if word and at >= 0 else 1


def base(arch: str) -> str:
    """An architecture without the letter behind its number."""
    return arch.rstrip("af")


__all__ = ["Baseline", "Counts", "FindingEntry", "KernelEntry", "Measures", "Strange", "base"]
