"""NUM403: sums that are kept in 16-bit floating point while they grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.accumulators import Accumulator, AccumulatorsAnalysis
from ptxlint.dataflow.shared_exchange import exchanges
from ptxlint.dataflow.ssa_values import RESULT
from ptxlint.dataflow.value_flow import (
    COPY,
    FACTOR,
    FLOATS,
    TERM,
    ValueFlow,
    ValueFlowAnalysis,
)
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Hit, Rule, Sample, Verdict

_NARROW: Final = {"f16": "f16", "f16x2": "f16", "bf16": "bf16", "bf16x2": "bf16"}
_SUMS: Final = frozenset({"add", "sub", "fma"})
_TENSOR: Final = frozenset({"mma", "wgmma", "wmma"})
_ONE: Final = frozenset({0x3C00, 0x3C003C00, 0x3F80, 0x3F803F80})
"""1.0 as f16, two f16, bf16 and two bf16."""
FEW: Final = 8
"""Sums of fewer terms are left alone: the rounding errors of a few additions are no surprise."""


class LowPrecisionAccumulation(Rule):
    id = "NUM403"
    name = "low-precision-accumulation"
    severity = "warning"
    confidence = "high"
    category = "numerics"
    family = "precision"
    needs = (AccumulatorsAnalysis, LoopsAnalysis)
    summary = "A sum over lanes or rounds is rounded to f16 or bf16 at every step."
    why = (
        "bf16 keeps 8 significant bits, f16 keeps 11. A running sum in bf16 stops growing once it "
        "is 256 times as large as what is added, and one in f16 overflows at 65,504. `tl.sum` "
        "adds in the type of its operand, and `acc += x` in that of the accumulator, so a "
        "16-bit tensor that is not converted first is summed in 16 bits. The additions cost the "
        "same in f32. Element-wise additions and sums of fewer than 8 terms are left alone. "
        "Tensor-core products that accumulate in f16 are a note: that must be asked for, and on "
        "some GPUs it is twice as fast."
    )
    fix = "Convert before summing: tl.sum(x.to(tl.float32), axis=0), acc = tl.zeros(…, tl.float32)."
    refs = ("https://github.com/linkedin/Liger-Kernel/issues/950",)
    bad = (
        Sample(
            "a warp adds in bf16",
            """
            .version 8.6
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 .ptr .global x) {
                .reg .b16 %h<9>;
                .reg .b32 %r<12>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [x];
                ld.global.b16 %h1, [%rd1];
                cvt.u32.u16 %r1, %h1;
                shfl.sync.bfly.b32 %r2, %r1, 4, 31, -1;
                cvt.u16.u32 %h2, %r2;
                add.bf16 %h3, %h1, %h2;
                cvt.u32.u16 %r3, %h3;
                shfl.sync.bfly.b32 %r4, %r3, 2, 31, -1;
                cvt.u16.u32 %h4, %r4;
                add.bf16 %h5, %h3, %h4;
                cvt.u32.u16 %r5, %h5;
                shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;
                cvt.u16.u32 %h6, %r6;
                add.bf16 %h7, %h5, %h6; //~ NUM403
                st.global.b16 [%rd1], %h7;
                ret;
            }
            """,
        ),
        Sample(
            "a loop adds in f16",
            """
            .reg .pred %p<2>;
            .reg .b16 %h<4>;
            .reg .b32 %r<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.b16 %h1, 0;
            loop:
            ld.global.b16 %h2, [%rd1];
            add.f16 %h1, %h1, %h2; //~ NUM403
            add.s64 %rd1, %rd1, 2;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.b16 [%rd2], %h1;
            ret;
            """,
        ),
        Sample(
            "a loop rounds its f32 sum to f16",
            """
            .reg .pred %p<2>;
            .reg .b16 %h<4>;
            .reg .b32 %r<4>;
            .reg .f32 %f<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.b16 %h1, 0;
            loop:
            ld.global.f32 %f1, [%rd1];
            cvt.f32.f16 %f2, %h1;
            add.f32 %f3, %f2, %f1;
            cvt.rn.f16.f32 %h1, %f3; //~ NUM403
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.b16 [%rd2], %h1;
            ret;
            """,
        ),
        Sample(
            "a note for tensor cores that accumulate in f16",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<12>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.b32 %r10, 0;
            mov.b32 %r11, 0;
            loop:
            ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1];
            ld.global.v2.b32 {%r8, %r9}, [%rd1+4096];
            mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r10, %r11}, //~ NUM403
                {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r10, %r11};
            add.s64 %rd1, %rd1, 64;
            add.s32 %r2, %r2, 16;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.v2.b32 [%rd2], {%r10, %r11};
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "three tensors are added element by element",
            """
            .version 8.6
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 .ptr .global x) {
                .reg .b32 %r<6>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [x];
                ld.global.b32 %r1, [%rd1];
                ld.global.b32 %r2, [%rd1+4];
                ld.global.b32 %r3, [%rd1+8];
                add.bf16x2 %r4, %r1, %r2;
                add.bf16x2 %r5, %r4, %r3;
                st.global.b32 [%rd1], %r5;
                ret;
            }
            """,
        ),
        Sample(
            "what is added is made of the f32 sum, rounded for a product",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<20>;
            .reg .f32 %f<6>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f1, 0f00000000;
            mov.f32 %f2, 0f00000000;
            mov.f32 %f3, 0f00000000;
            mov.f32 %f4, 0f00000000;
            loop:
            ld.global.v2.b32 {%r8, %r9}, [%rd1];
            cvt.rn.f16x2.f32 %r4, %f2, %f1;
            cvt.rn.f16x2.f32 %r5, %f4, %f3;
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4},
                {%r4, %r5, %r4, %r5}, {%r8, %r9}, {%f1, %f2, %f3, %f4};
            add.s64 %rd1, %rd1, 64;
            add.s32 %r2, %r2, 16;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
            ret;
            """,
        ),
        Sample(
            "f16 data, f32 sum",
            """
            .reg .pred %p<2>;
            .reg .b16 %h<4>;
            .reg .b32 %r<4>;
            .reg .f32 %f<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f1, 0f00000000;
            loop:
            ld.global.b16 %h2, [%rd1];
            cvt.f32.f16 %f2, %h2;
            add.f32 %f1, %f1, %f2;
            add.s64 %rd1, %rd1, 2;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            cvt.rn.f16.f32 %h1, %f1;
            st.global.b16 [%rd2], %h1;
            ret;
            """,
        ),
        Sample(
            "a maximum in bf16 is exact",
            """
            .version 8.6
            .target sm_90
            .address_size 64
            .visible .entry k(.param .u64 .ptr .global x) {
                .reg .b16 %h<6>;
                .reg .b32 %r<6>;
                .reg .b64 %rd<2>;
                ld.param.u64 %rd1, [x];
                ld.global.b16 %h1, [%rd1];
                cvt.u32.u16 %r1, %h1;
                shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1;
                cvt.u16.u32 %h2, %r2;
                max.bf16 %h3, %h1, %h2;
                cvt.u32.u16 %r3, %h3;
                shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
                cvt.u16.u32 %h4, %r4;
                max.bf16 %h5, %h3, %h4;
                st.global.b16 [%rd1], %h5;
                ret;
            }
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit a Python line, or a type and kind where no line is known."""
        loops = facts.get(LoopsAnalysis).loops
        exchanges = "shfl" in facts.opcodes
        if not loops and not exchanges:
            return
        alike = [instrs[0] for instrs in facts.by_shape.values()]
        if not any(_sums_narrowly(i) or (loops and _narrows(i)) for i in alike):
            if any(i.opcode in _SUMS and i.shape.type in FLOATS for i in alike):
                yield Verdict("proved", "no sum is kept in 16 bits")
            return
        carried = [] if not loops else [a for a in facts.get(AccumulatorsAnalysis).all if a.is_sum]
        flow = facts.get(ValueFlowAnalysis)
        hits = [hit for a in carried for hit in _of_loop(a, flow)]
        trees = _Trees(flow, carried)
        hits += trees.hits()
        hits = _one_a_line(facts, hits)
        yield from hits
        certain = [hit for hit in hits if hit.severity != "note"]
        if certain:
            yield Verdict("refuted", "a sum is rounded to 16 bits at every step", certain[0].at)
        elif trees.exchanged and not hits:
            yield Verdict("open", f"a sum of fewer than {FEW} terms is kept in 16 bits")
        elif trees.large is not None and not hits:
            reason = f"it was not seen what becomes of a sum of {FEW} or more terms in 16 bits"
            yield Verdict("open", reason, trees.large)
        elif not hits:
            yield Verdict("proved", "no sum over lanes or rounds is kept in 16 bits")


def _narrow(instr: Instr) -> str:
    """f16 or bf16 if that is what an instruction makes, else ""."""
    types = instr.shape.types
    return _NARROW.get(types[0], "") if types else ""


def _sums_narrowly(instr: Instr) -> bool:
    return (instr.opcode in _SUMS and bool(_narrow(instr))) or _multiplies_narrowly(instr)


def _multiplies_narrowly(instr: Instr) -> bool:
    return instr.opcode in _TENSOR and bool(instr.defs) and _narrow(instr) == "f16"


def _narrows(instr: Instr) -> bool:
    """True for a conversion from a wider float."""
    types = instr.shape.types
    return instr.opcode == "cvt" and len(types) > 1 and bool(_narrow(instr)) and "f32" in types[1:]


# Sums over rounds -----------------------------------------------------------------------------
def _of_loop(accumulator: Accumulator, flow: ValueFlow) -> list[Hit]:
    """The hit for a sum that a loop carries, if it is narrow at some point of the round."""
    for instr in accumulator.instrs:
        if _multiplies_narrowly(instr):
            return [
                Hit(
                    "tensor cores accumulate in f16 over the rounds of a loop",
                    instr,
                    severity="note",
                    breaks_when="the sum passes 65,504, or is 2,048 times as large as a product",
                    key="f16 tensor sum",
                    label="the accumulator is f16",
                )
            ]
    for instr in accumulator.instrs:
        if _sums_narrowly(instr) or _narrows(instr):
            if _is_kept_wide(accumulator, flow):
                return []
            return [_hit(instr, f"a loop keeps its running sum in {_narrow(instr)}")]
    return []


def _is_kept_wide(accumulator: Accumulator, flow: ValueFlow) -> bool:
    """True if a way round the loop adds to the sum and rounds nothing to 16 bits.

    What is added may be made of the sum itself, rounded for a product (`h += k @ (v - k @ h)`).
    """
    ssa = flow.ssa
    instrs = ssa.cfg.function.instrs
    seen: set[tuple[int, bool]] = set()
    work = [(accumulator.phi, False)]
    while work:
        source, is_added_to = work.pop()
        for value, role in flow.results(source):
            state = value, is_added_to or role == TERM
            if value not in accumulator.values or state in seen:
                continue
            seen.add(state)
            if ssa.kind[value] == RESULT:
                instr = instrs[ssa.instr[value]]
                if _sums_narrowly(instr) or _narrows(instr):
                    continue
            if value in accumulator.latch and state[1]:
                return True
            work.append(state)
    return False


def _hit(instr: Instr, message: str) -> Hit:
    kind = _narrow(instr)
    ratio, bits = ("256", "8") if kind == "bf16" else ("2,048", "11")
    return Hit(
        message,
        instr,
        breaks_when=f"the sum is {ratio} times as large as what is added: nothing is added then",
        key=message,
        label=f"rounded to {bits} significant bits at every step",
    )


# Sums over lanes and inside a thread ----------------------------------------------------------
class _Trees:
    """The trees of narrow additions of a function."""

    def __init__(self, flow: ValueFlow, carried: list[Accumulator]) -> None:
        self._flow = flow
        self._instrs = flow.ssa.cfg.function.instrs
        self._loops = {value for a in carried for value in a.values}
        self._wide = {value for a in carried for value in a.terms}
        """What loops add to their sums."""
        self._handed = self._through_shared()
        self.exchanged = False
        """Whether some tree combines lanes."""
        self.large: Instr | None = None
        """The end of a tree of many terms that is none of the hits."""
        self._taken: dict[int, int | None] = {}
        """By first stored value of an exchange: the smallest of the sums that are stored."""
        self._terms: dict[int, tuple[int, bool]] = {}
        """By sum: how many terms it adds up, and whether those of other lanes are among them."""

    def hits(self) -> list[Hit]:
        """One for each tree of many terms that combines lanes, or that a loop adds to its sum."""
        flow = self._flow
        inner: set[int] = set()
        roots: list[tuple[int, Instr]] = []
        for instr in self._instrs:
            if instr.opcode in _SUMS and _narrow(instr) and instr.guard is None and instr.defs:
                value = flow.ssa.def_values[instr.index][0]
                roots.append((value, instr))
                inner |= self._count(value)
        out: list[Hit] = []
        for value, instr in roots:
            terms, lanes = self._terms.get(value, (0, False))
            self.exchanged = self.exchanged or lanes
            if value in inner or value in self._loops or terms < FEW:
                continue
            if lanes:
                out.append(_hit(instr, f"lanes are summed in {_narrow(instr)}"))
            elif not self._wide.isdisjoint(self._copies(value)):
                message = f"a loop adds a sum of {terms} terms that was made in {_narrow(instr)}"
                out.append(_hit(instr, message))
            elif self.large is None:
                self.large = instr
        return out

    def _through_shared(self) -> dict[int, list[int]]:
        """By value that is loaded from shared memory: what was stored before the barrier."""
        flow = self._flow
        handed: dict[int, list[int]] = {}
        known: dict[int, list[int]] = {}
        for load, stores in exchanges(self._instrs):
            stored = known.get(stores[0].index)
            if stored is None:
                stored = known[stores[0].index] = [
                    v for s in stores for values in flow.operand_values(s)[1:] for v in values
                ]
            handed.update((value, stored) for value in flow.ssa.def_values[load.index])
        return handed

    def _count(self, value: int) -> set[int]:
        """Count the terms of one sum, whose operands were counted before; returns those."""
        instr = self._instrs[self._flow.ssa.instr[value]]
        terms, lanes = int(instr.opcode == "fma" and not self._is_plain(instr)), False
        parts: set[int] = set()
        plain = instr.opcode == "fma" and not terms
        for source, role in self._flow.sources(value):
            if role != TERM and not (plain and role == FACTOR):
                continue
            if plain and role == FACTOR and self._flow.constant(source) in _ONE:
                continue
            found, crossed = self._behind(source)
            number, inside = self._terms.get(found, (1, False))
            terms, lanes = terms + number, lanes or inside or crossed
            parts.add(found)
        self._terms[value] = (terms, lanes)
        return parts

    def _is_plain(self, instr: Instr) -> bool:
        """True for `fma x, 1.0, y`, the addition of targets that lack one in bf16."""
        return any(
            self._flow.constant(source) in _ONE
            for value in self._flow.ssa.def_values[instr.index]
            for source, role in self._flow.sources(value)
            if role == FACTOR
        )

    def _behind(self, value: int) -> tuple[int, bool]:
        """The value behind moves, packing and exchanges, and whether another lane's it is."""
        flow, crossed = self._flow, False
        for _ in range(16):
            if value in self._terms:
                break
            if value in self._handed:
                return self._stored(value), crossed
            sources = [source for source, role in flow.sources(value) if role == COPY]
            at = flow.ssa.instr[value]
            if at < 0 or not sources:
                break
            instr = self._instrs[at]
            if instr.opcode not in ("mov", "shfl", "cvt") or _narrows(instr):
                break
            crossed = crossed or instr.opcode == "shfl"
            value = next((s for s in sources if s in self._terms), sources[0])
        return value, crossed

    def _stored(self, loaded: int) -> int:
        """The smallest sum that a load from shared memory may get; the load if it may be none."""
        stored = self._handed[loaded]
        if not stored:
            return loaded
        if stored[0] not in self._taken:
            sums = [self._made_before(value) for value in stored]
            are_sums = all(value in self._terms for value in sums)
            smallest = min(sums, key=lambda value: self._terms[value][0]) if are_sums else None
            self._taken[stored[0]] = smallest
        known = self._taken[stored[0]]
        return loaded if known is None else known

    def _made_before(self, value: int) -> int:
        """The sum of which a stored value is a part or a copy, or some other value."""
        for _ in range(16):
            if value in self._terms:
                break
            sources = [source for source, role in self._flow.sources(value) if role == COPY]
            if not sources:
                break
            value = next((s for s in sources if s in self._terms), sources[0])
        return value

    def _copies(self, value: int) -> set[int]:
        flow = self._flow
        out = {value}
        work = [value]
        while work:
            for result, role in flow.results(work.pop()):
                if role == COPY and result not in out:
                    out.add(result)
                    work.append(result)
        return out


def _one_a_line(facts: Facts, hits: list[Hit]) -> list[Hit]:
    """The first hit of each Python line, or of each message without lines."""
    first: dict[tuple[object, ...], Hit] = {}
    for hit in sorted(hits, key=lambda hit: hit.at.index if hit.at is not None else -1):
        frame = facts.module.python_frame(hit.at.loc) if hit.at is not None else None
        known = frame is not None and frame.line > 0
        key = (frame.path, frame.line) if frame is not None and known else (hit.message,)
        first.setdefault(key, hit)
    return list(first.values())
