"""The oracle: what an operator should have computed, and whether it did (docs/gate.md).

`reference` evaluates what people wrote, in float64; `bounds` says how far off a right kernel may
be; `compare` holds an output to both; `compared` is what came of that, as plain data.
"""

from __future__ import annotations

from .compared import Compared

__all__ = ["Compared"]
