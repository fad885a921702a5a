"""`ptxlint replay`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import write

if TYPE_CHECKING:
    from ptxlint.dynamic.campaign.replay import Again, Replay


@click.command("replay", context_settings=CONTEXT)
@click.argument("file", metavar="FILE")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="Output format.")  # fmt: skip
@click.option("--output", metavar="FILE", help="Write the report to a file.")
def command(file: str, format_: str, output: str | None) -> int:
    """Make the run of a replay file again (`ptxlint gate --replays DIR` writes them): the same
    operator, inputs and launches, byte for byte, on the same runner.

    This executes the spec that the file names, in a child process.

    \b
    Exit status: 0 it passes now, 1 it fails, 2 it cannot be made again as it was.
    """
    from ptxlint.cli.gating import chosen_runner
    from ptxlint.dynamic.campaign.replay import ReplayError, read_replay, run_again
    from ptxlint.dynamic.runners.supervisor import ForkServer

    try:
        replay = read_replay(file)
        if replay.runner == "cuda":
            chosen_runner("cuda")
        server = ForkServer(replay.runner)
        try:
            again = run_again(replay, server)
        finally:
            server.close()
    except ReplayError as error:
        raise click.ClickException(str(error)) from None
    write(_json(replay, again) if format_ == "json" else _text(replay, again), output)
    for difference in again.differences:
        print(f"not as it was: {difference}", file=sys.stderr)
    if not again.is_same_run:
        return 2
    return 0 if again.outcome.status == "pass" else 1


def _text(replay: Replay, again: Again) -> str:
    from ptxlint.dynamic.campaign.reports.words import errors, inputs

    outcome = again.outcome
    lines = [f"{outcome.status:<9} {replay.name}: {inputs(outcome.case)}"]
    lines += [f"  {line}" for line in (outcome.reason, errors(outcome)) if line]
    was = replay.outcome
    held = {
        "inputs": was.inputs_key,
        "launches": was.launches_key,
        "outputs": was.outputs_key if replay.deterministic else "",
    }
    same = [word for word, key in held.items() if key]
    if same and not again.differences:
        words = " and ".join(part for part in (", ".join(same[:-1]), same[-1]) if part)
        lines.append(f"  {words} are those of the file, byte for byte")
    return "\n".join(lines) + "\n"


def _json(replay: Replay, again: Again) -> str:
    from ptxlint.dynamic.campaign.verdict import outcome_to_json

    told: dict[str, Any] = {
        "version": 1,
        "operator": {"path": replay.path, "name": replay.name},
        "outcome": outcome_to_json(again.outcome),
        "differences": list(again.differences),
    }
    return json.dumps(told, indent=1) + "\n"
