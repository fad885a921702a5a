"""Inequalities that contradict each other, against all small integers."""

from __future__ import annotations

from itertools import product
from random import Random

from ptxlint.dataflow.inequalities import contradict
from ptxlint.dataflow.polynomial import Atom, AtomTable, Polynomial


def size(table: AtomTable, name: str) -> Polynomial:
    return table.plain(table.atom("param", (name, 0)))


def test_a_round_below_the_number_of_the_block_lies_below_its_first_row() -> None:
    table = AtomTable()
    rows, block = size(table, "rows"), table.plain(table.atom("ctaid", ("x",), 0))
    round_ = table.plain(table.atom("index", (3,), 0))
    # The round is below twice the block's number, its last row beyond the size, the block not.
    limit, beyond = block * 2 - round_ - 1, round_ * 32 + 31 - rows
    assert contradict([limit, beyond, rows - block * 64 - 1])
    assert contradict([limit, beyond, rows - block * 64])
    assert not contradict([limit, beyond, rows - block * 64 + 1])
    assert not contradict([limit, beyond])
    assert not contradict([beyond, rows - block * 64 - 1])


def test_common_divisors_count() -> None:
    table = AtomTable()
    a, b = size(table, "a"), size(table, "b")
    assert contradict([a * 16 - b * 16 - 1, b * 16 - a * 16 + 15])
    assert not contradict([a * 16 - b * 16 - 1, b * 16 - a * 16 + 16])


def test_a_minimum_is_below_its_parts_and_a_quotient_near_its_own() -> None:
    table = AtomTable()
    a, b = size(table, "a"), size(table, "b")
    least = table.plain(table.atom("min", (a, b)))
    assert contradict([least - 5, -a + 4])
    assert not contradict([a - 5, -least + 4])
    quotient = table.plain(table.atom("fdiv", (a, 4)))
    assert contradict([quotient - 2, -a + 7])
    assert not contradict([quotient - 2, -a + 8])
    assert contradict([-quotient + 1, a - 8])


def test_nothing_that_integers_fulfil_is_a_contradiction() -> None:
    random = Random(5)
    found = 0
    for _ in range(400):
        table = AtomTable()
        atoms = [table.atom("param", (name, 0), -4, 4) for name in "abc"]
        plain = [table.plain(atom) for atom in atoms]
        first, second = random.sample(plain, 2)
        made = [
            table.atom("min", (first, second), -4, 4),
            table.atom("fdiv", (first + second * 2, 3), -4, 4),
        ]
        terms = plain + [table.plain(atom) for atom in made]
        given = []
        for _ in range(random.randint(2, 5)):
            poly = table.constant(random.randint(-4, 2))
            for term in random.sample(terms, random.randint(1, 3)):
                poly = poly + term * random.choice((-3, -2, -1, 1, 2, 3))
            given.append(poly)
        possible = any(
            all(value(poly, dict(zip(atoms, numbers, strict=True))) >= 0 for poly in given)
            for numbers in product(range(-4, 5), repeat=3)
        )
        if contradict(given):
            found += 1
            assert not possible
    assert found > 20


def value(poly: Polynomial, known: dict[Atom, int]) -> int:
    total = 0
    for monomial, coefficient in poly.terms.items():
        for number in monomial:
            coefficient *= of_atom(poly.table.atoms[number], known)
        total += coefficient
    return total


def of_atom(atom: Atom, known: dict[Atom, int]) -> int:
    if atom.kind == "min":
        return min(value(part, known) for part in atom.data)
    if atom.kind == "fdiv":
        return value(atom.data[0], known) // int(atom.data[1])
    return known[atom]
