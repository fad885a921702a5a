"""`ptxlint diff`."""

from __future__ import annotations

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.comparing import measuring_options, opinions
from ptxlint.cli.output import write

FORMATS = ("text", "json", "markdown", "sarif")


@click.command("diff", context_settings=CONTEXT)
@click.argument("old")
@click.argument("new")
@click.option(
    "--fail-on",
    metavar="WORD,...",
    default="",
    help="Exit with 1 on these changes: structural, constants, machine-code, spills, verdicts, "
    "guards, accesses, occupancy, removed, added, or registers, stack, shared, instructions, "
    "barriers with what they may grow by, such as registers+8 or instructions+10%.",
)
@measuring_options
@click.option("--all", "shows_all", is_flag=True, help="List kernels that have not changed, too.")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True,
    help="Output format; markdown is for a comment on a pull request.",
)  # fmt: skip
@click.option("--output", metavar="FILE", help="Write the report to a file.")
def command(
    old: str,
    new: str,
    fail_on: str,
    ptxas: str,
    no_exact: bool,
    no_verdicts: bool,
    shows_all: bool,
    format_: str,
    output: str | None,
) -> int:
    """Compare two builds: files, directories, Triton caches or captured bundles; of PTX, of
    machine code (cubins, listings, fat binaries, libraries), or one of each.

    Kernels are paired by name, then by structure. Each pair is identical, renamed only, constants
    only, or structural; of what has changed the Python lines, the resources, the memory accesses
    and the verdicts are told.

    \b
    Exit status: 0 nothing that --fail-on names, 1 something that it names, 2 something could not
    be read or compared.
    """
    from ptxlint.comparison.report import NothingError, compare
    from ptxlint.comparison.tolerance import ToleranceError, read

    if old == new == "-":
        raise click.UsageError("standard input can be one side alone")
    try:
        limits = read(fail_on)
        if no_verdicts and any(limit.name == "verdicts" for limit in limits):
            raise click.UsageError("--fail-on verdicts and --no-verdicts exclude each other")
        report = compare(
            [old],
            [new],
            opinions=None if no_verdicts else opinions(),
            ptxas=None if no_exact else ptxas,
            limits=limits,
        )
    except (ToleranceError, NothingError) as error:
        raise click.ClickException(str(error)) from None
    if format_ == "json":
        from ptxlint.reporters.diff_json import render_json

        write(render_json(report), output)
    elif format_ == "markdown":
        from ptxlint.reporters.diff_markdown import render_markdown

        write(render_markdown(report), output)
    elif format_ == "sarif":
        from ptxlint.reporters.diff_sarif import render_sarif

        write(render_sarif(report), output)
    else:
        from ptxlint.reporters.diff_text import render_text

        write(render_text(report, shows_all=shows_all), output)
    return report.exit_code
