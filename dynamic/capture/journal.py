"""What a child process tells while it records: a line of JSON for each event, in a file.

Each line is written at once: whatever ends the child, what was captured until then is there. A
kernel's files are written before its line.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptxlint.launches import Launch

from .kernels import Kernel, Sink, Trouble
from .manifest import launch_entry
from .writing import write_kernel

_COUNTS_EVERY = 1.0
"""Seconds between lines that only say how often a launch was repeated."""


def contents_of(journal: Path) -> Path:
    """Where what memory held is kept beside a journal, a file for each key."""
    return journal.with_suffix(".contents")


class Journal(Sink):
    """Writes a journal, and the kernels into the bundle."""

    def __init__(self, path: Path, bundle: Path) -> None:
        # One write a line, at the end of the file whoever writes: forked children may, too.
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._bundle = bundle
        self._contents = contents_of(path)
        self._process = os.getpid()
        self._told_of_fork = False
        self._counts: dict[tuple[str, int], int] = {}
        self._counted_at = time.monotonic()

    def write(self, event: str, **fields: Any) -> None:
        """One line."""
        line = json.dumps({"event": event, **fields}, allow_nan=False) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self._file, data) :]

    def _forked(self, name: str) -> bool:
        """True in a process that the script forked; told once, in one line."""
        if os.getpid() == self._process:
            return False
        if not self._told_of_fork:
            self._told_of_fork = True
            reason = "launched in a process that the script forked; such launches are not captured"
            self.write("trouble", what=name, reason=reason)
        return True

    def compiling(self, name: str) -> None:
        """For the line that shows how far it is."""
        if not self._forked(name):
            self.write("compiling", name=name)

    def kernel(self, kernel: Kernel) -> None:
        """Write the kernel's files, and a line."""
        if self._forked(kernel.name):
            return
        self.write("kernel", entry=write_kernel(kernel, self._bundle))

    def contents(self, key: str, data: bytes) -> None:
        """A file, before the line that names it."""
        if self._forked("a kernel"):
            return
        self._contents.mkdir(exist_ok=True)
        part = self._contents / f"{key}.part"
        part.write_bytes(data)
        part.rename(self._contents / key)

    def launch(self, kernel: Kernel, index: int, launch: Launch, again: bool) -> None:
        """A line for a new launch; how often old ones are repeated is told now and then."""
        if self._forked(kernel.name):
            return
        if not again:
            self.write("launch", kernel=kernel.hash, launch=launch_entry(launch))
            return
        self._counts[kernel.hash, index] = launch.times
        if time.monotonic() - self._counted_at > _COUNTS_EVERY:
            self.flush()

    def flush(self) -> None:
        """Tell the counts."""
        self._counted_at = time.monotonic()
        counts, self._counts = self._counts, {}
        for (hash_, index), count in counts.items():
            self.write("count", kernel=hash_, index=index, count=count)

    def trouble(self, trouble: Trouble) -> None:
        """A line."""
        if not self._forked(trouble.what):
            self.write("trouble", what=trouble.what, reason=trouble.reason)


class Account:
    """What a journal says so far."""

    def __init__(self, path: Path) -> None:
        self.started: dict[str, Any] = {}
        self.ended: dict[str, Any] | None = None
        self.kernels: dict[str, dict[str, Any]] = {}
        self.troubles: dict[tuple[str, str], int] = {}
        self.compiling = ""
        self.launches = 0
        self._path = path
        self._offset = 0

    def update(self) -> bool:
        """Take in what has been written since; True if anything was."""
        before = self._offset
        for event in self._read():
            self._take(event)
        return self._offset != before

    def _read(self) -> Iterator[dict[str, Any]]:
        """Whole lines only: the last one may be half written."""
        try:
            with open(self._path, "rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.pop("event")
        if kind == "start":
            self.started = event
        elif kind == "compiling":
            self.compiling = event["name"]
        elif kind == "kernel":
            self.kernels.setdefault(event["entry"]["hash"], event["entry"])
            self.compiling = ""
        elif kind == "launch":
            self.launches += 1
            self.kernels[event["kernel"]]["launches"].append(event["launch"])
        elif kind == "count":
            self.kernels[event["kernel"]]["launches"][event["index"]]["count"] = event["count"]
        elif kind == "trouble":
            key = (event["what"], event["reason"])
            self.troubles[key] = self.troubles.get(key, 0) + 1
        elif kind == "end":
            self.ended = event
