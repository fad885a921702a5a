"""What one CTA of a kernel takes of an SM, and who says so."""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.arch import Arch, Occupancy, occupancy
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.dataflow.shared_memory import SharedMemoryAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.resources import ESTIMATE, Amount

LAUNCH: Final = "the launch"
_ROOM: Final = 24


class CtaDemand(NamedTuple):
    """What a CTA takes: threads, bytes of shared memory (static and dynamic) and who says so,
    registers of a thread, barriers. None is unknown."""

    threads: int
    shared: int
    shared_said: str
    registers: Amount | None
    barriers: Amount | None

    @property
    def takes_barriers(self) -> int:
        """Its barriers; 0 where they are not known, so that they set no limit."""
        return self.barriers.value if self.barriers is not None else 0

    def on(self, arch: Arch, registers: int) -> Occupancy:
        """How many such CTAs fit an SM if each thread has so many registers."""
        return occupancy(arch, registers, self.threads, self.shared, self.takes_barriers)


def cta_demand(
    facts: Facts, threads: int | None = None, dynamic: int | None = None
) -> CtaDemand | None:
    """The demand of a kernel as it was compiled, or of a launch with so many threads and bytes of
    dynamic shared memory. None if its threads or its shared memory are not known."""
    if threads is None:
        threads = facts.max_threads()
    found = facts.get(SharedMemoryAnalysis)
    said = found.said
    if dynamic is not None and dynamic != found.dynamic:
        static = found._replace(dynamic=0).said
        found = found._replace(dynamic=dynamic)
        said = f"{static}; {LAUNCH}" if static else LAUNCH
    if threads is None or threads < 1 or (found.dynamic is None and found.is_open):
        return None
    known = facts.resources
    registers = known.registers if known is not None else None
    barriers = known.barriers if known is not None else None
    return CtaDemand(threads, found.total, said, registers, barriers)


def most_likely_registers(facts: Facts) -> Amount:
    """A count of registers that an assembler hardly exceeds, from the most that are live at once.

    Of 972 builds that do not spill, one took more: 66 registers where 18 are live.
    """
    live = facts.get(PressureAnalysis).peak.words
    return Amount(live + max(_ROOM, live // 3), ESTIMATE)


def register_limit(fn: Function, arch: Arch, threads: int | None) -> tuple[int, str]:
    """The most registers that a thread of this kernel can have, and what says so."""
    limit, source = arch.registers_per_thread, f"a thread of {arch.name} can have"
    ceiling = fn.directives.get("maxnreg")
    if ceiling and int(ceiling[0]) < limit:
        return int(ceiling[0]), "`.maxnreg` allows"
    if threads is not None and threads > 0:
        per_sm = fn.directives.get("minnctapersm")
        ctas = int(per_sm[0]) if per_sm else 1
        unit = arch.register_allocation_unit // arch.warp_size
        share = arch.registers_per_cta // (threads * max(1, ctas)) // unit * unit
        if 0 < share < limit:
            cta = f"{ctas} CTAs of {threads} threads leave" if ctas > 1 else ""
            return share, cta or f"a CTA of {threads} threads leaves each"
    return limit, source


__all__ = ["LAUNCH", "CtaDemand", "cta_demand", "most_likely_registers", "register_limit"]
