"""Where a rule crashed, read off its traceback."""

from __future__ import annotations

import os
from types import FrameType
from typing import NamedTuple

from ptxlint.ir.instruction import Instr


class Crash(NamedTuple):
    """What went wrong, in which file and line, and at which instruction it was looking."""

    message: str
    where: str
    instruction: Instr | None


def describe_crash(error: BaseException) -> Crash:
    """What is known about a crash. The instruction is the nearest one that a frame held."""
    frames: list[tuple[FrameType, int]] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    text = " ".join(str(error).split())
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if not frames:
        return Crash(message, "an unknown place", None)
    frame, line = frames[-1]
    folder, name = os.path.split(frame.f_code.co_filename)
    where = f"{os.path.basename(folder)}/{name}:{line} ({frame.f_code.co_name})"
    return Crash(message, where, _instruction([f for f, _ in reversed(frames)]))


def _instruction(frames: list[FrameType]) -> Instr | None:
    for frame in frames:
        for value in frame.f_locals.values():
            if isinstance(value, Instr):
                return value
    return None
