"""Cases: which inputs an operator is run on.

`case` is the data; `seeds` draws numbers, `values` makes of them what a strategy is about,
`domains` fits that to an input, `layouts` places it, `arrays` puts all together.
"""

from __future__ import annotations

from .case import Case

__all__ = ["Case"]
