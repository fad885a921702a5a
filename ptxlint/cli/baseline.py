"""`ptxlint baseline`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from ptxlint.cli.check import settings
from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import write, write_load_problems

if TYPE_CHECKING:
    from ptxlint.engine.baseline.entries import Baseline
    from ptxlint.engine.report import Report

_NAME: Final = "ptxlint-baseline.json"


@click.command("baseline", context_settings=CONTEXT)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--output", metavar="FILE",
    help=f"The file to write; that of the settings, else {_NAME}.",
)  # fmt: skip
@click.option(
    "--update", is_flag=True,
    help="Take out what no longer occurs, and take in no finding and no verdict that got worse.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite a file that is no baseline.")
@click.option("--select", metavar="RULES", multiple=True, help="Run only these rules.")
@click.option("--ignore", metavar="RULES", multiple=True, help="Leave these rules out.")
@click.option(
    "--arch", metavar="ARCHS", multiple=True, help="Take only files for these targets (sm_90,…)."
)
@click.option(
    "--launch", "launch_files", metavar="FILE", multiple=True,
    help="Check the kernels under the launches in this JSON file.",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=0), default=1, show_default=True,
    help="Processes to use; 0 for one per CPU.",
)  # fmt: skip
@click.option("--config", "config_path", metavar="FILE", help="Read settings from this file.")
@click.option("--no-config", is_flag=True, help="Read no settings file.")
def command(
    paths: tuple[str, ...],
    output: str | None,
    update: bool,
    force: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    arch: tuple[str, ...],
    launch_files: tuple[str, ...],
    jobs: int,
    config_path: str | None,
    no_config: bool,
) -> int:
    """Write down what is found in PTX, machine code and directories now, so that `ptxlint check
    --baseline` reports what is new and what got worse. The file is meant to be committed.

    Give the same paths, rules and launches as to `check`.

    \b
    Exit status: 0 written, 2 something could not be analysed (what could is written).
    """
    if config_path and no_config:
        raise click.UsageError("--config and --no-config exclude each other")
    from ptxlint.engine.api import check
    from ptxlint.engine.baseline.entries import Baseline
    from ptxlint.engine.baseline.layout import BaselineError, dump
    from ptxlint.engine.baseline.update import pruned
    from ptxlint.engine.registry import default_registry
    from ptxlint.engine.selection import SelectionError
    from ptxlint.frontends.launch_file import LaunchFileError
    from ptxlint.frontends.target_filter import TargetNameError

    config = settings(paths, config_path, no_config)
    target = output or config.baseline or _NAME
    try:
        old = _earlier(target, update, force)
        report = check(
            paths,
            select=select,
            ignore=ignore,
            arch=arch,
            jobs=jobs,
            config=config,
            evidence=False,
            launch=launch_files,
            baseline=old if update else Baseline(),
        )
    except SelectionError as error:
        write_load_problems(default_registry())
        raise click.ClickException(str(error)) from None
    except TargetNameError as error:
        raise click.ClickException(f"--arch: {error}") from None
    except (BaselineError, LaunchFileError) as error:
        raise click.ClickException(str(error)) from None
    assert report.baseline is not None
    found = report.baseline.observed
    kept = pruned(old, report.baseline) if update else found
    _failures(report)
    if not kept.kernels:
        raise click.ClickException(f"no kernel was found in {', '.join(paths)}: nothing is written")
    write(dump(kept), target)
    print(_told(kept, target))
    return 2 if report.exit_code == 2 else 0


def _earlier(path: str, update: bool, force: bool) -> Baseline:
    """The baseline that is in the file; an empty one where there is none. Raises `BaselineError`
    for a file that may not be overwritten."""
    from ptxlint.engine.baseline.entries import Baseline
    from ptxlint.engine.baseline.layout import BaselineError, read_baseline

    if not update and not os.path.lexists(path):
        return Baseline()
    try:
        return read_baseline(path)
    except BaselineError as error:
        if update:
            raise
        if force and not os.path.isdir(path):
            return Baseline()
        advice = "it was not overwritten; --force does, --output names another file"
        raise BaselineError(f"{error}\n{advice}") from None


def _failures(report: Report) -> None:
    """Tell on standard error what could not be analysed."""
    from ptxlint.engine.pseudo import FAILURES

    for finding in report.findings:
        if finding.rule in FAILURES and finding.severity == "error":
            place = finding.place
            print(f"{place.path}:{place.line}: {finding.message}", file=sys.stderr)


def _told(baseline: Baseline, path: str) -> str:
    from ptxlint.wording import counted

    kernels = counted(len(baseline.kernels), "kernel")
    return f"{path}: {kernels}, {counted(len(baseline.findings), 'finding')}"
