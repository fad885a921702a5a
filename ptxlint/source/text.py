"""A PTX text with its path: offsets to line and column."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from ptxlint.source.location import Position


class SourceText:
    """Immutable text of one input. `path` is as the user wrote it (`<stdin>` for `-`)."""

    __slots__ = ("_starts", "path", "text")

    def __init__(self, text: str, path: str = "<string>") -> None:
        self.text = text
        self.path = path
        self._starts: list[int] | None = None

    def position(self, offset: int) -> Position:
        """Line and column (both from 1) of a character offset; offsets past the end clamp."""
        starts = self._line_starts()
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its newline; empty if there is no such line."""
        starts = self._line_starts()
        if not 1 <= number <= len(starts):
            return ""
        start = starts[number - 1]
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            lengths = [len(line) + 1 for line in self.text.split("\n")]
            self._starts = [0, *accumulate(lengths[:-1])]
        return self._starts
