"""What the lines of the source do: the counts of their instructions."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.dynamic.emulator.counters import Count, Counters
from ptxlint.engine.places import Places
from ptxlint.source import SourceFrame


class Line(NamedTuple):
    """One line of the source (of the PTX where that has none) and what its instructions did."""

    path: str
    line: int
    text: str
    count: Count


def lines(counters: Counters, places: Places) -> list[Line]:
    """The counted lines, by file and line."""
    sums: dict[tuple[str, int], Count] = {}
    for instr, count in counters.by_instr.items():
        place = places.of(instr)
        source: SourceFrame | None = place.source
        key = (source.path, source.line) if source is not None else (place.path, place.line)
        sums.setdefault(key, Count()).add(count)
    texts = _Texts()
    return [
        Line(path, line, texts.line(path, line), count)
        for (path, line), count in sorted(sums.items())
    ]


class _Texts:
    """Lines of files, read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def line(self, path: str, number: int) -> str:
        """One line; "" if the file cannot be read or is shorter."""
        if path not in self._files:
            try:
                with open(path, encoding="utf-8", errors="replace") as stream:
                    self._files[path] = stream.read().split("\n")
            except OSError:
                self._files[path] = []
        found = self._files[path]
        return found[number - 1].rstrip() if 0 < number <= len(found) else ""


__all__ = ["Line", "lines"]
