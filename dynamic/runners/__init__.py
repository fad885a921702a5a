"""Runners: cases run in child processes, on the emulator, on a GPU or on plain numpy."""

from __future__ import annotations

from .outcome import Compared, Outcome

__all__ = ["Compared", "Outcome"]
