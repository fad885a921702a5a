"""`ptxlint rules`."""

from __future__ import annotations

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import write, write_load_problems


@click.command("rules", context_settings=CONTEXT)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(format_: str) -> int:
    """List all rules: identifier, severity, name, summary.

    Exit status 2 if a rule could not be loaded.
    """
    from ptxlint.cli.explain import all_rules, as_json, listing
    from ptxlint.engine.registry import default_registry

    registry = default_registry()
    rules = all_rules(registry)
    write((as_json(rules) if format_ == "json" else listing(rules)) + "\n")
    return write_load_problems(registry)
