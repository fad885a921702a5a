"""Processes that a script starts and that run Triton themselves: nobody sees what they launch.

Those that are forked tell it (`journal`). What is started anew (`subprocess`, `spawn`, `torchrun`)
is found in /proc: a process of the same session, with a command line of its own, that has mapped
Triton's library. Without /proc (elsewhere than on Linux) none is found.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

REASON: Final = "a process that the script started runs Triton; what it launches is not captured"
_LIBRARY: Final = b"/libtriton"
_COMPILING: Final = b"compile_worker"
"""In the command of processes that compile for torch, and launch nothing."""
_EVERY: Final = 0.5
_LONGEST: Final = 120


class Strays:
    """Watches the session that a process leads."""

    def __init__(self, leader: int, processes: Path = Path("/proc")) -> None:
        self._leader = leader
        self._processes = processes
        self._looked = 0.0
        self._known: set[int] = set()
        self.found: dict[str, int] = {}
        """How many run Triton, by their command."""

    def look(self) -> None:
        """Look, unless that was done just now."""
        now = time.monotonic()
        if now - self._looked < _EVERY:
            return
        self._looked = now
        own = self._command(self._leader)
        for number in self._session():
            if number == self._leader or number in self._known:
                continue
            command = self._command(number)
            # A fork has its parent's command; it tells by itself what it launches.
            if command in (b"", own) or _COMPILING in command or not self._runs_triton(number):
                continue
            self._known.add(number)
            text = " ".join(command.decode(errors="replace").split("\0")).strip()
            text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
            self.found[text] = self.found.get(text, 0) + 1

    def _session(self) -> list[int]:
        """The processes of the session."""
        try:
            names = os.listdir(self._processes)
        except OSError:
            return []
        numbers = [int(name) for name in names if name.isdecimal()]
        return [number for number in numbers if self._session_of(number) == self._leader]

    def _session_of(self, number: int) -> int:
        # The command's name stands in parentheses and may hold some; the session is behind.
        fields = self._read(number, "stat").rpartition(b")")[2].split()
        return int(fields[3]) if len(fields) > 3 else -1

    def _runs_triton(self, number: int) -> bool:
        return _LIBRARY in self._read(number, "maps")

    def _command(self, number: int) -> bytes:
        return self._read(number, "cmdline")

    def _read(self, number: int, name: str) -> bytes:
        try:
            return (self._processes / str(number) / name).read_bytes()
        except OSError:
            # It is gone, or another user's.
            return b""
