"""From an instruction to the places a person reads: PTX line and Python line."""

from __future__ import annotations

from ptxlint.diagnostics import Place
from ptxlint.engine.python_source import PythonSources
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.source import Loc, SourceFrame


class Places:
    """Makes the places of one module."""

    __slots__ = ("_module", "_sources")

    def __init__(self, module: Module, sources: PythonSources) -> None:
        self._module = module
        self._sources = sources

    def at_offset(self, offset: int, loc: Loc | None = None) -> Place:
        """The place of a character offset."""
        module = self._module
        line, column = module.source.position(offset)
        if loc is None:
            return Place(module.source.path, line, column)
        chain = tuple(self._frame(frame) for frame in module.frames(loc))
        shown = module.python_frame(loc)
        # Line 0 marks code that the compiler made up: it stands on no line.
        source = self._frame(shown) if shown is not None and shown.line > 0 else None
        return Place(module.source.path, line, column, source, chain)

    def of(self, instr: Instr) -> Place:
        """The place of an instruction."""
        return self.at_offset(instr.offset, instr.loc)

    def of_function(self, function: Function) -> Place:
        """The place of a whole function: its name's line, and its first Python line."""
        loc = next((item for item in function.items if isinstance(item, Loc)), None)
        if loc is None and function.instrs:
            loc = function.instrs[0].loc
        return self.at_offset(function.offset, loc)

    def covered(self, function: Function) -> set[tuple[str, int]]:
        """All (file, line) pairs of the Python source that this function's code comes from."""
        out: set[tuple[str, int]] = set()
        seen: set[int] = set()
        for item in function.items:
            if isinstance(item, Loc) and id(item) not in seen:
                seen.add(id(item))
                for frame in self._module.frames(item):
                    out.add((self._locate(frame.path), frame.line))
        return out

    def _frame(self, frame: SourceFrame) -> SourceFrame:
        """A frame with a readable path, and its column counted from 1."""
        return frame._replace(path=self._locate(frame.path), column=max(1, frame.column))

    def _locate(self, name: str) -> str:
        return self._sources.locate(name, self._module.source.path)
