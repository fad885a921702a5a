"""Which thread wrote the bytes that another one reads, where both addresses are linear."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.dataflow.lane_map import span_value
from ptxlint.dataflow.lane_words import Word, make
from ptxlint.dataflow.linear import Echelon, Piece, aligned_pieces
from ptxlint.dataflow.shared_cells import Chunk, Lanes, Write, cells_of


class Source(NamedTuple):
    """For some of the reading threads: the chunk of a write, the offset in it, and whose it is."""

    write: Write
    chunk: Chunk
    offset: int
    piece: Piece


class _Place(NamedTuple):
    """A grain of a write, and the thread that writes it to the address that the key stands for."""

    write: Write
    chunk: Chunk
    offset: int
    thread: int
    claimed: int
    """The bytes that are read from this write, all of them as bits; -1 for all that it covers."""


class _Shape(NamedTuple):
    """The writes whose addresses differ by constants: the span of the lane part, and the grains
    by what is left of their address modulo that."""

    span: Echelon
    places: dict[int, list[_Place]]


class _Reading(NamedTuple):
    """A lane part of addresses, modulo a span: what each direction leaves, and the solutions."""

    tags: tuple[int, ...]
    solver: Echelon
    kernel: tuple[int, ...]


class SourceTable:
    """The grains of some writes, to be found by address."""

    def __init__(self, claims: list[tuple[Write, int]], grain: int, wanted: int) -> None:
        """Each write comes with the bytes that are read from it; `wanted` are all that are read."""
        self._claims = claims
        self._grain = grain
        self._wanted = wanted
        self._readings: dict[tuple[object, ...], _Reading] = {}
        self._tables: dict[int, list[_Shape] | None] = {}

    def find(self, word: Word, lanes: Lanes) -> list[Source]:
        """The sources of the grain at an address in these threads; [] if not all are known."""
        bases = [0, min((c.word.add for w, _ in self._claims for c in w.chunks), default=0)]
        for base in dict.fromkeys(bases):
            address = _relative(word, base)
            shapes = None if address is None else self._table(base)
            if address is not None and shapes is not None:
                return self._look(address, word, lanes, shapes)
        return []

    def _table(self, base: int) -> list[_Shape] | None:
        """All grains with addresses counted from `base`; None if that leaves one not linear."""
        if base not in self._tables:
            self._tables[base] = self._build(base)
        return self._tables[base]

    def _build(self, base: int) -> list[_Shape] | None:
        shapes: dict[tuple[object, ...], _Shape] = {}
        for write, read in self._claims:
            claimed = -1 if read == write.cells & self._wanted else read
            for chunk in write.chunks:
                key = (chunk.word.basis, write.lanes)
                shape = shapes.get(key)
                if shape is None:
                    shape = shapes[key] = _Shape(_span(chunk.word, write.lanes), {})
                origin = span_value(chunk.word.basis, write.lanes.start)
                for offset in range(0, chunk.width, self._grain):
                    address = _relative(moved(chunk.word, offset), base)
                    if address is None:
                        return None
                    rest, thread = shape.span.reduce(address ^ origin, write.lanes.start)
                    place = _Place(write, chunk, offset, thread, claimed)
                    shape.places.setdefault(rest, []).append(place)
        return list(shapes.values())

    def _look(self, address: int, word: Word, lanes: Lanes, shapes: list[_Shape]) -> list[Source]:
        out: list[Source] = []
        start = address ^ span_value(word.basis, lanes.start)
        for at, shape in enumerate(shapes):
            reading = self._reading(word, lanes, at, shape)
            rest, tag = shape.span.reduce(start, 0)
            for places, choice in _hits(rest, shape, reading):
                for place in places:
                    found = self._pieces(place, tag, choice, reading, word, lanes)
                    if found is None:
                        return []
                    out += found
        return out

    def _reading(self, word: Word, lanes: Lanes, at: int, shape: _Shape) -> _Reading:
        key = (word.basis, lanes, at, id(shape))
        found = self._readings.get(key)
        if found is None:
            solver = Echelon()
            tags, kernel = [], []
            for k, direction in enumerate(lanes.directions):
                rest, tag = shape.span.reduce(span_value(word.basis, direction), 0)
                tags.append(tag)
                rest, choice = solver.reduce(rest, 1 << k)
                if rest:
                    solver.add(rest, choice)
                else:
                    kernel.append(choice)
            found = self._readings[key] = _Reading(tuple(tags), solver, tuple(kernel))
        return found

    def _pieces(
        self, place: _Place, tag: int, choice: int, reading: _Reading, word: Word, lanes: Lanes
    ) -> list[Source] | None:
        """The reading threads that get a place's data, in pieces."""
        directions, tags = lanes.directions, reading.tags
        thread = lanes.start ^ span_value(directions, choice)
        image = place.thread ^ tag ^ span_value(tags, choice)
        moves = [(span_value(directions, k), span_value(tags, k)) for k in reading.kernel]
        work = [(thread, moves, image)]
        out: list[Source] = []
        while work:
            thread, moves, image = work.pop()
            if place.claimed >= 0:
                vectors = tuple(vector for vector, _ in moves)
                cells = cells_of(word, self._grain, Lanes(thread, vectors)) << word.add
                if not cells & place.claimed:
                    continue
                if cells & ~place.claimed:
                    if not moves:
                        return None
                    vector, effect = moves.pop()
                    work += [(thread, moves, image), (thread ^ vector, list(moves), image ^ effect)]
                    continue
            pieces = aligned_pieces(thread, moves, image, len(word.basis))
            if pieces is None:
                return None
            out += [Source(place.write, place.chunk, place.offset, piece) for piece in pieces]
        return out


def _hits(rest: int, shape: _Shape, reading: _Reading) -> list[tuple[list[_Place], int]]:
    """The places that are read, each with one choice of directions that leads to it."""
    solver, places = reading.solver, shape.places
    out = []
    if 1 << solver.rank <= len(places):
        for vector, choice in solver.span():
            found = places.get(rest ^ vector)
            if found is not None:
                out.append((found, choice))
        return out
    for key, found in places.items():
        left, choice = solver.reduce(rest ^ key, 0)
        if not left:
            out.append((found, choice))
    return out


def _span(word: Word, lanes: Lanes) -> Echelon:
    """The lane part of an address; the tags are threads. Of equal writers the first is taken."""
    span = Echelon()
    for direction in lanes.directions:
        span.add(*span.reduce(span_value(word.basis, direction), direction))
    return span


def _relative(word: Word, base: int) -> int | None:
    """The address of thread 0 counted from a base; None if the rest is not linear then."""
    add = word.add - base
    return None if add < 0 or add & word.moving else add | word.fix


def moved(word: Word, offset: int) -> Word:
    """The address so many bytes further on."""
    return make(word.add + offset, word.fix, word.basis, 32) if offset else word
