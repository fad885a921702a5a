"""Reading PTX text: `parse` gives a module whatever the text is like."""

from __future__ import annotations

from ptxlint.frontends.ptx.builder import ModuleBuilder
from ptxlint.frontends.ptx.memo import Scanner, emit
from ptxlint.ir.module import Module
from ptxlint.source import SourceText

__all__ = ["parse"]


def parse(text: str, path: str = "<string>", parser: str = "memo") -> Module:
    """The module that a PTX text denotes; faults of the text are in `Module.problems`.

    `parser` is `memo`, or `lark` for the reference parser (slower, same result). Never raises for
    a bad text. Raises ValueError for an unknown parser name.
    """
    if parser not in ("memo", "lark"):
        raise ValueError(f"parser must be 'memo' or 'lark', not {parser!r}")
    builder = ModuleBuilder(SourceText(text, path))
    if parser == "memo" or not _whole(builder):
        Scanner(builder, memo=parser == "memo").run()
    builder.finish()
    return builder.module


def _whole(builder: ModuleBuilder) -> bool:
    """Parse with Lark in one go; False if the text has a fault, with nothing built yet."""
    from ptxlint.frontends.ptx import reference

    try:
        nodes = reference.parse(builder.text, "module")
    except (reference.PtxSyntaxError, RecursionError):
        return False
    for node in nodes:
        emit(builder, node)
    return True
