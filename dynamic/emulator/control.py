"""How segments end: jumps, branches, calls, returns, traps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.dynamic.emulator.batch import Batch, Mask, Step, holds, without
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.operands import reader
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Group, Label, Operand, Register, Sink, Symbol
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import End

Guard = Callable[[Batch, Mask], Mask]

_QUIET = frozenset(("vprintf", "cudaDeviceSynchronize"))
"""Functions outside of the module whose call changes nothing here."""
_FATAL = frozenset(("__assertfail", "__assert_fail", "__assert_rtn"))


def jump(target: int) -> End:
    """All lanes go on at one place."""
    return lambda batch, mask: batch.go(target, mask)


def leave(batch: Batch, mask: Mask) -> None:
    """The lanes have come to the end of the kernel."""
    if batch.arrivals is not None:
        batch.arrivals.leave(batch.taking_part(mask))
    batch.leave(mask)


def guarded_end(instr: Instr, end: End, held: Guard, otherwise: int) -> End:
    """An end for the lanes in which a guard holds; the others go on elsewhere."""

    def parted(batch: Batch, mask: Mask) -> None:
        inner = held(batch, mask)
        if inner is None or inner is mask:
            end(batch, inner)
            return
        if batch.device.counters is not None:
            batch.device.counters.parted(batch, instr, mask, inner)
        if inner.any():
            end(batch, inner)
        rest = without(mask, inner)
        if holds(rest):
            batch.go(otherwise, rest)

    return parted


def end(
    frame: Frame,
    cfg: Cfg,
    instr: Instr,
    targets: Mapping[int, int],
    following: int,
    back: int | None,
) -> End:
    """The end of a block at its terminator.

    `targets` are the segments of its successors, `following` that of what comes after it, `back`
    the one that a return leads to (None in a kernel). Raises `UnsupportedError`.
    """
    from ptxlint.dynamic.emulator.operands import guard

    kind = instr.shape.row.terminator
    if kind == "branch":
        found = jump(targets[_target(cfg, instr)])
    elif kind == "indirect":
        found = _indirect(frame, cfg, instr, targets)
    elif kind == "return" and back is not None:
        found = jump(back)
    elif kind == "trap":
        found = _trap(instr)
    else:
        found = leave
    held = guard(frame, instr)
    if held is None:
        return found
    if following == EXIT:
        raise UnsupportedError(instr, "a guarded end with nothing behind it")
    return guarded_end(instr, found, held, following)


def _target(cfg: Cfg, instr: Instr) -> int:
    label = instr.operands[0]
    assert isinstance(label, Label)
    return _block_at(cfg, label)


def _block_at(cfg: Cfg, label: Label) -> int:
    if label.target < len(cfg.block_of):
        return cfg.block_of[label.target]
    return len(cfg.blocks) - 1


def _indirect(frame: Frame, cfg: Cfg, instr: Instr, targets: Mapping[int, int]) -> End:
    """`brx.idx`: a place in a list; what is beyond it is undefined, so it is a fault."""
    index = reader(frame, instr, instr.operands[0], "u32")
    name = instr.operands[1]
    assert isinstance(name, Symbol)
    labels = {label.name: label for label in frame.function.labels}
    places = [
        targets[_block_at(cfg, labels[target])]
        for target in frame.function.targets[name.name].targets
    ]

    def part(batch: Batch, mask: Mask) -> None:
        chosen = index(batch)
        left = batch.lanes(mask)
        for at, place in enumerate(places):
            taken = batch.some(mask, chosen == at)
            if holds(taken):
                batch.go(place, taken)
            left = left & (chosen != at)
        if left.any():
            batch.device.report(batch, instr, "trap", "branches beyond the list's end", left)
            batch.leave(left)

    return part


def _trap(instr: Instr) -> End:
    def stop(batch: Batch, mask: Mask) -> None:
        batch.device.report(batch, instr, "trap", "the kernel traps", batch.lanes(mask))
        batch.leave(mask)

    return stop


# Calls ----------------------------------------------------------------------------------------
def callee(module: Module, frame: Frame, instr: Instr) -> Function | Step:
    """The function that a call goes to, or what stands for one outside of the module."""
    # A prototype or a list of targets comes behind the register that holds the address.
    symbols = (o for o in instr.operands if isinstance(o, Symbol))
    name = next((o.name for o in symbols if o.kind not in ("prototype", "targets")), "")
    if not name:
        raise UnsupportedError(instr, "a call through a register")
    found = next((f for f in module.functions if f.name == name and not f.is_declaration), None)
    if found is not None:
        if frame.is_within(found):
            raise UnsupportedError(instr, f"`{name}` calls itself: recursion")
        return found
    if name in _QUIET:
        return lambda batch, mask: None
    if name in _FATAL:

        def assertion(batch: Batch, mask: Mask) -> None:
            batch.device.report(batch, instr, "trap", "an assertion fails", batch.lanes(mask))

        return assertion
    raise UnsupportedError(instr, f"`{name}` has no body in this file")


def passing(outer: Frame, inner: Frame, instr: Instr) -> tuple[list[Step], list[Step]]:
    """The steps that hand arguments to a function, and its results back."""
    groups = [o for o in instr.operands if isinstance(o, Group)]
    at = next(i for i, o in enumerate(instr.operands) if isinstance(o, Symbol))
    has_results = at > 0
    function = inner.function
    results = groups[0].elements if has_results else ()
    given = groups[1 if has_results else 0 :]
    arguments = given[0].elements if given else ()
    if len(arguments) != len(function.params) or len(results) != len(function.returns):
        raise UnsupportedError(instr, f"the arguments do not fit `{function.name}`")
    before = [
        _hand(outer, argument, inner, Symbol(p.name, "param"), p.size or 0, instr)
        for argument, p in zip(arguments, function.params, strict=True)
    ]
    after = [
        _hand(inner, Symbol(p.name, "param"), outer, result, p.size or 0, instr)
        for result, p in zip(results, function.returns, strict=True)
    ]
    return before, after


def _hand(
    source: Frame, given: Operand, target: Frame, taken: Operand, size: int, instr: Instr
) -> Step:
    """Copy one argument or result from a function to another."""
    first, second = _own(source, given), _own(target, taken)
    if isinstance(second, Sink):
        return lambda batch, mask: None
    if isinstance(second, Register):
        if isinstance(first, Symbol):
            raise UnsupportedError(instr, "parameters of two kinds")
        read = reader(source, instr, first, f"b{bits(second.type)}")
        number = target.number(second)
        return lambda batch, mask: batch.put(number, read(batch), mask)
    if not isinstance(second, Symbol) or not isinstance(first, Symbol):
        raise UnsupportedError(instr, "parameters of two kinds")
    from_, to = source.address_of(instr, first), target.address_of(instr, second)

    def copy(batch: Batch, mask: Mask) -> None:
        rows = batch.local.reshape(-1, batch.local_stride)
        lanes = np.flatnonzero(batch.lanes(mask))
        rows[lanes, to : to + size] = rows[lanes, from_ : from_ + size]

    return copy


def _own(frame: Frame, operand: Operand) -> Operand:
    """A parameter of a function that is a register of its own, as that register."""
    if isinstance(operand, Symbol):
        registers: list[Register] = frame.function.registers
        return next((r for r in registers if r.name == operand.name), operand)
    return operand


__all__ = ["callee", "end", "guarded_end", "jump", "leave", "passing"]
