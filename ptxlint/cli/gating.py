"""What `gate` and `stress` have in common."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import check_writable, write

if TYPE_CHECKING:
    from ptxlint.dynamic.campaign.campaign import Settings
    from ptxlint.dynamic.campaign.verdict import Verdict

FORMATS = ("text", "json", "junit", "sarif")
RUNNERS = ("auto", "emulator", "cuda")
_GIB = 1 << 30


def campaign_command(name: str, text: str) -> click.Command:
    """The command of a name, with this help."""
    options = [
        click.Argument(["specs"], metavar="SPEC...", nargs=-1, required=True),
        click.Option(
            ["--runner"], type=click.Choice(RUNNERS), default="auto", show_default=True,
            help="Where kernels run; auto is the GPU if there is one.",
        ),
        click.Option(
            ["--arch"], default="sm_90", show_default=True,
            help="What kernels are compiled for on the emulator.",
        ),
        click.Option(["--seed"], type=click.IntRange(min=0), default=0, show_default=True,
                     help="Another one draws other inputs."),
        click.Option(
            ["--cases"], type=click.IntRange(min=1), default=3, show_default=True,
            help="At most so many for one open property and dtype."
            if name == "gate" else "Of each family and dtype.",
        ),
        click.Option(
            ["--jobs"], type=click.IntRange(min=0), default=0, show_default=True,
            help="Operators at a time; 0 for one per CPU, on GPUs one each.",
        ),
        click.Option(
            ["--time-limit"], type=click.FloatRange(0, min_open=True), default=120.0,
            show_default=True, metavar="SECONDS", help="For one case; what takes longer hangs.",
        ),
        click.Option(
            ["--memory-limit"], type=click.FloatRange(0, min_open=True), default=8.0,
            show_default=True, metavar="GIB", help="For the process that runs an operator.",
        ),
        click.Option(
            ["--store"], metavar="FILE", default="",
            help="Keep results in this file; a run with the same file goes on where one ended.",
        ),
        click.Option(
            ["--replays"], metavar="DIR", default="",
            help="Write a file for each failure that `ptxlint replay` takes.",
        ),
        click.Option(["--tolerances"], metavar="FILE", default="",
                     help="How far off results may be, from `ptxlint calibrate`."),
        click.Option(["--strict"], is_flag=True, help="Exit with 1 where something is undecided."),
        click.Option(["-v", "--obligations"], is_flag=True,
                     help="List what was left open and what became of it."),
        click.Option(["--format", "format_"], type=click.Choice(FORMATS), default="text",
                     show_default=True, help="Output format."),
        click.Option(["--output"], metavar="FILE", help="Write the report to a file."),
    ]  # fmt: skip
    if name == "stress":
        options.insert(1, click.Option(["--family"], metavar="NAME,...", default="",
                                       help="Run these alone (docs/families.md)."))  # fmt: skip
    return click.Command(
        name, params=list(options), help=text, context_settings=CONTEXT, callback=_Run(name)
    )


class _Run:
    """What a command does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, specs: tuple[str, ...], **given: Any) -> int:
        """The exit status."""
        from ptxlint.dynamic.campaign.campaign import Campaign
        from ptxlint.dynamic.campaign.replay import ReplayError
        from ptxlint.dynamic.campaign.reports import render
        from ptxlint.dynamic.campaign.store import StoreError
        from ptxlint.dynamic.campaign.verdict import exit_status

        check_writable(given["output"])
        settings = self._settings(given)
        progress = _Progress()
        try:
            campaign = Campaign(settings)
        except (ReplayError, StoreError) as error:
            raise click.ClickException(str(error)) from None
        try:
            verdicts = campaign.run(campaign.tasks(specs), progress)
        except (StoreError, ReplayError) as error:
            raise click.ClickException(str(error)) from None
        finally:
            progress.close()
            campaign.close()
        write(render(verdicts, given["format_"], obligations=given["obligations"]), given["output"])
        status: int = exit_status(verdicts, strict=given["strict"])
        return status

    def _settings(self, given: dict[str, Any]) -> Settings:
        from ptxlint.dynamic.campaign.campaign import Settings
        from ptxlint.dynamic.campaign.gate import Options
        from ptxlint.dynamic.runners.supervisor import Limits

        runner, gpus = chosen_runner(given["runner"])
        return Settings(
            Options(runner, given["seed"], given["cases"]),
            architecture(given["arch"]),
            Limits(seconds=given["time_limit"], memory=int(given["memory_limit"] * _GIB)),
            gpus,
            given["jobs"],
            given["tolerances"],
            given["store"] or ":memory:",
            given["replays"],
            self._name == "stress",
            _families(given.get("family", "")),
        )


def chosen_runner(word: str) -> tuple[str, tuple[int, ...]]:
    """The runner that a word means on this machine, and the GPUs that it uses.

    A missing GPU that was asked for ends the command.
    """
    from ptxlint.dynamic.campaign.machine import gpus

    found = () if word == "emulator" else gpus()
    if word == "cuda" and not found:
        raise click.ClickException(
            "--runner cuda: no CUDA device was found (nvidia-smi lists none); --runner emulator "
            "needs none"
        )
    return ("cuda", found) if found else ("emulator", ())


def architecture(word: str) -> str:
    """A name of one architecture. Another word ends the command."""
    from ptxlint.dynamic.capture.devices import device_of
    from ptxlint.frontends.target_filter import parse_targets

    try:
        targets = parse_targets([word])
        if len(targets) != 1:
            raise click.ClickException(f"--arch: give one architecture, not {len(targets)}")
        device_of(targets[0])
    except ValueError as error:
        raise click.ClickException(f"--arch: {error}") from None
    return targets[0]


def _families(text: str) -> tuple[str, ...]:
    """Identifiers of families. An unknown one ends the command."""
    from ptxlint.dynamic.families.registry import all_families

    words = tuple(word.strip() for word in text.split(",") if word.strip())
    unknown = [word for word in words if word not in all_families()]
    if unknown:
        raise click.ClickException(
            f"--family: {unknown[0]!r} is none of {', '.join(all_families())}"
        )
    return words


class _Progress:
    """A line on a terminal's stderr."""

    _WIDTH = 30

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._is_shown = False

    def __call__(self, done: int, total: int, last: Verdict) -> None:
        if self._on:
            bar = "#" * (self._WIDTH * done // total)
            word = "problem" if last.problem else last.verdict
            sys.stderr.write(f"\r\x1b[K[{bar:<{self._WIDTH}}] {done}/{total} {last.name}: {word}")
            sys.stderr.flush()
            self._is_shown = True

    def close(self) -> None:
        """Take the line away again."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
