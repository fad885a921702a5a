"""NUM407: double precision that slipped into a kernel of narrower tensors."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Address, Register, Symbol
from ptxlint.rulekit import Hit, Note, Rule, Sample

_NARROW = frozenset({"f32", "f16", "bf16"})
_MOVES = frozenset({"mov", "selp"})
_MEMORY = frozenset({"ld", "ldu", "st", "atom", "red"})
_OUTSIDE = frozenset({"", "global", "const"})
"""Spaces whose contents outlive the kernel: f64 there is meant."""


class StrayF64(Rule):
    id = "NUM407"
    name = "stray-f64"
    severity = "warning"
    confidence = "high"
    category = "numerics"
    family = "precision"
    summary = "A narrower value is widened to f64 and computed on, though no memory holds f64."
    why = (
        "A scalar that arrives as a Python float typed fp64, or a double literal such as 1e-5 in "
        "CUDA C, turns the arithmetic around it into double precision. The result is narrowed "
        "again before it is stored, so the extra digits are lost, while f64 runs at 1/2 to 1/64 "
        "of the f32 rate and takes two registers a value. Values that come from integers, as in "
        "the slow path of sin and cos, are left alone; an accumulator that is carried round a "
        "loop in f64 may well be meant and is a note."
    )
    fix = "Cast the f64 operand to f32 first: eps.to(tl.float32), or 1e-5f in CUDA C."
    refs = ("https://github.com/linkedin/Liger-Kernel/issues/1358",)
    bad = (
        Sample(
            "eps arrives as f64",
            """
            .version 8.0
            .target sm_80
            .address_size 64
            .visible .entry k(.param .u64 .ptr .global x, .param .f64 eps) {
                .reg .b32 %r<4>;
                .reg .b64 %rd<9>;
                ld.param.u64 %rd1, [x];
                ld.param.f64 %rd2, [eps];
                ld.global.f32 %r1, [%rd1];
                cvt.f64.f32 %rd3, %r1;
                add.f64 %rd4, %rd3, %rd2; //~ NUM407
                rsqrt.approx.f64 %rd5, %rd4;
                cvt.rn.f32.f64 %r2, %rd5;
                st.global.f32 [%rd1], %r2;
                ret;
            }
            """,
        ),
        Sample(
            "a double literal",
            """
            .reg .b64 %out;
            ld.param.u64 %out, [out_ptr];
            .reg .f32 %f<3>;
            .reg .f64 %d<3>;
            mov.f32 %f1, 0f3F800000;
            cvt.f64.f32 %d1, %f1;
            mul.f64 %d2, %d1, 0d3FB999999999999A; //~ NUM407
            cvt.rn.f32.f64 %f2, %d2;
            st.global.f32 [%out], %f2;
            ret;
            """,
        ),
        Sample(
            "a note for an accumulator carried round a loop",
            """
            .reg .b64 %out;
            ld.param.u64 %out, [out_ptr];
            .reg .pred %p<2>;
            .reg .b32 %r<4>;
            .reg .f32 %f<3>;
            .reg .f64 %d<3>;
            mov.f64 %d1, 0d0000000000000000;
            mov.b32 %r1, 0;
            loop:
            ld.global.f32 %f1, [%out];
            cvt.f64.f32 %d2, %f1;
            add.f64 %d1, %d1, %d2; //~ NUM407
            add.s32 %r1, %r1, 1;
            setp.lt.s32 %p1, %r1, 100;
            @%p1 bra loop;
            cvt.rn.f32.f64 %f2, %d1;
            st.global.f32 [%out], %f2;
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "the tensor itself is f64, moved as b64",
            """
            .reg .b64 %out;
            ld.param.u64 %out, [out_ptr];
            .reg .b32 %r<2>;
            .reg .b64 %rd<5>;
            ld.global.b64 %rd1, [%out];
            ld.global.b32 %r1, [%out+32];
            cvt.f64.f32 %rd2, %r1;
            add.f64 %rd3, %rd1, %rd2;
            st.global.b64 [%out], %rd3;
            ret;
            """,
        ),
        Sample(
            "argument reduction of sin: the f64 value comes from an integer",
            """
            .reg .b64 %out;
            ld.param.u64 %out, [out_ptr];
            .reg .b32 %r<2>;
            .reg .b64 %rd<4>;
            ld.global.b64 %rd1, [%out];
            cvt.rn.f64.s64 %rd2, %rd1;
            mul.f64 %rd3, %rd2, 0d3BF921FB54442D19;
            cvt.rn.f32.f64 %r1, %rd3;
            st.global.b32 [%out], %r1;
            ret;
            """,
        ),
        Sample(
            "f32 throughout",
            """
            .reg .b64 %out;
            ld.param.u64 %out, [out_ptr];
            .reg .f32 %f<3>;
            ld.global.f32 %f1, [%out];
            mul.f32 %f2, %f1, 0f3DCCCCCD;
            st.global.f32 [%out], %f2;
            ret;
            """,
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a kernel, at the first f64 operation on a widened value."""
        arithmetic = facts.instructions(_is_arithmetic)
        if not arithmetic:
            return
        values = _wide_values(fn, arithmetic)
        if any(_touches_memory(instr, values) for instr in fn.instrs):
            return
        widened = _widened(fn, values)
        stray = [i for i in arithmetic if any(r in widened for r in (*i.uses, *i.defs))]
        if not stray:
            return
        origin = next(i for i in fn.instrs if _widens(i) or _f64_parameter(i, fn))
        parameter = _f64_parameter(origin, fn)
        carried = any(r in i.uses for i in stray for r in i.defs) or _cyclic(fn, stray)
        count = f"{len(stray)} f64 operation{'s' if len(stray) > 1 else ''}"
        cause = f": parameter {parameter} is f64" if parameter else ""
        yield Hit(
            f"{count} in a kernel whose memory holds no f64{cause}",
            stray[0],
            # Where a parameter is loaded says nothing: the compiler puts all loads first.
            () if parameter else (Note("widened to f64", origin),),
            severity="note" if carried else "",
            key="stray f64",
        )


def _is_arithmetic(shape: Shape) -> bool:
    """True for an f64 operation that is no move, conversion or memory access."""
    if "f64" not in shape.types or shape.opcode in ("cvt", "mov", "cvta"):
        return False
    return shape.opcode not in _MEMORY


def _widens(instr: Instr) -> bool:
    types = instr.shape.types
    return instr.opcode == "cvt" and len(types) > 1 and types[0] == "f64" and types[1] in _NARROW


def _f64_parameter(instr: Instr, fn: Function) -> str:
    """The name of the f64 kernel parameter that this instruction loads; "" if it loads none."""
    if instr.opcode != "ld" or instr.shape.space != "param":
        return ""
    symbols = [atom.name for atom in instr.args if isinstance(atom, Symbol)]
    return next((p.name for p in fn.params if p.type == "f64" and p.name in symbols), "")


def _wide_values(fn: Function, arithmetic: list[Instr]) -> set[Register]:
    """Registers that hold f64 values: operands and results of f64 arithmetic, and their copies."""
    values = {r for i in arithmetic for r in (*i.defs, *i.uses) if r.type in ("f64", "b64")}
    values.update(r for i in fn.instrs if _widens(i) for r in i.defs)
    moves = [i for i in fn.instrs if i.opcode in _MOVES]
    grew = True
    while grew:
        grew = False
        for move in moves:
            ends = {r for r in (*move.defs, *move.uses) if r.type in ("f64", "b64")}
            if ends & values and not ends <= values:
                values |= ends
                grew = True
    return values


def _touches_memory(instr: Instr, values: set[Register]) -> bool:
    """True if an f64 value is loaded from or stored to memory that outlives the kernel."""
    if instr.opcode not in _MEMORY or instr.shape.space not in _OUTSIDE:
        return False
    if instr.opcode in ("atom", "red") and instr.shape.has("f64"):
        return True
    data: set[Register] = set(instr.defs)
    if instr.opcode in ("st", "atom", "red"):
        address = next((o for o in instr.operands if isinstance(o, Address)), None)
        base = address.base if address is not None else None
        data.update(r for r in instr.uses if r is not base)
    return bool(data & values)


def _widened(fn: Function, values: set[Register]) -> set[Register]:
    """The f64 values that depend on a widened float or on an f64 parameter."""
    known = {r for i in fn.instrs if _widens(i) or _f64_parameter(i, fn) for r in i.defs}
    flows = [i for i in fn.instrs if i.defs and any(r in values for r in i.defs)]
    grew = bool(known)
    while grew:
        grew = False
        for instr in flows:
            if any(r in known for r in instr.uses):
                fresh = [r for r in instr.defs if r in values and r not in known]
                known.update(fresh)
                grew = grew or bool(fresh)
    return known


def _cyclic(fn: Function, stray: list[Instr]) -> bool:
    """True if an f64 operation's result reaches its own operand: a loop-carried accumulator."""
    successors: dict[Register, set[Register]] = {}
    relevant = [*stray, *(i for i in fn.instrs if i.opcode in _MOVES)]
    for instr in relevant:
        for source in instr.uses:
            successors.setdefault(source, set()).update(instr.defs)
    return any(_reaches(successors, result, result) for i in stray for result in i.defs)


def _reaches(successors: dict[Register, set[Register]], start: Register, goal: Register) -> bool:
    seen: set[Register] = set()
    todo = list(successors.get(start, ()))
    while todo:
        register = todo.pop()
        if register is goal:
            return True
        if register not in seen:
            seen.add(register)
            todo += successors.get(register, ())
    return False
