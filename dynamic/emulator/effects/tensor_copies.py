"""Copies of tiles of tensors between global and shared memory (PTX ISA, "cp.async.bulk.tensor").

They are done at once, which is one of the orders that an asynchronous copy allows; so there is
nothing to wait for at groups of copies, and an mbarrier hears at once of the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.access import Addresses, Lanes, gather, scatter
from ptxlint.dynamic.emulator.batch import Batch, Mask, Reader, Step
from ptxlint.dynamic.emulator.effects.atomics import change_of, in_turn
from ptxlint.dynamic.emulator.effects.mbarriers import complete, shared_address
from ptxlint.dynamic.emulator.effects.memory import MEMORIES, read
from ptxlint.dynamic.emulator.formats import RAW, Array, Flags, dtype
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.operands import address, reader
from ptxlint.dynamic.emulator.sanitizer.arrivals import by_bulk_copies
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.emulator.swizzle import swizzled
from ptxlint.dynamic.emulator.tensor_map import ELEMENTS, SIZE, SWIZZLES, TensorMap, decode
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Operand, Symbol, Vector

PIECE = 16
_TILE_ALIGNMENT = 128
_MAP_ALIGNMENT = 64


def tensor_copy(frame: Frame, instr: Instr) -> Step:
    """The step of a copy, a reduction or a prefetch of a tile. Raises `UnsupportedError`."""
    shape = instr.shape
    modes = [m for m in shape.modifiers if m.startswith(("im2col", "tile::"))]
    if modes:
        raise UnsupportedError(instr, f"tensor copies in mode {modes[0]}: only tiles are run")
    if shape.has("multicast::cluster"):
        raise UnsupportedError(instr, "copies to several CTAs: only clusters of one are run")
    if shape.has("prefetch"):
        return lambda batch, mask: None
    copied = tiles(frame, instr)
    is_load = shape.space == "shared"
    barrier = shared_address(frame, instr, instr.operands[2]) if is_load else None

    def step(batch: Batch, mask: Mask) -> None:
        for tile in copied(batch, batch.taking_part(mask)):
            objects = None if barrier is None else barrier.of(batch, tile.lanes)
            with by_bulk_copies(batch, instr, tile.lanes, objects):
                if is_load:
                    tile.load()
                else:
                    tile.store()
            if objects is not None:
                size = np.full(len(tile.lanes.index), tile.bytes, dtype=np.int64)
                complete(batch, instr, tile.lanes, objects, size)

    return step


def tiles(frame: Frame, instr: Instr) -> Callable[[Batch, Lanes], Iterator[Tiles]]:
    """What a copy of tiles copies, by lanes: tiles of one map after those of another."""
    first, second = instr.operands[:2]
    shared, tensor = (first, second) if instr.shape.space == "shared" else (second, first)
    where = _Tensor(frame, instr, tensor)
    at = address(frame, instr, shared)

    def found(batch: Batch, lanes: Lanes) -> Iterator[Tiles]:
        starts = lanes.pick(at(batch))
        for map_, chosen in where.maps(batch, lanes):
            part = lanes.only(chosen)
            yield Tiles(batch, instr, part, map_, where.coordinates(batch, part), starts[chosen])

    return found


class _Tensor:
    """An operand that names a tensor map and the place of a tile."""

    def __init__(self, frame: Frame, instr: Instr, operand: Operand) -> None:
        if not isinstance(operand, Address) or not isinstance(operand.rest[0], Vector):
            raise UnsupportedError(instr, f"operand {operand!r}")
        self._instr = instr
        self._space = ""
        if isinstance(operand.base, Symbol):
            self._space = frame.place(instr, operand.base).space
        self._where: Reader = address(frame, instr, operand)
        self._at = [reader(frame, instr, part, "s32") for part in operand.rest[0].elements]

    def coordinates(self, batch: Batch, lanes: Lanes) -> NDArray[np.int64]:
        """Where tiles begin: lanes, dimensions, innermost first."""
        columns = [lanes.pick(one(batch)).astype(np.int64) for one in self._at]
        return np.stack(columns, axis=1)

    def maps(self, batch: Batch, lanes: Lanes) -> list[tuple[TensorMap, NDArray[np.int64]]]:
        """The maps that lanes use, each with the numbers of those lanes. What is no map, or not
        one of so many dimensions, is reported and left out."""
        where = lanes.pick(self._where(batch))
        self._check(batch, lanes, where)
        places = (where[:, None] + np.arange(0, SIZE, PIECE)).ravel()
        words = read(batch, self._instr, lanes.repeated(SIZE // PIECE), self._space, places, PIECE)
        rows = words.view(np.uint8).reshape(-1, SIZE)
        kinds, which = np.unique(rows, axis=0, return_inverse=True)
        which = which.ravel()
        out = []
        for number, row in enumerate(kinds):
            chosen = np.flatnonzero(which == number)
            found = decode(row.tobytes())
            if not isinstance(found, str) and len(found.extents) != len(self._at):
                found = f"it has {len(found.extents)} dimensions, the copy {len(self._at)}"
            if isinstance(found, str):
                flags = which == number
                batch.device.report(
                    batch, self._instr, "tensor_map", f"uses a tensor map that is no good: {found}",
                    lanes.flagged(flags),
                )  # fmt: skip
            else:
                out.append((found, chosen))
        return out

    def _check(self, batch: Batch, lanes: Lanes, where: Addresses) -> None:
        is_odd = where % _MAP_ALIGNMENT != 0
        if is_odd.any():
            batch.device.report(
                batch, self._instr, "misaligned",
                f"the tensor map at {int(where[is_odd][0]):#x} is at no multiple of "
                f"{_MAP_ALIGNMENT}", lanes.flagged(is_odd),
            )  # fmt: skip


class _Rows(NamedTuple):
    """Rows of the tiles of some lanes (lanes, rows): where in the tensor each begins, with its
    innermost coordinate counted as 0, and whether all others lie inside."""

    start: NDArray[np.int64]
    is_inside: Flags


class Tiles:
    """Tiles of one map that some lanes copy.

    A tile is rows of 16-byte pieces. Pieces that lie wholly inside of the tensor, at a multiple of
    16, go as they are; those at its edge go element by element.
    """

    def __init__(
        self, batch: Batch, instr: Instr, lanes: Lanes, found: TensorMap,
        coordinates: NDArray[np.int64], start: Addresses,
    ) -> None:  # fmt: skip
        self._batch = batch
        self._instr = instr
        self.lanes = lanes
        self.bytes = found.size
        """Of one tile."""
        self._map = found
        self._first = coordinates[:, 0]
        self._per = PIECE // found.width
        """Elements of a piece."""
        self._rows = self._outer(coordinates)
        self._shape = (*self._rows.start.shape, found.row // PIECE)
        """Lanes, rows, pieces."""
        self._where = self._in_shared(start)
        self._starts = self._first[:, None, None] + np.arange(self._shape[2]) * self._per
        """The innermost coordinate of each piece: lanes, 1, pieces."""
        inside = (self._starts >= 0) & (self._starts + self._per <= found.extents[0])
        even = self._starts * found.width % PIECE == 0
        touches = (self._starts + self._per > 0) & (self._starts < found.extents[0])
        rows = self._rows.is_inside[:, :, None]
        self._whole = np.flatnonzero(rows & (inside & even))
        self._partly = np.flatnonzero(rows & touches & ~(inside & even))

    def _outer(self, coordinates: NDArray[np.int64]) -> _Rows:
        found = self._map
        counts = found.counts[1:]
        number = np.arange(int(np.prod(counts, dtype=np.int64)))
        start = np.full((len(coordinates), len(number)), found.address, dtype=np.int64)
        is_inside = np.ones(start.shape, dtype=bool)
        for axis, count in enumerate(counts, 1):
            number, index = np.divmod(number, count)
            place = coordinates[:, axis, None] + index * found.steps[axis]
            is_inside &= (place >= 0) & (place < found.extents[axis])
            start += place * found.strides[axis - 1]
        return _Rows(start, is_inside)

    def _in_shared(self, start: Addresses) -> Addresses:
        """Where each piece lies in shared memory: lanes, rows, pieces."""
        is_odd = start % _TILE_ALIGNMENT != 0
        if is_odd.any():
            self._batch.device.report(
                self._batch, self._instr, "misaligned",
                f"the tile at {int(start[is_odd][0]):#x} of shared memory is at no multiple of "
                f"{_TILE_ALIGNMENT}", self.lanes.flagged(is_odd),
            )  # fmt: skip
        found = self._map
        _, rows, pieces = self._shape
        inner = np.arange(rows)[:, None] * found.pitch + np.arange(pieces) * PIECE
        return swizzled(start[:, None, None] + inner, SWIZZLES[found.swizzle])

    # The two sides ----------------------------------------------------------------------------
    def load(self) -> None:
        """Copy tiles into shared memory."""
        pieces = self._filled()
        lanes, place = self._of_whole()
        if len(place):
            pieces[self._whole] = self._taken("global", lanes, place, PIECE)
        lanes, place, which = self._of_elements()
        if len(place):
            size = self._map.width
            pieces.view(RAW[8 * size])[which] = self._taken("global", lanes, place, size)
        self.deliver(pieces)

    def deliver(self, pieces: Array) -> None:
        """Put tiles into shared memory."""
        everyone = self.lanes.repeated(self._shape[1] * self._shape[2])
        memory, at, allowed = MEMORIES["shared"].resolve(
            self._batch, self._instr, everyone, self._where.ravel(), PIECE, True, False, pieces
        )
        if allowed is not None:
            at, pieces = at[allowed], pieces[allowed]
        scatter(memory, at, pieces, PIECE)

    def picked_up(self) -> Array:
        """Tiles as they are in shared memory."""
        everyone = self.lanes.repeated(self._shape[1] * self._shape[2])
        return self._taken("shared", everyone, self._where.ravel(), PIECE)

    def outside(self) -> NDArray[np.uint8]:
        """All bits of bytes that lie outside of the tensor: lanes, bytes of a tile."""
        out = np.full(int(np.prod(self._shape)) * PIECE, 0xFF, dtype=np.uint8)
        out.reshape(-1, PIECE)[self._whole] = 0
        _, _, which = self._of_elements()
        out.view(RAW[8 * self._map.width])[which] = 0
        return out.reshape(self._shape[0], -1)

    def store(self) -> None:
        """Copy tiles into the tensor, or change its elements by them."""
        pieces = self.picked_up()
        if self._instr.shape.has("reduce"):
            self._reduce(pieces)
            return
        lanes, place = self._of_whole()
        self._put(lanes, place, pieces[self._whole], PIECE)
        lanes, place, which = self._of_elements()
        if len(place):
            size = self._map.width
            self._put(lanes, place, pieces.view(RAW[8 * size])[which], size)

    def _taken(self, space: str, lanes: Lanes, place: Addresses, size: int) -> Array:
        memory, at, allowed = MEMORIES[space].resolve(
            self._batch, self._instr, lanes, place, size, False, True
        )
        words = gather(memory, at, size)
        if allowed is not None:
            words[~allowed] = 0
        return words

    def _put(self, lanes: Lanes, place: Addresses, values: Array, size: int) -> None:
        if not len(place):
            return
        memory, at, allowed = MEMORIES["global"].resolve(
            self._batch, self._instr, lanes, place, size, True, False, values
        )
        if allowed is not None:
            at, values = at[allowed], values[allowed]
        scatter(memory, at, values, size)

    def _reduce(self, pieces: Array) -> None:
        kind = ELEMENTS[self._map.element]
        self._partly = np.union1d(self._whole, self._partly)
        lanes, place, which = self._of_elements()
        if not len(place):
            return
        size = self._map.width
        memory, at, allowed = MEMORIES["global"].resolve(
            self._batch, self._instr, lanes, place, size, True, True
        )
        values = pieces.view(RAW[8 * size])[which].view(dtype(kind))
        if allowed is not None:
            at, values = at[allowed], values[allowed]
        in_turn(memory, at, [values], change_of(self._instr, kind), dtype(kind))

    # Pieces -----------------------------------------------------------------------------------
    def _filled(self) -> Array:
        """Pieces as they are outside of the tensor: zeros, or NaN."""
        count = int(np.prod(self._shape))
        if not self._map.fill:
            return np.zeros(count, dtype=np.complex128)
        width = self._map.width
        # All bits below the sign: NaN of every type. Which one the hardware takes is not said.
        word = RAW[8 * width].type((1 << (8 * width - 1)) - 1)
        return np.full(count * self._per, word).view(np.complex128)

    def _of_whole(self) -> tuple[Lanes, Addresses]:
        """The lanes and global addresses of pieces that go as they are."""
        lane, row, piece = np.unravel_index(self._whole, self._shape)
        place = self._rows.start[lane, row] + self._starts[lane, 0, piece] * self._map.width
        return self.lanes.only(lane), place

    def _of_elements(self) -> tuple[Lanes, Addresses, NDArray[np.int64]]:
        """The lanes and global addresses of elements at the edge, and their numbers in the tile."""
        lane, row, piece = (
            np.repeat(index, self._per) for index in np.unravel_index(self._partly, self._shape)
        )
        within = np.tile(np.arange(self._per), len(self._partly))
        column = self._starts[lane, 0, piece] + within
        inside = (column >= 0) & (column < self._map.extents[0])
        place = self._rows.start[lane, row] + column * self._map.width
        which = np.repeat(self._partly, self._per) * self._per + within
        return self.lanes.only(lane[inside]), place[inside], which[inside]


__all__ = ["PIECE", "Tiles", "tensor_copy", "tiles"]
