"""The group of commands. Each is loaded when it is called, so that `check` starts fast."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

import ptxlint

COMMANDS: Final = {
    "check": "Check PTX files and directories and print findings.",
    "capture": "Run a script and write its Triton kernels and launches to a bundle.",
    "emulate": "Run kernels on numpy arrays, without a GPU, and print what they do wrong.",
    "baseline": "Write down what is found now, so that checks report what is new.",
    "diff": "Compare two builds: what has changed, where, and what got worse.",
    "compare": "Hold a kernel's builds for several architectures side by side.",
    "gate": "Run operators against their references where something is left open.",
    "stress": "Run families of stress tests on operators.",
    "calibrate": "Take tolerances from kernels that are known to be right.",
    "replay": "Make a failing run of gate or stress again.",
    "rule": "Explain one rule, or all of them.",
    "rules": "List the rules, one a line.",
    "show": "Print what ptxlint knows about a kernel: its CFG, IR or facts.",
}
"""Name and one-line help of each command; `ptxlint.cli.NAME` defines `command`."""
CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All command names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"ptxlint.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to run; a mistyped one gets a suggestion."""
        name = args[0] if args else ""
        if name and name not in COMMANDS and not name.startswith("-"):
            from ptxlint.engine.selection import closest

            near = closest(name, COMMANDS)
            advice = f"did you mean {near!r}?" if near else f"there are {', '.join(COMMANDS)}"
            ctx.fail(f"no such command: {name!r}; {advice}")
        return super().resolve_command(ctx, args)


def _show_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print the version, and whether the analyses are machine code."""
    if wanted:
        from ptxlint.dataflow import polynomial

        compiled = "" if (polynomial.__file__ or "").endswith(".py") else " (compiled)"
        click.echo(f"ptxlint {ptxlint.__version__}{compiled}")
        context.exit()


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Static analyzer for NVIDIA PTX, above all the PTX that Triton emits.

    \b
      ptxlint check softmax.ptx             one file
      ptxlint check ~/.triton/cache         everything Triton has compiled
      ptxlint rule NUM407                   what a rule means and how to fix it

    \b
    Exit status: 0 no errors or warnings, 1 errors or warnings,
    2 something asked for could not be analysed.
    """
