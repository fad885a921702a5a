"""Which thread wrote the bytes that another one reads, where both addresses are linear."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from ptxlint.dataflow.lane_map import span_value
from ptxlint.dataflow.lane_words import Word, make
from ptxlint.dataflow.linear import Echelon, Piece, aligned_pieces
from ptxlint.dataflow.shared_cells import Chunk, Lanes, Write, cells_of

_IMAGE: Final = 16
"""Where in a packed pair of threads the writing one begins; the reading one is below."""
_READER: Final = (1 << _IMAGE) - 1


class Source(NamedTuple):
    """For some of the reading threads: the chunk of a write, the offset in it, and whose it is."""

    write: Write
    chunk: Chunk
    offset: int
    pair: int
    shape: list[Piece]

    @property
    def pieces(self) -> list[Piece]:
        """The map from reading to writing threads, in pieces."""
        return [_shifted(piece, self.pair) for piece in self.shape]


class _Grain(NamedTuple):
    """A grain of a chunk: its place, the span that addresses leave it in, and what is left.

    `thread` writes it to the address that is left.
    """

    chunk: Chunk
    offset: int
    rest: int
    thread: int


class _Place(NamedTuple):
    """A grain of a write; `claimed` are the bytes that are read from the write, as bits, -1 for
    all that it covers."""

    write: Write
    grain: _Grain
    claimed: int


_Shape: TypeAlias = "tuple[Echelon, dict[int, list[_Place]]]"
"""Writes whose addresses differ by constants: the span of their lane part, and their grains by
what is left of the address modulo that."""


class _Reading(NamedTuple):
    """A lane part of addresses modulo a span. Tags are pairs of a reading and a writing thread.

    `kernel` are the pairs of directions that change no address; `pieces` is the map that they
    span, from thread 0 to thread 0, cut into aligned pieces (None: too many).
    """

    solver: Echelon
    kernel: tuple[int, ...]
    pieces: list[Piece] | None


class MatchMemory:
    """What is worked out once for all loads of a function."""

    __slots__ = ("grains", "readings", "spans", "tables")

    def __init__(self) -> None:
        self.spans: dict[tuple[Any, ...], Echelon] = {}
        self.grains: dict[tuple[int, int, int, int], list[_Grain] | None] = {}
        self.readings: dict[tuple[Any, ...], _Reading] = {}
        self.tables: dict[tuple[Any, ...], list[_Shape] | None] = {}


class SourceTable:
    """The grains of some writes, to be found by address."""

    def __init__(
        self, claims: list[tuple[Write, int]], grain: int, wanted: int, memory: MatchMemory
    ) -> None:
        """Each write comes with the bytes that are read from it; `wanted` are all that are read."""
        self._claims = [
            (write, -1 if read == write.cells & wanted else read) for write, read in claims
        ]
        self._grain = grain
        self._memory = memory
        self._key = tuple(
            (id(write.chunks), write.instr.index, write.maybe, write[6:], read)
            for write, read in self._claims
        )

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
        key = (self._grain, base, self._key)
        tables = self._memory.tables
        if key not in tables:
            tables[key] = self._build(base)
        return tables[key]

    def _build(self, base: int) -> list[_Shape] | None:
        shapes: dict[int, _Shape] = {}
        for write, claimed in self._claims:
            for at, chunk in enumerate(write.chunks):
                span = self._span(chunk.word, write.lanes)
                grains = self._grains(write, at, span, base)
                if grains is None:
                    return None
                places = shapes.setdefault(id(span), (span, {}))[1]
                for grain in grains:
                    places.setdefault(grain.rest, []).append(_Place(write, grain, claimed))
        return list(shapes.values())

    def _span(self, word: Word, lanes: Lanes) -> Echelon:
        """The lane part of an address; tags are threads. Of equal writers the first is taken."""
        key = (word.basis, lanes)
        span = self._memory.spans.get(key)
        if span is None:
            span = self._memory.spans[key] = Echelon()
            for direction in lanes.directions:
                span.add(*span.reduce(span_value(word.basis, direction), direction))
        return span

    def _grains(self, write: Write, at: int, span: Echelon, base: int) -> list[_Grain] | None:
        """The grains of a chunk; None if an address is not linear when counted from the base."""
        # The chunks of a write live as long as the memory does, so that they can be told by id.
        key = (id(write.chunks), at, self._grain, base)
        known = self._memory.grains
        if key not in known:
            chunk = write.chunks[at]
            origin = span_value(chunk.word.basis, write.lanes.start)
            out: list[_Grain] | None = []
            for offset in range(0, chunk.width, self._grain):
                address = _relative(moved(chunk.word, offset), base)
                if address is None or out is None:
                    out = None
                    break
                rest, thread = span.reduce(address ^ origin, write.lanes.start)
                out.append(_Grain(chunk, offset, rest, thread))
            known[key] = out
        return known[key]

    def _look(self, address: int, word: Word, lanes: Lanes, shapes: list[_Shape]) -> list[Source]:
        out: list[Source] = []
        start = address ^ span_value(word.basis, lanes.start)
        for span, places in shapes:
            reading = self._reading(word, lanes, span)
            rest, tag = span.reduce(start, 0)
            pair = lanes.start | tag << _IMAGE
            for found, choice in _hits(rest, places, reading):
                for write, grain, claimed in found:
                    way = pair ^ choice ^ grain.thread << _IMAGE
                    pieces = reading.pieces
                    if claimed >= 0:
                        pieces, way = self._pieces(claimed, way, reading, word), 0
                    if pieces is None:
                        return []
                    if pieces:
                        out.append(Source(write, grain.chunk, grain.offset, way, pieces))
        return out

    def _reading(self, word: Word, lanes: Lanes, span: Echelon) -> _Reading:
        key = (word.basis, lanes, id(span))
        found = self._memory.readings.get(key)
        if found is None:
            solver = Echelon()
            kernel = []
            for direction in lanes.directions:
                rest, tag = span.reduce(span_value(word.basis, direction), 0)
                rest, pair = solver.reduce(rest, direction | tag << _IMAGE)
                if rest:
                    solver.add(rest, pair)
                else:
                    kernel.append(pair)
            pieces = aligned_pieces(0, _moves(kernel), 0, len(word.basis))
            found = self._memory.readings[key] = _Reading(solver, tuple(kernel), pieces)
        return found

    def _pieces(self, claimed: int, pair: int, reading: _Reading, word: Word) -> list[Piece] | None:
        """The reading threads that get claimed bytes of a grain, in pieces; None: too many."""
        work = [(pair, reading.kernel)]
        out: list[Piece] = []
        while work:
            pair, kernel = work.pop()
            vectors = tuple([move & _READER for move in kernel])
            cells = cells_of(word, self._grain, Lanes(pair & _READER, vectors)) << word.add
            if not cells & claimed:
                continue
            if cells & ~claimed:
                if not kernel:
                    return None
                work += [(pair, kernel[:-1]), (pair ^ kernel[-1], kernel[:-1])]
                continue
            moves = _moves(list(kernel))
            pieces = aligned_pieces(pair & _READER, moves, pair >> _IMAGE, len(word.basis))
            if pieces is None:
                return None
            out += pieces
        return out


def _moves(kernel: list[int]) -> list[tuple[int, int]]:
    return [(pair & _READER, pair >> _IMAGE) for pair in kernel]


def _shifted(piece: Piece, pair: int) -> Piece:
    """A piece of the map from thread 0 to thread 0, for one that begins at a pair of threads."""
    fixed, at, start, images = piece
    reader = pair & _READER
    start ^= pair >> _IMAGE
    free = reader & ~fixed
    if free:
        start ^= span_value(images, free)
    return Piece(fixed, at ^ reader & fixed, start, images)


def _hits(
    rest: int, places: dict[int, list[_Place]], reading: _Reading
) -> list[tuple[list[_Place], int]]:
    """The places that are read, each with one pair of directions that leads to it."""
    solver = reading.solver
    if 1 << solver.rank <= len(places):
        return [
            (places[rest ^ vector], choice)
            for vector, choice in solver.span()
            if rest ^ vector in places
        ]
    out = []
    for key, found in places.items():
        left, choice = solver.reduce(rest ^ key, 0)
        if not left:
            out.append((found, choice))
    return out


def _relative(word: Word, base: int) -> int | None:
    """The address of thread 0 counted from a base; None if the rest is not linear then."""
    add = word.add - base
    return None if add < 0 or add & word.moving else add | word.fix


def moved(word: Word, offset: int) -> Word:
    """The address so many bytes further on."""
    return make(word.add + offset, word.fix, word.basis, 32) if offset else word
