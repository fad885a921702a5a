"""Where code was inlined, as LLVM says in the comment behind a `.loc`.

`.loc 2 263 15  // standard.py:263:15 @[ standard.py:293:36 @[ loops.py:158:22 ] ]`: before LLVM 21
(Triton 3.6, measured) the PTX back end writes no `inlined_at`, and only the comment has the chain.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ptxlint.source.text import SourceText

_LINK = re.compile(r"@\[ ([^\[\]]+?):(\d+)(?::(\d+))? ")
_MAX_COMMENT = 4_096
_MAX_LINKS = 63


class Caller(NamedTuple):
    """One link of the chain; `name` is a file name without its folder."""

    name: str
    line: int
    column: int


def callers(source: SourceText, offset: int) -> list[Caller]:
    """The links behind the `.loc` at this offset, innermost first; none without a comment."""
    text = source.text
    end = text.find("\n", offset, offset + _MAX_COMMENT)
    end = offset + _MAX_COMMENT if end < 0 else end
    comment = text.find("//", offset, end)
    if comment < 0:
        return []
    found = _LINK.findall(text, comment, end)
    return [Caller(name, int(line), int(column or 0)) for name, line, column in found[:_MAX_LINKS]]
