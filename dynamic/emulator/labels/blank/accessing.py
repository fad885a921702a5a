"""Labels through memory, and out of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.access import Addresses, Lanes
from ptxlint.dynamic.emulator.batch import holds
from ptxlint.dynamic.emulator.effects.copies import amount_read
from ptxlint.dynamic.emulator.effects.memory import elements, space_of
from ptxlint.dynamic.emulator.formats import RAW, Flags, dtype, fitted, raw
from ptxlint.dynamic.emulator.labels import bulk
from ptxlint.dynamic.emulator.labels.blank.computing import cleared, origins_of
from ptxlint.dynamic.emulator.labels.blank.memory import Bytes
from ptxlint.dynamic.emulator.labels.blank.origins import Origins, of_matrix, of_memory, tell
from ptxlint.dynamic.emulator.labels.blank.state import Following, Given, Met, State
from ptxlint.dynamic.emulator.labels.movement import registers, replaying
from ptxlint.dynamic.emulator.operands import address, literal
from ptxlint.ir.operand import Operand, Register
from ptxlint.ir.types import bits


class _Access(NamedTuple):
    """The lanes that access memory, and where."""

    lanes: Lanes
    space: str
    where: Addresses


def _access(state: State, met: Met, operand: Operand) -> _Access:
    lanes = state.batch.taking_part(met.inner)
    where = lanes.pick(address(met.frame, met.instr, operand)(state.batch))
    return _Access(lanes, space_of(met.frame, met.instr, operand), where)


def _taken(state: State, met: Met, access: _Access, size: int) -> tuple[Bytes | None, Origins]:
    """The labels of bytes that are read, and where they come from."""
    labels, untouched = state.memory.read(access.lanes, access.space, access.where, size)
    if labels is None:
        return None, frozenset()
    if not untouched:
        return labels, state.stored
    met_first = of_memory(state.batch, met.instr, access.lanes, untouched, access.where, labels)
    return labels, met_first


def loaded(state: State, met: Met) -> Following:
    """`ld`: registers get the labels of the bytes."""
    instr = met.instr
    target, source = instr.operands[:2]
    space = space_of(met.frame, instr, source)
    if space == "param" or not holds(met.inner):
        return (yield from cleared(state, met))
    parts, kind = elements(target), instr.shape.type
    width = bits(kind) // 8
    access = _access(state, met, source)
    labels, origins = _taken(state, met, access, width * len(parts))
    yield
    if labels is None:
        return [Given(met.number(r), None) for r in instr.defs]
    pieces = np.ascontiguousarray(labels).view(RAW[8 * width])
    out = []
    for at, part in enumerate(parts):
        if isinstance(part, Register):
            column = np.ascontiguousarray(pieces[:, at]).view(dtype(kind))
            word = fitted(column, kind, bits(part.type))
            out.append(Given(met.number(part), access.lanes.spread(word), origins))
    return out


def stored(state: State, met: Met) -> Following:
    """`st`: bytes of shared and local memory get the labels of registers; to global memory none
    may go."""
    instr = met.instr
    target, source = instr.operands[:2]
    if not holds(met.inner) or not state.registers.is_any(map(met.number, registers(source))):
        return (yield from cleared(state, met))
    access = _access(state, met, target)
    lanes, kind = access.lanes, f"b{bits(instr.shape.type)}"
    columns = [lanes.pick(raw(state.label(met, part, kind))) for part in elements(source)]
    labels = np.stack(columns, axis=-1).view(np.uint8).reshape(len(lanes.index), -1)
    origins = origins_of(state, met)
    outside = ~state.memory.keeps(lanes, access.space, access.where)
    _leave(state, met, source, lanes, outside, "stores")
    yield
    if labels.any():
        state.memory.write(lanes, access.space, access.where, labels)
        state.stored = state.stored | origins
    return []


def _leave(
    state: State, met: Met, source: Operand, lanes: Lanes, outside: Flags, does: str
) -> None:
    """Report the registers of an operand that are blank in lanes which write global memory."""
    kind = met.instr.shape.type
    for register in registers(source):
        label = state.label(met, register, f"b{bits(kind)}")
        flags = lanes.pick(label != 0) & outside
        if flags.any():
            state.tell(met, register, lanes.flagged(flags), does, " to global memory")


def updated(state: State, met: Met) -> Following:
    """`atom` and `red`: what was there and what comes in bear on what is there then."""
    instr = met.instr
    operands = list(instr.operands)
    target = operands.pop(0) if instr.opcode == "atom" else None
    place, *sources = operands
    if instr.shape.has("L2::cache_hint"):
        sources.pop()
    if not holds(met.inner):
        return (yield from cleared(state, met))
    access = _access(state, met, place)
    lanes, kind = access.lanes, instr.shape.type
    size, count = bits(kind) // 8, len(elements(sources[0]))
    labels, origins = _taken(state, met, access, size * count)
    outside = ~state.memory.keeps(lanes, access.space, access.where)
    for source in sources:
        _leave(state, met, source, lanes, outside, "updates memory by")
    brought = np.zeros(len(lanes.index), dtype=bool)
    for source in sources:
        for register in registers(source):
            brought |= lanes.pick(state.label(met, register, f"b{bits(kind)}") != 0)
    origins = origins | origins_of(state, met)
    yield
    was = np.zeros(len(lanes.index), dtype=bool) if labels is None else labels.any(axis=1)
    inside = (was | brought) & ~outside
    if inside.any():
        new = np.full((int(inside.sum()), size * count), 255, dtype=np.uint8)
        part = lanes.only(inside)
        state.memory.write(part, access.space, access.where[inside], new)
        state.stored = state.stored | origins
    if target is None or labels is None:
        return [Given(met.number(r), None) for r in instr.defs]
    pieces = np.ascontiguousarray(labels).view(RAW[8 * size])
    out = []
    for at, register in enumerate(elements(target)):
        if isinstance(register, Register):
            word = fitted(np.ascontiguousarray(pieces[:, at]), f"b{8 * size}", bits(register.type))
            out.append(Given(met.number(register), lanes.spread(word), origins))
    return out


def copied(state: State, met: Met) -> Following:
    """`cp`: what comes from global memory is blank as that is, what is filled is not; bulk copies
    out of shared memory may take nothing along that is blank."""
    instr, batch = met.instr, state.batch
    is_group = any(instr.shape.has(m) for m in ("commit_group", "wait_group", "wait_all"))
    if is_group or instr.shape.has("mbarrier") or not holds(met.inner):
        return (yield from cleared(state, met))
    if instr.shape.has("bulk"):
        _copied_in_bulk(state, met)
        return (yield from cleared(state, met))
    target, source, size, *_ = instr.operands
    width = literal(size, "u32")
    assert width is not None
    count = int(width.item())
    access = _access(state, met, source)
    lanes = access.lanes
    labels, _ = state.memory.read(lanes, "global", access.where, count)
    given = amount_read(met.frame, instr, count)
    if labels is not None and given is not None:
        amount = lanes.pick(given(batch))
        labels = np.where(np.arange(count) < amount[:, None], labels, np.uint8(0))
    place = lanes.pick(address(met.frame, instr, target)(batch))
    yield
    if labels is not None and labels.any():
        state.memory.write(lanes, "shared", place, labels)
        state.stored = state.stored | of_memory(batch, instr, lanes, "global", access.where, labels)
    return []


def _copied_in_bulk(state: State, met: Met) -> None:
    """A bulk copy, followed on labels first: what comes to global memory and has one is told."""
    batch = state.batch
    with replaying(batch, {}, shared=state.memory.shared):
        found = bulk.copied(batch, met.frame, met.instr, met.inner, False)
    if found is not None:
        origins = state.stored | of_matrix(met.instr, "shared")
        tell(batch, met.instr, "copies what is blank to global memory", found, origins)


def observed(
    state: State, space: str, place: Addresses, size: int, allowed: Flags | None, writes: bool
) -> None:
    """What is written to shared and local memory has no label then."""
    if writes and space in ("shared", "local") and not state.batch.device.is_muted:
        state.memory.wrote(space, place if allowed is None else place[allowed], size)


__all__ = ["copied", "loaded", "observed", "stored", "updated"]
