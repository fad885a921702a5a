"""`ptxlint emulate`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlint.cli import EXIT_INTERRUPT
from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import write
from ptxlint.config import FORMATS
from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.inputs import Inputs
    from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
    from ptxlint.dynamic.emulator.session import Emulated, Emulation
    from ptxlint.launches import Launch


@click.command("emulate", context_settings=CONTEXT)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--kernel", default="", metavar="NAME", help="Run this kernel alone.")
@click.option(
    "--launch",
    metavar="N|FILE",
    default="",
    help="Run launch N of each kernel of a bundle (from 0), or the launches in a JSON file.",
)
@click.option(
    "--inputs",
    metavar="random|zeros|recorded|FILE.npz",
    default="random",
    show_default=True,
    help="What the tensors hold: what was captured with --record-inputs, or, in a file, arrays by "
    "argument name; random where there is none.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Another one draws other random numbers.",
)
@click.option(
    "--sanitize",
    metavar="KIND,...|all",
    default="memory",
    show_default=True,
    help="What a run is watched for: memory (always); races: accesses that nothing orders; "
    "uninitialised: registers and memory that nothing was written to, where they decide or get "
    "out; overflow: integers that wrapped, where they are addresses; copies: data of asynchronous "
    "copies and matrix products that is touched before these are done; nonfinite: NaN and "
    "infinities made of finite numbers and stored. Each makes the run slower.",
)
@click.option("--counters", is_flag=True, help="Print a heat map of the Python lines.")
@click.option("--heat-svg", metavar="FILE", help="Write the heat map of the last run as SVG.")
@click.option("--save", metavar="FILE.npz", help="Write the tensors after the last run.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True,
    help="Output format.",
)  # fmt: skip
@click.option("--output", metavar="FILE", help="Write the report to a file.")
@click.option(
    "--most-turns",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    help="Give a run up after so many turns of a group of CTAs.",
)
def command(
    paths: tuple[str, ...],
    kernel: str,
    launch: str,
    inputs: str,
    seed: int,
    sanitize: str,
    counters: bool,
    heat_svg: str | None,
    save: str | None,
    force: bool,
    format_: str,
    output: str | None,
    most_turns: int,
) -> int:
    """Run compiled kernels on numpy arrays, without a GPU, and report what they do wrong.

    PATH is a captured bundle, whose launches are run, or a PTX file with --launch FILE
    (docs/launch-files.md). Every access is held against the tensors of the launch. No code of
    the user's is executed but the kernel.

    \b
      ptxlint capture train.py --arch sm_90 --out bundle --record-inputs
      ptxlint emulate bundle --inputs recorded
      ptxlint emulate softmax.ptx --launch launch.json --sanitize races --counters
      ptxlint rule EMU901                    what a finding means and what to do

    \b
    Exit status: 0 nothing was found, 1 something was, 2 something could not be run.
    """
    for path in (heat_svg, save):
        _check_target(path, force)
    from ptxlint.dynamic.emulator.session import EmulationError, emulate
    from ptxlint.reporters import render

    number, launches = _launches(launch)
    watched = _sanitize(sanitize)
    try:
        found = emulate(
            list(paths),
            kernel=kernel,
            number=number,
            launches=launches,
            inputs=_inputs(inputs, seed),
            counts=counters or heat_svg is not None,
            most_turns=most_turns,
            sanitize=watched,
        )
    except EmulationError as error:
        raise click.ClickException(str(error)) from None
    if format_ == "json":
        write(_json(found), output)
    else:
        text = render(found.report, format_)
        if format_ == "text":
            text = _told(found, counters) + text
        write(text, output)
    for reason in found.left_out:
        print(f"not run: {reason}", file=sys.stderr)
    _write_files(found, heat_svg, save)
    if found.is_interrupted:
        print("interrupted; this is what it came to until then", file=sys.stderr)
        return EXIT_INTERRUPT
    incomplete = found.left_out or not all(run.is_complete for run in found.runs)
    return 2 if incomplete else found.report.exit_code


def _inputs(word: str, seed: int) -> Inputs:
    """What tensors hold. What cannot be read ends the command."""
    from ptxlint.dynamic.emulator.inputs import (
        GivenInputs,
        InputError,
        RandomInputs,
        RecordedInputs,
        ZeroInputs,
        read_arrays,
    )

    if word == "random":
        return RandomInputs(seed)
    if word == "zeros":
        return ZeroInputs()
    if word == "recorded":
        return RecordedInputs(RandomInputs(seed))
    if not word.endswith(".npz") and not Path(word).exists():
        raise click.ClickException(
            f"--inputs: '{word}' is none of random, zeros, recorded, nor a file"
        )
    try:
        return GivenInputs(read_arrays(word), RandomInputs(seed), word)
    except InputError as error:
        raise click.ClickException(f"--inputs {error}") from None


def _sanitize(words: str) -> Sanitize:
    """What a run is watched for."""
    from ptxlint.dynamic.emulator.sanitizer.choice import chosen

    try:
        return chosen(words)
    except ValueError as error:
        raise click.ClickException(f"--sanitize: {error}") from None


def _launches(word: str) -> tuple[int | None, tuple[Launch, ...]]:
    """The number of a launch, or the launches of a file."""
    if not word:
        return None, ()
    if word.isdecimal():
        return int(word), ()
    from ptxlint.frontends.launch_file import LaunchFileError, read_launch_file

    try:
        return None, read_launch_file(word)
    except LaunchFileError as error:
        raise click.ClickException(str(error)) from None


def _told(found: Emulated, counters: bool) -> str:
    """A line a run, and its heat map if that was asked for."""
    out = []
    for run in found.runs:
        ctas = counted(run.ctas, "CTA")
        if run.sampled:
            ctas = f"{run.ctas:,} of {run.sampled:,} CTAs, evenly spread"
        state = "" if run.is_complete else ", not to its end"
        place = f" {run.place}" if run.place else ""
        out.append(f"{run.kernel}{place}: {ctas}{state} ({run.seconds:.2f} s)\n")
        if run.inputs:
            out.append(f"  inputs: {_origins(run.inputs)}\n")
        if counters:
            from ptxlint.dynamic.emulator.heat import heat_text

            out.append(heat_text(run))
    return "".join(out)


def _origins(inputs: dict[str, str]) -> str:
    """Where contents come from, each way with the arguments that go it."""
    ways: dict[str, list[str]] = {}
    for name, way in inputs.items():
        ways.setdefault(way, []).append(name)
    return "; ".join(f"{', '.join(names)} {way}" for way, names in ways.items())


def _json(found: Emulated) -> str:
    from ptxlint.dynamic.emulator.heat import counts_to_dict

    data = found.report.to_dict()
    data["runs"] = [
        {
            "kernel": run.kernel,
            "path": run.path,
            "launch": run.place,
            "ctas": run.ctas,
            "sampled_from": run.sampled,
            "complete": run.is_complete,
            "seconds": run.seconds,
            "inputs": run.inputs,
            "lines": [] if run.counters is None else counts_to_dict(run),
        }
        for run in found.runs
    ]
    data["left_out"] = found.left_out
    return json.dumps(data, indent=1) + "\n"


def _check_target(path: str | None, force: bool) -> None:
    """A file that is to be written: nothing is overwritten, and what cannot be is told at once."""
    if not path:
        return
    if os.path.isdir(path):
        raise click.ClickException(f"cannot write {path}: it is a directory")
    if os.path.exists(path) and not force:
        raise click.ClickException(f"{path} is there already; --force overwrites it")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise click.ClickException(f"cannot write {path}: there is no directory {folder}")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise click.ClickException(f"cannot write {path}: no permission")


def _write_files(found: Emulated, heat: str | None, save: str | None) -> None:
    last: Emulation = found.runs[-1]
    if heat:
        from ptxlint.dynamic.emulator.heat import heat_svg

        write(heat_svg(last), heat)
    if save:
        import numpy as np

        arrays: dict[str, Any] = dict(last.outputs)
        try:
            # A path would get another ending, and might be another file's.
            with open(save, "wb") as stream:
                np.savez(stream, **arrays)
        except OSError as error:
            raise click.ClickException(f"cannot write {save}: {error.strerror or error}") from None
