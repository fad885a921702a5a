"""Cases: which inputs an operator is run on."""

from __future__ import annotations

from .case import Case

__all__ = ["Case"]
