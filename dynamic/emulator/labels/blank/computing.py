"""Labels through what is done in registers: moves, computations, exchanges, products."""

from __future__ import annotations

import numpy as np

from ptxlint.dynamic.emulator.effects.memory import elements
from ptxlint.dynamic.emulator.formats import RAW, Array, dtype, fitted
from ptxlint.dynamic.emulator.labels.blank.matrices import product
from ptxlint.dynamic.emulator.labels.blank.origins import Origins, of_absent_lanes, of_matrix
from ptxlint.dynamic.emulator.labels.blank.state import Following, Given, Met, State
from ptxlint.dynamic.emulator.labels.blank.values import Known, outcome
from ptxlint.dynamic.emulator.labels.blank.warp import gathered, offered, voted
from ptxlint.dynamic.emulator.labels.movement import everywhere, registers, replaying, zeros
from ptxlint.dynamic.emulator.operands import reader
from ptxlint.dynamic.emulator.semantics import lanewise
from ptxlint.ir.operand import Operand, Pair, Register, Vector
from ptxlint.ir.types import bits


def origins_of(state: State, met: Met) -> Origins:
    """Where the labels of all that an instruction reads come from."""
    return state.registers.origins(met.number(r) for r in met.instr.uses)


def cleared(state: State, met: Met) -> Following:
    """An instruction whose results are known."""
    yield
    return [Given(met.number(r), None) for r in met.instr.defs]


def moved(state: State, met: Met) -> Following:
    """`mov` and `cvta`: bits go as they are."""
    instr = met.instr
    target, source = instr.operands
    kind = instr.shape.type if instr.shape.type == "pred" else f"b{bits(instr.shape.type)}"
    origins = origins_of(state, met)
    parts = source.elements if isinstance(source, Vector) else (source,)
    width = bits(kind) // len(parts)
    labels = [state.label(met, part, "pred" if width == 1 else f"b{width}") for part in parts]
    word = labels[0]
    if len(parts) > 1:
        whole = RAW[bits(kind)]
        word = labels[0].astype(whole)
        for at, label in enumerate(labels[1:], 1):
            word = word | label.astype(whole) << whole.type(at * width)
    yield
    if not isinstance(target, Vector):
        return _given(met, target, word, kind, origins)
    out: list[Given] = []
    width = bits(kind) // len(target.elements)
    for at, element in enumerate(target.elements):
        part = (word >> word.dtype.type(at * width)).astype(RAW[width])
        out += _given(met, element, part, f"b{width}", origins)
    return out


def _given(met: Met, target: Operand, label: Array, kind: str, origins: Origins) -> list[Given]:
    """A register gets a label, extended as a value of the type would be."""
    if not isinstance(target, Register):
        return []
    word = fitted(label.view(dtype(kind)), kind, bits(target.type))
    return [Given(met.number(target), word, origins)]


def computed(state: State, met: Met) -> Following:
    """A computation within a lane."""
    instr = met.instr
    found = lanewise(instr)
    if found is None:
        return (yield from cleared(state, met))
    operands = []
    for operand, kind in zip(instr.operands[1:], found.sources, strict=True):
        values = reader(met.frame, instr, operand, kind)(state.batch)
        operands.append(Known(values, state.label(met, operand, kind)))
    origins = origins_of(state, met)
    yield
    first = instr.operands[0]
    targets = (first.first, first.second) if isinstance(first, Pair) else (first,)
    out: list[Given] = []
    labels = outcome(instr, found, operands)
    for target, label, kind in zip(targets, labels, found.results, strict=True):
        out += _given(met, target, label, kind, origins)
    return out


# Other lanes ----------------------------------------------------------------------------------
def shuffled(state: State, met: Met) -> Following:
    """`shfl`: labels go where words go; if it is not known from where, all of the result is."""
    instr, batch = met.instr, state.batch
    target, source, *others = instr.operands
    value, companion = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    label = offered(batch, state.label(met, source, "b32"), met.inner)
    doubt = _doubt(state, met, others)
    origins = origins_of(state, met)
    if not origins:
        origins = of_absent_lanes(instr)
    own = {met.number(source): label} if isinstance(source, Register) else {}
    others_used = {n: batch.registers[n] for n in map(met.number, instr.uses) if n not in own}
    yield
    results = {met.number(r): None for r in instr.defs}
    with replaying(batch, {**results, **own, **others_used}):
        met.step(batch, met.mask)
        found = batch.registers[met.number(value)] if isinstance(value, Register) else None
    if isinstance(source, Register) and found is not None and doubt is not None:
        found = found | np.where(doubt, np.uint32(0xFFFFFFFF), np.uint32(0))
    out = []
    if isinstance(value, Register):
        kept = found if isinstance(source, Register) else None
        out.append(Given(met.number(value), kept, origins))
    if isinstance(companion, Register):
        out.append(Given(met.number(companion), doubt, origins))
    return out


def _doubt(state: State, met: Met, operands: list[Operand]) -> Array | None:
    """Where any of some operands has a label."""
    flags = None
    for operand in operands:
        for register in registers(operand):
            label = state.registers.get(met.number(register))
            if label is not None:
                flags = label != 0 if flags is None else flags | (label != 0)
    return flags


def agreed(state: State, met: Met) -> Following:
    """`vote`, `match`, `redux`: what any lane that takes part brings bears on the result."""
    instr, batch = met.instr, state.batch
    source, *others = instr.operands[1:]
    (register,) = registers(source) or [None]
    kind = "pred" if instr.opcode == "vote" else instr.shape.type
    label = state.label(met, source, kind) != 0
    doubt = _doubt(state, met, others)
    if doubt is not None:
        label = label | doubt
    origins = origins_of(state, met)
    is_vote = instr.opcode == "vote" and not instr.shape.has("ballot")
    if is_vote:
        holds = reader(met.frame, instr, source, "pred")(batch)
        flags = voted(instr, batch, holds, label, met.inner)
    else:
        flags = gathered(batch, label, met.inner)
    words = {met.number(r): batch.registers[met.number(r)] for r in instr.uses}
    yield
    out = []
    for result in instr.defs:
        word = np.where(flags, everywhere(result), RAW[bits(result.type)].type(0))
        if instr.shape.has("ballot") and register is not None:
            own = {**words, met.number(result): None, met.number(register): label}
            with replaying(batch, own):
                met.step(batch, met.mask)
                word = batch.value(met.number(result), 32)
        out.append(Given(met.number(result), word, origins))
    return out


def multiplied(state: State, met: Met) -> Following:
    """`mma` and `wgmma`."""
    instr, batch = met.instr, state.batch
    target, a, b, *rest = instr.operands
    factors = {}
    for register in (*registers(a), *registers(b)):
        word = state.label(met, register, f"b{bits(register.type)}")
        factors[met.number(register)] = np.broadcast_to(word, batch.shape)
    results = registers(target)
    is_group = instr.opcode == "wgmma"
    shared = state.memory.shared if is_group and state.memory.shared.any() else None
    if is_group:
        # What descriptors are in is no element.
        factors = {met.number(r): factors[met.number(r)] for r in registers(a) if bits(r.type) < 64}
    adds, added = _added(state, met, target, rest)
    origins = origins_of(state, met)
    before = {met.number(r): batch.registers[met.number(r)] for r in instr.uses}
    yield
    numbers = [met.number(r) for r in results]
    labels: list[Array | None] = [None] * len(numbers)
    if shared is not None or any(word.any() for word in factors.values()):
        own = {n: word for n, word in before.items() if n not in factors and n not in numbers}
        if not is_group:
            own |= {met.number(r): zeros(r) for r in registers(rest[0])}
        found = product(batch, instr, met.step, met.mask, factors, numbers, own, shared)
        labels = list(found)
        if shared is not None and any(word.any() for word in found):
            origins = origins | of_matrix(instr, "shared")
    out = []
    for number, label, other in zip(numbers, labels, added, strict=True):
        if other is not None:
            other = np.where(adds, other, other.dtype.type(0))
            label = other if label is None else label | other
        out.append(Given(number, label, origins))
    return out


def _added(
    state: State, met: Met, target: Operand, rest: list[Operand]
) -> tuple[Array, list[Array | None]]:
    """The labels of what a product is added to, by register of the result, and where it is
    added."""
    always: Array = np.ones((1, 1), dtype=bool)
    if met.instr.opcode == "wgmma":
        adds = reader(met.frame, met.instr, rest[0], "pred")(state.batch)
        return adds, [state.registers.get(met.number(r)) for r in registers(target)]
    found = [
        state.registers.get(met.number(part)) if isinstance(part, Register) else None
        for into, part in zip(elements(target), elements(rest[0]), strict=True)
        if isinstance(into, Register)
    ]
    return always, found


def arranged(state: State, met: Met) -> Following:
    """`movmatrix`, and `stmatrix` and `ldmatrix`: run once more on labels."""
    instr, batch = met.instr, state.batch
    data = 0 if instr.opcode == "ldmatrix" else 1
    moving = registers(instr.operands[data]) if data else []
    words: dict[int, Array | None] = {
        met.number(r): batch.registers[met.number(r)] for r in instr.uses
    }
    for register in moving:
        words[met.number(register)] = state.label(met, register, f"b{bits(register.type)}")
    origins = origins_of(state, met)
    yield
    results = {met.number(r): None for r in instr.defs}
    with replaying(batch, {**results, **words}, shared=state.memory.shared):
        met.step(batch, met.mask)
        found = [batch.registers[met.number(r)] for r in instr.defs]
    if instr.opcode == "stmatrix":
        state.stored = state.stored | origins
        return []
    if instr.opcode == "ldmatrix" and any(w is not None and w.any() for w in found):
        origins = state.stored | of_matrix(instr, "shared")
    return [Given(met.number(r), w, origins) for r, w in zip(instr.defs, found, strict=True)]


def handed(state: State, met: Met) -> Following:
    """What a call hands over, and what it hands back: all of it moves."""
    batch = state.batch
    state.stored = state.stored | origins_of(state, met)
    yield
    before, local = batch.registers, batch._local
    for bytes_ in state.memory.of_lanes():
        batch.registers, batch._local = state.registers.as_registers(), bytes_
        met.step(batch, met.mask)
    after = batch.registers
    batch.registers, batch._local = before, local
    return [
        Given(number, label, state.stored)
        for number, label in enumerate(after)
        if label is not state.registers.get(number)
    ]


__all__ = [
    "agreed", "arranged", "cleared", "computed", "handed", "moved", "multiplied", "shuffled",
]  # fmt: skip
