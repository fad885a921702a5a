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
    from collections.abc import Callable

    from ptxlint.dynamic.emulator.batch import Batch
    from ptxlint.dynamic.emulator.sanitizer.stored_reads import StoredReads

_WARP: Final = 32


def watch(batch: Batch, first: int, sanitize: Sanitize, stored: Callable[[], StoredReads]) -> None:
    """Set a watch on a batch, before which `first` CTAs were run. `stored` are the reads of its
    kernel that go to stores alone, for races."""
    if not (sanitize.races or sanitize.copies):
        return
    ctas, threads = batch.shape
    clocks = batch.clocks = Clocks(ctas, -(-threads // _WARP), sanitize.copies)
    if sanitize.races:
        batch.watch = RaceWatch(batch, clocks, first, batch.device.shadow, stored())
    if sanitize.copies:
        agents = Agents(batch, clocks)
        batch.arrivals = Arrivals(batch, agents)
        batch.in_flight = InFlight(batch, agents)


__all__ = ["watch"]
