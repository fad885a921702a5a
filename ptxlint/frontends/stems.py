"""Files that lie beside a PTX file: of the same stem, from the same compilation."""

from __future__ import annotations

import os
from typing import Final

CUBIN: Final = ".cubin"
LOGS: Final = (".log", ".ptxas")
"""What `ptxas -v` printed; the first one that there is counts."""


def beside(path: str, suffix: str) -> str:
    """Where the file with another suffix would lie."""
    stem = path[:-4] if path.lower().endswith(".ptx") else path
    return stem + suffix


def has_beside(path: str) -> bool:
    """True if a cubin or a log lies beside a PTX file."""
    return any(os.path.isfile(beside(path, suffix)) for suffix in (CUBIN, *LOGS))


__all__ = ["CUBIN", "LOGS", "beside", "has_beside"]
