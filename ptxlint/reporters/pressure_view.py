"""Live registers along a kernel, for all formats of `ptxlint show pressure`."""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.arch import Occupancy, RegisterStep, register_steps
from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.cta_demand import CtaDemand, cta_demand, register_limit
from ptxlint.dataflow.pressure import Holder, PressureAnalysis
from ptxlint.engine.python_source import PythonSources
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.sass.function import SassFunction
from ptxlint.reporters.stretches import Stretch, folded
from ptxlint.resources import Amount, Resources
from ptxlint.wording import counted

_NAMES: Final = (
    ("registers", "register"),
    ("stack", "byte of stack"),
    ("spill_stores", "byte of spill stores"),
    ("spill_loads", "byte of spill loads"),
    ("shared", "byte of static shared memory"),
    ("dynamic_shared", "byte of dynamic shared memory"),
    ("barriers", "barrier"),
)
"""What a kernel takes, and how it is called."""

_EVEN_NONE: Final = ("registers", "spill_stores", "spill_loads")


class Held(NamedTuple):
    """A line of the source whose values are in registers at the peak, and in how many. Without a
    known line `path` is "". `text` is the line itself, where it can be read."""

    registers: int
    path: str
    line: int
    text: str

    @property
    def where(self) -> str:
        """`softmax.py:14`, or that nobody knows."""
        return f"{_base(self.path)}:{self.line}" if self.path else "no known line"


class Level(NamedTuple):
    """A count of registers that means something: `kind` is `registers` (what the kernel has),
    `limit` (what a thread can have) or `step` (up to which one more CTA fits an SM)."""

    kind: str
    registers: int
    text: str


class PressureView:
    """Everything that is shown of one function. `note` says why registers are not exact,
    and what else is not known."""

    def __init__(self, facts: Facts, sources: PythonSources, note: str = "") -> None:
        self.facts = facts
        self.note = note
        self.name = facts.function.name
        self.arch = facts.module.arch
        self._sources = sources
        self._pressure = facts.get(PressureAnalysis)
        self.instrs = facts.function.instrs
        self.live = [self._pressure.words(instr) for instr in self.instrs]
        self.peak = self._pressure.peak_instr
        self.peak_live = self._pressure.peak.words
        self.demand = self._demand()
        self.registers: Amount | None = None if self.known is None else self.known.registers
        self.occupancy = self._occupancy()
        self.steps = self._steps()
        self.held = self._held()

    # What is known -----------------------------------------------------------------------------
    @property
    def is_machine(self) -> bool:
        """True for machine code, whose registers are those of the hardware."""
        return self.facts.function.is_machine

    @property
    def known(self) -> Resources | None:
        """What an assembler, a log, a cubin or metadata say; None if none does."""
        return self.facts.resources

    def _demand(self) -> CtaDemand | None:
        known, beside = self.known, self.facts.metadata
        if not self.is_machine:
            return cta_demand(self.facts)
        # Machine code does not tell the shared memory that a launch asks for.
        if beside is None or beside.shared is None:
            return None
        threads = self.facts.max_threads() or (known.threads if known is not None else None)
        return None if threads is None else cta_demand(self.facts, threads)

    def _occupancy(self) -> Occupancy | None:
        arch = self.facts.arch
        if arch is None or self.demand is None or self.registers is None:
            return None
        if self.demand.threads > arch.threads_per_cta:
            return None
        return self.demand.on(arch, self.registers.value)

    def _steps(self) -> tuple[RegisterStep, ...]:
        arch, demand = self.facts.arch, self.demand
        if arch is None or demand is None or demand.threads > arch.threads_per_cta:
            return ()
        return register_steps(arch, demand.threads, demand.shared, demand.takes_barriers)

    def _held(self) -> list[Held]:
        if self.peak is None:
            return []
        found = self._pressure.holders(self.peak, self.facts.module)
        return [self._line(holder) for holder in found if holder.words]

    def _line(self, holder: Holder) -> Held:
        frame = holder.frame
        if frame is None or frame.line < 1:
            return Held(holder.words, "", 0, "")
        path = self._sources.locate(frame.path, self.facts.module.source.path)
        return Held(holder.words, path, frame.line, self._sources.line(path, frame.line).strip())

    # Places ------------------------------------------------------------------------------------
    def where(self, instr: Instr) -> str:
        """A line of the PTX, or an address of machine code."""
        function = self.facts.function
        if isinstance(function, SassFunction):
            return f"{function.addresses[instr.index]:04x}"
        return str(self.facts.module.source.position(instr.offset).line)

    def source(self, instr: Instr) -> tuple[str, int] | None:
        """The line of the source that an instruction comes from."""
        frame = self.facts.module.python_frame(instr.loc)
        if frame is None or frame.line < 1:
            return None
        return self._sources.locate(frame.path, self.facts.module.source.path), frame.line

    def stretches(self, most: int) -> list[Stretch]:
        """The program as at most so many stretches, each of one loop where that can be."""
        cfg, loops = self.facts.get(CfgAnalysis), self.facts.get(LoopsAnalysis)
        keys = []
        for instr in self.instrs:
            block = cfg.block_of[instr.index]
            loop = loops.innermost(block) if block in cfg.reachable else None
            frame = self.facts.module.python_frame(instr.loc)
            place = None if frame is None else (frame.path, frame.line)
            keys.append((loop.header if loop is not None else -1, place))
        return folded(self.live, keys, most)

    def depth(self, stretch: Stretch) -> int:
        """The loops that a stretch starts in."""
        cfg = self.facts.get(CfgAnalysis)
        block = cfg.block_of[stretch.start]
        return self.facts.get(LoopsAnalysis).depth(block) if block in cfg.reachable else 0

    # Words -------------------------------------------------------------------------------------
    @property
    def what(self) -> str:
        """What the counts are."""
        if self.is_machine:
            return "live registers of the machine code"
        return "live 32-bit registers in the PTX, an estimate of what the assembler needs"

    @property
    def peak_text(self) -> str:
        """The peak and its place."""
        if self.peak is None or not self.peak_live:
            return "no register is live"
        place = self.source(self.peak)
        source = f" ({_base(place[0])}:{place[1]})" if place is not None else ""
        at = "address" if self.is_machine else "line"
        return f"{self.peak_live} behind {at} {self.where(self.peak)}{source}"

    @property
    def resources_text(self) -> list[str]:
        """What the kernel takes, a phrase for each who says so; one at least."""
        by_source: dict[str, list[str]] = {}
        for field, noun in _NAMES:
            amount = getattr(self.known, field) if self.known is not None else None
            if amount is not None and (amount.value or field in _EVEN_NONE):
                by_source.setdefault(amount.said, []).append(_amount(amount.value, noun))
        parts = [f"{', '.join(amounts)} ({said})" for said, amounts in by_source.items()]
        if self.registers is None:
            parts.insert(0, self.note or "registers are not known")
        elif self.note:
            parts.append(self.note)
        return parts

    @property
    def occupancy_text(self) -> str:
        """How much fits an SM; why that is not known."""
        now, demand = self.occupancy, self.demand
        if demand is None:
            return "not known: nobody says how many threads or how much shared memory a CTA has"
        if now is None:
            return "not known without the registers of an assembler"
        names = {"ctas": "places for CTAs", "shared": "shared memory"}
        limits = " and ".join(names.get(name, name) for name in now.limiters)
        return (
            f"{counted(now.ctas_per_sm, 'CTA')} of {demand.threads} threads an SM, "
            f"{round(100 * now.fraction)} % of its warps; {limits} admit no more"
        )

    @property
    def levels(self) -> list[Level]:
        """Counts of registers to be drawn as lines, the most first."""
        out = []
        if self.registers is not None:
            text = f"{counted(self.registers.value, 'register')} a thread ({self.registers.said})"
            out.append(Level("registers", self.registers.value, text))
        arch = self.facts.arch
        if arch is not None:
            threads = self.demand.threads if self.demand is not None else None
            most, why = register_limit(self.facts.function, arch, threads)
            out.append(Level("limit", most, f"{most} registers are the most that {why}"))
        for step in self.steps:
            ctas = counted(step.ctas_per_sm, "CTA")
            text = f"{ctas} an SM up to {step.registers} registers"
            out.append(Level("step", step.registers, text))
        top = max([self.peak_live, *(v.registers for v in out if v.kind == "registers")])
        return sorted((v for v in out if v.registers <= top), key=lambda v: -v.registers)

    @property
    def top(self) -> int:
        """The most that is drawn: at least 1."""
        return max([1, self.peak_live, *(level.registers for level in self.levels)])


def _amount(value: int, noun: str) -> str:
    first, _, rest = noun.partition(" ")
    plural = f"{first}s {rest}".rstrip()
    return f"{value:,} {noun if value == 1 else plural}"


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
