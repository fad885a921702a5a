"""NUM402: sums of exp(x - m) that are not rescaled when the running maximum m grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.cfg.loops import Loop, LoopsAnalysis
from ptxlint.dataflow.accumulators import Accumulator
from ptxlint.dataflow.online_softmax import (
    MAX_VALUES,
    OnlineSoftmax,
    OnlineSoftmaxAnalysis,
    RunningMaximum,
)
from ptxlint.dataflow.tensor_memory import Product, TensorMemory, TensorMemoryAnalysis
from ptxlint.dataflow.value_flow import DATA, EXTREME, FACTOR, TERM
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict

_COPIES: Final = frozenset({"mov", "cvt", "selp"})
_MAX_PLACES: Final = 64


class OnlineSoftmaxNotRescaled(Rule):
    id = "NUM402"
    name = "online-softmax-not-rescaled"
    severity = "error"
    confidence = "high"
    category = "numerics"
    family = "rescale"
    needs = (OnlineSoftmaxAnalysis, LoopsAnalysis)
    summary = "A loop sums exp(x - m) with a running maximum m, and a sum keeps its old scale."
    why = (
        "Online softmax and flash attention keep a running maximum m and sums of exp(x - m). When "
        "a tile raises the maximum to m', everything summed so far is too large by exp(m' - m) "
        "and must be multiplied by exp(m - m'). Without the factor the result is right as long as "
        "the first tile holds the maximum, which random data of a few tiles often do. A flash "
        "kernel carries two such sums, the denominator and the output tile, and each needs the "
        "factor. The rule follows every sum of a loop once round: a multiplication of what is "
        "carried, conditional or not, counts as rescaling."
    )
    fix = "Multiply what is carried: alpha = exp(m - m_new); acc = acc * alpha + dot(p, v)."
    refs = ("https://arxiv.org/abs/1805.02867",)
    bad = (
        Sample(
            "the denominator keeps its scale",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<9>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f1, 0fFF800000;
            mov.f32 %f2, 0f00000000;
            loop:
            ld.global.f32 %f3, [%rd1];
            max.f32 %f1, %f1, %f3;
            sub.f32 %f4, %f3, %f1;
            mul.f32 %f5, %f4, 0f3FB8AA3B;
            ex2.approx.f32 %f6, %f5;
            add.f32 %f2, %f2, %f6; //~ NUM402
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.v2.f32 [%rd2], {%f1, %f2};
            ret;
            """,
        ),
        Sample(
            "the denominator is rescaled, the weighted sum is not",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<14>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f1, 0fFF800000;
            mov.f32 %f2, 0f00000000;
            mov.f32 %f3, 0f00000000;
            loop:
            ld.global.f32 %f4, [%rd1];
            ld.global.f32 %f5, [%rd1+4096];
            max.f32 %f6, %f1, %f4;
            sub.f32 %f7, %f1, %f6;
            ex2.approx.f32 %f8, %f7;
            sub.f32 %f9, %f4, %f6;
            ex2.approx.f32 %f10, %f9;
            fma.rn.f32 %f2, %f2, %f8, %f10;
            fma.rn.f32 %f3, %f10, %f5, %f3; //~ NUM402
            mov.f32 %f1, %f6;
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            div.rn.f32 %f11, %f3, %f2;
            st.global.f32 [%rd2], %f11;
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "both sums are rescaled, one only when the maximum grew",
            """
            .reg .pred %p<3>;
            .reg .b32 %r<5>;
            .reg .f32 %f<14>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f1, 0fFF800000;
            mov.f32 %f2, 0f00000000;
            mov.f32 %f3, 0f00000000;
            loop:
            ld.global.f32 %f4, [%rd1];
            ld.global.f32 %f5, [%rd1+4096];
            max.f32 %f6, %f1, %f4;
            sub.f32 %f7, %f1, %f6;
            ex2.approx.f32 %f8, %f7;
            sub.f32 %f9, %f4, %f6;
            ex2.approx.f32 %f10, %f9;
            fma.rn.f32 %f2, %f2, %f8, %f10;
            setp.gt.f32 %p2, %f6, %f1;
            @%p2 mul.f32 %f3, %f3, %f8;
            fma.rn.f32 %f3, %f10, %f5, %f3;
            mov.f32 %f1, %f6;
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            div.rn.f32 %f11, %f3, %f2;
            st.global.f32 [%rd2], %f11;
            ret;
            """,
        ),
        Sample(
            "the maximum is known before the loop",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<9>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            ld.global.f32 %f1, [%rd2];
            mov.f32 %f2, 0f00000000;
            loop:
            ld.global.f32 %f3, [%rd1];
            sub.f32 %f4, %f3, %f1;
            ex2.approx.f32 %f6, %f4;
            add.f32 %f2, %f2, %f6;
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.f32 [%rd2], %f2;
            ret;
            """,
        ),
        Sample(
            "a sum of the scores themselves beside an online softmax",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<5>;
            .reg .f32 %f<14>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.u32 %r1, [n_elements];
            mov.b32 %r2, 0;
            mov.f32 %f1, 0fFF800000;
            mov.f32 %f2, 0f00000000;
            mov.f32 %f3, 0f00000000;
            loop:
            ld.global.f32 %f4, [%rd1];
            max.f32 %f6, %f1, %f4;
            sub.f32 %f7, %f1, %f6;
            ex2.approx.f32 %f8, %f7;
            sub.f32 %f9, %f4, %f6;
            ex2.approx.f32 %f10, %f9;
            fma.rn.f32 %f2, %f2, %f8, %f10;
            add.f32 %f3, %f3, %f4;
            mov.f32 %f1, %f6;
            add.s64 %rd1, %rd1, 4;
            add.s32 %r2, %r2, 1;
            setp.lt.s32 %p1, %r2, %r1;
            @%p1 bra loop;
            st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f3};
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """One hit a Python line, or an opcode where no line is known."""
        if "ex2" not in facts.opcodes or not facts.get(LoopsAnalysis).loops:
            return
        online = facts.get(OnlineSoftmaxAnalysis)
        loops: dict[int, list[RunningMaximum]] = {}
        for maximum in online.maxima:
            loops.setdefault(maximum.loop.index, []).append(maximum)
        for maxima in loops.values():
            yield from _judge(facts, online, maxima)


def _judge(
    facts: Facts, online: OnlineSoftmax, maxima: list[RunningMaximum]
) -> Iterator[Hit | Verdict]:
    """The hits and the verdict for one loop."""
    loop = maxima[0].loop
    exponentials = [i for maximum in maxima for i in maximum.exponentials]
    reached = online.depends_on(loop, exponentials)
    sums = [a for a in online.accumulators.of(loop) if a.is_sum and _adds(a, reached)]
    held = _held(facts, online, loop, reached)
    places = [_place(online, a) for a in sums if not a.roles & {FACTOR, EXTREME}]
    places += [product.instr for product in held if _is_left_alone(facts, online, loop, product)]
    places += [instr for a in sums for instr in _added_as_it_was(online, a, reached)]
    hits = [_hit(place, maxima[0]) for place in _one_a_line(facts, places)]
    yield from hits
    if hits:
        yield Verdict("refuted", "a sum of exponentials keeps its old scale", hits[0].at)
        return
    factors = online.depends_on(loop, [i for maximum in maxima for i in maximum.rescales])
    doubt = _doubt(facts, online, loop, reached, factors, sums, held)
    if doubt:
        yield Verdict("open", doubt, exponentials[0])
    else:
        yield Verdict(
            "proved", "every sum of exponentials is multiplied by exp(m_old - m_new) in each round"
        )


def _added_as_it_was(online: OnlineSoftmax, total: Accumulator, reached: set[int]) -> list[Instr]:
    """Where a round adds exponentials to what it got, besides what it hands on."""
    flow = online.flow
    found: list[Instr] = []
    for result, role in flow.results(total.phi):
        if role != TERM or result in total.values or not flow.in_loop(result, total.loop):
            continue
        if any(source in reached for source, _ in flow.sources(result) if source != total.phi):
            found.append(flow.ssa.cfg.function.instrs[flow.ssa.instr[result]])
    return found


def _doubt(
    facts: Facts,
    online: OnlineSoftmax,
    loop: Loop,
    reached: set[int],
    factors: set[int],
    sums: list[Accumulator],
    held: list[Product],
) -> str:
    """Why a loop without a hit is not proved; "" if it is."""
    if max(len(reached), len(factors)) >= MAX_VALUES:
        return "the loop is too large to be followed"
    if not sums and not held:
        return "the sums of the exponentials were not found"
    if any(EXTREME in a.roles or a.bypass or factors.isdisjoint(a.factors) for a in sums):
        return "a sum of exponentials is multiplied on some paths, or by something else"
    if not all(_is_rewritten(facts, online, loop, product, factors) for product in held):
        return "it was not seen how a sum in tensor memory is rescaled"
    known = {a.phi for a in online.accumulators.of(loop)}
    if any(
        phi in reached and phi not in known and _returns(online, phi, loop, reached)
        for phi in online.flow.ssa.phis.get(loop.header, ())
    ):
        return "exponentials are carried in a form that was not understood"
    others = [a for a in online.accumulators.of(loop) if a.is_sum and not _adds(a, reached)]
    if any(not a.factors for a in others) and not online.is_traced(loop, reached):
        return "exponentials go through memory, and it was not seen which sum takes them"
    return ""


def _returns(online: OnlineSoftmax, phi: int, loop: Loop, reached: set[int]) -> bool:
    """True if a header phi depends on its own value of the round before."""
    flow = online.flow
    seen: set[int] = set()
    work = [phi]
    while work:
        for value, role in flow.results(work.pop()):
            if value == phi:
                return True
            if role in DATA and value in reached and value not in seen:
                seen.add(value)
                work.append(value)
    return False


def _adds(accumulator: Accumulator, reached: set[int]) -> bool:
    """True if exponentials are added: among the terms, or as an operand in shared memory."""
    return any(term in reached for term in accumulator.terms) or any(
        value in reached for value in accumulator.values
    )


def _place(online: OnlineSoftmax, accumulator: Accumulator) -> Instr:
    """The instruction that adds to the carried part; what it adds, if that alone has a line."""
    flow = online.flow
    adding = [i for i in accumulator.instrs if i.opcode not in _COPIES]
    work = [*(flow.ssa.instr[value] for value in accumulator.terms)]
    found = adding
    for at in work:
        if at < 0 or len(found) > _MAX_PLACES:
            continue
        instr = flow.ssa.cfg.function.instrs[at]
        found.append(instr)
        for value in flow.ssa.def_values[at]:
            work += [flow.ssa.instr[source] for source, _ in flow.sources(value)]
    return next((i for i in found if i.loc is None or i.loc.line > 0), found[0])


def _leaves(online: OnlineSoftmax, loop: Loop, reached: set[int]) -> bool:
    """True if an exponential is stored to memory inside the loop."""
    return any(
        instr.opcode in ("st", "stmatrix") and not reached.isdisjoint(online.stored(instr))
        for instr in online.flow.ssa.cfg.function.instrs
        if _is_in(online, instr, loop)
    )


def _held(facts: Facts, online: OnlineSoftmax, loop: Loop, reached: set[int]) -> list[Product]:
    """The first product of a round into each region of tensor memory that it adds to."""
    if "tcgen05" not in facts.opcodes:
        return []
    memory = facts.get(TensorMemoryAnalysis)
    if not _is_fed(online, memory, loop, reached):
        return []
    first: dict[int | None, Product] = {}
    for product in memory.products:
        if _is_in(online, product.instr, loop):
            first.setdefault(product.region, product)
    return [product for product in first.values() if product.adds is not False]


def _is_left_alone(facts: Facts, online: OnlineSoftmax, loop: Loop, product: Product) -> bool:
    """True if nothing reads or writes a sum in tensor memory while the loop adds to it.

    Rescaling reads the sum and writes it back.
    """
    if product.region is None or product.adds is None:
        return False
    memory = facts.get(TensorMemoryAnalysis)
    cfg = online.flow.ssa.cfg
    touches = (*memory.reads_of(product.region), *memory.writes_of(product.region))
    return all(
        _is_outside(online.flow.loops.innermost(cfg.block_of[i.index]), loop) for i in touches
    )


def _is_rewritten(
    facts: Facts, online: OnlineSoftmax, loop: Loop, product: Product, factors: set[int]
) -> bool:
    """True if the loop writes a sum in tensor memory with values made of the factors."""
    if product.region is None:
        return False
    writes = facts.get(TensorMemoryAnalysis).writes_of(product.region)
    inside = [write for write in writes if _is_in(online, write, loop)]
    return bool(inside) and all(
        write.shape.has("st") and factors.issuperset(online.stored(write)) for write in inside
    )


def _is_in(online: OnlineSoftmax, instr: Instr, loop: Loop) -> bool:
    return online.flow.loops.contains(loop, online.flow.ssa.cfg.block_of[instr.index])


def _is_outside(innermost: Loop | None, loop: Loop) -> bool:
    """True if code in that innermost loop runs before or after the loop, not during it."""
    around: Loop | None = loop.parent
    while around is not innermost and around is not None:
        around = around.parent
    return around is innermost


def _is_fed(online: OnlineSoftmax, memory: TensorMemory, loop: Loop, reached: set[int]) -> bool:
    """True if exponentials go to tensor memory or shared memory inside the loop."""
    writes = [touch.instr for touch in memory.writes if _is_in(online, touch.instr, loop)]
    return _leaves(online, loop, reached) or any(
        not reached.isdisjoint(online.stored(write)) for write in writes
    )


def _one_a_line(facts: Facts, places: list[Instr]) -> list[Instr]:
    """The first instruction of each Python line, or of each opcode without lines."""
    first: dict[tuple[object, ...], Instr] = {}
    for place in sorted(places, key=lambda i: i.index):
        frame = facts.module.python_frame(place.loc)
        known = frame is not None and frame.line > 0
        key = (frame.path, frame.line) if frame is not None and known else (place.opcode,)
        first.setdefault(key, place)
    return list(first.values())


def _hit(place: Instr, maximum: RunningMaximum) -> Hit:
    grows = next(i for i in maximum.accumulator.instrs if i.opcode == "max")
    return Hit(
        "a sum of exp(x - m) is carried on without the factor exp(m_old - m_new)",
        place,
        related=(
            Note("the running maximum m grows here", grows),
            Note("an exponential relative to it", maximum.exponentials[0]),
        ),
        breaks_when="a later tile holds a larger value than all tiles before it",
        key="not rescaled",
        label="what was summed under the old maximum keeps its scale",
    )
