"""BND301: index arithmetic that does not fit its word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.dataflow.access import AccessAnalysis, Accesses
from ptxlint.dataflow.polynomial import Atom, Monomial
from ptxlint.dataflow.symbolic import Symbolic, SymbolicAnalysis, Wrap
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Register
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes
from ptxlint.launch.questions import (
    OVERFLOW,
    Answer,
    answers,
    carried,
    place,
    right_below,
    shown_below,
    thread_of,
    touched,
)
from ptxlint.rulekit import Hit, Note, Rule, Sample, Verdict
from ptxlint.wording import counted

_ROWS: Final = """
            .reg .b32 %r<6>;
            .reg .b64 %rd<6>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.u64 %rd2, [out_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %ctaid.x;
            mov.u32 %r3, %tid.x;
"""
_NARROW: Final = (
    _ROWS
    + """
            mul.lo.s32 %r4, %r2, %r1;{mark}
            add.s32 %r4, %r4, %r3;
            mul.wide.s32 %rd3, %r4, 4;
            add.s64 %rd4, %rd1, %rd3;
            add.s64 %rd5, %rd2, %rd3;
            ld.global.b32 %r5, [%rd4];
            st.global.b32 [%rd5], %r5;
            ret;
            """
)
_WIDE: Final = (
    _ROWS
    + """
            mul.wide.s32 %rd3, %r2, %r1;
            cvt.u64.u32 %rd4, %r3;
            add.s64 %rd3, %rd3, %rd4;
            shl.b64 %rd3, %rd3, 2;
            add.s64 %rd4, %rd1, %rd3;
            add.s64 %rd5, %rd2, %rd3;
            ld.global.b32 %r5, [%rd4];
            st.global.b32 [%rd5], %r5;
            ret;
            """
)
_FLIPPED: Final = (
    _ROWS
    + """
            mad.wide.s32 %rd3, %r1, 4, %rd1;
            shl.b32 %r4, %r3, 1;
            cvt.s64.s32 %rd4, %r4;
            xor.b64 %rd4, %rd4, 4611686018427387902;
            shl.b64 %rd4, %rd4, 2;
            add.s64 %rd4, %rd3, %rd4;
            mad.wide.s32 %rd5, %r4, 4, %rd2;
            ld.global.b32 %r5, [%rd4 + 4];
            st.global.b32 [%rd5], %r5;
            ret;
            """
)
"""A compiler writes -1 - i so where a shift drops the upper bits."""


def _launch(rows: int) -> dict[str, object]:
    return {
        "grid": rows,
        "block": 128,
        "arguments": {
            "in_ptr": f"float32[{rows}, 4096]",
            "out_ptr": f"float32[{rows}, 4096]",
            "n_elements": 4096,
        },
    }


class IndexOverflow(Rule):
    id = "BND301"
    name = "index-overflow"
    severity = "error"
    confidence = "high"
    category = "bounds"
    family = "overflow"
    needs = (SymbolicAnalysis, AccessAnalysis, LaunchAnalysis)
    summary = "An index is worked out in a word that is too narrow for it."
    why = (
        "A program id times a stride is computed in 32 bits unless one of them is wider. Beyond "
        "2^31 - 1 it wraps, and the address lies gigabytes from the element that is meant: a crash "
        "if nothing is there, else wrong data. Under a launch this is decided for every access, "
        "with the thread that goes wrong. Without one it is a note, one for a kernel at most."
    )
    fix = "Widen one factor before the product: tl.program_id(0).to(tl.int64) * stride."
    bad = (
        Sample(
            "rows of 4,096 elements, one more than 2^31 elements hold",
            _NARROW.replace("{mark}", " //~ BND301"),
            launch=_launch(524_289),
        ),
        Sample("a product in 32 bits, without a launch", _NARROW.replace("{mark}", " //~ BND301")),
    )
    good = (
        Sample("as many rows as fit", _NARROW.replace("{mark}", ""), launch=_launch(524_288)),
        Sample("the product is wide", _WIDE, launch=_launch(524_289)),
        Sample("the product is wide, without a launch", _WIDE),
        Sample("from the end on, in bits that a shift drops", _FLIPPED, launch=_launch(1)),
    )
    refs = (
        "https://github.com/databricks/megablocks/issues/186",
        "https://github.com/triton-lang/triton/issues/5022",
        "https://github.com/triton-lang/triton/issues/1058",
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each number that wraps, by launch; a note at most without one."""
        if not facts.launches:
            yield from _without_launch(fn, facts)
            return
        for found in facts.get(LaunchAnalysis):
            for answer in answers(found, OVERFLOW):
                yield from _said(fn, found, answer)


def _said(fn: Function, found: LaunchOutcomes, answer: Answer) -> Iterator[Hit | Verdict]:
    judged, witness, _ = answer.first
    bound = found.bound
    if answer.status == "proved":
        reason = f"no index behind {counted(answer.accesses, 'access', 'accesses')}"
        yield Verdict(
            "proved",
            f"{reason} leaves its word",
            assumes=found.premises,
            launch=bound,
            generalises=carried(found, OVERFLOW),
        )
    elif witness is None or witness.wrap is None:
        at = fn.instrs[judged.wraps[0].instr]
        smaller = shown_below(found, answer, OVERFLOW)
        yield Verdict("open", judged.reason, at, launch=bound, generalises=smaller)
    else:
        wrap, access = witness.wrap, judged.access
        at = fn.instrs[wrap.instr]
        from ptxlint.launch.obligations import word

        low, high = word(wrap)
        limit = high if witness.value > high else low
        kind = f"{'a signed' if wrap.signed else 'an unsigned'} {wrap.bits}-bit word"
        message = (
            f"an index comes to {witness.value:,} and wraps: {kind} ends at {limit:,}; "
            f"{thread_of(answer.first)} {touched(answer.first)} at byte {witness.offset:,}"
        )
        yield Hit(
            message,
            at,
            (Note(f"the access: {touched(answer.first)}", access.instr),),
            breaks_when=_when(witness.since, bound.grid),
            key=f"wraps {wrap.bits}",
            label=f"{witness.value:,} does not fit {wrap.bits} bits",
            launch=bound,
            witness=place(found, answer.first),
        )
        right = right_below(found, answer, OVERFLOW)
        yield Verdict(
            "refuted", message, at, launch=bound, generalises=() if right is None else (right,)
        )


def _when(since: tuple[str, int] | None, grid: tuple[int, int, int]) -> str:
    if since is None:
        return f"this launch: grid {grid}"
    axis, first = since
    return (
        f"the grid has more than {first:,} programs along {axis} (here {grid['xyz'.index(axis)]:,})"
    )


# Without a launch -------------------------------------------------------------------------------
def _without_launch(fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
    """One note for all products of sizes in 32 bits that reach an address."""
    symbolic = facts.get(SymbolicAnalysis)
    accesses = facts.get(AccessAnalysis)
    products: dict[int, tuple[Wrap, Monomial]] = {}
    for index, wraps in symbolic.wraps.items():
        for wrap in wraps:
            factors = _sizes(wrap, symbolic)
            if factors is not None:
                products.setdefault(index, (wrap, factors))
    reaching = _reaching(products, symbolic, accesses) if products else []
    if not reaching:
        return
    first = min(reaching)
    wrap, factors = products[first]
    scale = abs(wrap.polynomial.terms[factors])
    names = [_name(symbolic.table.atoms[number]) for number in factors]
    product = " * ".join([*([f"{scale:,}"] if scale > 1 else []), *names])
    yield Hit(
        "a 32-bit index is a product of sizes: no launch says how large it gets",
        fn.instrs[first],
        tuple(Note("and here", fn.instrs[index]) for index in sorted(reaching)[1:4]),
        breaks_when=f"{product} > 2^31 - 1",
        severity="note",
        key="32-bit index",
        label=f"overflows once {product} > 2^31 - 1",
    )
    yield Verdict("open", f"an index overflows once {product} > 2^31 - 1", fn.instrs[first])


def _sizes(wrap: Wrap, symbolic: Symbolic) -> Monomial | None:
    """The product of a parameter and of what varies over the grid in a 32-bit number."""
    if wrap.bits != 32:
        return None
    table = symbolic.table
    for monomial in sorted(wrap.polynomial.terms):
        kinds = {table.atoms[number].kind for number in monomial}
        if "param" in kinds and kinds & {"ctaid", "index"}:
            return monomial
    return None


def _reaching(
    products: dict[int, tuple[Wrap, Monomial]], symbolic: Symbolic, accesses: Accesses
) -> list[int]:
    """The products that the address of an access rests on."""
    ssa = symbolic.ssa
    seen: set[int] = set()
    for access in accesses.distinct:
        seen.update(_address_values(access.instr, ssa.use_values[access.instr.index]))
    work = list(seen)
    for value in work:
        for operand in ssa.operands[value]:
            if operand not in seen:
                seen.add(operand)
                work.append(operand)
    return [
        index
        for index in products
        if any(ssa.written(value) in seen for value in ssa.def_values[index])
    ]


def _address_values(instr: Instr, values: tuple[int, ...]) -> list[int]:
    return [
        values[instr.uses.index(operand.base)]
        for operand in instr.operands
        if isinstance(operand, Address) and isinstance(operand.base, Register)
    ]


def _name(atom: Atom) -> str:
    if atom.kind == "ctaid":
        return f"%ctaid.{atom.data[0]}"
    return "round" if atom.kind == "index" else str(atom)
