"""Which rules there are: every module of `ptxlint.rules`, and the entry points of others."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from ptxlint.engine.pseudo import PSEUDO_RULES
from ptxlint.rulekit import Rule

PACKAGE = "ptxlint.rules"
GROUP = "ptxlint.rules"
"""Entry point group of rules in other distributions: `name = "package.module[:RuleClass]"`."""


class RegistryError(Exception):
    """A class that may not be a rule here: a foreign module, or an identifier taken twice."""


class LoadProblem(NamedTuple):
    """Why a rule module or entry point could not be loaded, and the line that raised it.

    `path` is relative to the working directory where it lies below, and "" when no file is known.
    """

    message: str
    path: str = ""
    line: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.path else self.message


class Registry:
    """Rules by identifier, in a fixed order, with what could not be loaded."""

    __slots__ = ("_names", "problems", "rules")

    def __init__(self) -> None:
        self.rules: dict[str, type[Rule]] = {}
        self.problems: list[LoadProblem] = []
        """One for each rule module or entry point that could not be loaded."""
        self._names: dict[str, str] = {p.name: p.id for p in PSEUDO_RULES}

    def add(self, rule: type[Rule], origin: str = "") -> None:
        """Take a rule in. `origin` is the entry point it comes from, "" for our own.

        Raises `RegistryError` for a class of a foreign module without an entry point, and for an
        identifier or name that is taken.
        """
        where = f"{rule.__module__}.{rule.__qualname__}"
        if not origin and not rule.__module__.startswith(PACKAGE + "."):
            raise RegistryError(
                f"{where} is no rule of ptxlint: rules live in {PACKAGE} or come from an entry "
                f"point of the group {GROUP!r}"
            )
        taken = self.rules.get(rule.id)
        owner = f"{taken.__module__}.{taken.__qualname__}" if taken else ""
        if taken is None and rule.name in self._names:
            owner = self._names[rule.name]
        if owner:
            raise RegistryError(f"{where}: {rule.id} {rule.name} is taken by {owner}")
        self.rules[rule.id] = rule
        self._names[rule.name] = rule.id

    def identifier(self, name: str) -> str | None:
        """The identifier behind a rule's identifier or name, in any case; None if unknown."""
        upper = name.upper()
        if upper in self.rules or any(p.id == upper for p in PSEUDO_RULES):
            return upper
        return self._names.get(name.lower())

    def names(self) -> dict[str, str]:
        """Identifier by name, pseudo-rules included."""
        return dict(self._names)

    def load(self, modules: Iterable[str], origin: str = "") -> None:
        """Import rule modules and take in what they define; faults go to `problems`."""
        for name in modules:
            target, _, attribute = name.partition(":")
            try:
                module = import_module(target)
                for rule in _defined_in(module, attribute):
                    self.add(rule, origin)
            except Exception as error:
                source = f" (entry point {origin})" if origin else ""
                text = str(error) or type(error).__name__
                message = f"cannot load the rules of {name}{source}: {text}"
                self.problems.append(LoadProblem(message, *_raised_in(target, error)))

    def sort(self) -> None:
        """Put the rules in the order in which they run and are listed."""
        self.rules = dict(sorted(self.rules.items()))


def _raised_in(name: str, error: Exception) -> tuple[str, int]:
    """The file of a module and the line of it that an error came through; ("", 1) if unknown."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return "", 1
    if spec is None or not spec.has_location or spec.origin is None:
        return "", 1
    path, line = spec.origin, 1
    if isinstance(error, SyntaxError) and error.filename == path:
        line = error.lineno or 1
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    here = os.path.join(os.getcwd(), "")
    return path.removeprefix(here), line


def _defined_in(module: ModuleType, attribute: str) -> Iterator[type[Rule]]:
    """The rule classes that a module defines itself, or the one it is asked for."""
    if attribute:
        found: Any = getattr(module, attribute)
        if not (isinstance(found, type) and issubclass(found, Rule)):
            raise RegistryError(f"{attribute} is no subclass of ptxlint.rulekit.Rule")
        yield found
        return
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Rule) and _is_own(value, module):
            yield value


def _is_own(rule: type[Rule], module: ModuleType) -> bool:
    # A helper base class without an identifier is no rule.
    return rule.__module__ == module.__name__ and hasattr(rule, "id")


@lru_cache(maxsize=1)
def default_registry() -> Registry:
    """All rules that are installed. Built once a process and never changed afterwards."""
    registry = Registry()
    registry.load(_own_modules())
    for name, value in _entry_points():
        registry.load([value], name)
    registry.sort()
    return registry


def _own_modules() -> list[str]:
    """Names of the modules in `ptxlint.rules`, without importing pkgutil where we can."""
    package = import_module(PACKAGE)
    names: set[str] = set()
    for directory in package.__path__:
        if os.path.isdir(directory):
            names.update(n[:-3] for n in os.listdir(directory) if n.endswith(".py"))
        else:
            import pkgutil

            names.update(module.name for module in pkgutil.iter_modules([directory]))
    return [f"{PACKAGE}.{name}" for name in sorted(names) if not name.startswith("_")]


def _entry_points() -> list[tuple[str, str]]:
    """Entry points of our group. Loads importlib.metadata only if some distribution has one."""
    if not _any_distribution_declares(GROUP):
        return []
    from importlib.metadata import entry_points

    return sorted({(point.name, point.value) for point in entry_points(group=GROUP)})


def _any_distribution_declares(group: str) -> bool:
    """True if an installed distribution may have entry points of this group.

    Reads `entry_points.txt` of each distribution itself: about 1 ms for 70 distributions, where
    importing importlib.metadata alone takes 10-30 ms.
    """
    mark = f"[{group}]".encode()
    for directory in dict.fromkeys(sys.path):
        try:
            names = os.listdir(directory or ".")
        except OSError:
            # A zip archive on the path: let importlib.metadata look into it.
            if directory.endswith((".zip", ".egg")) and os.path.isfile(directory):
                return True
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            try:
                with open(os.path.join(directory, name, "entry_points.txt"), "rb") as stream:
                    if mark in stream.read():
                        return True
            except OSError:
                continue
    return False
