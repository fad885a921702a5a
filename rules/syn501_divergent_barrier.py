"""SYN501: a barrier that some threads do not reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.dataflow.convergence import LOADS, Convergence, ConvergenceAnalysis, Parting
from ptxlint.dataflow.lane_bits import Level
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Immediate, Symbol
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_QUIET: Final = frozenset({"vprintf", "__assertfail", "__assert_fail", "malloc", "free"})
"""Functions of the CUDA run time that hold no barrier."""
_OPCODES: Final = frozenset({"bar", "barrier"})


class DivergentBarrier(Rule):
    id = "SYN501"
    name = "divergent-barrier"
    severity = "error"
    confidence = "high"
    category = "synchronisation"
    family = "sync"
    summary = "A CTA barrier stands under a branch that the threads of a CTA do not take together."
    why = (
        "bar.sync waits until all threads of the CTA have come; with .aligned (bar always is) all "
        "lanes of a warp must execute the same barrier. When a branch on the thread index, or a "
        "loop that threads leave in different rounds, keeps some away, the kernel hangs or reads "
        "shared memory too early. It is an error where a launch can be named in which threads "
        "part, and a warning where each thread decides by a value that it loads from an address of "
        "its own; where threads load one value it is left open. Barriers for a given number of "
        "threads may be reached by some warps only. Threads that have left the kernel are not "
        "waited for from sm_70 on (CUDA C++ Programming Guide), so an early return is a note."
    )
    fix = (
        "Move the barrier out of the branch: let all threads come to it and put only the work "
        "before and after it under the condition."
    )
    refs = (
        "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-bar",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#synchronization-functions",
    )
    bad = (
        Sample(
            "half of the threads wait",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<2>;
            mov.u32 %r1, %tid.x;
            and.b32 %r1, %r1, 1;
            setp.ne.u32 %p1, %r1, 0;
            @%p1 bra skip;
            bar.sync 0; //~ SYN501
            skip:
            bar.sync 0;
            ret;
            """,
        ),
        Sample(
            "a loop that threads leave in different rounds",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %ntid.x;
            ld.param.u32 %r3, [n_elements];
            again:
            bar.sync 0; //~ SYN501
            add.s32 %r1, %r1, %r2;
            setp.lt.s32 %p1, %r1, %r3;
            @%p1 bra again;
            ret;
            """,
        ),
        Sample(
            "a guarded barrier",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<2>;
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bar.sync 0; //~ SYN501
            ret;
            """,
        ),
        Sample(
            "one warp alone at a barrier for all",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry k()
            .reqntid 128
            {
                .reg .pred %p<2>;
                .reg .b32 %r<2>;
                mov.u32 %r1, %tid.x;
                setp.gt.u32 %p1, %r1, 31;
                @%p1 bra skip;
                bar.sync 1; //~ SYN501
                skip:
                bar.sync 0;
                ret;
            }
            """,
        ),
        Sample(
            "a warning where each thread decides by its own data",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<3>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd2, %r1, 4;
            add.s64 %rd3, %rd1, %rd2;
            ld.global.u32 %r2, [%rd3];
            setp.eq.u32 %p1, %r2, 0;
            @%p1 bra skip;
            bar.sync 0; //~ SYN501
            skip:
            st.global.u32 [%rd3], %r1;
            ret;
            """,
        ),
        Sample(
            "a note for an early return",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            mov.u32 %r1, %tid.x;
            ld.param.u32 %r3, [n_elements];
            setp.ge.s32 %p1, %r1, %r3;
            @%p1 ret;
            bar.sync 0; //~ SYN501
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "a branch on a parameter and on the CTA",
            """
            .reg .pred %p<3>;
            .reg .b32 %r<4>;
            mov.u32 %r1, %ctaid.x;
            ld.param.u32 %r3, [n_elements];
            setp.ge.s32 %p1, %r1, %r3;
            @%p1 bra skip;
            bar.sync 0;
            skip:
            ret;
            """,
        ),
        Sample(
            "only the work is conditional",
            """
            .shared .align 4 .b8 tile[4];
            .reg .pred %p<2>;
            .reg .b32 %r<2>;
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 st.shared.u32 [tile], %r1;
            bar.sync 0;
            ret;
            """,
        ),
        Sample(
            "one warp at a barrier for 32 threads",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry k()
            .reqntid 128
            {
                .reg .pred %p<2>;
                .reg .b32 %r<2>;
                mov.u32 %r1, %tid.x;
                setp.gt.u32 %p1, %r1, 31;
                @%p1 bra skip;
                bar.sync 1, 32;
                skip:
                bar.sync 0;
                ret;
            }
            """,
        ),
        Sample(
            "each warp has a barrier on its way: they meet",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry k()
            .reqntid 128
            {
                .reg .pred %p<2>;
                .reg .b32 %r<2>;
                mov.u32 %r1, %tid.x;
                setp.gt.u32 %p1, %r1, 31;
                @%p1 bra other;
                bar.sync 0;
                ret;
                other:
                bar.sync 0;
                ret;
            }
            """,
        ),
        Sample(
            "all threads load one value: an open obligation",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<2>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [in_ptr];
            ld.global.u32 %r1, [%rd1];
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra skip;
            bar.sync 0;
            skip:
            ret;
            """,
        ),
    )
    needs = (ConvergenceAnalysis,)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit for each branch that parts threads, at the first barrier behind it."""
        barriers = _barriers(fn, facts)
        if not barriers:
            return
        if _is_straight(fn, facts):
            yield from _proved((), fn, facts)
            return
        convergence = facts.get(ConvergenceAnalysis)
        known: dict[tuple[Instr, bool], list[tuple[Instr, Parting]]] = {}
        doubts: list[tuple[Instr, Parting]] = []
        for barrier in barriers:
            parting = convergence.parting(barrier.instr, barrier.together)
            if parting is None:
                continue
            is_known = parting.split is not None or (parting.own and not parting.exited)
            if is_known and not _may_match(barrier, parting, barriers, convergence, facts):
                place = (parting.branch, parting.exited)
                known.setdefault(place, []).append((barrier.instr, parting))
            else:
                doubts.append((barrier.instr, parting))
        for behind in known.values():
            yield _hit(behind)
        yield from _verdict(known, doubts, convergence, fn, facts)


class _Barrier(NamedTuple):
    """A barrier instruction and the set of threads that must reach it as one."""

    instr: Instr
    together: Level
    is_aligned: bool


def _barriers(fn: Function, facts: Facts) -> list[_Barrier]:
    """The barriers in reachable code that some set of threads must reach together."""
    found: list[_Barrier] = []
    for instr in facts.instructions(lambda s: s.opcode in _OPCODES and not s.has("warp")):
        together = _requirement(instr, facts)
        if together is not None and facts.get(CfgAnalysis).is_reachable(instr):
            found.append(_Barrier(instr, together, _is_aligned(instr.shape)))
    return found


def _is_aligned(shape: Shape) -> bool:
    """`bar` is `barrier.cta` with `.aligned` (PTX ISA, "bar, barrier.cta")."""
    return shape.opcode == "bar" or shape.has("aligned")


def _requirement(instr: Instr, facts: Facts) -> Level | None:
    """How many threads must reach a barrier together; None if any may.

    With a thread count, or as an arrival, it concerns whole warps, and without `.aligned` nobody.
    """
    shape = instr.shape
    counts = 1 + shape.has("red") * 2
    partial = len(shape.patterns) > counts or shape.has("arrive")
    if shape.has("cluster"):
        partial = True
    if partial and not shape.has("cluster") and not shape.has("arrive"):
        count = instr.operands[1 + shape.has("red")]
        exact = facts.function.directives.get("reqntid")
        if exact and isinstance(count, Immediate) and count.value == facts.max_threads():
            partial = False
    if not partial:
        return Level.CTA
    return Level.WARP if _is_aligned(shape) else None


def _is_straight(fn: Function, facts: Facts) -> bool:
    """True if control never parts, so that there is nothing to analyse."""
    cfg = facts.get(CfgAnalysis)
    if any(len(cfg.edges_from(cfg.blocks[block])) > 1 for block in cfg.rpo):
        return False
    return not facts.instructions(lambda shape: shape.guard and shape.opcode in _OPCODES)


def _may_match(
    barrier: _Barrier,
    parting: Parting,
    barriers: list[_Barrier],
    convergence: Convergence,
    facts: Facts,
) -> bool:
    """True if the threads that go elsewhere may come to another barrier that counts as this one.

    Lanes of one warp must execute the same instruction if it is aligned; warps need not.
    """
    if parting.exited:
        return False
    if barrier.is_aligned and convergence.level(barrier.instr) is Level.THREAD:
        return False
    block_of = facts.get(CfgAnalysis).block_of
    elsewhere = set(convergence.other_ways(parting.branch, barrier.instr))
    return any(block_of[other.instr.index] in elsewhere for other in barriers)


def _hit(behind: list[tuple[Instr, Parting]]) -> Hit:
    first, parting = behind[0]
    split, source = parting.split, parting.source
    more = f" (and {len(behind) - 1} more)" if len(behind) > 1 else ""
    if parting.exited:
        return _early(first, more, parting)
    related = [] if parting.branch is first else [Note("threads part here", parting.branch)]
    if split is not None:
        return Hit(
            f"not all threads of the CTA come to this barrier{more}",
            first,
            tuple(related),
            breaks_when=f"{split.describe()}: thread {split.comes} waits, thread "
            f"{split.stays_away} does not come",
            key="divergent barrier",
        )
    if source is not None:
        related.append(Note("each thread reads a value of its own", source))
    return Hit(
        f"a value that each thread loads for itself decides whether it comes to this barrier{more}",
        first,
        tuple(related),
        breaks_when="the values differ between the threads of a CTA",
        severity="warning",
        key="data-dependent barrier",
    )


def _early(first: Instr, more: str, parting: Parting) -> Hit:
    return Hit(
        f"some threads have left the kernel before this barrier{more}",
        first,
        (Note("they leave here", parting.branch),),
        severity="note",
        help="from sm_70 on the barrier waits only for threads that have not exited; make sure "
        "that the others need nothing from those that left",
        key="early exit before a barrier",
    )


def _proved(assumes: tuple[str, ...], fn: Function, facts: Facts) -> Iterator[Verdict]:
    """The verdict if no barrier of the kernel itself is in doubt."""
    doubt = _barrier_in_callee(fn, facts)
    if doubt is None:
        yield Verdict("proved", "all barriers are reached by all threads", assumes=assumes)
    else:
        call, name = doubt
        yield Verdict("open", f"`{name}` is called here and may wait at a barrier", call)


def _verdict(
    known: dict[tuple[Instr, bool], list[tuple[Instr, Parting]]],
    doubts: list[tuple[Instr, Parting]],
    convergence: Convergence,
    fn: Function,
    facts: Facts,
) -> Iterator[Verdict]:
    refuted = [behind[0][0] for behind in known.values() if _is_refuted(behind[0][1])]
    if refuted:
        yield Verdict("refuted", "not all threads of the CTA come to this barrier", refuted[0])
        return
    doubts = [pair for behind in known.values() for pair in behind] + doubts
    serious = [doubt for doubt in doubts if not doubt[1].exited]
    if serious:
        instr, parting = serious[0]
        yield Verdict("open", _doubt(parting, facts), instr)
    elif doubts:
        reason = (
            "all threads that are still in the kernel come to every barrier; some may have left "
            "before"
        )
        yield Verdict("open", reason, doubts[0][0])
    else:
        yield from _proved(convergence.assumes, fn, facts)


def _is_refuted(parting: Parting) -> bool:
    return parting.split is not None and not parting.exited


def _doubt(parting: Parting, facts: Facts) -> str:
    position = facts.module.source.position
    line = position(parting.branch.offset).line
    where = f"whether all threads of the CTA part alike at line {line} is not known"
    source = parting.source
    if source is None:
        return where
    opcode = source.opcode
    what = "a value from memory" if opcode in LOADS else f"a {opcode}"
    return f"{where}: it depends on {what} (line {position(source.offset).line})"


def _barrier_in_callee(fn: Function, facts: Facts) -> tuple[Instr, str] | None:
    """A call of a function that may hold a barrier, or of one that is not known."""
    functions = {f.name: f for f in facts.module.functions if not f.is_declaration}
    quiet: dict[str, bool] = dict.fromkeys(_QUIET, True)
    for instr in facts.instructions(lambda shape: shape.row.is_call):
        names = [a.name for a in instr.args if type(a) is Symbol and a.kind == "function"]
        if not names:
            return instr, "a function behind a pointer"
        if not _is_quiet(names[0], functions, quiet):
            return instr, names[0]
    return None


def _is_quiet(name: str, functions: dict[str, Function], quiet: dict[str, bool]) -> bool:
    """True if neither the function nor what it calls holds a barrier."""
    work, seen = [name], {name}
    while work:
        current = work.pop()
        if quiet.get(current):
            continue
        fn = functions.get(current)
        if fn is None:
            return False
        for instr in fn.instrs:
            shape = instr.shape
            if shape.opcode in _OPCODES and not shape.has("warp"):
                return False
            if shape.row.is_call:
                names = [a.name for a in instr.args if type(a) is Symbol and a.kind == "function"]
                if not names:
                    return False
                if names[0] not in seen:
                    seen.add(names[0])
                    work.append(names[0])
    quiet.update(dict.fromkeys(seen, True))
    return True
