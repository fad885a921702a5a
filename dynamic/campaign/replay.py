"""Replay files: a failing run, to be made again with the same inputs and the same launches."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import ptxlint
from ptxlint.dynamic.capture.devices import device_of
from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.cases.checks import CHECKS
from ptxlint.dynamic.operators.spec import NUMPY
from ptxlint.dynamic.runners.knowledge import Described
from ptxlint.dynamic.runners.outcome import Outcome
from ptxlint.dynamic.runners.requests import Plan
from ptxlint.dynamic.runners.supervisor import ChildWorker, ForkServer, Limits
from ptxlint.dynamic.runners.worker import WorkerError

from .verdict import Verdict, outcome_from_json, outcome_to_json

if TYPE_CHECKING:
    from .campaign import Settings

VERSION: Final = 1
_RUNNERS: Final = ("emulator", "cuda", NUMPY)


class ReplayError(Exception):
    """A file that cannot be replayed; the text says why."""


class Replay(NamedTuple):
    """What a replay file holds. `sources` is alike while the operator's code is."""

    path: str
    name: str
    runner: str
    arch: str
    outcome: Outcome
    sources: str = ""
    deterministic: bool = True

    def to_json(self) -> dict[str, Any]:
        """The content of a file."""
        return {
            "version": VERSION,
            "tool": f"ptxlint {ptxlint.__version__}",
            "operator": {"path": self.path, "name": self.name, "sources": self.sources},
            "runner": self.runner,
            "arch": self.arch,
            "deterministic": self.deterministic,
            "outcome": outcome_to_json(self.outcome),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str) -> Replay:
        """What `to_json` tells; the operator's path is taken from the folder of `where` if it is
        relative. Raises `ReplayError`."""
        if not isinstance(data, Mapping) or "version" not in data:
            raise ReplayError(f"{where}: no replay file of ptxlint's")
        if data["version"] != VERSION:
            raise ReplayError(
                f"{where}: a replay file of version {data['version']!r}; this ptxlint "
                f"({ptxlint.__version__}) reads version {VERSION}"
            )
        try:
            outcome = outcome_from_json(data["outcome"])
            operator = data["operator"]
            if outcome is None:
                raise ValueError("it holds no run")
            _check(data["runner"], data["arch"], outcome.case)
            return cls(
                os.path.normpath(os.path.join(os.path.dirname(where), operator["path"])),
                operator["name"],
                data["runner"],
                data["arch"],
                outcome,
                operator["sources"],
                data["deterministic"],
            )
        except KeyError as error:
            raise ReplayError(f"{where}: a damaged replay file: it has no {error}") from None
        except (AttributeError, TypeError, ValueError) as error:
            raise ReplayError(f"{where}: a damaged replay file: {error}") from None


def _check(runner: str, arch: str, case: Case) -> None:
    """Raises `ValueError` for words that no file of ptxlint's has."""
    if runner not in _RUNNERS:
        raise ValueError(f"runner {runner!r} is none of {', '.join(_RUNNERS)}")
    device_of(arch)
    unknown = [check for check in case.checks if check not in CHECKS]
    if unknown:
        raise ValueError(f"check {unknown[0]!r} is none of {', '.join(CHECKS)}")
    numbers = {"seed": case.seed, **case.dims}
    odd = [name for name, number in numbers.items() if type(number) is not int or number < 0]
    if odd:
        raise ValueError(f"{odd[0]} is {numbers[odd[0]]!r}, no number from 0 on")


def read_replay(path: str) -> Replay:
    """A replay file. Raises `ReplayError`."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror or error}") from None
    except (RecursionError, ValueError):
        raise ReplayError(f"{path}: no replay file of ptxlint's") from None
    return Replay.from_json(data, path)


def make_folder(path: str) -> None:
    """The folder for replay files, that can be written to. Raises `ReplayError`."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ReplayError(f"cannot write to {path}: {error.strerror or error}") from None


def write_replays(verdict: Verdict, described: Described, settings: Settings) -> Verdict:
    """The verdict with a replay file for each failure that a run has shown.

    Files are called after the operator and the case: the same run has the same file. Raises
    `ReplayError` where one cannot be written.
    """
    failures = []
    for failure in verdict.failures:
        if failure.shown is not None:
            path = _write(failure.shown, verdict, described, settings)
            failures.append(failure._replace(replay=path))
        else:
            failures.append(failure)
    return verdict._replace(failures=tuple(failures))


def _write(outcome: Outcome, verdict: Verdict, described: Described, settings: Settings) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", verdict.name)
    path = Path(settings.replays, f"{name}-{outcome.case.key}.json")
    replay = Replay(
        os.path.relpath(described.path, settings.replays),
        verdict.name,
        verdict.runner,
        settings.arch,
        outcome,
        described.sources,
        described.deterministic,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(replay.to_json(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ReplayError(f"cannot write {path}: {error.strerror or error}") from None
    return str(path)


class Again(NamedTuple):
    """A replayed run held to the one in the file, each sentence a difference."""

    outcome: Outcome
    differences: tuple[str, ...]
    is_same_run: bool
    """True for the same inputs and launches; a change of the code may change launches."""


def compared(replay: Replay, again: Outcome, sources: str) -> Again:
    """What is not as it was: code, inputs, launches, and outputs where they are deterministic. Of
    a run that took its process along nobody knows the launches and the outputs."""
    was = replay.outcome
    told = []
    if was.inputs_key and again.inputs_key != was.inputs_key:
        told.append("the inputs are not the same bytes")
    launched = (again.kernels, again.launches_key)
    if was.launches_key and launched != (was.kernels, was.launches_key):
        told.append("the launches are not the same")
    is_same_run = not told or sources != replay.sources
    if sources != replay.sources:
        told.insert(0, "the operator's code has changed since")
    if replay.deterministic and was.outputs_key and again.outputs_key != was.outputs_key:
        told.append("the outputs are not the same bytes")
    if (again.status, again.kind) != (was.status, was.kind):
        told.append(f"it was {_word(was)}, now it is {_word(again)}")
    return Again(again, tuple(told), is_same_run)


def run_again(replay: Replay, server: ForkServer, limits: Limits | None = None) -> Again:
    """The run of a replay file, made again in a child of the server, which must be for the same
    runner. Raises `ReplayError` where the operator is not there any more, or cannot be run."""
    plan = Plan(replay.path, replay.name, replay.runner, replay.arch)
    worker = ChildWorker(server, plan, limits)
    try:
        described = worker.describe()
        outcome = worker.run(replay.outcome.case)
    except WorkerError as error:
        raise ReplayError(f"it cannot be run again: {error}") from None
    finally:
        worker.close()
    if outcome.status == "undecided":
        raise ReplayError(f"it cannot be run again: {replay.path}:{replay.name}: {outcome.reason}")
    return compared(replay, outcome, described.sources)


def _word(outcome: Outcome) -> str:
    return f"{outcome.status} ({outcome.kind})" if outcome.kind else outcome.status


__all__ = [
    "Again",
    "Replay",
    "ReplayError",
    "compared",
    "make_folder",
    "read_replay",
    "run_again",
    "write_replays",
]
