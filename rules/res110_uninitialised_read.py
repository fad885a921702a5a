"""RES110: a register that is read and never written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.dataflow.reaching import Reaching, ReachingAnalysis
from ptxlint.dataflow.solver import FORWARD, MAYBE, solve_blocks
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Register
from ptxlint.ir.types import bits
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_CARRIERS: Final = frozenset({"mov", "prmt", "shfl", "call"})
"""Instructions that hand values on: compilers pad vectors and structures with undefined ones."""
_QUESTIONS: Final = 32
"""Reads of one function that are asked about exactly though a write reaches them."""


class UninitialisedRead(Rule):
    id = "RES110"
    name = "uninitialised-read"
    severity = "warning"
    confidence = "high"
    category = "resources"
    family = "resources"
    summary = "A register is computed with that no instruction writes before."
    why = (
        "PTX does not say what an unwritten register holds: the result changes from one assembler "
        "and one GPU to the next. Where a value is only handed on (mov, prmt, shfl, a call's "
        "argument, the byte of an empty structure, the unused half of a packed conversion) "
        "compilers leave it undefined on purpose, and nothing is said. Nor is there a finding "
        "where some way to the read writes the register: optimisers know that the other ways are "
        "not taken, so it is left as an open obligation."
    )
    fix = "Write the register before it is read, or correct the name of the operand."
    refs = (
        "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#register-state-space",
    )
    bad = (
        Sample(
            "an accumulator that nobody set to zero",
            """
            .reg .b32 %r<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [out_ptr];
            ld.global.f32 %r1, [%rd1];
            add.f32 %r2, %r1, %r3; //~ RES110
            st.global.f32 [%rd1], %r2;
            ret;
            """,
        ),
        Sample(
            "two reads of one register, reported at the first",
            """
            .reg .b32 %r<5>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mul.lo.u32 %r2, %r1, 3; //~ RES110
            add.u32 %r3, %r1, %r2;
            st.global.u32 [%rd1], %r3;
            ret;
            """,
        ),
        Sample(
            "a guard that is never computed",
            """
            .reg .pred %p<2>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            @%p1 st.global.u32 [%rd1], 1; //~ RES110
            ret;
            """,
        ),
        Sample(
            "written under the opposite guard only",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 ld.global.u32 %r2, [%rd1];
            @!%p1 st.global.u32 [%rd1], %r2; //~ RES110
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "a fill and a predicated load",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            mov.u32 %r2, 0;
            @%p1 ld.global.u32 %r2, [%rd1];
            add.u32 %r3, %r2, 1;
            st.global.u32 [%rd1], %r3;
            ret;
            """,
        ),
        Sample(
            "complementary guards write on every way",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 mov.u32 %r2, 1;
            @!%p1 mov.u32 %r2, 2;
            add.u32 %r3, %r2, 1;
            st.global.u32 [%rd1], %r3;
            ret;
            """,
        ),
        Sample(
            "loaded and used under one guard",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 ld.global.u32 %r2, [%rd1];
            @%p1 add.u32 %r2, %r2, 1;
            @%p1 st.global.u32 [%rd1], %r2;
            ret;
            """,
        ),
        Sample(
            "the upper half of a pair is undefined and not used",
            """
            .reg .b32 %r<4>;
            .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            mov.b64 %rd2, {%r1, %r2};
            cvt.u32.u64 %r3, %rd2;
            st.global.u32 [%rd1], %r3;
            ret;
            """,
        ),
        Sample(
            "written on one of two ways: an open obligation",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra skip;
            mov.u32 %r2, 1;
            skip:
            st.global.u32 [%rd1], %r2;
            ret;
            """,
        ),
    )
    kernels_only = False
    needs = (ReachingAnalysis,)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit a register, at the first read that computes with it; a verdict a function."""
        reaching = facts.get(ReachingAnalysis)
        candidates = reaching.uninitialised_candidates()
        refuted = False
        doubt: tuple[Instr, Register] | None = None
        questions = 0
        writes = _Writes(candidates, reaching, facts)
        for register in candidates:
            never = []
            for instr in reaching.reads_of(register):
                state = "never"
                # The exact answer is dear, and mostly it is plain that some write reaches the read.
                if writes.reach(instr, register):
                    if doubt is not None and not writes.only_guarded(instr, register):
                        continue
                    questions += 1
                    state = "maybe"
                    if questions <= _QUESTIONS:
                        state = reaching.initialisation(instr, register)
                if state == "maybe":
                    doubt = doubt or (instr, register)
                elif state == "never" and not _is_handed_on(instr, register):
                    never.append(instr)
            if never:
                refuted = True
                yield _hit(register, never, reaching)
        if refuted:
            yield Verdict("refuted", "a register is read that no instruction writes before")
        elif doubt is not None:
            reason = (
                f"there may be a way to this read of `{doubt[1].name}` that writes nothing to it; "
                "whether that way can be taken is not known"
            )
            yield Verdict("open", reason, doubt[0])
        elif not candidates:
            yield Verdict("proved", "every register is written before it is read")
        else:
            yield Verdict("proved", "no computation reads a register that nothing wrote")


class _Writes:
    """From which reads control can be traced back to a write, guards left aside."""

    def __init__(self, registers: list[Register], reaching: Reaching, facts: Facts) -> None:
        self._cfg = cfg = facts.get(CfgAnalysis)
        self._instrs = facts.function.instrs
        self._bit = {register: at for at, register in enumerate(registers)}
        self._sites = {register: reaching.definitions(register) for register in registers}
        made = [0] * len(cfg.blocks)
        for register, bit in self._bit.items():
            for site in self._sites[register]:
                made[cfg.block_of[site]] |= 1 << bit
        nothing = [0] * len(made)
        self._before = made
        if registers:
            self._before, _ = solve_blocks(cfg, made, nothing, kind=MAYBE, direction=FORWARD)

    def reach(self, instr: Instr, register: Register) -> bool:
        """True if some way leads from a write to the read."""
        block = self._cfg.block_at(instr)
        if self._before[block.index] >> self._bit[register] & 1:
            return True
        return any(block.start <= site < instr.index for site in self._sites[register])

    def only_guarded(self, instr: Instr, register: Register) -> bool:
        """True if the read and all writes are guarded, so that guards may keep them apart."""
        if instr.guard is None:
            return False
        return all(self._instrs[site].guard is not None for site in self._sites[register])


def _hit(register: Register, reads: list[Instr], reaching: Reaching) -> Hit:
    written = reaching.definitions(register)
    first = reads[0]
    what = "guarded by" if first.guard is register else "computed with"
    history = "no instruction writes it" if not written else "no write of it reaches this read"
    more = f" (and {len(reads) - 1} more)" if len(reads) > 1 else ""
    return Hit(
        f"{what} `{register.name}`, but {history}",
        first,
        tuple(Note("read again here", instr) for instr in reads[1:3]),
        key=f"unwritten {first.shape.mnemonic}",
        label=f"unwritten here{more}",
    )


def _is_handed_on(instr: Instr, register: Register) -> bool:
    """True if the value is only passed on, or may be one that is not used."""
    shape = instr.shape
    if instr.guard is register:
        return False
    if shape.opcode in _CARRIERS or (not shape.row.known and register in instr.defs):
        return True
    if shape.opcode == "st":
        # An empty structure is one byte that nobody fills.
        return shape.space in ("param", "local") or bits(shape.type) == 8
    if shape.opcode == "cvt":
        # Two values packed into one register: one half may be there for nothing.
        return len(shape.patterns) > 2
    return shape.opcode == "wgmma" and register in instr.defs and not _accumulates(instr)


def _accumulates(instr: Instr) -> bool:
    """True if `wgmma` surely adds to its accumulators: scale-d is a constant other than 0."""
    at = 5 if instr.shape.has("sp") else 3
    scale = instr.operands[at] if at < len(instr.operands) else None
    return isinstance(scale, Immediate) and scale.value != 0
