"""RES105: a little less of something would let another CTA fit an SM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ptxlint.arch import (
    Arch,
    Occupancy,
    max_threads_per_cta,
    most_barriers,
    most_registers,
    most_shared,
)
from ptxlint.dataflow.cta_demand import CtaDemand, cta_demand, most_likely_registers
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.dataflow.shared_memory import SharedMemoryAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.sass.function import is_machine_code
from ptxlint.launch.bound import BoundLaunches
from ptxlint.resources import Amount
from ptxlint.rulekit import Hit, Rule, Sample
from ptxlint.wording import counted

if TYPE_CHECKING:
    from ptxlint.launch.binding import Bound

_LOW: Final = 1 / 2
"""Share of an SM's warps above which nothing is said."""
_OF_REGISTERS: Final = 1 / 3
"""Share up to which RES101 speaks where registers alone limit."""
_OF_PLACES: Final = 1 / 3
"""Share up to which CTAs of few warps count: one warp a CTA is half of sm_90, a third of sm_86."""
_FEW_REGISTERS: Final = 5
_LITTLE_SHARED: Final = 1 / 32
_FEW_BARRIERS: Final = 1 / 4
_FLOORED: Final = "wgmma"
"""Its accumulators stand in registers side by side: the assembler refuses a lower limit."""

_TILE: Final = """
            .version 8.0
            .target sm_{arch}
            .address_size 64
            .extern .shared .align 16 .b8 tile[];
            .visible .entry k(.param .u64 .ptr .global out){mark}
            .reqntid {threads}
            {{
                .reg .b32 %r<2>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [out];
                ld.shared.u32 %r1, [tile];
                st.global.u32 [%rd1], %r1;
                ret;
            }}
"""


def _tile(threads: int, arch: int = 80, mark: str = "") -> str:
    return _TILE.format(threads=threads, arch=arch, mark=mark and f" //~ {mark}")


class OccupancyStep(Rule):
    id = "RES105"
    name = "occupancy"
    severity = "note"
    confidence = "high"
    category = "resources"
    family = "resources"
    levels = ("ptx", "sass")
    summary = "Half of an SM's warps or fewer are used, and a little less would let another CTA in."
    why = (
        "How many CTAs are on an SM at once is the least of what its registers, its shared memory, "
        "its warps, its places for CTAs and its barriers admit. Most kernels are far from the next "
        "step, and many need no more warps, so the rule speaks only where at most half of the "
        "warps are used and the step is near. Near is shared memory within 1/32 of it (a few "
        "mbarriers or a row of padding; of 1,179 builds those beyond are 4 % or more away, mostly "
        "a tile); registers that an assembler counted, within 5 of it (asked for the step by "
        "`.maxnreg`, ptxas reached it without a spill in all of 15 builds; 6 away it spilled in 6 "
        "of 9; with `wgmma` it refused); barriers within a quarter; CTAs so small that the places "
        "run out before a third of the warps. Where registers alone leave a third of the warps or "
        "fewer, RES101 speaks. With an assembler's registers the rule also says if no CTA fits at "
        "all, so that the launch fails. Registers that none has counted are an estimate."
    )
    fix = "Take so much less that the next CTA fits, if the kernel waits for memory."
    refs = (
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#occupancy",
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
    )
    bad = (
        Sample(
            "20 bytes over the 40 KiB with which four CTAs fit, where three do",
            _tile(128, 80, "RES105"),
            {"shared": 40980, "registers": 32},
        ),
        Sample("66 registers, and 64 let another CTA in", _tile(128, 90, "RES105"),
               {"shared": 16, "registers": 66}),
        Sample("one warp a CTA, and 16 places", _tile(32, 86, "RES105"), {"shared": 16}),
        Sample("16 barriers a CTA", _tile(128, 90, "RES105"),
               {"shared": 16, "registers": 32, "barriers": 16}),
    )  # fmt: skip
    good = (
        Sample("the step is far away", _tile(128), {"shared": 49152, "registers": 32}),
        Sample("more than half of the warps", _tile(256), {"shared": 20480, "registers": 32}),
        Sample("70 registers: six more than fit", _tile(128, 90), {"shared": 16, "registers": 70}),
    )
    needs = (BoundLaunches, PressureAnalysis, SharedMemoryAnalysis)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit for a kernel as it was compiled, and for each other way to launch it."""
        arch = facts.arch
        if arch is None:
            return
        for demand, bound in _demands(fn, facts):
            if not 0 < demand.threads <= arch.threads_per_cta:
                continue
            known = demand.registers
            if known is None:
                if not is_machine_code(fn):
                    yield from _estimated(facts, arch, demand, bound)
                continue
            now = demand.on(arch, known.value)
            if now.ctas_per_sm == 0 and now.limits.registers == 0:
                yield _impossible(arch, demand, known, bound)
            else:
                yield from _near(fn, facts, arch, demand, known, bound)


def _demands(fn: Function, facts: Facts) -> Iterator[tuple[CtaDemand, Bound | None]]:
    """What a CTA takes: as compiled, and of each launch that asks for something else."""
    # Without .reqntid a launch may have fewer threads than the kernel allows.
    is_fixed = not facts.launches or "reqntid" in fn.directives
    compiled = cta_demand(facts) if is_fixed else None
    if compiled is not None:
        yield compiled, None
    for bound in facts.get(BoundLaunches):
        x, y, z = bound.block
        demand = cta_demand(facts, x * y * z, bound.shared if bound.shared >= 0 else None)
        if demand is not None and demand != compiled:
            yield demand, bound


class _Step(NamedTuple):
    """What has to change of one resource for another CTA: what it is now, and the advice."""

    now: str
    advice: str


def _estimated(facts: Facts, arch: Arch, demand: CtaDemand, bound: Bound | None) -> Iterator[Hit]:
    """A hit where registers are not known, unless they may limit as well."""
    without = demand.on(arch, 0)
    if not without.ctas_per_sm or without.fraction > _LOW:
        return
    if _steps(facts.function, facts, arch, demand, without) is None:
        return
    registers = most_likely_registers(facts)
    if registers.value <= arch.registers_per_thread:
        yield from _near(facts.function, facts, arch, demand, registers, bound)


def _near(
    fn: Function,
    facts: Facts,
    arch: Arch,
    demand: CtaDemand,
    registers: Amount,
    bound: Bound | None,
) -> Iterator[Hit]:
    """A hit if the next step is near."""
    now = demand.on(arch, registers.value)
    if not now.ctas_per_sm or now.fraction > _LOW or _spills(facts):
        return
    if "registers" in now.limiters and not registers.is_exact:
        return
    if now.limiters == ("registers",) and now.fraction <= _OF_REGISTERS:
        return
    steps = _steps(fn, facts, arch, demand, now)
    if not steps:
        return
    ctas = counted(now.ctas_per_sm, "CTA")
    verb = "fits" if now.ctas_per_sm == 1 else "fit"
    yield Hit(
        f"{ctas} of {demand.threads} threads {verb} an SM of {arch.name}, "
        f"{round(100 * now.fraction)} % of its warps: {' and '.join(s.now for s in steps)}"
        f"{_others(now, registers)}",
        help=" and ".join(s.advice for s in steps),
        key="occupancy",
        exact=registers.is_exact,
        launch=bound,
    )


def _steps(
    fn: Function, facts: Facts, arch: Arch, demand: CtaDemand, now: Occupancy
) -> list[_Step] | None:
    """The next step of each resource that limits; None if one of them is far from it."""
    steps = []
    for limiter in now.limiters:
        step = _step(limiter, fn, facts, arch, demand, now)
        if step is None:
            return None
        steps.append(step)
    return steps


def _step(
    limiter: str, fn: Function, facts: Facts, arch: Arch, demand: CtaDemand, now: Occupancy
) -> _Step | None:
    ctas = now.ctas_per_sm + 1
    lets = f"let {counted(ctas, 'CTA')} in"
    if limiter == "ctas":
        if now.fraction > _OF_PLACES:
            return None
        return _Step(
            f"an SM has {arch.ctas_per_sm} places for CTAs, which have "
            f"{counted(-(-demand.threads // arch.warp_size), 'warp')} each",
            "more warps a CTA (`num_warps`) fill more of the SM",
        )
    if limiter == "shared":
        most = most_shared(arch, ctas)
        if most is None or demand.shared - most > _LITTLE_SHARED * demand.shared:
            return None
        return _Step(
            f"{demand.shared:,} bytes of shared memory a CTA admit no more ({demand.shared_said})",
            f"{most:,} bytes of shared memory or fewer {lets}, {demand.shared - most:,} less",
        )
    if limiter == "registers":
        return _of_registers(fn, facts, arch, demand, ctas, lets)
    if limiter == "barriers" and demand.barriers is not None:
        most = most_barriers(arch, ctas)
        taken = demand.barriers
        if not most or taken.value - most > _FEW_BARRIERS * taken.value:
            return None
        return _Step(
            f"{counted(taken.value, 'barrier')} a CTA admit no more ({taken.said})",
            f"{most} barriers or fewer {lets}",
        )
    return None


def _of_registers(
    fn: Function, facts: Facts, arch: Arch, demand: CtaDemand, ctas: int, lets: str
) -> _Step | None:
    taken = demand.registers
    most = most_registers(arch, demand.threads, ctas)
    if taken is None or most is None or _FLOORED in facts.opcodes:
        return None
    if taken.value - most > _FEW_REGISTERS or "maxnreg" in fn.directives:
        return None
    return _Step(
        f"{taken.value} registers a thread admit no more ({taken.said})",
        f"{most} registers or fewer {lets}, {taken.value - most} less (`maxnreg={most}`)",
    )


def _spills(facts: Facts) -> bool:
    """True for a kernel that is short of registers already: RES102 speaks."""
    known = facts.resources
    stores = known.spill_stores if known is not None else None
    return stores is not None and stores.value > 0


def _others(now: Occupancy, registers: Amount) -> str:
    """What registers would admit where something else limits."""
    admitted = now.limits.registers
    if "registers" in now.limiters or admitted is None:
        return ""
    if registers.is_exact:
        return f"; {registers.value} registers a thread would admit {admitted} ({registers.said})"
    return f"; registers would admit {admitted} or more (an estimate)"


def _impossible(arch: Arch, demand: CtaDemand, registers: Amount, bound: Bound | None) -> Hit:
    """The error: a launch that fails for want of registers."""
    fitting = max_threads_per_cta(arch, registers.value)
    most = most_registers(arch, demand.threads, 1)
    return Hit(
        f"no CTA of {demand.threads} threads fits an SM of {arch.name}: {registers.value} "
        f"registers a thread ({registers.said}) allow {fitting} threads: the launch fails",
        breaks_when=f"a CTA has more than {fitting} threads",
        help=f"use fewer threads, or let the assembler know them (`.maxntid {demand.threads}`, or "
        f"`.maxnreg {most}`)",
        severity="error",
        key="no CTA fits",
        launch=bound,
    )
