"""Which instructions of two kernels are the same, which stand in one alone, which hold other
constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final, NamedTuple

from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Label
from ptxlint.structure.canonical import Canonical, Kernel, anonymous, canonical, constants, key
from ptxlint.structure.declared import Declared
from ptxlint.structure.rewiring import rewired

LONGEST: Final = 4_000
"""Kernels with more instructions than this are aligned by runs of equal ones alone."""


class Changed(NamedTuple):
    """A constant that is another one: the instructions on both sides, and its place in them."""

    old: Instr
    new: Instr
    old_constant: Immediate
    new_constant: Immediate


class Redeclared(NamedTuple):
    """A parameter, a limit of the launch, an array or a function's head that is another one: what
    it is, and both declarations; "" where one side has none."""

    title: str
    old: str
    new: str


class Alignment(NamedTuple):
    """Two kernels side by side, with the functions that they call.

    `kind` is `identical`, `renamed` (registers, labels, symbols), `constants` (the same
    instructions with other numbers in them) or `structural`. `removed` stand in the old kernel
    alone, `added` in the new one, in order; `changed` are constants of instructions that both have;
    `rewired` are instructions of both with other operands or targets. A pair that is neither
    identical nor renamed has something in one of these, or in `declared`. `both` are the
    instructions that are there on both sides, in order, of such a pair.
    """

    kind: str
    changed: tuple[Changed, ...]
    removed: tuple[Instr, ...]
    added: tuple[Instr, ...]
    rewired: tuple[tuple[Instr, Instr], ...] = ()
    declared: tuple[Redeclared, ...] = ()
    both: tuple[tuple[Instr, Instr], ...] = ()


def align(old: Kernel, new: Kernel) -> Alignment:
    """Two kernels side by side."""
    ours, theirs = canonical(old), canonical(new)
    if ours.identity == theirs.identity:
        is_same = old.function.name == new.function.name and _same_names(ours, theirs)
        return Alignment("identical" if is_same else "renamed", (), (), ())
    declared = tuple(_redeclared(ours.declared, theirs.declared))
    if ours.shape == theirs.shape:
        both = tuple(zip(ours.instrs, theirs.instrs, strict=True))
        changed = tuple(c for a, b in both for c in _changed(a, b))
        return Alignment("constants", changed, (), (), (), declared, both)
    return _structural(ours, theirs)._replace(declared=declared)


def _same_names(old: Canonical, new: Canonical) -> bool:
    """True if even registers and symbols have the same names. Labels of machine code are those of
    whoever printed it."""
    return all(
        getattr(a, "name", None) == getattr(b, "name", None)
        for one, other in zip(old.instrs, new.instrs, strict=True)
        for a, b in zip(one.args, other.args, strict=True)
        if not (isinstance(a, Label) and one.opcode[:1].isupper())
    )


def _changed(old: Instr, new: Instr) -> list[Changed]:
    pairs = zip(constants(old), constants(new), strict=True)
    return [Changed(old, new, a, b) for a, b in pairs if key(a) != key(b)]


def _structural(old: Canonical, new: Canonical) -> Alignment:
    ours = [anonymous(instr) for instr in old.instrs]
    theirs = [anonymous(instr) for instr in new.instrs]
    pairs: list[tuple[int, int]] = []
    removed: list[Instr] = []
    added: list[Instr] = []
    for is_equal, a, a_end, b, b_end in _blocks(ours, theirs):
        if is_equal:
            pairs += zip(range(a, a_end), range(b, b_end), strict=True)
        else:
            removed += old.instrs[a:a_end]
            added += new.instrs[b:b_end]
    changed = [c for a, b in pairs for c in _changed(old.instrs[a], new.instrs[b])]
    others = list(rewired(old.instrs, new.instrs, pairs))
    if not others and not removed and not added:
        others = _first_other(old, new)
    both = tuple((old.instrs[a], new.instrs[b]) for a, b in pairs)
    return Alignment(
        "structural", tuple(changed), tuple(removed), tuple(added), tuple(others), both=both
    )


def _blocks(ours: list[str], theirs: list[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Stretches of both texts that are equal or not, in order."""
    start, end = 0, 0
    shorter = min(len(ours), len(theirs))
    while start < shorter and ours[start] == theirs[start]:
        start += 1
    while end < shorter - start and ours[-1 - end] == theirs[-1 - end]:
        end += 1
    a_end, b_end = len(ours) - end, len(theirs) - end
    yield True, 0, start, 0, start
    # Beyond some length a search for the best alignment is quadratic; what is frequent is passed
    # over then.
    is_long = max(a_end, b_end) - start > LONGEST
    matcher = SequenceMatcher(None, ours[start:a_end], theirs[start:b_end], autojunk=is_long)
    for tag, a, to, b, other in matcher.get_opcodes():
        yield tag == "equal", start + a, start + to, start + b, start + other
    yield True, a_end, len(ours), b_end, len(theirs)


def _first_other(old: Canonical, new: Canonical) -> list[tuple[Instr, Instr]]:
    """The first two instructions that are not the same up to names."""
    pairs = zip(old.lines, new.lines, old.instrs, new.instrs, strict=True)
    return [(a, b) for ours, theirs, a, b in pairs if ours.form != theirs.form][:1]


def _redeclared(old: Sequence[Declared], new: Sequence[Declared]) -> Iterator[Redeclared]:
    ours, theirs = ([(d.form, *map(key, d.constants)) for d in side] for side in (old, new))
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        for one, other in zip_longest(old[a:a_end], new[b:b_end]):
            yield _declared_otherwise(one, other)


def _declared_otherwise(old: Declared | None, new: Declared | None) -> Redeclared:
    known = old or new
    assert known is not None
    if old is not None and new is not None and old.form == new.form:
        pairs = enumerate(zip(old.constants, new.constants, strict=True))
        at, (a, b) = next((at, pair) for at, pair in pairs if key(pair[0]) != key(pair[1]))
        return Redeclared(f"{old.title}, number {at + 1}", a.text, b.text)
    return Redeclared(known.title, old.text if old else "", new.text if new else "")


__all__ = ["Alignment", "Changed", "Redeclared", "align"]
