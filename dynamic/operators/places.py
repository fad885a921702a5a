"""Finding spec files. Only the disk is looked at; nothing is executed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ptxlint.dynamic.operators.spec import SpecError


class Place(NamedTuple):
    """A spec file, and which of its operators is meant: all of them without a name."""

    path: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.name}" if self.name else self.path


def places(where: str) -> tuple[Place, ...]:
    """The spec files that a word of the command line means; nothing is executed.

    A file, `FILE.py:NAME`, or a directory, of which all `*.py` count, in order, also those further
    down; files and directories whose names begin with `_` or `.` are left to those that import
    them. Raises `SpecError`.
    """
    path = Path(where)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*.py") if not _is_private(p.relative_to(path)))
        if not found:
            raise SpecError(f"{where}: no spec files (*.py) in this directory")
        return tuple(Place(str(file)) for file in found)
    if path.is_file():
        return (Place(where),)
    file, colon, name = where.rpartition(":")
    if colon and Path(file).is_file():
        return (Place(file, name),)
    raise SpecError(f"{file if colon and file.endswith('.py') else where}: no such file")


def _is_private(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


__all__ = ["Place", "places"]
