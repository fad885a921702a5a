"""`ptxlint rule`."""

from __future__ import annotations

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import write, write_load_problems


@click.command("rule", context_settings=CONTEXT)
@click.argument("rule", metavar="[RULE]", required=False)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(rule: str | None, format_: str) -> int:
    """Explain a rule, named by identifier or name; all rules when none is given.

    Exit status 2 if a rule could not be loaded.
    """
    from ptxlint.cli.explain import all_rules, as_json, explain, named, nearest
    from ptxlint.engine.registry import default_registry

    registry = default_registry()
    rules = all_rules(registry)
    if rule is not None:
        found = named(rule, rules)
        if found is None:
            write_load_problems(registry)
            raise click.ClickException(f"no rule is called {rule!r}{nearest(rule, rules)}")
        rules = [found]
    if format_ == "json":
        write(as_json(rules, single=rule is not None) + "\n")
    else:
        write("\n\n".join(explain(r) for r in rules) + "\n")
    return write_load_problems(registry)
