"""Checks of a statement by its modifiers alone: operand count, missing types, missing modifiers."""

from __future__ import annotations

from typing import Final

from ptxlint.ir.instruction import Shape
from ptxlint.ir.modifier_check import modifier_fault
from ptxlint.ir.operand_check import Fault

_ROUNDING: Final = frozenset("rn rna rz rm rp rni rzi rmi rpi rs approx full".split())
_FLOATS: Final = frozenset("f16 bf16 f32 f64".split())
_COMPARISONS: Final = frozenset(
    "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan".split()
)
_HALVES: Final = frozenset("lo hi wide".split())


def statement_faults(shape: Shape) -> list[Fault]:
    """What is wrong with a statement whatever its registers are.

    A fault of code `modifier` holds from PTX 2.0 on, when roundings lost their defaults, and up to
    the newest version that was measured.
    """
    if not shape.row.known:
        return []
    if shape.form is None:
        return [] if _lenient(shape) else [_count_fault(shape)]
    missing = _types_needed(shape) - len(shape.types)
    if missing > 0:
        what = "a type" if missing == 1 else f"{missing} types"
        return [Fault(-1, "type", f"{what} is missing", "add one, such as `.s32` or `.f32`")]
    message = modifier_fault(shape) or _modifier_missing(shape)
    if message:
        return [Fault(-1, "modifier", message)]
    message = _sources(shape)
    return [Fault(-1, "operand", message)] if message else []


def _sources(shape: Shape) -> str:
    """`cvt` to a pair of values takes two `.f32` sources, to anything else one."""
    if shape.opcode != "cvt" or len(shape.types) != 2:
        return ""
    if any(w in ("pack", "rs") or w.startswith("scaled") for w in shape.modifiers):
        return ""
    wanted = 2 if shape.types[0].endswith("x2") and shape.types[1] == "f32" else 1
    given = len(shape.patterns) - 1
    if given == wanted:
        return ""
    return f"takes {wanted + 1} operands, not {given + 1}"


def _lenient(shape: Shape) -> bool:
    """Where ptxas takes what the ISA does not describe (measured): `.wait_group0` without a blank,
    and operands of a tensor copy without their brackets."""
    glued = any(w.startswith("wait_group") and w[10:].isdigit() for w in shape.modifiers)
    bare = shape.opcode == "cp" and "tensor" in shape.modifiers
    return glued or (bare and len(shape.patterns) in _allowed_counts(shape))


def _count_fault(shape: Shape) -> Fault:
    given = len(shape.patterns)
    counts = _allowed_counts(shape)
    if given in counts:
        return Fault(-1, "operand", "the operands fit no form of this instruction", _forms(shape))
    allowed = " or ".join(map(str, sorted(counts))) or "other"
    plural = "operand" if allowed == "1" else "operands"
    return Fault(-1, "operand", f"takes {allowed} {plural}, not {given}", _forms(shape))


def _allowed_counts(shape: Shape) -> set[int]:
    return {
        n
        for n in range(12)
        for form in shape.row.forms
        if form.applies(shape.modifiers)
        and (shape.row.form(shape.modifiers, n) is not None)
        and form.fit(shape.modifiers, n) is not None
    }


def _forms(shape: Shape) -> str:
    """The forms that the modifiers select, in words."""
    out = []
    for form in shape.row.forms:
        if form.applies(shape.modifiers):
            specs = [s for s in form.operands if not s.condition or s.condition in shape.modifiers]
            words = [_word(s.role, s.kind, s.optional) for s in specs]
            out.append(", ".join(words) or "no operands")
            if form.when:
                break
    return "expected " + " or ".join(dict.fromkeys(out)) if out else ""


def _word(role: str, kind: str, optional: bool) -> str:
    word = {"def": "result", "update": "result", "use": "source", "callargs": "arguments"}.get(
        role, role
    )
    if kind == "a":
        word = "[address]"
    return f"({word})" if optional else word


def _types_needed(shape: Shape) -> int:
    """How many type modifiers the rules of the form refer to."""
    needed = 0
    for spec in shape.form.operands if shape.form else ():
        rule = spec.type.rstrip("+")
        if rule in ("T", "L", "W", "P"):
            needed = max(needed, 1)
        elif rule == "C":
            needed = max(needed, 2)
        elif rule[0] == "T" and rule[1:].isdigit():
            needed = max(needed, int(rule[1:]) + 1)
    return needed


def _modifier_missing(shape: Shape) -> str:
    """The modifier of a kind that the instruction cannot do without; "" if none is missing."""
    opcode, modifiers, types = shape.opcode, shape.modifiers, shape.types
    if opcode == "cvt" and len(types) > 1 and _rounds(types[0], types[1]):
        return (
            "" if not _ROUNDING.isdisjoint(modifiers) else "a rounding, such as `.rn`, is missing"
        )
    if opcode in ("div", "fma", "sqrt", "rcp", "mad") and types and types[0] in _FLOATS:
        return (
            "" if not _ROUNDING.isdisjoint(modifiers) else "a rounding, such as `.rn`, is missing"
        )
    if opcode in ("mul", "mad", "mul24", "mad24", "madc") and types[0][0] in "us":
        return "" if not _HALVES.isdisjoint(modifiers) else "`.lo`, `.hi` or `.wide` is missing"
    if opcode in ("setp", "set"):
        return "" if not _COMPARISONS.isdisjoint(modifiers) else "a comparison is missing"
    return ""


def _rounds(to: str, source: str) -> bool:
    """Whether a conversion must name its rounding (PTX ISA, "cvt")."""
    if to in _FLOATS and source in _FLOATS:
        order = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
        return order[to] < order[source]
    return (
        (to in _FLOATS) != (source in _FLOATS)
        and {to[0], source[0]} <= set("fbus")
        and (_plain(to) and _plain(source))
    )


def _plain(type_name: str) -> bool:
    return type_name in _FLOATS or (type_name[0] in "us" and type_name[1:].isdigit())
