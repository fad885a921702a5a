"""What a process prints."""

from __future__ import annotations

import os
import threading
from typing import IO

_DRAIN = 1.0
"""Seconds to wait for output after the child's end, which others may hold open."""
_KEPT = 1 << 17
"""Bytes of output that are kept, at the beginning and at the end each."""


class Output:
    """Reads what a process prints, and keeps the beginning and the end of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.total = 0
        """Bytes so far."""
        self._stream = stream
        self._first = bytearray()
        self._last = bytearray()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def _pump(self) -> None:
        while True:
            try:
                data = os.read(self._stream.fileno(), 1 << 16)
            except (OSError, ValueError):
                return
            if not data:
                return
            with self._lock:
                self.total += len(data)
                room = _KEPT - len(self._first)
                self._first += data[:room]
                self._last += data[max(0, room) :]
                del self._last[: max(0, len(self._last) - _KEPT)]

    def end(self) -> bool:
        """Wait a little for what is under way; False if somebody holds the stream open."""
        self._thread.join(_DRAIN)
        return not self._thread.is_alive()

    def kept(self) -> bytes:
        """What was printed, of much the beginning and the end."""
        with self._lock:
            left_out = self.total - len(self._first) - len(self._last)
            gap = f"\n… {left_out} bytes left out …\n".encode() if left_out else b""
            return bytes(self._first) + gap + bytes(self._last)


__all__ = ["Output"]
