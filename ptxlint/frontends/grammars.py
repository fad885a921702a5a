"""Reading the files of `ptxlint.grammar`."""

from __future__ import annotations

import os
from importlib import import_module


def read(name: str) -> bytes:
    """The bytes of a file of the grammar package. Raises OSError if there is none.

    A plain `open`: `importlib.resources` would load zipfile and tempfile at every start.
    """
    package = import_module("ptxlint.grammar")
    with open(os.path.join(package.__path__[0], name), "rb") as file:
        return file.read()
