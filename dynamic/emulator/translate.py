"""From the IR of a kernel to a program: each instruction becomes a step, once for all lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxlint.cfg.build import build
from ptxlint.cfg.graph import EXIT, Block, Cfg
from ptxlint.dynamic.emulator import control, effects
from ptxlint.dynamic.emulator.batch import Batch, Mask, Reader, Step, holds
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.layout import Layout
from ptxlint.dynamic.emulator.moving import move
from ptxlint.dynamic.emulator.operands import Writer, guard, reader, writer
from ptxlint.dynamic.emulator.order import ranks
from ptxlint.dynamic.emulator.program import Program, Segment
from ptxlint.dynamic.emulator.semantics import Lanewise, UnsupportedError, lanewise
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Pair

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting
    from ptxlint.dynamic.emulator.formats import Array


def translate(module: Module, kernel: Function, layout: Layout, is_watched: bool) -> Program:
    """The program of a kernel. Raises `UnsupportedError` at what is not run.

    Unless each instruction `is_watched`, some are put together into one step.
    """
    if kernel.instrs:
        effects.check_cluster(kernel.instrs[0], kernel.directives.get("reqnctapercluster") or ())
    translator = Translator(module, layout, is_watched)
    translator.enter(Frame(kernel, 0, layout), None, ())
    return Program(
        kernel,
        translator.segments,
        translator.registers,
        layout.local,
        layout.dynamic,
        layout.parameter_bytes,
    )


class Translator:
    """The program while it is made."""

    def __init__(self, module: Module, layout: Layout, is_watched: bool) -> None:
        self.module = module
        self.layout = layout
        self.is_watched = is_watched
        self.segments: list[Segment] = []
        self.registers = 0

    def enter(self, frame: Frame, back: int | None, outer: tuple[int, ...]) -> int:
        """Lay out a function; the number of its first segment.

        `back` is the segment that a return leads to, None for a kernel; `outer` the rank of the
        call.
        """
        self.registers = max(self.registers, frame.base + len(frame.function.registers))
        cfg = build(frame.function)
        order = ranks(cfg)
        starts = [self._segment((*outer, place, 0), frame) for place in order]
        for block in cfg.blocks:
            if block.index in cfg.reachable:
                _BlockTranslation(self, frame, cfg, starts, back, block).run()
        return starts[cfg.entry]

    def _segment(self, rank: tuple[int, ...], frame: Frame) -> int:
        self.segments.append(Segment(rank, frame))
        return len(self.segments) - 1

    def after(self, number: int) -> int:
        """A new segment that follows one in the order, in the same block."""
        *outer, part = self.segments[number].rank
        return self._segment((*outer, part + 1), self.segments[number].frame)


class _BlockTranslation:
    """One basic block while it is translated."""

    def __init__(
        self,
        translator: Translator,
        frame: Frame,
        cfg: Cfg,
        starts: list[int],
        back: int | None,
        block: Block,
    ) -> None:
        self._translator = translator
        self._frame = frame
        self._cfg = cfg
        self._starts = starts
        self._back = back
        self._block = block
        self._current = starts[block.index]
        self._products: list[Instr] = []
        """Products of matrices that wait to be put together."""

    def run(self) -> None:
        """Fill the block's segments."""
        terminator = self._cfg.terminator(self._block)
        for instr in self._cfg.instructions(self._block):
            if instr.shape.form is None or not instr.shape.row.known:
                raise UnsupportedError(instr, "not an instruction that is known")
            if instr is terminator and not instr.shape.row.is_call:
                break
            self._add(instr)
        self._close(terminator)

    def _add(self, instr: Instr) -> None:
        frame, translator = self._frame, self._translator
        if not translator.is_watched and instr.opcode == "mma" and not instr.shape.guard:
            if not effects.joins(instr, self._products):
                self._multiply()
            self._products.append(instr)
            return
        if self._products and not effects.is_apart(instr, self._products):
            self._multiply()
        if instr.shape.row.is_call:
            self._call(instr)
            return
        waiting = effects.waiting(frame, instr)
        if waiting is not None:
            self._wait([instr], waiting)
            return
        step = _step(frame, instr)
        segment = translator.segments[self._current]
        segment.steps.append(step)
        segment.instrs.append(instr)

    def _multiply(self) -> None:
        """Add the products that were put together."""
        if self._products:
            self._wait(self._products, effects.products_of(self._frame, self._products))
            self._products = []

    def _wait(self, instrs: list[Instr], waiting: Waiting) -> None:
        """Lanes wait for each other here: a segment begins with it and ends behind it."""
        translator = self._translator
        held = guard(self._frame, instrs[0])
        here, behind = self._break(), translator.after(self._current)
        end = waiting(here, behind)
        translator.segments[here].instrs += instrs
        translator.segments[here].end = (
            end if held is None else control.guarded_end(instrs[0], end, held, behind)
        )
        self._current = behind

    def _break(self) -> int:
        """End the current segment if it has steps; the number of the one that is empty."""
        translator = self._translator
        segment = translator.segments[self._current]
        if segment.steps:
            following = translator.after(self._current)
            segment.end = control.jump(following)
            self._current = following
        return self._current

    def _call(self, instr: Instr) -> None:
        frame, translator = self._frame, self._translator
        found = control.callee(translator.module, frame, instr)
        if isinstance(found, Function):
            inner = Frame(found, translator.registers, translator.layout, frame)
            here = self._current
            behind = translator.after(here)
            before, after_ = control.passing(frame, inner, instr)
            # What is handed over, and back, are steps around the callee's segments.
            landing = translator.after(here)
            translator.segments[landing].steps += after_
            translator.segments[landing].instrs += [instr] * len(after_)
            translator.segments[landing].end = control.jump(behind)
            *outer, part = translator.segments[here].rank
            first = translator.enter(inner, landing, (*outer, part))
            translator.segments[here].steps += before
            translator.segments[here].instrs += [instr] * len(before)
            end = control.jump(first)
            held = guard(frame, instr)
            translator.segments[here].end = (
                end if held is None else control.guarded_end(instr, end, held, behind)
            )
            # The landing comes after the callee, and what follows after the landing.
            translator.segments[landing].rank = (*outer, part + 1)
            translator.segments[behind].rank = (*outer, part + 2)
            self._current = behind
            return
        step = guarded(frame, instr, found)
        translator.segments[self._current].steps.append(step)
        translator.segments[self._current].instrs.append(instr)

    def _close(self, terminator: Instr | None) -> None:
        self._multiply()
        segment = self._translator.segments[self._current]
        block, frame = self._block, self._frame
        targets = {index: self._starts[index] for index in block.succs}
        if terminator is not None and terminator.shape.row.terminator:
            segment.instrs.append(terminator)
            following = targets.get(block.fallthrough, EXIT)
            segment.end = control.end(frame, self._cfg, terminator, targets, following, self._back)
        elif block.leave in ("noreturn", "abort"):
            segment.end = control.leave
        elif block.succs:
            segment.end = control.jump(targets[block.succs[-1]])
        elif self._back is not None:
            segment.end = control.jump(self._back)
        else:
            segment.end = control.leave


def _step(frame: Frame, instr: Instr) -> Step:
    """What an instruction does that no lane waits at. Raises `UnsupportedError`."""
    if instr.opcode in ("mov", "cvta", "isspacep"):
        return guarded(frame, instr, move(frame, instr))
    effect = effects.step(frame, instr)
    if effect is not None:
        return guarded(frame, instr, effect)
    found = lanewise(instr)
    if found is None:
        later = "compile for sm_90" if instr.opcode == "tcgen05" else ""
        raise UnsupportedError(instr, later)
    return guarded(frame, instr, _computation(frame, instr, found))


def guarded(frame: Frame, instr: Instr, step: Step) -> Step:
    """A step under the instruction's guard."""
    held = guard(frame, instr)
    if held is None:
        return step

    def under_guard(batch: Batch, mask: Mask) -> None:
        inner = held(batch, mask)
        if holds(inner):
            step(batch, inner)

    return under_guard


def _computation(frame: Frame, instr: Instr, found: Lanewise) -> Step:
    operands = instr.operands
    first, *sources = operands
    if len(sources) != len(found.sources):
        raise UnsupportedError(instr, f"{instr.opcode} with {len(sources)} operands to read")
    reads = [
        reader(frame, instr, operand, kind)
        for operand, kind in zip(sources, found.sources, strict=True)
    ]
    targets = (first.first, first.second) if isinstance(first, Pair) else (first,)
    writes = [
        writer(frame, instr, operand, kind)
        for operand, kind in zip(targets, found.results, strict=True)
    ]
    if found.reads_carry or found.writes_carry:
        return _with_carry(reads, writes[0], found)
    if len(writes) > 1:
        return _many(reads, writes, found.compute)
    return _one(reads, writes[0], found.compute)


def _one(reads: list[Reader], write: Writer, compute: Callable[..., Array]) -> Step:
    """The usual computation, spelled out by how much it reads: calls are what costs."""
    if len(reads) == 1:
        (a,) = reads
        return lambda batch, mask: write(batch, compute(a(batch)), mask)
    if len(reads) == 2:
        a, b = reads
        return lambda batch, mask: write(batch, compute(a(batch), b(batch)), mask)
    if len(reads) == 3:
        a, b, c = reads
        return lambda batch, mask: write(batch, compute(a(batch), b(batch), c(batch)), mask)
    return lambda batch, mask: write(batch, compute(*(read(batch) for read in reads)), mask)


def _many(
    reads: list[Reader], writes: list[Writer], compute: Callable[..., tuple[Array, ...]]
) -> Step:
    def step(batch: Batch, mask: Mask) -> None:
        results = compute(*(read(batch) for read in reads))
        for write, values in zip(writes, results, strict=True):
            write(batch, values, mask)

    return step


def _with_carry(reads: list[Reader], write: Writer, found: Lanewise) -> Step:
    compute = found.compute

    def step(batch: Batch, mask: Mask) -> None:
        values = [read(batch) for read in reads]
        if found.reads_carry:
            values.append(batch.carry)
        out = compute(*values)
        if not found.writes_carry:
            assert not isinstance(out, tuple)
            write(batch, out, mask)
            return
        result, carry = out
        write(batch, result, mask)
        batch.carry = carry if mask is None else carry & mask | batch.carry & ~mask

    return step


__all__ = ["Translator", "guarded", "translate"]
