"""What is asked of a child process and what it answers: lines of JSON through pipes of their own,
so that what an operator prints is in nobody's way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

Message: TypeAlias = dict[str, Any]
LOST: Final = "lost"
"""The key of an answer behind which a child is of no use: a kind, as outcomes have it."""
NOW: Final = "now"
"""The key of a message that is no answer: what is being done from here on."""
INPUTS: Final = "inputs"
"""The key of a message that is no answer: the digest of the inputs of the case that begins."""
REFERENCE: Final = "reference"
"""The reference is at work: what becomes of the process is its doing, not the operator's."""
_CHUNK: Final = 1 << 16


class Plan(NamedTuple):
    """What a child is for: one operator of a spec file, on one runner."""

    path: str
    name: str = ""
    """Of the operator; empty for the only one, or to ask which there are."""
    runner: str = "emulator"
    """`emulator`, `cuda`, or `numpy` for operators that have no kernels alone."""
    arch: str = "sm_80"
    """What kernels are compiled for where nothing else decides: on a GPU, that does."""
    work: str = ""
    """A directory for bundles."""
    gpu: int | None = None
    """Which one of the machine's, on the runner `cuda`; None for the first."""
    margins: bool = True
    """On the runner `cuda`: tensors lie between margins. A program that watches accesses itself
    sees those that miss a tensor only without."""
    directory: str = ""
    """The working directory; empty for that of the parent."""
    tolerances: str = ""
    """A file of tolerances (`ptxlint.dynamic.oracle.calibration`); empty for none."""


def plan_to_json(plan: Plan) -> Message:
    """Plain data for `Plan(**…)`."""
    return plan._asdict()


class Lines:
    """Whole lines out of a pipe, as they come."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self._held = bytearray()

    def read(self) -> list[Message] | None:
        """What one read brings; None at the end. Raises `ValueError` for what is no JSON."""
        data = os.read(self.pipe, _CHUNK)
        if not data:
            return None
        self._held += data
        *whole, rest = self._held.split(b"\n")
        self._held = bytearray(rest)
        return [json.loads(line) for line in whole]


def send(pipe: int, message: Mapping[str, Any]) -> None:
    """Write a line. Raises `OSError` if nobody reads any more."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


__all__ = [
    "INPUTS", "LOST", "NOW", "REFERENCE", "Lines", "Message", "Plan", "plan_to_json", "send",
]  # fmt: skip
