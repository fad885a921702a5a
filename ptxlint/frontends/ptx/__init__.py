"""Reading PTX text: `parse` gives a module whatever the text is like."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
    with collector_paused():
        if parser == "memo" or not _whole(builder):
            Scanner(builder, memo=parser == "memo").run()
    builder.finish()
    return builder.module


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic garbage collection inside: everything that parsing makes stays alive, and
    looking through it again and again took a third of the time (measured)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _whole(builder: ModuleBuilder) -> bool:
    """Parse with Lark in one go; False if the text has a fault, with nothing built yet."""
    from ptxlint.frontends.ptx import reference

    try:
        nodes = reference.parse(builder.text, "module")
    except (reference.PtxSyntaxError, RecursionError):
        return False
    for node in nodes:
        if builder.full:
            break
        emit(builder, node)
    return True
