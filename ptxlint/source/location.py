"""Positions in a text and the Python lines behind an instruction."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """A place in a text: `line` and `column` count from 1."""

    line: int
    column: int


class SourceFrame(NamedTuple):
    """One frame of an inlining chain: a place in a high-level (Python) file."""

    path: str
    line: int
    column: int
    function: str = ""


class Loc:
    """One `.loc` directive (PTX ISA, "Debugging Directives: .loc").

    `file` is an index into the module's `.file` table, `line` counts from 1, `column` from 0 or
    1 as the producer chose. `parent` is where this code was inlined (`inlined_at`), outermost
    frame last; `function` is the label that names the inlined function. `in_asm` marks one that
    stands between the `// begin inline asm` and `// end inline asm` of its producer: it counts
    lines of the assembly text and locates nothing.
    """

    __slots__ = (
        "column",
        "file",
        "function",
        "function_offset",
        "in_asm",
        "line",
        "offset",
        "parent",
    )

    def __init__(
        self,
        file: int,
        line: int,
        column: int,
        offset: int,
        function: str = "",
        function_offset: int = 0,
        parent: Loc | None = None,
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.offset = offset
        self.function = function
        self.function_offset = function_offset
        self.parent = parent
        self.in_asm = False

    def chain(self) -> list[Loc]:
        """The inlining chain, innermost first; never longer than 64 frames."""
        out: list[Loc] = []
        loc: Loc | None = self
        while loc is not None and len(out) < 64:
            out.append(loc)
            loc = loc.parent
        return out

    def __repr__(self) -> str:
        return f"Loc({self.file}:{self.line}:{self.column})"
