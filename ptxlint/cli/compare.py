"""`ptxlint compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.comparing import measuring_options, opinions
from ptxlint.cli.output import write

if TYPE_CHECKING:
    from ptxlint.comparison.architectures import ArchitectureReport

FORMATS = ("text", "json", "markdown", "html")


@click.command("compare", context_settings=CONTEXT)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--kernel", metavar="NAME", multiple=True, help="Compare only this kernel.")
@click.option("--arch", metavar="ARCHS", multiple=True, help="Compare only these (sm_80,sm_90).")
@click.option(
    "--fail-on",
    metavar="WORD,...",
    default="",
    help="Exit with 1 on these surprises: spills, tensor, copies, guards, barriers, verdicts, or "
    "`surprises` for all of them.",
)
@measuring_options
@click.option("--all", "shows_all", is_flag=True, help="Show rows that are alike everywhere, too.")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True,
    help="Output format; html draws the control-flow graphs.",
)  # fmt: skip
@click.option("--output", metavar="FILE", help="Write the report to a file.")
def command(
    paths: tuple[str, ...],
    kernel: tuple[str, ...],
    arch: tuple[str, ...],
    fail_on: str,
    ptxas: str,
    no_exact: bool,
    no_verdicts: bool,
    shows_all: bool,
    format_: str,
    output: str | None,
) -> int:
    """Hold a kernel's builds for several architectures side by side: files, directories, Triton
    caches or captured bundles, with cubins or logs of ptxas beside them; or machine code: cubins,
    listings, fat binaries, libraries.

    For each kernel that is there for two architectures or more: structure, resources and
    occupancy, verdicts, and the surprises: an architecture on which it spills, loses its
    tensor-core instructions, asynchronous copies, guards or barriers, or gets another verdict.

    \b
    Exit status: 0 nothing that --fail-on names, 1 something that it names, 2 something could not
    be read or compared.
    """
    from ptxlint.comparison.architectures import compare_architectures
    from ptxlint.comparison.report import NothingError
    from ptxlint.frontends.target_filter import TargetNameError, parse_targets

    words = _words(fail_on)
    if no_verdicts and "verdicts" in {word.strip() for word in fail_on.split(",")}:
        raise click.UsageError("--fail-on verdicts and --no-verdicts exclude each other")
    try:
        archs = parse_targets(arch)
    except TargetNameError as error:
        raise click.ClickException(f"--arch: {error}") from None
    try:
        report = compare_architectures(
            list(paths),
            opinions=None if no_verdicts else opinions(),
            ptxas=None if no_exact else ptxas,
            archs=archs,
            kernels=kernel,
            fail_on=words,
        )
    except NothingError as error:
        raise click.ClickException(str(error)) from None
    write(_render(report, format_, shows_all), output)
    return report.exit_code


def _words(text: str) -> set[str]:
    """The kinds of surprises that fail."""
    from ptxlint.comparison.surprises import KINDS

    words = {word.strip() for word in text.split(",") if word.strip()}
    unknown = sorted(words - {*KINDS, "surprises"})
    if unknown:
        raise click.ClickException(
            f"--fail-on: {unknown[0]!r} is none of surprises, {', '.join(KINDS)}"
        )
    return {*KINDS} if "surprises" in words else words


def _render(report: ArchitectureReport, format_: str, shows_all: bool) -> str:
    if format_ == "json":
        from ptxlint.reporters.compare_json import render_json

        return render_json(report)
    if format_ == "markdown":
        from ptxlint.reporters.compare_markdown import render_markdown

        return render_markdown(report)
    if format_ == "html":
        from ptxlint.reporters.compare_html import render_html

        return render_html(report)
    from ptxlint.reporters.compare_text import render_text

    return render_text(report, shows_all=shows_all)
