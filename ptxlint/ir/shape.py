"""Building shapes: an instruction's form joined with its row of the opcode table."""

from __future__ import annotations

from ptxlint.ir.instruction import Pattern, Shape
from ptxlint.ir.opcodes import lookup, space_of, types_of
from ptxlint.ir.operand import Register

_WRITTEN = frozenset({"def", "update"})


def build_shape(
    guard: str,
    mnemonic: str,
    extra: tuple[str, ...],
    patterns: tuple[Pattern, ...],
    kinds: tuple[type, ...],
) -> Shape:
    """The shape of an instruction.

    `mnemonic` is the word as written, `extra` the modifiers that stood apart from it, `kinds` the
    classes of the slot atoms; slot 0 is the guard if there is one.
    """
    opcode, *rest = mnemonic.split(".")
    if "::" in opcode:
        # `wait::ld` style parts belong to the modifier, the opcode ends before them.
        opcode, _, tail = opcode.partition("::")
        rest.insert(0, tail)
    modifiers = (*rest, *extra)
    row = lookup(opcode)
    form = row.form(modifiers, len(patterns), patterns)
    roles = form.roles if form is not None else _fallback_roles(patterns)
    defs: list[int] = []
    uses: list[int] = []
    if guard and kinds and kinds[0] is Register:
        uses.append(0)
    partial = False
    for role, pattern in zip(roles, patterns, strict=False):
        partial |= _assign(role, pattern, kinds, defs, uses)
    types = types_of(modifiers)
    return Shape(
        mnemonic=".".join((mnemonic, *extra)),
        opcode=opcode,
        modifiers=modifiers,
        guard=guard,
        patterns=patterns,
        row=row,
        form=form,
        roles=roles,
        def_slots=tuple(defs),
        use_slots=tuple(uses),
        partial=partial or not row.known or form is None,
        types=types,
        space=space_of(opcode, modifiers),
    )


def _fallback_roles(patterns: tuple[Pattern, ...]) -> tuple[str, ...]:
    """Conservative roles: the first operand is read and written, the others are read."""
    return ("update",) + ("use",) * (len(patterns) - 1) if patterns else ()


def _assign(
    role: str, pattern: Pattern, kinds: tuple[type, ...], defs: list[int], uses: list[int]
) -> bool:
    """Sort one operand's register slots into defs and uses; True if it is written in part."""
    kind = pattern[0]
    if kind == "s":
        slot = pattern[1]
        if kinds[slot] is not Register:
            return False
        if role not in _WRITTEN:
            uses.append(slot)
            return False
        defs.append(slot)
        if role == "update":
            uses.append(slot)
        return len(pattern) > 2
    written = role in _WRITTEN and (kind in "v(" or (kind == "b" and pattern[1] == "|"))
    partial = False
    for part in pattern[1:]:
        if isinstance(part, tuple):
            partial |= _assign(role if written else "use", part, kinds, defs, uses)
    return partial
