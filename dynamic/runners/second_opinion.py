"""A case under NVIDIA's compute-sanitizer: a second opinion on accesses to memory on a GPU.

The program is part of CUDA's toolkit and is not needed for anything else. It watches a process from
its start, so the case is run in a fresh one; tensors have no margins there, and each has an
allocation of its own, so that an access beyond it is seen.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ..cases.case import Case
from .outcome import Outcome
from .requests import Plan, plan_to_json

PROGRAM: Final = "compute-sanitizer"
TOOLS: Final = ("memcheck", "initcheck", "racecheck", "synccheck")
_FIRST_LINE: Final = re.compile(
    r"^========= (?P<what>(?:Invalid|Uninitialized|Error|Race|Barrier|Potential|Misaligned)[^\n]*)"
    r"(?P<more>(?:\n=========     [^\n]*)*)",
    re.MULTILINE,
)
_PLACE: Final = re.compile(r"^=========     at (?:0x[0-9a-f]+ in )?(?P<where>[^\n]+)", re.MULTILINE)
_THREAD: Final = re.compile(r"by thread (\([^)]*\)) in block (\([^)]*\))")


class OpinionError(Exception):
    """No opinion can be had; the text says why."""


class Opinion(NamedTuple):
    """What the program saw, each sort of problem once, and what the case came to meanwhile (None if
    the process did not get so far)."""

    problems: tuple[str, ...]
    outcome: Outcome | None
    text: str


def program() -> str | None:
    """Where compute-sanitizer is: on the path, or in the toolkit that CUDA_HOME names."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path=os.path.join(home, "bin"))


def second_opinion(plan: Plan, case: Case, tool: str = "memcheck", seconds: float = 600) -> Opinion:
    """Run a case of a plan for the runner `cuda` under a tool of compute-sanitizer. Raises
    `OpinionError`."""
    found = program()
    if found is None:
        raise OpinionError(
            f"{PROGRAM} is not there: it is part of CUDA's toolkit; put it on the path, or set "
            "CUDA_HOME"
        )
    with tempfile.TemporaryDirectory(prefix="ptxlint-opinion-") as work:
        request, answer = Path(work, "request.json"), Path(work, "answer.json")
        where = plan.directory or os.getcwd()
        mine = plan._replace(work=work, directory=where, margins=False)
        told = {"plan": plan_to_json(mine), "case": case.to_json()}
        request.write_text(json.dumps(told), encoding="utf-8")
        command = [
            found, "--tool", tool, sys.executable, "-m", "ptxlint.dynamic.runners.once",
            str(request), str(answer),
        ]  # fmt: skip
        text = _printed(command, seconds)
        outcome = None
        with suppress(OSError, ValueError, KeyError):
            outcome = Outcome.from_json(json.loads(answer.read_text(encoding="utf-8"))["ok"])
    return Opinion(problems_in(text), outcome, text)


def problems_in(text: str) -> tuple[str, ...]:
    """The problems of a report, in its order; those of one kind at one place once."""
    found = []
    for match in _FIRST_LINE.finditer(text):
        place = _PLACE.search(match["more"])
        thread = _THREAD.search(match["more"])
        where = f" at {place['where'].strip()}" if place else ""
        who = f", first by thread {thread[1]} of block {thread[2]}" if thread else ""
        found.append((f"{match['what'].strip()}{where}", who))
    return tuple(what + who for what, who in dict(reversed(found)).items())[::-1]


def _printed(command: list[str], seconds: float) -> str:
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    environment.pop("TRITON_INTERPRET", None)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise OpinionError(f"no end under {PROGRAM} after {seconds:g} s") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return output.read().decode(errors="replace")


__all__ = ["TOOLS", "Opinion", "OpinionError", "problems_in", "program", "second_opinion"]
