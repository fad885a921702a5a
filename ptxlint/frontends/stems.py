"""Files that lie beside a PTX file or a cubin: of the same stem, from the same compilation."""

from __future__ import annotations

import os
from typing import Final

CUBIN: Final = ".cubin"
LOGS: Final = (".log", ".ptxas")
"""What `ptxas -v` printed; the first one that there is counts."""
_KERNELS: Final = (".ptx", CUBIN, ".sass")


def beside(path: str, suffix: str) -> str:
    """Where the file with another suffix would lie."""
    stem, end = os.path.splitext(path)
    return (stem if end.lower() in _KERNELS else path) + suffix


def has_beside(path: str) -> bool:
    """True if a cubin or a log lies beside a file, which may be that cubin itself."""
    return any(os.path.isfile(beside(path, suffix)) for suffix in (CUBIN, *LOGS))


__all__ = ["CUBIN", "LOGS", "beside", "has_beside"]
