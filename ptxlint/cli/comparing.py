"""What the commands that compare builds have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ptxlint.comparison.verdicts import Opinions


def measuring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where resources come from, and whether kernels are checked."""
    for option in (
        click.option("--no-verdicts", is_flag=True, help="Compare structure and resources alone."),
        click.option("--no-exact", is_flag=True, help="Run no assembler."),
        click.option(
            "--ptxas", metavar="PROGRAM", default="", help="The assembler to take resources of."
        ),
    ):
        command = option(command)
    return command


def opinions() -> Opinions:
    """What all rules say of the kernels that are compared."""
    from ptxlint.comparison.verdicts import Opinions
    from ptxlint.engine.analyse import Checker
    from ptxlint.engine.options import Options
    from ptxlint.engine.registry import default_registry

    return Opinions(Checker(Options(evidence=False), default_registry()))


__all__ = ["measuring_options", "opinions"]
