"""RES101: more live registers than the occupancy, or the thread, can afford."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from ptxlint.arch import Arch, RegisterStep, next_register_step, occupancy, register_steps
from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.loops import Loop, LoopsAnalysis
from ptxlint.dataflow.cta_demand import register_limit
from ptxlint.dataflow.liveness import LivenessAnalysis
from ptxlint.dataflow.pressure import Pressure, PressureAnalysis
from ptxlint.dataflow.shared_memory import SharedMemoryAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Register, SpecialRegister, Symbol
from ptxlint.ir.sass.function import is_machine_code
from ptxlint.ir.types import FLOATS, bits
from ptxlint.rulekit import Hit, Note, Rule, Sample

_ADVISE_BELOW: Final = 1 / 3
"""Share of an SM's warps at or under which registers are worth a note."""
_CAUTIOUS: Final = 0.7
"""What is left of an estimate before it counts: nine assembled kernels in ten take more."""
_HOLDERS: Final = 3
"""Source lines named beside a finding."""
_RECOMPUTED: Final = frozenset(
    "mov add sub mul mad mul24 mad24 sad and or xor not cnot shl shr shf lop3 bfe bfi bmsk szext "
    "prmt cvt cvta setp selp min max neg abs popc clz bfind brev mapa isspacep".split()
)
"""Integer operations: the assembler repeats them rather than keep their result."""
_BY_LANE: Final = frozenset("atom ldmatrix wgmma wmma tcgen05 call".split())
_LANE_REGISTERS: Final = ("%tid", "%laneid", "%lanemask", "%clock", "%globaltimer")


_MMA: Final = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
_HEAD: Final = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u32 n)
{directive}
{{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .f32 %f<{values}>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [x];
"""


def _fours(values: int, text: str) -> list[str]:
    """A line for every four registers: `AT` their byte offset, `V` the vector of them."""
    return [
        text.replace("AT", str(4 * k)).replace("V", f"{{%f{k}, %f{k + 1}, %f{k + 2}, %f{k + 3}}}")
        for k in range(0, values, 4)
    ]


def _loop(values: int, registers: str) -> str:
    """A sample with accumulators in a loop; its first instruction is marked if they do not fit."""
    mark = " //~ RES101" if values > int(registers) else ""
    lines = [
        "mov.u32 %r3, %tid.x;",
        "mad.wide.u32 %rd1, %r3, 1024, %rd1;",
        *_fours(values, "ld.global.v4.f32 V, [%rd1+AT];"),
        "ld.param.u32 %r0, [n];",
        "again:",
        f"ld.global.v2.b32 {{%r1, %r2}}, [%rd1];{mark}",
        "ld.global.b32 %r3, [%rd1+8];",
        "add.s64 %rd1, %rd1, 16;",
        *_fours(values, f"{_MMA} V, {{%r1, %r2}}, {{%r3}}, V;"),
        "sub.u32 %r0, %r0, 1;",
        "setp.ne.u32 %p1, %r0, 0;",
        "@%p1 bra again;",
        *_fours(values, "st.global.v4.f32 [%rd1+AT], V;"),
    ]
    return _module(values, f".maxnreg {registers}", lines)


def _load_and_store(values: int) -> str:
    """A sample with all its values live at once, in a CTA of 640 threads."""
    lines = [
        *_fours(values, "ld.global.v4.f32 V, [%rd1+AT];"),
        "bar.sync 0;",
        *_fours(values, "st.global.v4.f32 [%rd1+AT], V;"),
    ]
    if values > 70:
        lines[values // 4 - 1] += " //~ RES101"
    return _module(values, ".reqntid 640", lines)


def _module(values: int, directive: str, lines: list[str]) -> str:
    head = _HEAD.format(directive=directive, values=values)
    return head + "".join(f"    {line}\n" for line in lines) + "    ret;\n}\n"


class RegisterPressure(Rule):
    id = "RES101"
    name = "register-pressure"
    severity = "note"
    confidence = "medium"
    category = "resources"
    family = "resources"
    levels = ("ptx", "sass")
    summary = "So many values are live at once that few CTAs fit on an SM, or registers must spill."
    why = (
        "A thread's registers decide how many warps an SM holds, and past 255 (or .maxnreg) they "
        "spill to local memory. The peak of live 32-bit registers in the PTX is an estimate: the "
        "assembler reorders, recomputes and merges, and mostly needs 60 to 105 % of it. So it is "
        "a note, given where even 70 % of the estimate leaves an SM no more than a third of its "
        "warps while fewer registers would admit another CTA, or where 70 % is more than a thread "
        "can have. It is a warning where a loop carries more values from one iteration to the "
        "next than that, of those that differ from lane to lane: no order of instructions avoids "
        "the spill. docs/rules-res101.md has the "
        "measurements."
    )
    fix = (
        "Use a smaller tile or more warps (each thread then holds fewer elements), or shorten the "
        "lives of the values at the lines named. `ptxlint show pressure` draws the registers along "
        "the program, with all lines that hold values at the peak."
    )
    refs = (
        "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#register-pressure",
    )
    bad = (
        Sample("36 accumulators carried round a loop, 32 registers", _loop(36, "32")),
        Sample("72 values at once in a CTA of 640 threads: a note", _load_and_store(72)),
    )
    good = (
        Sample("20 accumulators fit in 32 registers", _loop(20, "32")),
        Sample("as many values as 255 registers take, two warps", _loop(160, "255")),
        Sample("48 values at once in a CTA of 640 threads", _load_and_store(48)),
    )
    needs = (PressureAnalysis,)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """At most one hit a kernel, at its peak."""
        arch = facts.arch
        if arch is None:
            return
        budget = _Budget(fn, facts, arch)
        exact = facts.resources.registers if facts.resources is not None else None
        known = None if exact is None else exact.value
        if known is None and (is_machine_code(fn) or _most_words(fn) <= budget.unnoticed):
            return
        pressure = facts.get(PressureAnalysis)
        at = pressure.peak_instr
        live = pressure.peak.words
        taken = known if known is not None else int(_CAUTIOUS * live)
        if at is None or max(taken, live) <= budget.unnoticed:
            return
        if known is None and live > budget.limit:
            carried = _most_carried(fn, facts, budget.limit)
            if carried is not None:
                yield _spill(carried, budget, pressure, facts)
                return
        message, advice = _advice(budget, live, taken, "" if exact is None else exact.said)
        if message:
            yield Hit(
                message,
                at,
                _holders(pressure, at, facts),
                help=advice,
                key="register pressure",
                exact=known is not None,
                label=f"{live} registers are live here",
            )


class _Budget:
    """How many registers a thread can have, and what they cost."""

    def __init__(self, fn: Function, facts: Facts, arch: Arch) -> None:
        self.arch = arch
        self.threads = facts.max_threads()
        self.shared = facts.get(SharedMemoryAnalysis).total
        self.limit, self.source = register_limit(fn, arch, self.threads)
        self.unnoticed = self._unnoticed()
        """The most registers that give no reason for a note."""

    def _unnoticed(self) -> int:
        if self.threads is None or not 0 < self.threads <= self.arch.threads_per_cta:
            return self.limit
        return min(self.limit, _affordable(self.arch, self.threads, self.shared))

    def step_below(self, registers: int) -> RegisterStep | None:
        """The next count of registers at which another CTA fits."""
        if self.threads is None:
            return None
        return next_register_step(self.arch, self.threads, self.shared, registers)


@lru_cache(maxsize=64)
def _affordable(arch: Arch, threads: int, shared: int) -> int:
    """The most registers that keep more than `_ADVISE_BELOW` of the warps, or as many as can be."""
    warps = -(-threads // arch.warp_size)
    steps = register_steps(arch, threads, shared)
    for step in steps:
        if step is steps[-1] or step.ctas_per_sm * warps > _ADVISE_BELOW * arch.warps_per_sm:
            return step.registers
    return arch.registers_per_thread


def _most_words(fn: Function) -> int:
    """A bound on the peak that costs no analysis: all registers live at once."""
    return sum(4 if r.type == "b128" else 2 for r in fn.registers if r.type != "pred") * max(
        (r.vector for r in fn.registers), default=1
    )


class _Carried(NamedTuple):
    """How many registers a loop keeps while it goes round."""

    words: int
    loop: Loop


def _most_carried(fn: Function, facts: Facts, limit: int) -> _Carried | None:
    """The loop that carries most, if it is more than the limit; see `_held`."""
    liveness = facts.get(LivenessAnalysis)
    crowded: dict[Loop, list[Register]] = {}
    for loop in facts.get(LoopsAnalysis).loops:
        live = liveness.registers(liveness.live_in[loop.header])
        if _words(live) > limit:
            crowded[loop] = live
    if not crowded:
        return None
    dependents = _dependents(fn)
    spare = _recomputed(fn, dependents) | _uniform(fn, dependents)
    crowded = {loop: [r for r in live if r not in spare] for loop, live in crowded.items()}
    crowded = {loop: live for loop, live in crowded.items() if _words(live) > limit}
    fixed = _constant(fn, dependents) if crowded else set()
    carried = [
        _Carried(_words(_held(loop, live, facts)), loop)
        for loop, live in crowded.items()
        if not _has_fixed_count(loop, fixed, facts)
    ]
    most = max(carried, key=lambda c: c.words, default=None)
    return most if most is not None and most.words > limit else None


def _words(registers: list[Register]) -> int:
    """32-bit words that these registers take; two halves fit in one."""
    width = sum(max(16, bits(r.type)) * r.vector for r in registers if r.type != "pred")
    return -(-width // 32)


def _has_fixed_count(loop: Loop, fixed: set[Register], facts: Facts) -> bool:
    """True if only constants decide how often the loop runs: unrolled, it may be reordered."""
    cfg = facts.get(CfgAnalysis)
    exits = {source for source, _ in facts.get(LoopsAnalysis).exits(loop)}
    ends = [end for block in exits if (end := cfg.terminator(block)) is not None]
    return all(use in fixed for end in ends for use in end.uses)


def _held(loop: Loop, candidates: list[Register], facts: Facts) -> list[Register]:
    """The registers that hold a value at the top of the loop whatever the order of instructions.

    Either the loop itself writes them, for the next iteration, or it reads what came from before.
    """
    cfg = facts.get(CfgAnalysis)
    named: set[Register] = set()
    for block in loop.blocks:
        for instr in cfg.instructions(block):
            named.update(instr.uses)
            named.update(instr.defs)
    return [register for register in candidates if register in named]


def _recomputed(fn: Function, dependents: _Dependents) -> set[Register]:
    """Registers that integer operations make of constants, parameters and special registers.

    Those are at hand at any time. Counters that step by such values are among them.
    """
    return _untouched(fn, dependents, {s: not _is_integer(s) for s in _shapes(fn)})


def _constant(fn: Function, dependents: _Dependents) -> set[Register]:
    """Registers that integer operations make of constants alone."""
    sources = {s: not _is_integer(s) or None for s in _shapes(fn)}
    return _untouched(fn, dependents, sources, _reads_input)


def _uniform(fn: Function, dependents: _Dependents) -> set[Register]:
    """Registers that hold the same in all lanes since nothing on the way depends on the lane.

    From sm_75 on the assembler may keep them in the registers that a warp has for such values.
    """
    sources = {s: s.opcode in _BY_LANE or None for s in _shapes(fn)}
    return _untouched(fn, dependents, sources, _tells_lanes_apart)


_Dependents: TypeAlias = dict[Register, list[tuple[Register, ...]]]
"""By register: what the instructions write that read it."""


def _dependents(fn: Function) -> _Dependents:
    found: _Dependents = {}
    for instr in fn.instrs:
        if instr.defs:
            for use in instr.uses:
                found.setdefault(use, []).append(instr.defs)
    return found


def _shapes(fn: Function) -> set[Shape]:
    return {instr.shape for instr in fn.instrs}


def _untouched(
    fn: Function,
    dependents: _Dependents,
    sources: Mapping[Shape, bool | None],
    is_source: Callable[[Instr], bool] = lambda _: False,
) -> set[Register]:
    """The registers that depend, in any number of steps, on no instruction of some kind: by its
    shape, or where that does not tell by itself."""
    touched: set[Register] = set()
    for instr in fn.instrs:
        if instr.defs:
            found = sources[instr.shape]
            if found or (found is None and is_source(instr)):
                touched.update(instr.defs)
    work = list(touched)
    while work:
        for registers in dependents.get(work.pop(), ()):
            for register in registers:
                if register not in touched:
                    touched.add(register)
                    work.append(register)
    return {register for register in fn.registers if register not in touched}


def _is_integer(shape: Shape) -> bool:
    if shape.opcode == "ld":
        return shape.space == "param"
    return shape.opcode in _RECOMPUTED and FLOATS.isdisjoint(shape.types)


def _reads_input(instr: Instr) -> bool:
    """True if an integer operation reads a parameter or something else from outside."""
    return instr.opcode == "ld" or any(
        isinstance(atom, SpecialRegister | Symbol) for atom in instr.args
    )


def _tells_lanes_apart(instr: Instr) -> bool:
    """True if what an instruction reads tells the lane, so that lanes may get different values."""
    return any(
        isinstance(atom, SpecialRegister) and atom.name.startswith(_LANE_REGISTERS)
        for atom in instr.args
    )


def _spill(carried: _Carried, budget: _Budget, pressure: Pressure, facts: Facts) -> Hit:
    """The warning: no schedule can do without a spill."""
    cfg = facts.get(CfgAnalysis)
    at = cfg.instructions(carried.loop.header)[0]
    return Hit(
        f"this loop carries {carried.words} registers from one iteration to the next, more than "
        f"the {budget.limit} that {budget.source}: the assembler must spill",
        at,
        _holders(pressure, at, facts),
        severity="warning",
        key="certain spill",
        label="the loop starts here",
    )


def _advice(budget: _Budget, live: int, taken: int, exact: str) -> tuple[str, str]:
    """Message and help of the note; "" for none. `exact` says who counted the registers."""
    about = f"about {live} live registers (an estimate)"
    if exact:
        about = f"{taken} registers a thread ({exact})"
    if taken > budget.limit:
        return (
            f"{about}, far more than the {budget.limit} that {budget.source}: spills are likely",
            "`ptxas -v` tells registers and spills exactly; a smaller tile or more warps leave "
            "each thread fewer values",
        )
    step = budget.step_below(taken)
    if step is None or budget.threads is None or taken <= budget.unnoticed:
        return "", ""
    now = occupancy(budget.arch, taken, budget.threads, budget.shared)
    cautious = "" if exact else f"even with {taken} "
    return (
        f"{about}: {cautious}no more than {_ctas(now.ctas_per_sm)} of {budget.threads} threads "
        f"fit{'s' if now.ctas_per_sm == 1 else ''} an SM of {budget.arch.name}, "
        f"{round(100 * now.fraction)} % of its warps",
        f"{step.registers} registers or fewer let {_ctas(step.ctas_per_sm)} in: use a smaller tile "
        "or more warps, or shorten the lives of the values at the lines named",
    )


def _ctas(count: int) -> str:
    return f"{count} CTA{'s' if count != 1 else ''}"


def _holders(pressure: Pressure, at: Instr, facts: Facts) -> tuple[Note, ...]:
    """The source lines, or without any the instructions, whose values take most registers."""
    found = pressure.origins(at, facts.module, _HOLDERS)
    return tuple(Note(_share(words), instr) for words, instr in found)


def _share(words: int) -> str:
    return f"{words} of them hold{'s' if words == 1 else ''} values from here"
