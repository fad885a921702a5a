"""Lines of the source that changes are told by."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module


class Where(NamedTuple):
    """A line of the source; of the PTX where no source is known."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def where(module: Module, instr: Instr) -> Where:
    """The line of the source behind an instruction."""
    frame = module.python_frame(instr.loc)
    if frame is not None and frame.line > 0:
        return Where(frame.path, frame.line)
    return Where(module.source.path, module.source.position(instr.offset).line)


__all__ = ["Where", "where"]
