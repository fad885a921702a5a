"""The cyclic garbage collector during the check of a file."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MANY: Final = 400_000
"""Objects, some 50 MB, made and not freed since the collector looked last."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic garbage collection inside, but where `tidy` asks for it.

    What an analysis makes lives until the function is done. Left alone, the collector looks
    through it and the whole module several times and finds nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def tidy() -> None:
    """Collect if much has been made: to be called where facts have just been dropped.

    What is left then belongs to the module and is not looked at again.
    """
    if gc.get_count()[0] > _MANY:
        gc.collect(1)
