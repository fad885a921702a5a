"""Modules of installed libraries, and which mutant stands in for one of them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

stand_ins: dict[str, str] = {}
"""Files to load in place of modules, by the last part of the modules' names."""


def module(name: str) -> ModuleType:
    """A module of a library, or what stands in for it."""
    last = name.rpartition(".")[2]
    if last not in stand_ins:
        return importlib.import_module(name)
    known = f"ptxlint_mutated.{last}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, stand_ins[last])
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[known] = loaded
        spec.loader.exec_module(loaded)
    return sys.modules[known]


def path(name: str) -> Path:
    """Where a module lies; its package is not imported. Raises `ImportError`."""
    package, *parts = name.split(".")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is not installed")
    found = Path(spec.submodule_search_locations[0]).joinpath(*parts).with_suffix(".py")
    if not found.is_file():
        raise ImportError(f"{name}: {found} is missing")
    return found
