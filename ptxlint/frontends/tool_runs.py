"""Running a program of somebody else: within limits of time and of what it prints.

A program that hangs, floods its output, or leaves children behind that keep the pipes open ends
with its whole process group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from threading import Thread
from typing import IO, Final

MOST_OUTPUT: Final = 256 << 20
"""Bytes that a program may print; the listing of the largest cubin known has 30 MiB (measured)."""
_PIECE: Final = 1 << 16
_PATIENCE: Final = 5.0


class ToolError(RuntimeError):
    """A tool that is missing or failed: what is wrong, and what to do."""


def run(
    words: list[str], seconds: float, directory: str | None = None, most_output: int = MOST_OUTPUT
) -> tuple[str, str]:
    """What a program prints and what it says of faults. Raises `ToolError`, also if it does not
    succeed."""
    name = os.path.basename(words[0])
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{words[0]} cannot be run: {error.strerror or error}") from None
    assert process.stdout is not None
    assert process.stderr is not None
    streams = [_Stream(pipe, process, most_output) for pipe in (process.stdout, process.stderr)]
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name} took longer than {seconds:,.0f} seconds") from None
    finally:
        _end(process)
        for stream in streams:
            stream.join(_PATIENCE)
    if any(stream.is_flooded for stream in streams):
        raise ToolError(f"{name} prints more than {most_output >> 20:,} MiB: is it what it is for?")
    out, err = (bytes(stream.data).decode(errors="replace") for stream in streams)
    if process.returncode:
        said = " ".join((err or out).split())[:500] or _status(process.returncode)
        raise ToolError(f"{name} failed: {said}")
    return out, err


class _Stream(Thread):
    """Reads one pipe to its end, or ends the program that floods it."""

    def __init__(self, pipe: IO[bytes], process: subprocess.Popen[bytes], most: int) -> None:
        super().__init__(daemon=True)
        self.data = bytearray()
        self.is_flooded = False
        self._pipe = pipe
        self._process = process
        self._most = most
        self.start()

    def run(self) -> None:
        """Until the pipe is closed by all that hold it."""
        with self._pipe as pipe:
            while piece := pipe.read1(_PIECE):  # type: ignore[attr-defined]
                self.data += piece
                if len(self.data) > self._most:
                    self.is_flooded = True
                    _end(self._process)
                    return


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and whatever it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _status(code: int) -> str:
    if code > 0:
        return f"exit status {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


__all__ = ["MOST_OUTPUT", "ToolError", "run"]
