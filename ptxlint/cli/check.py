"""`ptxlint check`."""

from __future__ import annotations

import os
import sys

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import write, write_load_problems
from ptxlint.config import FORMATS, Config, ConfigError, find_config, load_config


@click.command("check", context_settings=CONTEXT)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--select", metavar="RULES", multiple=True, help="Run only these rules.")
@click.option("--ignore", metavar="RULES", multiple=True, help="Leave these rules out.")
@click.option(
    "--arch", metavar="ARCHS", multiple=True, help="Check only files for these targets (sm_90,…)."
)
@click.option(
    "--launch",
    "launch_files",
    metavar="FILE",
    multiple=True,
    help="Check the kernels under the launches in this JSON file.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    help="Report what is new and what got worse since this baseline.",
)
@click.option("--no-baseline", is_flag=True, help="Use no baseline, whatever the settings say.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Output format; text unless the settings say otherwise.",
)
@click.option("--output", metavar="FILE", help="Write the report to a file.")
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Processes to use; 0 for one per CPU.",
)
@click.option(
    "--exit-zero", is_flag=True, help="Exit 0 whatever is found (2 still for what cannot be read)."
)
@click.option(
    "-v", "--obligations", is_flag=True, help="List all verdicts: what is proved, refuted and open."
)
@click.option(
    "--budget",
    type=click.FloatRange(0, 1e6, min_open=True),
    default=1.0,
    metavar="FACTOR",
    help="Multiply the steps that analyses may take before they leave a verdict open.",
)
@click.option(
    "--exact", is_flag=True, help="Run an assembler for exact registers and spills (a compilation)."
)
@click.option("--ptxas", metavar="PROGRAM", default="", help="The assembler; implies --exact.")
@click.option("--statistics", is_flag=True, help="Count findings by rule and time each stage.")
@click.option(
    "--parser",
    type=click.Choice(["memo", "lark"]),
    default="memo",
    show_default=True,
    help="lark is the slow reference parser.",
)
@click.option("--config", "config_path", metavar="FILE", help="Read settings from this file.")
@click.option("--no-config", is_flag=True, help="Read no settings file.")
def command(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    arch: tuple[str, ...],
    launch_files: tuple[str, ...],
    baseline: str | None,
    no_baseline: bool,
    format_: str | None,
    output: str | None,
    jobs: int,
    exit_zero: bool,
    obligations: bool,
    budget: float,
    exact: bool,
    ptxas: str,
    statistics: bool,
    parser: str,
    config_path: str | None,
    no_config: bool,
) -> int:
    """Check PTX files, directories (all *.ptx below, a Triton cache for example) or - for
    standard input. The kernels of a captured bundle are checked under its launches. Machine code
    is taken too: cubins, listings of nvdisasm and cuobjdump, and files that hold cubins.

    RULES are identifiers, prefixes or names, separated by commas: MSK201, NUM4, stray-f64, ALL.
    Settings come from [tool.ptxlint] in the nearest pyproject.toml; options win over them.
    """
    if config_path and no_config:
        raise click.UsageError("--config and --no-config exclude each other")
    if baseline is not None and no_baseline:
        raise click.UsageError("--baseline and --no-baseline exclude each other")
    from ptxlint.engine.api import check
    from ptxlint.engine.registry import default_registry
    from ptxlint.engine.selection import SelectionError
    from ptxlint.frontends.target_filter import TargetNameError
    from ptxlint.reporters import render

    config = settings(paths, config_path, no_config)
    chosen = format_ or config.format or "text"
    progress = _Progress()
    try:
        report = check(
            paths,
            select=select,
            ignore=ignore,
            arch=arch,
            jobs=jobs,
            config=config,
            parser=parser,
            statistics=statistics,
            evidence=obligations or chosen == "json",
            budget=budget,
            progress=progress,
            launch=launch_files,
            baseline="" if no_baseline else baseline,
            exact=exact,
            ptxas=ptxas,
        )
    except SelectionError as error:
        # What the word stands for may be a rule that is there and did not load.
        write_load_problems(default_registry())
        given = ",".join([*select, *ignore]).split(",")
        where = "" if error.word in [word.strip() for word in given] else config.line_of(error.word)
        raise click.ClickException(f"{where}: {error}" if where else str(error)) from None
    except TargetNameError as error:
        raise click.ClickException(f"--arch: {error}") from None
    except _file_errors() as error:
        raise click.ClickException(str(error)) from None
    finally:
        progress.close()
    colour = output is None and _colours()
    text = render(
        report,
        chosen,
        colour=colour,
        statistics=statistics,
        obligations=obligations,
    )
    write(text, output)
    if (exit_zero or config.exit_zero) and report.exit_code == 1:
        return 0
    return report.exit_code


def _file_errors() -> tuple[type[Exception], ...]:
    """What bad files of launches and baselines raise; asked for when something was raised."""
    from ptxlint.engine.baseline.layout import BaselineError
    from ptxlint.frontends.launch_file import LaunchFileError

    return LaunchFileError, BaselineError


def settings(paths: tuple[str, ...], named: str | None, none: bool) -> Config:
    """The settings to use. A fault in them ends the command."""
    try:
        if none:
            return Config()
        if named is not None:
            return load_config(named)
        first = next((path for path in paths if path != "-"), ".")
        return find_config(first)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None


def _colours() -> bool:
    """True on a terminal that wants colours (NO_COLOR and TERM=dumb say no)."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") != "dumb"
    )


class _Progress:
    """One line on a terminal's stderr, for runs long enough to wait for."""

    _FEWEST = 10
    _WIDTH = 30

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._shown = -1

    def __call__(self, done: int, total: int, path: str) -> None:
        if not self._on or total < self._FEWEST:
            return
        percent = 100 * done // total
        if percent != self._shown:
            self._shown = percent
            bar = "#" * (self._WIDTH * done // total)
            sys.stderr.write(f"\r[{bar:<{self._WIDTH}}] {done}/{total}")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line away again."""
        if self._shown >= 0:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
