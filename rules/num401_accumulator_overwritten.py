"""NUM401: a loop whose rounds overwrite each other's product instead of adding to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.cfg.loops import Loop, LoopForest, LoopsAnalysis
from ptxlint.dataflow.last_round import LastRound, LastRoundAnalysis, LastRounds
from ptxlint.dataflow.tensor_memory import Product, TensorMemory, TensorMemoryAnalysis
from ptxlint.dataflow.value_flow import COPY, DATA, EXTREME, FACTOR, FLOATS, TERM, ValueFlow
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_MEMORY: Final = frozenset({"", "global", "shared", "tmem"})
_MAX_VALUES: Final = 5_000
_ONLY_LAST: Final = "each round of the loop overwrites the product of the round before"


class AccumulatorOverwritten(Rule):
    id = "NUM401"
    name = "accumulator-overwritten"
    severity = "error"
    confidence = "high"
    category = "numerics"
    family = "accumulation"
    needs = (LastRoundAnalysis, LoopsAnalysis)
    summary = "A loop computes a product in every round, and only that of the last round survives."
    why = (
        "`acc = a * b` or `acc = tl.dot(a, b)` in a loop over K throws away every partial product "
        "but the last, where `acc += …` was meant: the result is that of the last tile of K. With "
        "one tile it is right, so that small tests pass. The compiled loop shows it: what leaves "
        "the loop does not depend on the round before, nothing in the loop uses it, and its "
        "operands are loaded anew in each round. On tensor cores the accumulator is set to zero "
        "inside the loop, or the instruction is told not to add. A product that the round itself "
        "uses, such as the scores of attention, is fine, and so is a loop that searches: one that "
        "ends when it has loaded a certain value."
    )
    fix = "Add to the accumulator: acc += a * b, or acc = tl.dot(a, b, acc)."
    bad = (
        Sample(
            "the product of the last round leaves the loop",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f3, 0f00000000;
            loop:
            ld.global.f32 %f1, [%rd1];
            ld.global.f32 %f2, [%rd1+4096];
            mul.f32 %f3, %f1, %f2; //~ NUM401
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.f32 [%rd2], %f3;
            ret;
            """,
        ),
        Sample(
            "zero in every accumulator operand",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<14>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.b32 %r3, 0;
            loop:
            ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1];
            ld.global.v2.b32 {%r8, %r9}, [%rd1+4096];
            mov.b32 %r10, %r3;
            mov.b32 %r11, %r3;
            mov.b32 %r12, %r3;
            mov.b32 %r13, %r3;
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13}, //~ NUM401
                {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r10, %r11, %r12, %r13};
            add.s64 %rd1, %rd1, 64;
            add.s32 %r2, %r2, 16;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.v4.b32 [%rd2], {%r10, %r11, %r12, %r13};
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "a sum",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f3, 0f00000000;
            loop:
            ld.global.f32 %f1, [%rd1];
            ld.global.f32 %f2, [%rd1+4096];
            fma.rn.f32 %f3, %f1, %f2, %f3;
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.f32 [%rd2], %f3;
            ret;
            """,
        ),
        Sample(
            "a product that its own round adds to a sum",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<14>;
            .reg .f32 %f<2>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.b32 %r3, 0;
            mov.f32 %f1, 0f00000000;
            loop:
            ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1];
            ld.global.v2.b32 {%r8, %r9}, [%rd1+4096];
            mov.b32 %r10, %r3;
            mov.b32 %r11, %r3;
            mov.b32 %r12, %r3;
            mov.b32 %r13, %r3;
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13},
                {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r10, %r11, %r12, %r13};
            add.f32 %f1, %f1, %r10;
            add.s64 %rd1, %rd1, 64;
            add.s32 %r2, %r2, 16;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.f32 [%rd2], %f1;
            ret;
            """,
        ),
        Sample(
            "a search ends at the pair it wants",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            loop:
            ld.global.f32 %f1, [%rd1];
            ld.global.f32 %f2, [%rd1+4096];
            ld.global.b32 %r3, [%rd1+8192];
            mul.f32 %f3, %f1, %f2;
            add.s64 %rd1, %rd1, 4;
            setp.ne.s32 %p1, %r3, 0;
            @%p1 bra loop;
            st.global.f32 [%rd2], %f3;
            ret;
            """,
        ),
        Sample(
            "the next tile is loaded while this one is used",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<5>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f3, 0f00000000;
            ld.global.f32 %f1, [%rd1];
            loop:
            fma.rn.f32 %f3, %f1, %f1, %f3;
            add.s64 %rd1, %rd1, 4;
            ld.global.f32 %f1, [%rd1];
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            fma.rn.f32 %f4, %f1, %f1, %f3;
            st.global.f32 [%rd2], %f4;
            ret;
            """,
        ),
        Sample(
            "two sums whose last additions are done behind the loop again",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .f32 %f<12>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f3, 0f00000000;
            mov.f32 %f4, 0f00000000;
            loop:
            mov.f32 %f5, %f3;
            mov.f32 %f6, %f4;
            ld.global.f32 %f1, [%rd1];
            ld.global.f32 %f2, [%rd1+4];
            add.f32 %f3, %f5, %f1;
            add.f32 %f4, %f6, %f2;
            add.s64 %rd1, %rd1, 8;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            add.f32 %f7, %f5, %f1;
            add.f32 %f8, %f6, %f2;
            add.f32 %f9, %f7, %f8;
            st.global.f32 [%rd2], %f9;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit a loop."""
        loops = facts.get(LoopsAnalysis)
        if not loops.loops:
            return
        rounds = facts.get(LastRoundAnalysis)
        hits = [hit for found in rounds.all for hit in _judge(rounds, found)]
        hits += [hit for found in rounds.kept for hit in _judge(rounds, found, is_used=True)]
        hits += _spent(rounds)
        judged = rounds.judged
        if "tcgen05" in facts.opcodes:
            memory = facts.get(TensorMemoryAnalysis)
            judged += len(memory.products)
            hits += _overwritten_regions(memory, loops, rounds)
        yield from hits
        certain = [hit for hit in hits if isinstance(hit, Hit)]
        if certain:
            yield Verdict("refuted", certain[0].message, certain[0].at)
        elif rounds.unclear and not hits:
            yield Verdict(
                "open", "a loop hands out a value that depends on a counter of its rounds"
            )
        elif not hits and any(_joins(rounds.flow, found) for found in rounds.stale):
            yield Verdict("open", "a round adds what the round before alone has summed up")
        elif judged and not hits and not loops.irreducible:
            yield Verdict("proved", "no counted loop hands out a product of its last round alone")


def _judge(rounds: LastRounds, found: LastRound, is_used: bool = False) -> Iterator[Hit | Verdict]:
    """The hit for values of the last round if they are products and are stored, else a verdict.

    What the loop uses too, it may hand out of its last round on purpose, but not to be multiplied.
    """
    outside = _Outside(rounds.flow, found)
    if not outside.is_stored:
        return
    inside = [] if is_used else [*found.products, *_joins(rounds.flow, found)]
    work = [*inside, *found.loads, *found.products]
    if not inside and not outside.products:
        reason = "a value that each round of a loop loads anew is used behind it: that of the last"
        yield Verdict("open", reason, work[0])
        return
    # What a compiler moves out of the loop often has no line of its own: the loads stay inside.
    at = next((i for i in work if i.loc is None or i.loc.line > 0), work[0])
    notes = [Note("loaded anew in each round", load) for load in found.loads[:2] if load is not at]
    if not inside:
        notes.append(Note("behind the loop, the product", outside.products[0]))
    yield _hit(at, notes)


def _spent(rounds: LastRounds) -> list[Hit]:
    """The hits for sums of one round that only the next one gets, as a carry would be."""
    hits = []
    for found in rounds.spent:
        joins = _joins(rounds.flow, found)
        if joins:
            hits.append(
                Hit(
                    "a round adds what the round before alone has summed up",
                    next((i for i in joins if i.loc is None or i.loc.line > 0), joins[0]),
                    breaks_when="the loop runs more than twice: older rounds are lost",
                    help="Add to what is carried: carry += tl.sum(x).",
                    severity="warning",
                    key="spent",
                    label="only the next round gets this sum",
                )
            )
    return hits


def _hit(at: Instr, notes: list[Note]) -> Hit:
    return Hit(
        _ONLY_LAST,
        at,
        related=tuple(notes),
        breaks_when="the loop runs more than once: the result is that of the last tile alone",
        key="overwritten",
        label="only the product of the last round leaves the loop",
    )


def _joins(flow: ValueFlow, found: LastRound) -> list[Instr]:
    """The sums and products in the loop that join two of its loads on the way to its values."""
    instrs = flow.ssa.cfg.function.instrs
    made: dict[int, set[int]] = {}
    for instr in (*found.loads, *found.products):
        for value in flow.ssa.def_values[instr.index]:
            made[flow.ssa.written(value)] = {instr.index}
    joins: dict[int, Instr] = {}
    for value in _upwards(flow, found):
        steps = [(s, role) for s, role in flow.sources(value) if role in DATA and s in made]
        if not steps:
            continue
        inputs = set[int]().union(*(made[source] for source, _ in steps))
        at = flow.ssa.instr[value]
        if at >= 0 and instrs[at].opcode == "shfl":
            # What another lane has is something else than what this one has.
            made.setdefault(value, set()).add(at)
            continue
        made.setdefault(value, set()).update(inputs)
        if all(role in (TERM, FACTOR) and made[s] != inputs for s, role in steps):
            instr = instrs[flow.ssa.instr[value]]
            joins[instr.index] = instr
    return [joins[at] for at in sorted(joins)]


def _upwards(flow: ValueFlow, found: LastRound) -> list[int]:
    """The values of the loop behind those that leave it, each after what it is made of."""
    order: list[int] = []
    seen: set[int] = set()
    work = [(value, False) for value in found.values]
    while work:
        value, done = work.pop()
        if done:
            order.append(value)
        elif value not in seen:
            seen.add(value)
            work.append((value, True))
            work += [
                (source, False)
                for source, role in flow.sources(value)
                if role in DATA and flow.in_loop(source, found.loop)
            ]
    return order


class _Outside:
    """What becomes of a loop's last values behind it."""

    def __init__(self, flow: ValueFlow, found: LastRound) -> None:
        self._flow = flow
        self.is_stored = False
        self.products: list[Instr] = []
        """The sums and products behind the loop that join two of them, or those of two lanes."""
        origins = self._copies(found)
        work = list(origins)
        joins: dict[int, Instr] = {}
        while work and len(origins) < _MAX_VALUES:
            value = work.pop()
            for user in flow.ssa.instr_users(value):
                if not _MEMORY.isdisjoint(memory_of(user.shape).writes):
                    self.is_stored = True
            for result, role in flow.results(value):
                if role not in DATA or flow.in_loop(result, found.loop):
                    continue
                if role == TERM and self._completes(result, found):
                    continue
                known = origins.get(result)
                if known is None:
                    known = origins[result] = set()
                    work.append(result)
                if self._is_exchange(result):
                    # What another lane has is something else than what this one has.
                    known.add(-1 - flow.ssa.instr[result])
                    continue
                if role in (TERM, FACTOR, EXTREME):
                    instr = self._made_by(result)
                    if known and not origins[value] <= known and instr.shape.type in FLOATS:
                        joins[instr.index] = instr
                known |= origins[value]
        self.products = [joins[at] for at in sorted(joins)]

    def _completes(self, total: int, found: LastRound) -> bool:
        """True for a sum with what the loop carries: a compiler may put the last addition of an
        accumulator behind the loop too, if it computes it there for less. A difference to a running
        maximum is none."""
        return any(
            role == TERM
            and source not in found.values
            and self._flow.in_loop(source, found.loop)
            and not self._is_extreme(source, found)
            for source, role in self._flow.sources(total)
        )

    def _is_extreme(self, value: int, found: LastRound) -> bool:
        """True for what max or min made in the loop, in this round or the one before."""
        flow = self._flow
        made = flow.carried(value, found.loop)[1] if flow.is_header_phi(value, found.loop) else ()
        return any(EXTREME in {role for _, role in flow.sources(v)} for v in (value, *made))

    def _copies(self, found: LastRound) -> dict[int, set[int]]:
        """By what leaves the loop, as it is or filled where a mask is false: where it is from."""
        flow = self._flow
        origins: dict[int, set[int]] = {}
        for start in (*found.values, *found.reloaded):
            work = [start]
            while work:
                value = work.pop()
                if start in origins.setdefault(value, set()):
                    continue
                origins[value].add(start)
                work += [
                    result
                    for result, role in flow.results(value)
                    if role == COPY
                    and flow.in_loop(result, found.loop)
                    and not flow.is_header_phi(result, found.loop)
                    and not self._is_exchange(result)
                ]
        return origins

    def _made_by(self, value: int) -> Instr:
        ssa = self._flow.ssa
        return ssa.cfg.function.instrs[ssa.instr[value]]

    def _is_exchange(self, value: int) -> bool:
        return self._flow.ssa.instr[value] >= 0 and self._made_by(value).opcode == "shfl"


def _overwritten_regions(
    memory: TensorMemory, loops: LoopForest, rounds: LastRounds
) -> list[Hit | Verdict]:
    """Products into tensor memory that do not add, in a loop that nothing reads them in."""
    cfg = rounds.flow.ssa.cfg
    first: dict[tuple[int, int], tuple[Loop, Product]] = {}
    for product in memory.products:
        loop = loops.innermost(cfg.block_of[product.instr.index])
        if loop is not None and product.region is not None:
            first.setdefault((loop.index, product.region), (loop, product))
    out: list[Hit | Verdict] = []
    for (_, region), (loop, product) in first.items():
        if product.adds:
            continue
        readers = [cfg.block_of[reader.index] for reader in memory.reads_of(region)]
        around = _around(loop)
        if not readers or not all(loops.innermost(block) in around for block in readers):
            continue
        if product.adds is False:
            out.append(_hit(product.instr, []))
        else:
            out.append(Verdict("open", "a predicate decides whether a product adds", product.instr))
    return out


def _around(loop: Loop) -> list[Loop | None]:
    """The loops around a loop, and None for what is in no loop."""
    out: list[Loop | None] = [None]
    while loop.parent is not None:
        loop = loop.parent
        out.append(loop)
    return out
