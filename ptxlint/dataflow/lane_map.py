"""Coordinates that move with the threads: which element of a tile a thread holds.

A lane map gives a number for each thread of a CTA. It is linear over the bits of the thread index
in the sense of exclusive or, as Triton's layouts and swizzles are: the value of thread t is the
constant with the entry of each set bit of t xored in. Where the entries have no bit in common with
each other or with the constant this is the plain sum.

A map may hold for a part of the threads only, those in which some bits are fixed: what a load reads
from one register of other threads often comes from half of them.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

from ptxlint.dataflow.lane_bits import LANE, WARP_BITS
from ptxlint.dataflow.linear import Echelon
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.dataflow.uniformity import Uniformity
from ptxlint.facts import Facts


class LaneMap(NamedTuple):
    """The number of thread t is `constant`, xored with `basis[i]` for each set bit i of t.

    `constant` is the number of thread 0, or of the least thread that the map holds for. It holds
    for the threads t with `t & fixed == at`; `basis` is 0 at fixed bits, so that two maps that
    agree on their threads are equal.
    """

    constant: int
    basis: tuple[int, ...]
    fixed: int = 0
    at: int = 0

    @staticmethod
    def of(
        polynomial: Polynomial, width: int, uniformity: Uniformity | None = None
    ) -> LaneMap | None:
        """The part of a polynomial that the bits of `%tid.x` decide, its constant included.

        None if that part is not linear. See `split` for the arguments and for what is left.
        """
        found = split(polynomial, width, uniformity)
        return None if found is None else found[1]

    @staticmethod
    def uniform(constant: int, width: int) -> LaneMap:
        """The same number in each of 2^width threads."""
        return LaneMap(constant, (0,) * width)

    @property
    def width(self) -> int:
        """How many bits a thread index has."""
        return len(self.basis)

    @property
    def moving(self) -> int:
        """The bits of the number that differ between threads."""
        return reduce(or_, self.basis, 0)

    @property
    def is_uniform(self) -> bool:
        """True if all threads that the map holds for have the same number."""
        return not any(self.basis)

    @property
    def lanes(self) -> int:
        """The bits of the thread index on which the number depends."""
        return sum(1 << at for at, entry in enumerate(self.basis) if entry)

    def value(self, thread: int) -> int:
        """The number of a thread that the map holds for."""
        return self.constant ^ span_value(self.basis, thread)

    def holds_for(self, thread: int) -> bool:
        """True if the map says something about a thread."""
        return thread & self.fixed == self.at

    def restrict(self, fixed: int, at: int) -> LaneMap | None:
        """The map for those of its threads t with `t & fixed == at`; None if there are none."""
        if (at ^ self.at) & fixed & self.fixed:
            return None
        new = at & fixed & ~self.fixed
        basis = tuple(0 if fixed >> i & 1 else entry for i, entry in enumerate(self.basis))
        constant = self.constant ^ span_value(self.basis, new)
        return LaneMap(constant, basis, self.fixed | fixed, self.at | new)

    def agrees(self, other: LaneMap) -> bool:
        """True if both give the same numbers to all threads that both hold for."""
        if (self.at ^ other.at) & self.fixed & other.fixed:
            return True
        return self.restrict(other.fixed, other.at) == other.restrict(self.fixed, self.at)

    def exchanged(self, lanes: int) -> LaneMap:
        """The map after each thread took over the number of the thread with these bits flipped."""
        moved = lanes & self.fixed
        constant = self.constant ^ span_value(self.basis, lanes & ~self.fixed)
        return LaneMap(constant, self.basis, self.fixed, self.at ^ moved)

    def plus(self, amount: int) -> LaneMap | None:
        """The map with all numbers raised; None where a carry would run into the moving bits."""
        moving = self.moving
        still = self.constant & ~moving
        raised = still + amount
        if raised & moving:
            return None
        return self._replace(constant=raised | self.constant & moving)


def span_value(basis: tuple[int, ...], bits: int) -> int:
    """The entries at the set bits, xored."""
    out = 0
    for entry in basis:
        if bits & 1:
            out ^= entry
        bits >>= 1
    return out


def split(
    polynomial: Polynomial, width: int, uniformity: Uniformity | None = None
) -> tuple[Polynomial, LaneMap] | None:
    """A polynomial as what no lane has a part in, and a lane map; None if it is not such a sum.

    A thread index has `width` bits. Values that the polynomial does not look into may differ
    between threads unless `uniformity` says that they do not. The map has the constant, without
    those of its bits that are moving bits as well: a shift of the whole tile stays with what no
    lane has a part in.
    """
    table = polynomial.table
    atoms = table.atoms
    basis = [0] * width
    moving = flipped = 0
    constant = 0
    rest: dict[tuple[int, ...], int] = {}
    for monomial, coefficient in polynomial.terms.items():
        if not monomial:
            constant += coefficient
            continue
        if len(monomial) == 1 and atoms[monomial[0]].kind == "bit":
            axis, at = atoms[monomial[0]].data
            size = abs(coefficient)
            if axis != "x" or at >= width or size & (size - 1) or moving & size:
                return None
            moving |= size
            basis[at] = size
            if coefficient < 0:
                # -c b is c (1 - b) - c.
                flipped |= size
                constant -= size
            continue
        if any(depends_on_threads(atoms[number], uniformity) for number in monomial):
            return None
        rest[monomial] = coefficient
    shift = constant & moving
    if shift:
        rest[()] = shift
    lane_map = LaneMap((constant - shift) | flipped, tuple(basis))
    return Polynomial(table, rest), lane_map


def depends_on_threads(atom: Atom, uniformity: Uniformity | None = None) -> bool:
    """True if an atom may differ between the threads of a CTA."""
    work = [atom]
    while work:
        current = work.pop()
        if current.kind == "bit":
            return True
        if current.kind in ("opaque", "load", "select") and (
            uniformity is None or uniformity.dependence(current.data[0]) & (LANE | WARP_BITS)
        ):
            return True
        for part in current.data:
            if isinstance(part, Polynomial):
                work += part.atoms()
    return False


def lane_width(facts: Facts) -> int | None:
    """How many bits the index of a thread has.

    None unless `.reqntid` or Triton's metadata say that the CTA is one-dimensional with a power
    of two of threads.
    """
    extents = facts.function.directives.get("reqntid")
    if extents:
        counts = [int(e) for e in extents]
    elif facts.metadata is not None and facts.metadata.num_warps:
        counts = [32 * facts.metadata.num_warps]
    else:
        return None
    threads = counts[0]
    if any(count != 1 for count in counts[1:]) or threads & (threads - 1) or threads < 1:
        return None
    return threads.bit_length() - 1


def compose(outer: LaneMap, start: int, images: tuple[int, ...]) -> LaneMap | None:
    """The map t -> outer(start ^ images of t); None if outer does not hold for all of that."""
    mask = outer.fixed
    if (start ^ outer.at) & mask or any(image & mask for image in images):
        return None
    basis = outer.basis
    return LaneMap(outer.value(start), tuple(span_value(basis, image) for image in images))


def readers(outer: LaneMap, start: int, images: tuple[int, ...]) -> tuple[int, int] | bool:
    """Which t have a `start ^ images of t` that a map holds for: those with `t & fixed == at`.

    False if none has. True if some have, but not by fixing single bits.
    """
    mask, wanted = outer.fixed, (start ^ outer.at) & outer.fixed
    rows: list[tuple[int, int]] = []
    while mask:
        bit = mask & -mask
        mask ^= bit
        vector = 0
        for at, image in enumerate(images):
            if image & bit:
                vector |= 1 << at
        parity = int(wanted & bit != 0)
        for other, known in rows:
            if vector & (other & -other):
                vector ^= other
                parity ^= known
        if not vector:
            if parity:
                return False
            continue
        low = vector & -vector
        rows = [(v ^ vector, p ^ parity) if v & low else (v, p) for v, p in rows]
        rows.append((vector, parity))
    if any(vector & (vector - 1) for vector, _ in rows):
        return True
    return sum(v for v, _ in rows), sum(v for v, parity in rows if parity)


def compose_some(outer: LaneMap, start: int, images: tuple[int, ...]) -> LaneMap | None:
    """The map t -> outer(start ^ images of t), for those t for which outer holds for that.

    None if there are none, or they are not given by fixing single bits.
    """
    if not outer.fixed:
        return compose(outer, start, images)
    found = readers(outer, start, images)
    if isinstance(found, bool):
        return None
    fixed, at = found
    basis = outer.basis
    entries = [0 if fixed >> i & 1 else span_value(basis, e) for i, e in enumerate(images)]
    constant = outer.value(start ^ span_value(images, at))
    return LaneMap(constant, tuple(entries), fixed, at)


def assemble(pieces: list[LaneMap]) -> LaneMap | None:
    """The one map over all threads that agrees with all pieces; None if there is none.

    The pieces must cover every thread between them, and the numbers must be linear as a whole.
    """
    return _assembled(tuple(pieces))


@lru_cache(maxsize=4096)
def _assembled(pieces: tuple[LaneMap, ...]) -> LaneMap | None:
    if not pieces:
        return None
    width = pieces[0].width
    first = pieces[0]
    if not first.fixed:
        return first if all(first.agrees(piece) for piece in pieces) else None
    fixed = reduce(or_, (piece.fixed for piece in pieces), 0)
    places = [at for at in range(width) if fixed >> at & 1]
    free = tuple(0 if fixed >> i & 1 else first.basis[i] for i in range(width))
    at_corner: dict[int, int] = {}
    for piece in pieces:
        inside = [at for at in places if not piece.fixed >> at & 1]
        for choice in range(1 << len(inside)):
            bits = sum(1 << at for k, at in enumerate(inside) if choice >> k & 1)
            number = piece.value(piece.at | bits)
            if at_corner.setdefault(piece.at | bits, number) != number:
                return None
        if any(piece.basis[i] != free[i] for i in range(width) if not fixed >> i & 1):
            return None
    if len(at_corner) != 1 << len(places):
        return None
    constant = at_corner[0]
    basis = list(free)
    for at in places:
        basis[at] = at_corner[1 << at] ^ constant
    whole = LaneMap(constant, tuple(basis))
    return whole if all(whole.value(t) == number for t, number in at_corner.items()) else None


def pulled(
    fixed: int, at: int, start: int, images: tuple[int, ...], width: int, read: LaneMap
) -> LaneMap | None:
    """The numbers that the sources of data must have had, from those of the threads that got it.

    The threads t with `t & fixed == at` got it from `start`, xored with `images[i]` for each set
    bit i of t that is not fixed; the source's number has `width` bits. None if no map fits: if
    threads that got the same have different numbers.
    """
    here = read.restrict(fixed, at)
    if here is None:
        return None
    start ^= span_value(images, here.at & ~fixed)
    if here.fixed != fixed:
        images = tuple([0 if here.fixed >> i & 1 else e for i, e in enumerate(images)])
    inverse = _inverse(images, width)
    if inverse is None or any(span_value(here.basis, same) for same in inverse.same):
        return None
    basis = tuple([span_value(here.basis, choice) for choice in inverse.choices])
    outside = (1 << width) - 1 & ~inverse.free
    constant = here.constant ^ span_value(basis, start & inverse.free)
    return LaneMap(constant, basis, outside, start & outside)


class _Inverse(NamedTuple):
    """A linear map of threads backwards: for each single bit of an image the reading bits that
    make it, the reading bits that change nothing, and the bits of all images."""

    choices: tuple[int, ...]
    same: tuple[int, ...]
    free: int


@lru_cache(maxsize=4096)
def _inverse(images: tuple[int, ...], width: int) -> _Inverse | None:
    """The way back; None if the images are not given by fixing single bits."""
    echelon = Echelon()
    same = []
    for at, image in enumerate(images):
        rest, choice = echelon.reduce(image, 1 << at)
        if rest:
            echelon.add(rest, choice)
        else:
            same.append(choice)
    free = reduce(or_, images, 0)
    choices = []
    for at in range(width):
        rest, choice = echelon.reduce(1 << at & free, 0)
        if rest:
            return None
        choices.append(choice)
    return _Inverse(tuple(choices), tuple(same), free)
