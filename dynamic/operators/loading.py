"""Finding spec files, and executing one of them: the operators that it holds.

`places` only looks at the disk. `load` executes what people wrote, which may do anything: it
belongs into a child process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from ptxlint.dynamic.operators.executing import executed, told
from ptxlint.dynamic.operators.kernelbench import is_pair, kernelbench
from ptxlint.dynamic.operators.spec import Operator, SpecError

_WHOLE: Final = "operator"
"""A variable of this name makes an operator that is called as its file is."""


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


def load(place: Place) -> dict[str, Operator]:
    """Execute a spec file: its operators by name, in the file's order.

    An operator is called as it says itself, else as its variable; one in a variable `operator` as
    the file. Variables that begin with `_` are not looked at. A file without operators that has
    `Model` and `ModelNew` is one (`kernelbench`). Raises `SpecError` with file and line, whatever
    the file does.
    """
    module = executed(place.path)
    found = operators_in(module, place.path)
    if not found and is_pair(module):
        name = Path(place.path).stem
        try:
            found = {name: kernelbench(place.path, name=name)}
        except SpecError:
            raise
        except Exception as error:
            raise SpecError(told(error, place.path)) from error
    if not found:
        raise SpecError(f"{place.path}: no operators: assign an `Operator` to a variable")
    if not place.name:
        return found
    if place.name not in found:
        raise SpecError(f"{place.path}: no operator {place.name!r}; it has {', '.join(found)}")
    return {place.name: found[place.name]}


def operators_in(module: ModuleType, path: str) -> dict[str, Operator]:
    """The operators among a module's variables, by name. Raises `SpecError` for two of one name."""
    found: dict[str, Operator] = {}
    seen: set[int] = set()
    for variable, value in _variables(module).items():
        if not isinstance(value, Operator) or id(value) in seen:
            continue
        seen.add(id(value))
        name = value.name or (Path(path).stem if variable == _WHOLE else variable)
        if name in found:
            raise SpecError(f"{path}: two operators are called {name!r}")
        found[name] = replace(value, name=name)
    return found


def _variables(module: ModuleType) -> Mapping[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def _is_private(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


__all__ = ["Place", "load", "operators_in", "places"]
