"""Executing a spec file: the operators that it holds. What people wrote may do anything: it belongs
into a child process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from ptxlint.dynamic.operators.executing import executed, told
from ptxlint.dynamic.operators.kernelbench import is_pair, kernelbench
from ptxlint.dynamic.operators.places import Place
from ptxlint.dynamic.operators.spec import Operator, SpecError

_WHOLE: Final = "operator"
"""A variable of this name makes an operator that is called as its file is."""


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


__all__ = ["load", "operators_in"]
