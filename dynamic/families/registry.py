"""Which families there are: every module of `ptxlint.dynamic.families` that defines one."""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module

from .kit import Family

PACKAGE = "ptxlint.dynamic.families"
FIRST = "semantics"
"""The family whose minimum run comes before all others."""


@lru_cache(maxsize=1)
def all_families() -> dict[str, type[Family]]:
    """Families by identifier: that of the minimum run first, the others by name.

    Raises `ValueError` for an identifier that two have.
    """
    found: dict[str, type[Family]] = {}
    package = import_module(PACKAGE)
    for entry in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        module = import_module(f"{PACKAGE}.{entry.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Family) and hasattr(value, "id"):
                if value.__module__ != module.__name__:
                    continue
                if value.id in found:
                    raise ValueError(f"family {value.id!r} is in {module.__name__} and another")
                found[value.id] = value
    return dict(sorted(found.items(), key=lambda item: (item[0] != FIRST, item[0])))


def deciding(static: str) -> tuple[type[Family], ...]:
    """The families that decide open verdicts of a static family: the one of its name first, then
    those that name it first."""
    found = [family for family in all_families().values() if static in family.decides]
    return tuple(sorted(found, key=lambda f: (f.id != static, f.decides.index(static))))


__all__ = ["FIRST", "all_families", "deciding"]
