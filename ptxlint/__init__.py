"""ptxlint: a compiler-level static analyzer for NVIDIA PTX.

`ptxlint.check(source) -> Report` checks files, directories or PTX text. Everything else here is
the types of what it takes and returns. Importing this package loads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxlint.config import Config, ConfigError
    from ptxlint.diagnostics import Finding, Place, Related
    from ptxlint.engine.api import check
    from ptxlint.engine.baseline.layout import BaselineError
    from ptxlint.engine.report import Report, Summary
    from ptxlint.engine.result import KernelSummary
    from ptxlint.engine.selection import SelectionError
    from ptxlint.frontends.launch_file import LaunchFileError
    from ptxlint.frontends.target_filter import TargetNameError
    from ptxlint.obligations import Obligation
    from ptxlint.source import SourceFrame, SourceText

__version__ = "0.1.0"

__all__ = [
    "BaselineError",
    "Config",
    "ConfigError",
    "Finding",
    "KernelSummary",
    "LaunchFileError",
    "Obligation",
    "Place",
    "Related",
    "Report",
    "SelectionError",
    "SourceFrame",
    "SourceText",
    "Summary",
    "TargetNameError",
    "__version__",
    "check",
]

_HOMES = {
    "BaselineError": "ptxlint.engine.baseline.layout",
    "Config": "ptxlint.config",
    "ConfigError": "ptxlint.config",
    "Finding": "ptxlint.diagnostics",
    "KernelSummary": "ptxlint.engine.result",
    "LaunchFileError": "ptxlint.frontends.launch_file",
    "Obligation": "ptxlint.obligations",
    "Place": "ptxlint.diagnostics",
    "Related": "ptxlint.diagnostics",
    "Report": "ptxlint.engine.report",
    "SelectionError": "ptxlint.engine.selection",
    "SourceFrame": "ptxlint.source",
    "SourceText": "ptxlint.source",
    "Summary": "ptxlint.engine.report",
    "TargetNameError": "ptxlint.frontends.target_filter",
    "check": "ptxlint.engine.api",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ptxlint' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
