"""`ptxlint capture`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.dynamic.capture.journal import Account
    from ptxlint.dynamic.capture.session import Capture


class _Command(click.Command):
    """A command whose options may stand behind the script, too, among the script's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Sort the command line, then read it."""
        takes_value = {
            # Of an option that may stand without a value the next word is not one.
            name: not (
                getattr(option, "is_flag", False) or getattr(option, "_flag_needs_value", False)
            )
            for option in self.get_params(ctx)
            for name in option.opts
            if name.startswith("-")
        }
        return super().parse_args(ctx, sort_arguments(args, takes_value))


def sort_arguments(args: list[str], takes_value: dict[str, bool]) -> list[str]:
    """Options of capture first, then `--`, the script and its arguments.

    Behind the script, long options of capture are capture's, up to a `--`; all else is the
    script's.
    """
    own: list[str] = []
    rest: list[str] = []
    pending = list(reversed(args))
    while pending:
        word = pending.pop()
        name = word.partition("=")[0]
        if word == "--":
            rest += reversed(pending)
            break
        if (name in takes_value and name.startswith("--")) or (not rest and word.startswith("-")):
            own.append(word)
            if takes_value.get(word) and pending:
                own.append(pending.pop())
        else:
            rest.append(word)
    return [*own, "--", *rest] if rest else own


@click.command("capture", cls=_Command, context_settings=CONTEXT)
@click.option(
    "--arch",
    "archs",
    metavar="ARCHS",
    multiple=True,
    required=True,
    help="Architectures to compile for: sm_80,sm_90.",
)
@click.option("--out", metavar="DIR", required=True, help="Where to write the bundle.")
@click.option("-m", "module", is_flag=True, help="SCRIPT names a module, as in python -m.")
@click.option(
    "--autotune",
    type=click.Choice(["first", "all"]),
    default="first",
    show_default=True,
    help="Launch the first configuration of an autotuner, or each.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop the script after so long, for each architecture.",
)
@click.option("--no-gpu", is_flag=True, help="Record without the GPU even if there is one.")
@click.option(
    "--record-inputs",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[=BYTES]",
    help="Record what each tensor of up to so many bytes (--record-inputs=4M; 1M without) holds "
    "before a launch, 64 MiB in all, for ptxlint emulate --inputs recorded.",
)
@click.option("--force", is_flag=True, help="Replace the bundle that is in DIR.")
@click.argument("command_line", metavar="SCRIPT [ARGS]...", nargs=-1, required=True)
def command(
    archs: tuple[str, ...],
    out: str,
    module: bool,
    autotune: str,
    timeout: float,
    no_gpu: bool,
    record_inputs: str | None,
    force: bool,
    command_line: tuple[str, ...],
) -> int:
    """Run a Python script, and write its Triton kernels and their launches to a bundle.

    This executes the script, once for each architecture. No GPU is needed: tensors are kept on the
    CPU, kernels are compiled and not run. On a GPU of one of the architectures they do run there.
    Needs Triton and torch. Behind SCRIPT, options that capture does not know are the
    script's, and so is all behind --.

    \b
    Exit status: 0 all was captured, 2 something was not (the bundle holds the rest).
    """
    from ptxlint.dynamic.capture.session import CaptureError, capture

    wanted = list(dict.fromkeys(a.strip() for text in archs for a in text.split(",") if a.strip()))
    progress = _Progress()
    try:
        result = capture(
            command_line,
            wanted,
            out,
            module=module,
            autotune=autotune,
            timeout=timeout,
            force=force,
            gpu=False if no_gpu else None,
            record_inputs=_bytes(record_inputs),
            progress=progress,
        )
    except CaptureError as error:
        raise click.ClickException(str(error)) from None
    finally:
        progress.close()
    _report(result)
    return 0 if result.complete else 2


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _bytes(word: str | None) -> int:
    """Bytes of a tensor that are recorded: 0 without the option."""
    from ptxlint.dynamic.capture.session import MOST_A_TENSOR

    if not word:
        return 0 if word is None else MOST_A_TENSOR
    number, unit = (word[:-1], word[-1].upper()) if word[-1].isalpha() else (word, "")
    if not number.isdecimal() or unit not in _UNITS or not int(number):
        raise click.ClickException(f"--record-inputs={word}: give a number of bytes, as 4096 or 4M")
    return int(number) * _UNITS[unit]


def _report(result: Capture) -> None:
    """A line for each run, and one for each problem."""
    for run in result.runs:
        click.echo(
            f"{run.arch}: {counted(run.kernels, 'kernel')}, "
            f"{_launches(run.launches)} ({run.seconds:.1f} s)"
        )
        if run.status != "complete":
            click.echo(f"{run.arch}: {run.status}: {run.message}", err=True)
            click.echo(f"{run.arch}: what it printed: {result.out / run.output}", err=True)
    for problem in result.problems:
        times = f" ({problem['count']} times)" if problem["count"] > 1 else ""
        click.echo(
            f"{problem['arch']}: not captured: {problem['what']}: {problem['reason']}{times}",
            err=True,
        )
    click.echo(f"wrote {result.out}; next: ptxlint check {result.out}")
    if result.recorded:
        click.echo(f"or run it: ptxlint emulate {result.out} --inputs recorded")


def _launches(number: int) -> str:
    return "1 launch" if number == 1 else f"{number} launches"


class _Progress:
    """How far it is: a line that changes on a terminal, one now and then elsewhere."""

    _EVERY = 30.0

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = ""
        self._told = time.monotonic()

    def __call__(self, arch: str, account: Account, seconds: float) -> None:
        doing = f", compiling {account.compiling}" if account.compiling else ""
        kernels = counted(len(account.kernels), "kernel")
        launches = _launches(account.launches)
        text = f"{arch}: {kernels}, {launches}{doing} ({seconds:.0f} s)"
        if self._terminal:
            if text != self._shown:
                self._shown = text
                sys.stderr.write(f"\r\x1b[K{text[:120]}")
                sys.stderr.flush()
        elif time.monotonic() - self._told > self._EVERY:
            self._told = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the line away again."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
