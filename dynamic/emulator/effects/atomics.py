"""Atomic operations and reductions on memory (PTX ISA, "atom", "red").

Lanes that meet at one address take turns in the order of their numbers; which order the device
takes is not defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.access import Lanes, gather, scatter
from ptxlint.dynamic.emulator.batch import Batch, Mask, Step
from ptxlint.dynamic.emulator.effects.memory import MEMORIES, elements, space_of, spaces
from ptxlint.dynamic.emulator.formats import Array, dtype, fitted, raw
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.operands import address, reader
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.emulator.semantics.floating import on
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register
from ptxlint.ir.types import FLOATS, bits

Change = Callable[..., Any]
"""The new contents of memory from the old ones and the operands."""

_CHANGES: Final[dict[str, Change]] = {
    "add": lambda old, b: old + b,
    "min": np.minimum,
    "max": np.maximum,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
    "inc": lambda old, b: np.where(old >= b, 0, old + old.dtype.type(1)).astype(old.dtype),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
    "cas": lambda old, b, c: np.where(old == b, c, old),
}
_AT_ONCE: Final = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
"""What numpy's `at` does on one place after the other, lane after lane."""


def change_of(instr: Instr, kind: str) -> Change:
    """What an instruction makes of memory, for elements of a type. Raises `UnsupportedError`."""
    name = next((m for m in instr.shape.modifiers if m in _CHANGES), "")
    if not name:
        raise UnsupportedError(instr)
    change = _CHANGES[name]
    if kind in FLOATS and name in ("add", "min", "max"):
        wide: dict[str, Change] = {"add": lambda a, b: a + b, "min": np.fmin, "max": np.fmax}
        change = on(kind, wide[name])
    return change


def _atomic(frame: Frame, instr: Instr) -> Step:
    shape = instr.shape
    operands = list(instr.operands)
    target = operands.pop(0) if instr.opcode == "atom" else None
    place, *sources = operands
    if shape.has("L2::cache_hint"):
        sources.pop()
    kind = shape.type
    if kind == "b128":
        raise UnsupportedError(instr, "128-bit registers")
    seen = "u" + kind[1:] if kind[0] == "b" and kind[1:].isdigit() else kind
    columns = len(elements(sources[0]))
    change, size = change_of(instr, seen), bits(kind) // 8
    where, space = address(frame, instr, place), space_of(frame, instr, place)
    reads = [[reader(frame, instr, part, seen) for part in elements(o)] for o in sources]
    parts = () if target is None else elements(target)
    at_once = None if _is_read(frame, parts) else _at_once(instr, seen)

    def step(batch: Batch, mask: Mask) -> None:
        lanes = batch.taking_part(mask)
        start = lanes.pick(where(batch))
        for column in range(columns):
            values = [lanes.pick(raw(read[column](batch))).view(dtype(seen)) for read in reads]
            old = _apply(batch, instr, lanes, space, start + column * size, values, change,
                         dtype(seen), at_once)  # fmt: skip
            if at_once is None and column < len(parts) and isinstance(parts[column], Register):
                register = parts[column]
                found = fitted(old, seen, bits(register.type))
                batch.spread(frame.number(register), found, lanes)

    return step


def _at_once(instr: Instr, seen: str) -> np.ufunc | None:
    """What numpy does for all lanes in one call, in their order; None if it does not."""
    name = next(m for m in instr.shape.modifiers if m in _CHANGES)
    if seen in FLOATS and (name != "add" or seen not in ("f32", "f64")):
        return None
    found: np.ufunc | None = _AT_ONCE.get(name)
    return found


def _is_read(frame: Frame, parts: tuple[Operand, ...]) -> bool:
    """True if the function reads a register of a destination."""
    registers = {part for part in parts if isinstance(part, Register)}
    return not registers.isdisjoint(frame.read)


def _apply(
    batch: Batch,
    instr: Instr,
    lanes: Lanes,
    space: str,
    where: Array,
    values: list[Array],
    change: Change,
    kind: np.dtype[Any],
    at_once: np.ufunc | None,
) -> Array:
    """Change memory; what was there before, for each lane, unless it is changed `at_once`."""
    before = np.zeros(len(where), dtype=kind)
    size = kind.itemsize
    for found, inside, there in spaces(space, where):
        part = lanes if inside.all() else lanes.only(inside)
        memory, place, allowed = MEMORIES[found].resolve(
            batch, instr, part, there, size, True, True
        )
        chosen = np.flatnonzero(inside)
        if allowed is not None:
            place, chosen = place[allowed], chosen[allowed]
        given = [v[chosen] for v in values]
        if at_once is not None:
            count = len(memory) // size * size
            at_once.at(memory[:count].view(kind), place // size, given[0])
        else:
            before[chosen] = in_turn(memory, place, given, change, kind)
    return before


def in_turn(
    memory: Array, place: Array, values: list[Array], change: Change, kind: np.dtype[Any]
) -> Array:
    """One change after the other where lanes meet; those apart from each other at once."""
    out = np.zeros(len(place), dtype=kind)
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    starts = np.r_[True, ordered[1:] != ordered[:-1]] if len(order) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    turn = np.arange(len(order)) - first
    for at in range(int(turn.max(initial=-1)) + 1):
        now = order[turn == at] if at else order[starts]
        old = gather(memory, place[now], kind.itemsize).view(kind)
        out[now] = old
        new = change(old, *(v[now] for v in values))
        scatter(memory, place[now], raw(np.asarray(new, dtype=kind)), kind.itemsize)
    return out


ROWS: Final[dict[str, Callable[[Frame, Instr], Step | None]]] = {"atom": _atomic, "red": _atomic}
"""By opcode."""


__all__ = ["ROWS", "Change", "change_of", "in_turn"]
