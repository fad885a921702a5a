"""Which instructions of two kernels are the same, which stand in one alone, which hold other
constants."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final, NamedTuple

from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate
from ptxlint.structure.canonical import anonymous, canonical, constants, key

LONGEST: Final = 4_000
"""Kernels with more instructions than this are aligned by runs of equal ones alone."""


class Changed(NamedTuple):
    """A constant that is another one: the instructions on both sides, and its place in them."""

    old: Instr
    new: Instr
    old_constant: Immediate
    new_constant: Immediate


class Alignment(NamedTuple):
    """Two kernels side by side.

    `kind` is `identical`, `renamed` (registers, labels, symbols), `constants` (the same
    instructions with other numbers in them) or `structural`. `removed` stand in the old kernel
    alone, `added` in the new one, in order; `changed` are constants of instructions that both have.
    """

    kind: str
    changed: tuple[Changed, ...]
    removed: tuple[Instr, ...]
    added: tuple[Instr, ...]


def align(old: Function, new: Function) -> Alignment:
    """Two kernels side by side."""
    ours, theirs = canonical(old), canonical(new)
    if ours.identity == theirs.identity:
        return Alignment("identical" if _same_names(old, new) else "renamed", (), (), ())
    if ours.shape == theirs.shape:
        pairs = zip(old.instrs, new.instrs, strict=True)
        return Alignment("constants", tuple(c for a, b in pairs for c in _changed(a, b)), (), ())
    return _structural(old, new)


def _same_names(old: Function, new: Function) -> bool:
    """True if even registers and symbols have the same names."""
    if old.name != new.name:
        return False
    return all(
        getattr(a, "name", None) == getattr(b, "name", None)
        for one, other in zip(old.instrs, new.instrs, strict=True)
        for a, b in zip(one.args, other.args, strict=True)
    )


def _changed(old: Instr, new: Instr) -> list[Changed]:
    pairs = zip(constants(old), constants(new), strict=True)
    return [Changed(old, new, a, b) for a, b in pairs if key(a) != key(b)]


def _structural(old: Function, new: Function) -> Alignment:
    ours = [anonymous(instr) for instr in old.instrs]
    theirs = [anonymous(instr) for instr in new.instrs]
    # Beyond some length a search for the best alignment is quadratic; what is frequent is passed
    # over then.
    matcher = SequenceMatcher(None, ours, theirs, autojunk=max(len(ours), len(theirs)) > LONGEST)
    changed: list[Changed] = []
    removed: list[Instr] = []
    added: list[Instr] = []
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(old.instrs[a:a_end], new.instrs[b:b_end], strict=True):
                changed += _changed(one, other)
        else:
            removed += old.instrs[a:a_end]
            added += new.instrs[b:b_end]
    return Alignment("structural", tuple(changed), tuple(removed), tuple(added))


__all__ = ["Alignment", "Changed", "align"]
