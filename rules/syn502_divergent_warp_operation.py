"""SYN502: a warp operation that names lanes which are not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.dataflow.convergence import (
    FULL_MASK,
    LOADS,
    Convergence,
    ConvergenceAnalysis,
    Parting,
    constant_of,
)
from ptxlint.dataflow.lane_bits import Level
from ptxlint.dataflow.thread_expression import WARP
from ptxlint.dataflow.thread_split import Split
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_MASKED: Final = {"shfl": -1, "vote": -1, "match": -1, "redux": -1, "elect": -1, "bar": 0}
"""Opcodes with a mask of lanes, and which operand it is."""
_MATRIX: Final = frozenset({"mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix", "tcgen05"})


class DivergentWarpOperation(Rule):
    id = "SYN502"
    name = "divergent-warp-operation"
    severity = "error"
    confidence = "high"
    category = "synchronisation"
    family = "sync"
    summary = "A shuffle, vote or matrix operation for a whole warp stands where lanes are missing."
    why = (
        "shfl.sync, vote.sync, match.sync, redux.sync and bar.warp.sync wait for the lanes of "
        "their mask, and mma, wgmma and ldmatrix for all lanes of the warp. If some of these "
        "lanes took another branch, the warp hangs or the result is undefined: a lane that reads "
        "from one which is not there gets garbage. It is an error where a launch can be named in "
        "which the lanes of a warp part; where the condition comes from memory it is left open. "
        "Lanes that have left the kernel are not waited for; a shuffle that reads from one of them "
        "is a warning. A mask that is computed, as by a ballot before the branch, is taken at its "
        "word."
    )
    fix = (
        "Let all lanes execute it (give the others a neutral value), or take the mask from a "
        "vote.sync.ballot of the branch's condition before the branch."
    )
    refs = (
        "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-shfl-sync",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#warp-shuffle-functions",
    )
    bad = (
        Sample(
            "a full mask where only the lanes below n are",
            """
            .reg .pred %p<3>;
            .reg .b32 %r<5>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out_ptr];
            ld.param.u32 %r2, [n_elements];
            mov.u32 %r1, %tid.x;
            setp.ge.s32 %p1, %r1, %r2;
            @%p1 bra skip;
            shfl.sync.down.b32 %r3, %r1, 1, 31, -1; //~ SYN502
            mul.wide.u32 %rd2, %r1, 4;
            add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r3;
            skip:
            ret;
            """,
        ),
        Sample(
            "a guarded vote",
            """
            .reg .pred %p<4>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %laneid;
            setp.lt.u32 %p1, %r1, 16;
            setp.ne.u32 %p2, %r1, 3;
            mov.u32 %r2, 0;
            @%p1 vote.sync.ballot.b32 %r2, %p2, 0xffffffff; //~ SYN502
            st.global.u32 [%rd1], %r2;
            ret;
            """,
        ),
        Sample(
            "a matrix product for half a warp",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .f32 %f<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];
            ld.global.v2.b32 {%r0, %r1}, [%rd1+16];
            ld.global.b32 %r2, [%rd1+24];
            mov.u32 %r3, %tid.x;
            and.b32 %r3, %r3, 16;
            setp.ne.u32 %p1, %r3, 0;
            @%p1 bra skip;
            mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3}; //~ SYN502
            skip:
            st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};
            ret;
            """,  # noqa: E501
        ),
    )
    good = (
        Sample(
            "all lanes shuffle",
            """
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
            st.global.u32 [%rd1], %r2;
            ret;
            """,
        ),
        Sample(
            "one whole warp shuffles",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            setp.gt.u32 %p1, %r1, 31;
            @%p1 bra skip;
            shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
            st.global.u32 [%rd1], %r2;
            skip:
            ret;
            """,
        ),
        Sample(
            "the mask names just the lanes that are here",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %laneid;
            setp.gt.u32 %p1, %r1, 15;
            @%p1 bra skip;
            shfl.sync.bfly.b32 %r2, %r1, 8, 31, 0xffff;
            st.global.u32 [%rd1], %r2;
            skip:
            ret;
            """,
        ),
        Sample(
            "the mask is a ballot of the condition",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<6>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            ld.param.u32 %r4, [n_elements];
            mov.u32 %r1, %tid.x;
            setp.lt.u32 %p1, %r1, %r4;
            vote.sync.ballot.b32 %r3, %p1, -1;
            @!%p1 bra skip;
            shfl.sync.down.b32 %r2, %r1, 1, 31, %r3;
            st.global.u32 [%rd1], %r2;
            skip:
            ret;
            """,
        ),
    )
    needs = (ConvergenceAnalysis,)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit for each branch that parts lanes, at the first operation behind it."""
        operations = _operations(fn, facts)
        if not operations:
            return
        if _is_straight(operations, fn, facts):
            yield _proved(())
            return
        convergence = facts.get(ConvergenceAnalysis)
        known: dict[Instr, list[_Fault]] = {}
        doubts: list[tuple[Instr, Parting]] = []
        masked = 0
        for operation in operations:
            mask = _mask(operation, facts)
            if mask is None:
                masked += 1
                continue
            parting = convergence.parting(operation.instr, Level.WARP, mask)
            if parting is None or (parting.exited and _ignores_exited(operation.instr)):
                continue
            fault = _fault(operation.instr, parting, facts)
            if fault is None:
                doubts.append((operation.instr, parting))
            else:
                known.setdefault(parting.branch, []).append(fault)
        for faults in known.values():
            yield _hit(faults)
        yield _verdict(known, doubts, masked, convergence, facts)


class _Operation(NamedTuple):
    """An operation that lanes execute together; `mask_operand` is None for the whole warp."""

    instr: Instr
    mask_operand: int | None


def _operations(fn: Function, facts: Facts) -> list[_Operation]:
    """The warp operations in reachable code."""
    together = facts.instructions(lambda shape: _kind(shape)[0])
    found = [_Operation(instr, _kind(instr.shape)[1]) for instr in together]
    if found:
        cfg = facts.get(CfgAnalysis)
        found = [operation for operation in found if cfg.is_reachable(operation.instr)]
    return found


def _kind(shape: Shape) -> tuple[bool, int | None]:
    """Whether lanes execute it together, and which operand names them."""
    if shape.opcode in _MATRIX:
        return shape.has("aligned"), None
    at = _MASKED.get(shape.opcode)
    if at is None or not shape.has("sync") or (shape.opcode == "bar" and not shape.has("warp")):
        return False, None
    return True, at % len(shape.patterns) if shape.patterns else None


def _mask(operation: _Operation, facts: Facts) -> int | None:
    """The lanes that must be there as bits; None if that is only known at run time."""
    if operation.mask_operand is None:
        return FULL_MASK
    constant = constant_of(facts, operation.instr, operation.mask_operand)
    return None if constant is None else constant & FULL_MASK


def _is_straight(operations: list[_Operation], fn: Function, facts: Facts) -> bool:
    """True if control never parts, so that there is nothing to analyse."""
    cfg = facts.get(CfgAnalysis)
    if any(len(cfg.edges_from(cfg.blocks[block])) > 1 for block in cfg.rpo):
        return False
    return not any(operation.instr.guard is not None for operation in operations)


class _Fault(NamedTuple):
    """An operation for which a launch is known in which lanes are missing.

    `reads` are a lane and the missing one that it reads from, for a shuffle after an early exit.
    """

    instr: Instr
    parting: Parting
    split: Split
    reads: tuple[int, int] | None


def _ignores_exited(instr: Instr) -> bool:
    """True if an operation is well defined among the lanes that have not exited.

    PTX ISA, "vote.sync": a thread waits for all *non-exited* threads of the mask. A shuffle too,
    but its result may come from a lane that is gone; a matrix operation needs all lanes.
    """
    return instr.opcode not in _MATRIX and instr.opcode != "shfl"


def _fault(instr: Instr, parting: Parting, facts: Facts) -> _Fault | None:
    split = parting.split
    if split is None:
        return None
    if not parting.exited or instr.opcode != "shfl":
        return _Fault(instr, parting, split, None)
    reads = _read_of_missing(instr, split, facts)
    return _Fault(instr, parting, split, reads) if reads is not None else None


def _read_of_missing(instr: Instr, split: Split, facts: Facts) -> tuple[int, int] | None:
    """A thread and the missing one of its warp that it shuffles from; None if there is none.

    PTX ISA, "shfl.sync", gives the source lane.
    """
    distance, control = (constant_of(facts, instr, at) for at in (2, 3))
    if distance is None or control is None:
        return None
    mode = next(m for m in instr.shape.modifiers if m in ("up", "down", "bfly", "idx"))
    segment, clamp = control >> 8 & 31, control & 31
    for thread in split.warp:
        lane = thread % WARP
        low = lane & segment
        high = low | clamp & ~segment
        source = {
            "up": lane - (distance & 31),
            "down": lane + (distance & 31),
            "bfly": lane ^ (distance & 31),
            "idx": low | distance & 31 & ~segment,
        }[mode]
        in_range = source >= high if mode == "up" else source <= high
        if in_range and thread - lane + source not in split.warp:
            return thread, thread - lane + source
    return None


def _hit(faults: list[_Fault]) -> Hit:
    first, parting, split, reads = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    related = () if parting.branch is first else (Note("lanes part here", parting.branch),)
    name = ".".join(first.shape.mnemonic.split(".")[:2])
    if reads is not None:
        return Hit(
            f"`{name}`{more} reads from lanes that have left the kernel",
            first,
            related,
            breaks_when=f"{split.describe()}: thread {reads[0]} gets what is left of thread "
            f"{reads[1]}",
            severity="warning",
            key=f"{first.opcode} after an exit",
        )
    return Hit(
        f"lanes that `{name}`{more} names do not come here",
        first,
        related,
        breaks_when=f"{split.describe()}: thread {split.comes} comes, thread {split.stays_away} of "
        "its warp does not",
        key=f"divergent {first.opcode}",
    )


def _proved(assumes: tuple[str, ...]) -> Verdict:
    return Verdict("proved", "every warp operation is reached by all lanes named", assumes=assumes)


def _verdict(
    known: dict[Instr, list[_Fault]],
    doubts: list[tuple[Instr, Parting]],
    masked: int,
    convergence: Convergence,
    facts: Facts,
) -> Verdict:
    if known:
        first = next(iter(known.values()))[0].instr
        return Verdict("refuted", "lanes that a warp operation names are not there", first)
    if doubts:
        instr, parting = doubts[0]
        line = facts.module.source.position(parting.branch.offset).line
        reason = f"whether the lanes of a warp part at line {line} is not known"
        source = parting.source
        if source is not None and source.opcode in LOADS:
            at = facts.module.source.position(source.offset).line
            reason += f": it depends on a value from memory (line {at})"
        return Verdict("open", reason, instr)
    taken = (f"{masked} masks computed at run time name just the lanes that are there",)
    return _proved(convergence.assumes + (taken if masked else ()))
