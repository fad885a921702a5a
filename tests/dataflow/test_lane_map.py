"""Lane maps against the tables of numbers that they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ptxlint.dataflow.lane_map import (
    LaneMap,
    assemble,
    compose,
    compose_some,
    lane_width,
    readers,
    split,
)
from ptxlint.dataflow.linear import Echelon, Piece, aligned_pieces, merged_pieces
from ptxlint.dataflow.polynomial import AtomTable
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

WIDTH = 4
THREADS = range(1 << WIDTH)
ENTRIES = st.tuples(*[st.integers(0, 255)] * WIDTH)
MAPS = st.builds(LaneMap, st.integers(-300, 300), ENTRIES, st.just(0), st.just(0))
BITS = st.integers(0, (1 << WIDTH) - 1)


@st.composite
def partial(draw: st.DrawFn) -> LaneMap:
    fixed = draw(BITS)
    found = draw(MAPS).restrict(fixed, draw(BITS) & fixed)
    assert found is not None
    return found


def table(lane_map: LaneMap) -> dict[int, int]:
    return {t: lane_map.value(t) for t in THREADS if lane_map.holds_for(t)}


@given(MAPS, BITS, BITS)
def test_restriction_keeps_the_numbers(whole: LaneMap, fixed: int, at: int) -> None:
    part = whole.restrict(fixed, at & fixed)
    assert part is not None
    expected = {t: n for t, n in table(whole).items() if t & fixed == at & fixed}
    assert table(part) == expected


@given(partial(), partial())
def test_agreement_is_that_of_the_tables(a: LaneMap, b: LaneMap) -> None:
    left, right = table(a), table(b)
    assert a.agrees(b) == all(right.get(t, n) == n for t, n in left.items())
    assert a.agrees(a)


@given(partial(), BITS)
def test_exchanged_threads(lane_map: LaneMap, lanes: int) -> None:
    moved = lane_map.exchanged(lanes)
    assert table(moved) == {t ^ lanes: n for t, n in table(lane_map).items()}


@given(MAPS, st.integers(-64, 64))
def test_raised_numbers(lane_map: LaneMap, amount: int) -> None:
    raised = lane_map.plus(amount)
    if raised is not None:
        assert table(raised) == {t: n + amount for t, n in table(lane_map).items()}
    elif not lane_map.moving & 0xFF:
        raise AssertionError("nothing moves, so nothing can carry")


@given(partial(), BITS, st.tuples(*[BITS] * WIDTH))
def test_composition(outer: LaneMap, start: int, images: tuple[int, ...]) -> None:
    inner = LaneMap(start, images)
    found = compose(outer, start, images)
    if found is None:
        assert not all(outer.holds_for(inner.value(t)) for t in THREADS)
    else:
        assert table(found) == {t: outer.value(inner.value(t)) for t in THREADS}


@given(partial(), BITS, st.tuples(*[BITS] * WIDTH))
def test_composition_with_what_holds_for_some(
    outer: LaneMap, start: int, images: tuple[int, ...]
) -> None:
    inner = LaneMap(start, images)
    expected = {t: outer.value(inner.value(t)) for t in THREADS if outer.holds_for(inner.value(t))}
    met = readers(outer, start, images)
    found = compose_some(outer, start, images)
    if isinstance(met, bool):
        assert met == bool(expected)
        assert found is None
        if met:
            # Those threads are given by no fixing of single bits.
            still = [b for b in range(WIDTH) if len({t >> b & 1 for t in expected}) == 1]
            assert len(expected) != 1 << WIDTH - len(still)
    else:
        assert found is not None
        assert (found.fixed, found.at) == met
        assert table(found) == expected


IMAGES = st.tuples(*[st.sampled_from([0, 0, 1, 2])] * WIDTH)


@st.composite
def pieces_of_maps(draw: st.DrawFn) -> Piece:
    fixed, images = draw(BITS), draw(IMAGES)
    free = tuple(0 if fixed >> i & 1 else entry for i, entry in enumerate(images))
    return Piece(fixed, draw(BITS) & fixed, draw(st.integers(0, 7)), free)


@given(st.lists(pieces_of_maps(), max_size=8))
def test_merged_pieces_say_the_same(pieces: list[Piece]) -> None:
    def pairs(of: list[Piece]) -> set[tuple[int, int]]:
        maps = [LaneMap(p.start, p.images, p.fixed, p.at) for p in of]
        return {pair for lane_map in maps for pair in table(lane_map).items()}

    merged = merged_pieces(pieces)
    assert pairs(merged) == pairs(pieces)
    assert len(merged) <= len(pieces)


def test_what_differs_in_one_bit_is_one_piece() -> None:
    quarters = [Piece(3, at, 8, (0, 0, 1, 2)) for at in range(4)]
    assert merged_pieces(quarters) == [Piece(0, 0, 8, (0, 0, 1, 2))]
    apart = [Piece(3, at, at << 2, (0, 0, 1, 2)) for at in range(4)]
    assert merged_pieces(apart) == [Piece(0, 0, 0, (4, 8, 1, 2))]
    # The change of the image would be in the way of another bit.
    assert len(merged_pieces([Piece(1, at, at, (0, 1, 2, 4)) for at in range(2)])) == 2


@given(MAPS, BITS)
def test_pieces_are_put_together(whole: LaneMap, fixed: int) -> None:
    ats = {t & fixed for t in THREADS}
    pieces = [p for at in sorted(ats) if (p := whole.restrict(fixed, at)) is not None]
    assert assemble(pieces) == whole
    if len(pieces) > 1:
        assert assemble(pieces[1:]) is None
        wrong = pieces[0]._replace(constant=pieces[0].constant ^ 1024)
        assert assemble([wrong, *pieces]) is None


@given(MAPS, MAPS, BITS.filter(bool))
def test_pieces_that_are_not_linear_together(a: LaneMap, b: LaneMap, fixed: int) -> None:
    pieces = [
        p
        for at in sorted({t & fixed for t in THREADS})
        if (p := (b if at.bit_count() > 1 else a).restrict(fixed, at)) is not None
    ]
    found = assemble(pieces)
    if found is not None:
        for piece in pieces:
            assert found.agrees(piece)


@given(MAPS, partial())
def test_a_total_piece_decides(whole: LaneMap, other: LaneMap) -> None:
    assert assemble([whole, other]) == (whole if whole.agrees(other) else None)


@given(
    BITS,
    st.lists(st.tuples(BITS, st.integers(0, 31)), max_size=4),
    st.integers(0, 31),
)
def test_aligned_pieces_say_the_same(start: int, moves: list[tuple[int, int]], image: int) -> None:
    independent = Echelon()
    kept = []
    for vector, effect in moves:
        rest, _ = independent.reduce(vector, 0)
        if rest:
            independent.add(rest, 0)
            kept.append((vector, effect))
    expected = {start: image}
    for vector, effect in kept:
        expected |= {t ^ vector: n ^ effect for t, n in expected.items()}
    pieces = aligned_pieces(start, kept, image, WIDTH)
    assert pieces is not None
    found: dict[int, int] = {}
    for piece in pieces:
        numbers = table(LaneMap(piece.start, piece.images, piece.fixed, piece.at))
        assert not found.keys() & numbers.keys()
        found |= numbers
        # The images, too, are all numbers with some bits fixed.
        moving = 0
        for entry in piece.images:
            moving |= entry
        assert len(set(numbers.values())) == 1 << moving.bit_count()
    assert found == expected


def test_polynomials_are_split() -> None:
    atoms = AtomTable()
    bits = [atoms.atom("bit", ("x", i), 0, 1) for i in range(WIDTH)]
    row = atoms.plain(atoms.atom("ctaid", ("x",), 0, 100)) * 64
    lane = atoms.sum((4 << i, bit) for i, bit in enumerate(bits))
    found = split(row + lane + 3, WIDTH)
    assert found == (row, LaneMap(3, (4, 8, 16, 32)))
    # A shift of the whole tile stays with the row, whichever register it is.
    assert split(row + lane + 8 + 3, WIDTH) == (row + 8, LaneMap(3, (4, 8, 16, 32)))
    assert LaneMap.of(-lane + 60, WIDTH) == LaneMap(60, (4, 8, 16, 32))
    assert LaneMap.of(row, WIDTH) == LaneMap.uniform(0, WIDTH)
    for poly in (lane * 3, lane * row, row + atoms.plain(bits[0]) * row):
        assert LaneMap.of(poly, WIDTH) is None
    nested = atoms.plain(atoms.atom("fdiv", (lane, 3)))
    assert LaneMap.of(row + nested, WIDTH) is None
    assert LaneMap.of(row + atoms.plain(atoms.atom("load", (7,))), WIDTH) is None


def width_of(directive: str) -> int | None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    text = f"{head}.visible .entry k() {directive}\n{{ ret; }}"
    module = parse(text, "k.ptx")
    return lane_width(Facts(module, module.functions[0]))


def test_only_plain_blocks_have_a_width() -> None:
    assert width_of(".reqntid 128") == 7
    assert width_of(".reqntid 32, 1, 1") == 5
    assert width_of(".reqntid 96") is None
    assert width_of(".reqntid 16, 16") is None
    assert width_of(".maxntid 128") is None
