"""Memory that many threads use: what is said to be known is so in every order of the accesses."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from ptxlint.launch.memory import Piece, SharedPiece, Update, stamp

CELLS = 3
UPDATES = {"add": lambda a, b: (a + b) % 2**32, "max": max}


class Use(NamedTuple):
    """One access of one lane, at a step of the run."""

    step: int
    cta: int
    age: int
    warp: int
    kind: str
    cell: int
    value: int


def orders(uses: list[Use], random: Random) -> list[list[int]]:
    """Some orders in which a GPU may carry out accesses."""

    def is_before(a: Use, b: Use) -> bool:
        same = a.cta == b.cta and (a.warp == b.warp or a.age < b.age)
        return a.step < b.step and same

    found = []
    for _ in range(25):
        left, order = set(range(len(uses))), []
        while left:
            free = [i for i in left if not any(is_before(uses[j], uses[i]) for j in left)]
            order.append(random.choice(free))
            left.remove(order[-1])
        found.append(order)
    return found


def outcome(uses: list[Use], order: list[int]) -> tuple[dict[int, int], list[int]]:
    """What each load reads, and what is left, in one order; cells hold 100, 101, … at first."""
    cells = [100 + at for at in range(CELLS)]
    read = {}
    for number in order:
        use = uses[number]
        if use.kind == "load":
            read[number] = cells[use.cell]
        elif use.kind == "store":
            cells[use.cell] = use.value
        else:
            cells[use.cell] = UPDATES[use.kind](cells[use.cell], use.value)
    return read, cells


def followed(uses: list[Use]) -> tuple[SharedPiece, dict[int, int]]:
    """The same, step by step, as a run does it: what it claims to know of loads and of the end."""
    start = b"".join((100 + at).to_bytes(4, "little") for at in range(CELLS))
    size = len(start)
    piece = SharedPiece(np.frombuffer(start, np.uint8).copy(), np.ones(size, dtype=bool))
    claims = {}
    for step in sorted({use.step for use in uses}):
        numbers = [i for i, use in enumerate(uses) if use.step == step]
        lanes = [uses[i] for i in numbers]
        at = np.array([4 * use.cell for use in lanes])
        who = stamp(*(np.array([use[i] for use in lanes]) for i in (1, 2, 3)))
        values = np.array([use.value for use in lanes], dtype=np.uint64)
        known = np.ones(len(lanes), dtype=bool)
        kind = lanes[0].kind
        if kind == "load":
            bits, is_known = piece.load(at, 4, who)
            claims |= {i: int(b) for i, b, k in zip(numbers, bits, is_known, strict=True) if k}
        elif kind == "store":
            piece.store(at, 4, values, known, who)
        else:
            piece.update(Update(kind, False), at, 4, values, known, who)
    return piece, claims


def accesses(random: Random, steps: int, values: int) -> list[Use]:
    """Random accesses of two warps of two CTAs, whose threads meet at barriers."""
    ages = [0, 0]
    out = []
    for step in range(steps):
        for cta in (0, 1):
            ages[cta] += random.random() < 0.4
        kind = random.choice(["load", "store", "store", "add", "max"])
        lanes = random.sample([(c, w) for c in (0, 1) for w in (0, 1)] * 2, random.randint(1, 4))
        out += [
            Use(step, c, ages[c], w, kind, random.randrange(CELLS), 9 * random.randrange(values))
            for c, w in lanes
        ]
    return out


@pytest.mark.parametrize("values", [1, 2, 50])
def test_what_is_known_is_so_in_every_order(values: int) -> None:
    random = Random(values)
    claimed = left = 0
    for _ in range(400):
        uses = accesses(random, random.randint(2, 7), values)
        piece, claims = followed(uses)
        if piece.is_void:
            continue
        words = piece.data.view(np.uint32)
        known = piece.known.reshape(-1, 4).all(axis=1)
        for order in orders(uses, random):
            read, cells = outcome(uses, order)
            assert all(read[number] == value for number, value in claims.items()), uses
            assert all(cells[at] == words[at] for at in range(CELLS) if known[at]), uses
        claimed += len(claims)
        left += int(known.sum())
    assert claimed > 50
    assert left > 200


@pytest.mark.parametrize(
    ("uses", "claims"),
    [
        # A warp reads what it wrote.
        ([(0, 0, 0, 0, "store", 0, 7), (1, 0, 0, 0, "load", 0, 0)], {1: 7}),
        # Another warp does so behind a barrier, and not before.
        ([(0, 0, 0, 0, "store", 0, 7), (1, 0, 1, 1, "load", 0, 0)], {1: 7}),
        ([(0, 0, 0, 0, "store", 0, 7), (1, 0, 0, 1, "load", 0, 0)], {}),
        # Nothing is in order between CTAs.
        ([(0, 0, 0, 0, "store", 0, 7), (1, 1, 5, 0, "load", 0, 0)], {}),
        # All warps read, meet, and write again.
        (
            [
                (0, 0, 0, 0, "load", 0, 0), (0, 0, 0, 1, "load", 0, 0),
                (1, 0, 1, 1, "store", 0, 7), (2, 0, 2, 0, "load", 0, 0),
            ],
            {0: 100, 1: 100, 3: 7},
        ),
        # Counting in any order.
        (
            [
                (0, 0, 0, 0, "store", 0, 0), (1, 0, 1, 0, "add", 0, 1),
                (1, 0, 1, 1, "add", 0, 1), (2, 0, 2, 0, "load", 0, 0),
            ],
            {3: 2},
        ),
    ],
)  # fmt: skip
def test_what_is_in_order(uses: list[tuple[object, ...]], claims: dict[int, int]) -> None:
    piece, found = followed([Use(*use) for use in uses])  # type: ignore[arg-type]
    assert not piece.is_void
    assert found == claims


def test_what_was_read_out_of_order_is_worth_nothing() -> None:
    piece, _ = followed([Use(0, 0, 0, 0, "load", 0, 0), Use(1, 0, 0, 1, "store", 0, 7)])
    assert piece.is_void


@pytest.mark.parametrize("lanes", permutations([(0, 0), (0, 1), (1, 0)]))
def test_several_read_at_once(lanes: tuple[tuple[int, int], ...]) -> None:
    """Behind a barrier one CTA may write what its warps read, but not what another CTA did."""
    loads = [Use(0, cta, 0, warp, "load", 0, 0) for cta, warp in lanes]
    piece, _ = followed([*loads, Use(1, 0, 1, 0, "store", 0, 7)])
    assert piece.is_void
    piece, _ = followed([*(u for u in loads if not u.cta), Use(1, 0, 1, 0, "store", 0, 7)])
    assert not piece.is_void


def test_the_last_of_several_writers_is_not_known() -> None:
    piece, _ = followed([Use(0, 0, 0, 0, "store", 0, 7), Use(1, 1, 0, 0, "store", 0, 8)])
    assert not piece.known[0]
    piece, _ = followed([Use(0, 0, 0, 0, "store", 0, 7), Use(0, 1, 0, 0, "store", 0, 7)])
    assert piece.known.all()


def test_places_outside_are_not_known() -> None:
    piece = Piece(np.arange(8, dtype=np.uint8), np.arange(8) != 5)
    bits, known = piece.read(np.array([0, 4, 6, -1, 8]), 4)
    assert known.tolist() == [True, False, False, False, False]
    assert int(bits[0]) == 0x03020100


def test_a_store_outside_makes_all_void() -> None:
    piece = SharedPiece(np.zeros(8, np.uint8), np.ones(8, dtype=bool))
    one = np.zeros(1, dtype=np.int64)
    piece.store(one + 8, 4, one.astype(np.uint64), one == 0, stamp(one, one, one))
    assert piece.is_void
