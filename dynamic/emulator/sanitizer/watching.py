"""What watches a batch, by what was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ptxlint.dynamic.emulator.sanitizer.agents import Agents
from ptxlint.dynamic.emulator.sanitizer.arrivals import Arrivals
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.emulator.sanitizer.clocks import Clocks
from ptxlint.dynamic.emulator.sanitizer.in_flight import InFlight
from ptxlint.dynamic.emulator.sanitizer.races import RaceWatch

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.batch import Batch

_WARP: Final = 32


def watch(batch: Batch, first: int, sanitize: Sanitize) -> None:
    """Set a watch on a batch, before which `first` CTAs were run."""
    if not (sanitize.races or sanitize.copies):
        return
    ctas, threads = batch.shape
    clocks = batch.clocks = Clocks(ctas, -(-threads // _WARP), sanitize.copies)
    if sanitize.races:
        batch.watch = RaceWatch(batch, clocks, first, batch.device.shadow)
    if sanitize.copies:
        agents = Agents(batch, clocks)
        batch.arrivals = Arrivals(batch, agents)
        batch.in_flight = InFlight(batch, agents)


__all__ = ["watch"]
