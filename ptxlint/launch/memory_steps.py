"""Loads, stores and barriers as steps of a run (`ptxlint.launch.machine`).

Global memory is followed as far as the launch tells what lies in it; shared memory if all that
writes to it is plain stores, from the first byte on not known. Variables of shared memory get
made-up addresses that are multiples of 1024.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dataflow.access import Accesses
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Address, Operand, Register, Sink, Vector
from ptxlint.ir.types import BITS
from ptxlint.launch.binding import Bound
from ptxlint.launch.memory import COMMUTING, Piece, Places, SharedPiece, Update, stamp
from ptxlint.launch.warps import WARP, matrix_parts
from ptxlint.launch.words import Flags, Word, constant, extension

if TYPE_CHECKING:
    from ptxlint.launch.lanes import Lanes
    from ptxlint.launch.machine import Reader, Run, Watcher

_STEP: Final = 1024
"""Bytes that variables in shared memory are aligned to."""
_MOST_SHARED: Final = 1 << 18
"""Bytes of shared memory of one CTA that are followed."""
_BARRIERS: Final = frozenset({"bar", "barrier"})
_UNORDERED: Final = frozenset({"volatile", "relaxed", "acquire", "mmio"})
"""Loads that wait for what other threads write."""


class RunMemory:
    """The memory of one run: pieces of global memory, and shared memory of its CTAs."""

    def __init__(self, lanes: Lanes, shared: int) -> None:
        self.is_void = False
        self.shared_bytes = shared
        total = shared * len(lanes.ctas)
        self.shared = SharedPiece(np.zeros(total, np.uint8), np.zeros(total, dtype=bool))
        self._cta = np.arange(len(lanes.ctas), dtype=np.int64)[:, None]
        self._numbers = lanes.numbers[:, None]
        self._age = np.zeros((len(lanes.ctas), 1), dtype=np.int64)
        self._warp = np.arange(lanes.threads, dtype=np.int64)[None, :] // WARP

    def who(self, lanes: Flags) -> NDArray[np.int64]:
        """Who the lanes of a mask are, one after the other."""
        return np.asarray(stamp(self._numbers, self._age, self._warp))[lanes]

    def in_shared(self, offset: NDArray[np.int64], width: int) -> Places:
        """Where so many bytes of a CTA's shared memory lie; -1 outside."""
        inside = (offset >= 0) & (offset + width <= self.shared_bytes)
        found: Places = np.where(inside, offset + self._cta * self.shared_bytes, -1)
        return found

    def meet_barrier(self, lanes: Flags) -> None:
        """All threads of a CTA come to a barrier, or the run is void."""
        whole = np.asarray(lanes.all(axis=1, keepdims=True))
        self.is_void |= bool((lanes.any(axis=1, keepdims=True) & ~whole).any())
        self._age += whole


class _Place(NamedTuple):
    """Memory that an instruction accesses: so many bytes from a made-up address on. Without a piece
    it is not known what lies there."""

    piece: Piece | None
    start: int
    size: int


_SHARED: Final = _Place(None, 0, -1)
"""Shared memory of the CTA."""


class MemorySteps:
    """The accesses of one function that runs follow, and what each does.

    `pieces` are those of storages of the launch, by their numbers. Where they may be written, they
    are shared ones.
    """

    def __init__(
        self,
        ssa: Ssa,
        module: Module,
        accesses: Accesses,
        bound: Bound,
        pieces: Mapping[int, Piece],
    ) -> None:
        writing = ("st", "atom", "red")
        self._loose = [i.index for i in accesses.unknown if i.opcode in writing]
        self._ssa = ssa
        self._instrs = ssa.cfg.function.instrs
        self._bound = bound
        self._pieces = dict(pieces)
        self._bases = {a.instr.index: a.base for a in accesses.in_global}
        self._everywhere = self._storages()
        self._symbols, self.shared_bytes = _layout(ssa, module, bound)
        self._writers: list[int] | None = None
        self.barriers = [i.index for i in self._instrs if _is_barrier(i)]
        self._follows_shared: bool | None = None

    def is_followed(self, instr: Instr) -> bool:
        """True if it is known what an instruction loads, or may be."""
        if instr.opcode == "ldmatrix":
            return instr.shape.space == "shared" and self._is_shared_followed()
        if instr.opcode != "ld" or not _UNORDERED.isdisjoint(instr.shape.modifiers):
            return False
        return any(place is _SHARED or place.piece is not None for place in self._places(instr))

    def companions(self, index: int) -> Iterable[int]:
        """What must be run for what an instruction loads to be known."""
        if self._instrs[index].shape.space == "shared":
            return [*self._shared_writers(), *self.barriers]
        if any(isinstance(place.piece, SharedPiece) for place in self._places(self._instrs[index])):
            return [*self._loose, *self.barriers]
        return ()

    def uses_shared(self, effects: Iterable[int]) -> bool:
        """True if one of some instructions writes to shared memory."""
        return any(self._instrs[i].shape.space == "shared" for i in effects)

    def symbol(self, name: str) -> Word | None:
        """The made-up address of a variable in shared memory."""
        address = self._symbols.get(name)
        return None if address is None else constant(address)

    # Steps --------------------------------------------------------------------------------------
    def loaded(self, instr: Instr, value: int, reader: Reader) -> Watcher:
        """The step that loads one value."""
        result = self._ssa.result[value]
        if instr.opcode == "ldmatrix":
            return self._matrix(instr, value, result, reader)
        shape, register = instr.shape, instr.defs[result]
        width = BITS[shape.type] // 8
        extend = extension(shape.type, shape.type, BITS.get(register.type, 64))
        address, at = instr.operands[1], width * _element(instr.operands[0], register)
        places = self._places(instr)
        assert isinstance(address, Address)
        read = reader(instr, address.base)
        predicate = self._ssa.guard_value(instr)

        def step(run: Run, mask: Flags | None) -> None:
            lanes = self._taken(run, mask, instr, predicate)[0]
            bits, known = self._load(run, places, lanes, read(run), address.offset + at, width)
            run.set(value, Word(extend(bits), known), mask)

        return step

    def _load(
        self,
        run: Run,
        places: tuple[_Place, ...],
        lanes: Flags,
        base: Word | None,
        more: int,
        width: int,
    ) -> tuple[NDArray[np.uint64], Flags]:
        """Words that some lanes load, over all CTAs and threads."""
        bits, known = np.zeros(lanes.shape, dtype=np.uint64), np.zeros(lanes.shape, dtype=bool)
        if base is None:
            return bits, known
        lanes = lanes & _told(base, lanes)
        for place in places:
            here, at = self._at(run, place, base, more, width, lanes)
            piece = run.memory.shared if place is _SHARED else place.piece
            if isinstance(piece, SharedPiece):
                bits[here], known[here] = piece.load(at, width, run.memory.who(here))
            elif piece is not None:
                bits[here], known[here] = piece.read(at, width)
        return bits, known

    def _at(
        self, run: Run, place: _Place, base: Word, more: int, width: int, lanes: Flags
    ) -> tuple[Flags, Places]:
        """The lanes that access a place, and where there."""
        start = np.uint64((more - place.start) & ((1 << 64) - 1))
        offset = np.broadcast_to((base.bits + start).view(np.int64), lanes.shape)
        if place is _SHARED:
            # Addresses of shared memory are words of 32 bits.
            offset = run.memory.in_shared(offset & 0xFFFFFFFF, width)
            return lanes, offset[lanes]
        lanes = lanes & (offset >= 0) & (offset + width <= place.size)
        return lanes, offset[lanes]

    def _matrix(self, instr: Instr, value: int, result: int, reader: Reader) -> Watcher:
        threads = self._bound.block[0] * self._bound.block[1] * self._bound.block[2]
        found = matrix_parts(instr, result, threads)
        address = instr.operands[1]
        assert isinstance(address, Address)
        read = reader(instr, address.base)

        def step(run: Run, mask: Flags | None) -> None:
            lanes = _all_lanes(run) if mask is None else mask
            base = read(run)
            if found is None or base is None or not lanes.all():
                run.set(value, None, mask)
                return
            width, parts = found
            bits, known = np.zeros(lanes.shape, dtype=np.uint64), np.ones(lanes.shape, dtype=bool)
            for number, (thread, byte) in enumerate(parts):
                row = np.broadcast_to(base.bits, lanes.shape)[:, thread] + byte.astype(np.uint64)
                told = _told(base, lanes)[:, thread]
                part, is_known = self._load(
                    run, (_SHARED,), lanes, Word(row, told), address.offset, width
                )
                bits |= part << np.uint64(8 * width * number)
                known &= is_known
            run.set(value, Word(bits, known), mask)

        return step

    def effect(self, index: int, reader: Reader) -> Watcher:
        """The step of a store, an atomic operation or a barrier."""
        instr = self._instrs[index]
        if _is_barrier(instr):
            return lambda run, mask: run.memory.meet_barrier(
                _all_lanes(run) if mask is None else mask
            )
        places, target = self._places(instr), _written_at(instr)
        if not places or target is None or instr.opcode not in ("st", "atom", "red"):
            return _make_void
        address, source = target
        read = reader(instr, address.base)
        width = BITS[instr.shape.type] // 8
        parts = source.elements if isinstance(source, Vector) else (source,)
        sources = [reader(instr, part) for part in parts]
        update = None if instr.opcode == "st" else _update(instr)
        predicate = self._ssa.guard_value(instr)

        def step(run: Run, mask: Flags | None) -> None:
            lanes, is_sure = self._taken(run, mask, instr, predicate)
            base = read(run)
            if not lanes.any():
                return
            if not is_sure or base is None or not (_told(base, lanes) | ~lanes).all():
                run.memory.is_void = True
                return
            for number, get in enumerate(sources):
                left = lanes
                more = address.offset + number * width
                word = None if instr.opcode != "st" and update is None else get(run)
                word = word or _UNKNOWN
                for place in places:
                    here, at = self._at(run, place, base, more, width, left)
                    left = left & ~here
                    piece = run.memory.shared if place is _SHARED else place.piece
                    if piece is not None and here.any():
                        self._put(run, piece, update, at, width, word, here)
                run.memory.is_void |= bool(left.any())

        return step

    def _put(
        self,
        run: Run,
        piece: Piece,
        update: Update | None,
        at: Places,
        width: int,
        word: Word,
        lanes: Flags,
    ) -> None:
        """Some lanes write to a piece of memory."""
        if not isinstance(piece, SharedPiece):
            run.memory.is_void = True
            return
        bits, told = np.broadcast_to(word.bits, lanes.shape)[lanes], _told(word, lanes)[lanes]
        if update is None:
            piece.store(at, width, bits, told, run.memory.who(lanes))
        else:
            piece.update(update, at, width, bits, told, run.memory.who(lanes))
        run.memory.is_void |= piece.is_void

    def _taken(
        self, run: Run, mask: Flags | None, instr: Instr, predicate: int | None
    ) -> tuple[Flags, bool]:
        """The lanes in which an instruction may take effect, and whether all certainly do."""
        lanes = _all_lanes(run) if mask is None else mask
        if predicate is None:
            return lanes, True
        word = run.values.get(self._ssa.resolve(predicate))
        if word is None:
            return lanes, False
        told = _told(word, lanes)
        holds = (word.bits != 0) == (instr.shape.guard == "@")
        return lanes & (holds | ~told), bool((told | ~lanes).all())

    # What is followed ---------------------------------------------------------------------------
    def _places(self, instr: Instr) -> tuple[_Place, ...]:
        """Where an instruction may access memory; none if that is not followed."""
        space = instr.shape.space
        if space == "shared":
            return (_SHARED,) if self._is_shared_followed() else ()
        if space != "global" or not 8 <= BITS.get(instr.shape.type, 0) <= 64:
            return ()
        base = self._bases.get(instr.index, "")
        if not base:
            return tuple(self._everywhere.values())
        region = self._bound.regions.get(base)
        return () if region is None else (self._everywhere[region.storage],)

    def _storages(self) -> dict[int, _Place]:
        """All storages of the launch, by their numbers."""
        return {
            region.storage: _Place(
                self._pieces.get(region.storage),
                region.address + region.low,
                region.high - region.low,
            )
            for region in self._bound.regions.values()
        }

    def _is_shared_followed(self) -> bool:
        if self._follows_shared is None:
            self._follows_shared = 0 < self.shared_bytes <= _MOST_SHARED and all(
                _is_plain_store(self._instrs[index]) for index in self._shared_writers()
            )
        return self._follows_shared

    def _shared_writers(self) -> list[int]:
        if self._writers is None:
            self._writers = [
                i.index
                for i in self._instrs
                if i.shape.row.is_call or not {"shared", ""}.isdisjoint(memory_of(i.shape).writes)
            ]
        return self._writers


_UNKNOWN: Final = Word(np.zeros((1, 1), dtype=np.uint64), np.zeros((1, 1), dtype=bool))


def _make_void(run: Run, mask: Flags | None) -> None:
    run.memory.is_void = True


def _all_lanes(run: Run) -> Flags:
    return np.ones_like(run.given_up)


def _told(word: Word, lanes: Flags) -> Flags:
    """The lanes that know a word."""
    known = True if word.known is None else word.known
    return np.broadcast_to(np.asarray(known, dtype=bool), lanes.shape)


def _is_barrier(instr: Instr) -> bool:
    """True for a barrier of all threads of a CTA."""
    return (
        instr.opcode in _BARRIERS
        and instr.shape.has("sync")
        and len(instr.operands) == 1
        and not instr.shape.guard
        and not instr.shape.has("warp")
    )


def _is_plain_store(instr: Instr) -> bool:
    """True for a store to shared memory of the own CTA, or an atomic operation there."""
    return (
        instr.opcode in ("st", "atom", "red")
        and instr.shape.space == "shared"
        and not any(m == "async" or m.endswith("::cluster") for m in instr.shape.modifiers)
        and 8 <= BITS.get(instr.shape.type, 0) <= 64
    )


def _element(target: Operand, register: Register) -> int:
    """Which element of a vector a register is."""
    return target.elements.index(register) if isinstance(target, Vector) else 0


def _written_at(instr: Instr) -> tuple[Address, Operand] | None:
    """The address that an instruction writes to, and what it writes there."""
    operands = instr.operands[1:] if instr.opcode == "atom" else instr.operands
    if len(operands) < 2 or not isinstance(operands[0], Address) or isinstance(operands[1], Sink):
        return None
    return operands[0], operands[1]


def _update(instr: Instr) -> Update | None:
    """An atomic operation whose order makes no difference; None for others."""
    shape = instr.shape
    name = next((m for m in shape.modifiers if m in COMMUTING), None)
    if name is None or shape.type not in ("b32", "u32", "s32", "b64", "u64", "s64"):
        return None
    if isinstance(instr.operands[-1], Vector):
        return None
    return Update(name, shape.type[0] == "s")


def _layout(ssa: Ssa, module: Module, bound: Bound) -> tuple[dict[str, int], int]:
    """Made-up addresses of the variables in shared memory, and how many bytes they take."""
    variables = [*module.variables.values(), *ssa.cfg.function.variables]
    shared = [v for v in variables if v.space == "shared"]
    out: dict[str, int] = {}
    size = 0
    for variable in sorted(shared, key=lambda v: v.size is None):
        out[variable.name] = size
        bytes_ = max(0, bound.shared) if variable.size is None else variable.size
        size += -(-bytes_ // _STEP) * _STEP if variable.size is not None else bytes_
    return out, size


__all__ = ["MemorySteps", "RunMemory"]
