"""Linear algebra over single bits: vectors are ints, addition is exclusive or."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final, NamedTuple

_MAX_PIECES: Final = 64


class Echelon:
    """A span of vectors, each with a tag that is xored along with it.

    The tag tells which combination of the added vectors makes a vector of the span.
    """

    __slots__ = ("_pivots", "_rows")

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, int]] = {}
        self._pivots: list[int] = []

    @property
    def rank(self) -> int:
        """How many vectors are independent."""
        return len(self._pivots)

    def reduce(self, vector: int, tag: int) -> tuple[int, int]:
        """What is left of a vector modulo the span, with the tags of what was taken away.

        Vectors that differ by one of the span leave the same.
        """
        rows = self._rows
        for pivot in self._pivots:
            if vector >> pivot & 1:
                row = rows[pivot]
                vector ^= row[0]
                tag ^= row[1]
        return vector, tag

    def add(self, rest: int, tag: int) -> None:
        """Add a vector that was reduced; nothing happens if nothing was left."""
        if rest:
            pivot = rest.bit_length() - 1
            self._rows[pivot] = (rest, tag)
            self._pivots.append(pivot)
            self._pivots.sort(reverse=True)

    def span(self) -> list[tuple[int, int]]:
        """All vectors of the span with their tags."""
        out = [(0, 0)]
        for vector, tag in self._rows.values():
            out += [(v ^ vector, t ^ tag) for v, t in out]
        return out


class Piece(NamedTuple):
    """A part of an affine map: threads t with `t & fixed == at` go to `start`, xored with
    `images[i]` for each set bit i of t that is not fixed."""

    fixed: int
    at: int
    start: int
    images: tuple[int, ...]


def aligned_pieces(
    start: int, moves: list[tuple[int, int]], image: int, width: int
) -> list[Piece] | None:
    """An affine map, cut so that both ends of each piece are given by fixing single bits.

    The map takes `start` to `image`; each of `moves` is a direction and what it does to the image.
    `width` is how many bits an argument has. None if it falls into too many pieces.
    """
    out: list[Piece] = []
    work = [(start, moves, image)]
    while work:
        if len(work) + len(out) > _MAX_PIECES:
            return None
        start, moves, image = work.pop()
        rows = _reduced(moves)
        at = next((k for k, (v, _) in enumerate(rows) if v & v - 1), -1)
        if at < 0:
            at = _misaligned(rows)
        if at >= 0:
            vector, effect = rows.pop(at)
            work += [(start, rows, image), (start ^ vector, list(rows), image ^ effect)]
            continue
        images = [0] * width
        free = 0
        for vector, effect in rows:
            images[vector.bit_length() - 1] = effect
            free |= vector
            if start & vector:
                start ^= vector
                image ^= effect
        out.append(Piece((1 << width) - 1 & ~free, start, image, tuple(images)))
    return out


def merged_pieces(pieces: list[Piece]) -> list[Piece]:
    """The same maps in fewer pieces, where two that differ in one fixed bit are one.

    What a bit then does to the image is in the way of no other one.
    """
    groups: dict[tuple[int, tuple[int, ...]], dict[int, int]] = {}
    work = []
    out = []
    for piece in pieces:
        key = piece.fixed, piece.images
        if key not in groups:
            groups[key] = {}
            work.append(key)
        if groups[key].setdefault(piece.at, piece.start) != piece.start:
            # Another map of the same threads: each is there.
            out.append(piece)
    while work:
        key = work.pop()
        fixed, images = key
        starts = groups[key]
        union = reduce(or_, images, 0)
        left = fixed if len(starts) > 1 else 0
        while left:
            bit = left & -left
            left ^= bit
            for at in [at for at in starts if not at & bit and at | bit in starts]:
                change = starts[at] ^ starts[at | bit]
                if change & union:
                    continue
                place = bit.bit_length() - 1
                joined = fixed ^ bit, (*images[:place], change, *images[place + 1 :])
                if groups.setdefault(joined, {}).setdefault(at, starts[at]) != starts[at]:
                    continue
                del starts[at], starts[at | bit]
                if joined not in work:
                    work.append(joined)
    for (fixed, images), starts in groups.items():
        out += [Piece(fixed, at, start, images) for at, start in starts.items()]
    return out


def _reduced(moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same directions with a pivot each that no other one has."""
    rows: list[tuple[int, int]] = []
    for vector, effect in moves:
        for other, other_effect in rows:
            if vector >> other.bit_length() - 1 & 1:
                vector ^= other
                effect ^= other_effect
        if not vector:
            continue
        pivot = vector.bit_length() - 1
        rows = [(v ^ vector, e ^ effect) if v >> pivot & 1 else (v, e) for v, e in rows]
        rows.append((vector, effect))
        rows.sort(reverse=True)
    return rows


def _misaligned(rows: list[tuple[int, int]]) -> int:
    """A direction whose image keeps the images from being given by single bits; -1 for none."""
    echelon = Echelon()
    union = 0
    for _, effect in rows:
        echelon.add(*echelon.reduce(effect, 0))
        union |= effect
    while union:
        bit = union & -union
        union ^= bit
        if echelon.reduce(bit, 0)[0]:
            return next(k for k, (_, effect) in enumerate(rows) if effect & bit and effect != bit)
    return -1
