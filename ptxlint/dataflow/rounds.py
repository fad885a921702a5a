"""What holds in each round of a loop because it came to that round.

Pipelined loops fetch in one round what a later one reads. Where that round does not come the copy
is masked off; where it is read the round has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from ptxlint.cfg.loops import Loop, LoopForest
from ptxlint.dataflow.guards import Conjunct, Guards, implies, shifted, undivided
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.dataflow.ssa_values import Ssa


class Rounds:
    """Answers about the loops of one function."""

    def __init__(
        self,
        ssa: Ssa,
        loops: LoopForest,
        guards: Guards,
        enters: Callable[[Loop, Polynomial], bool] | None = None,
    ) -> None:
        self._ssa = ssa
        self._loops = loops
        self._guards = guards
        self._enters = enters or guards.at_entry
        """Whether a number is not negative wherever a loop is entered."""
        self._coming: dict[int, list[Conjunct]] = {}
        self._below: dict[int, list[Conjunct]] = {}
        self._lasting: dict[int, list[Conjunct]] = {}

    def holds(self, conjunct: Conjunct, header: int, number: int | None, later: bool) -> bool:
        """True if a conjunct holds in each round of a loop, or in round `number` of it.

        `later` says that it is not the first round. A round but the first has followed on one that
        found the loop to go on.
        """
        loop = self._loops.with_header(header)
        conjunct = conjunct if loop is None else self._signed(loop, conjunct)
        if loop is None or (
            (number == 0 or not (later or number)) and not self._at_first(loop, conjunct, header)
        ):
            return False
        if number == 0:
            return True
        for own in self._continues(loop):
            before = shifted(own, header, -1, number)
            if _key(before) == _key(conjunct) or implies(frozenset({before}), conjunct):
                return True
        known = [shifted(c, header, 0, number) for c in self._counted(loop)]
        return any(implies(frozenset({c}), conjunct) for c in known)

    def lasting(self, loop: Loop) -> list[Conjunct]:
        """What holds in every round of a loop because the loop goes on so far only."""
        found = self._lasting.get(loop.header)
        if found is None:
            found = self._lasting[loop.header] = []
            for own in self._continues(loop):
                limit = self._limit(loop, own)
                if limit is not None:
                    if self._enters(loop, limit[0]):
                        found.append(Conjunct(limit[0] - limit[1]))
                    continue
                before = shifted(own, loop.header, -1, None)
                first = shifted(own, loop.header, -1, 0).polynomial
                if before.polynomial is None or first is None:
                    continue
                if self._is_still(loop, first) and self._enters(loop, first):
                    found.append(before)
        return found

    def _is_still(self, loop: Loop, poly: Polynomial) -> bool:
        """True if no part of a polynomial is computed in a loop."""
        contains = self._loops.contains
        return not any(a.block >= 0 and contains(loop, a.block) for a in poly.all_atoms())

    def _counted(self, loop: Loop) -> list[Conjunct]:
        """What holds in all rounds but the first of a loop that goes on until its number is met.

        From a limit that is no negative number, and once it is not 0 the limit itself where it is
        the greater one of it and 0.
        """
        found = self._below.get(loop.header)
        if found is None:
            found = self._below[loop.header] = []
            for own in self._continues(loop):
                limit = self._limit(loop, own)
                if limit is None:
                    continue
                bound, index = limit
                if not self._at_first(loop, Conjunct(bound), loop.header):
                    continue
                found.append(Conjunct(bound - index))
                found += self._by_parts(loop, undivided(bound - index))
                (only, *others) = bound.atoms() or (None,)
                constant = bound.constant
                if only is None or others or bound - constant != bound.table.plain(only):
                    continue
                if only.kind == "max":
                    parts = [p for p in only.data if isinstance(p, Polynomial)]
                    rest = [p for p in parts if p.range()[1] + constant > 0]
                    if len(rest) == 1:
                        found.append(Conjunct(rest[0] + constant - index))
        return found

    def _by_parts(self, loop: Loop, poly: Polynomial) -> list[Conjunct]:
        """What a bound says of the numbers of which the smaller one is in it."""
        found: list[Conjunct] = []
        for atom in sorted(poly.atoms(), key=lambda a: a.number):
            parts = self._guards.smaller_of(atom) if poly.coefficient(atom) > 0 else None
            if parts is None or sum(atom.number in monomial for monomial in poly.terms) > 1:
                continue
            # A negative number may be the greater one of two unsigned words.
            found += [
                Conjunct(poly.substitute({atom: part}))
                for part in parts
                if atom.kind == "min" or self._guards.at_entry(loop, part)
            ]
        return found

    def _limit(self, loop: Loop, conjunct: Conjunct) -> tuple[Polynomial, Polynomial] | None:
        """The number of the round after which a loop ends, and the round's number as a polynomial.

        None unless the loop goes on while the two differ.
        """
        if conjunct.polynomial is not None or conjunct.key[0] != "unequal":
            return None
        gap: Polynomial = conjunct.key[1] - conjunct.key[2]
        index = next(
            (a for a in gap.atoms() if a.kind == "index" and a.data[0] == loop.header), None
        )
        scale = 0 if index is None else gap.coefficient(index)
        if index is None or not scale:
            return None
        table = gap.table
        rest = gap - table.plain(index) * scale
        if any(c % scale for c in rest.terms.values()):
            return None
        if not self._is_still(loop, rest):
            return None
        limit = Polynomial(table, {m: -c // scale for m, c in rest.terms.items()})
        return limit, table.plain(index)

    def _at_first(self, loop: Loop, conjunct: Conjunct, header: int) -> bool:
        """True if a conjunct holds in the first round."""
        first = shifted(conjunct, header, 0, 0)
        poly = first.polynomial
        if poly is not None and (poly.range()[0] >= 0 or self._guards.at_entry(loop, poly)):
            return True
        for block in self._ssa.cfg.blocks[header].preds:
            if self._loops.contains(loop, block):
                continue
            known = self._guards.of_block(block)
            if known is None:
                return False
            if implies(known, first) or self._entered(block, header, first):
                continue
            if poly is None or bounds(poly, _limits(known))[0] < 0:
                return False
        return True

    def _entered(self, block: int, header: int, conjunct: Conjunct) -> bool:
        """True if the way from a block into a loop is taken only where a conjunct holds."""
        cfg = self._ssa.cfg
        condition = cfg.edge_condition(block, header)
        branch = cfg.terminator(block)
        predicate = None if branch is None else self._ssa.guard_value(branch)
        if condition is None or predicate is None:
            return False
        needed = self._guards.of_predicate(predicate, condition[1])
        return needed is None or implies(needed, conjunct)

    def stops_by_block(self, conjunct: Conjunct) -> bool:
        """True if a bound on an iteration of a loop is about sizes that do not end the loop, while
        the CTA's number does: how far such a loop goes is then the grid's business."""
        poly = conjunct.polynomial
        if poly is None:
            return False
        atoms = poly.all_atoms()
        sizes = {a.number for a in atoms if a.kind == "param"}
        for atom in atoms:
            loop = self._loops.with_header(atom.data[0]) if atom.kind == "index" else None
            if loop is None:
                continue
            limits = {a for c in self._continues(loop) for p in _parts(c) for a in p.all_atoms()}
            by_block = any(a.kind == "ctaid" for a in limits)
            if by_block and sizes.isdisjoint(a.number for a in limits):
                return True
        return False

    def _continues(self, loop: Loop) -> list[Conjunct]:
        """What holds at the end of a round if another one follows."""
        found = self._coming.get(loop.header)
        if found is None:
            found = self._coming[loop.header] = []
            if len(loop.latches) == 1:
                cfg = self._ssa.cfg
                condition = cfg.edge_condition(loop.latches[0], loop.header)
                branch = cfg.terminator(loop.latches[0])
                predicate = None if branch is None else self._ssa.guard_value(branch)
                if condition is not None and predicate is not None:
                    needed = self._guards.of_predicate(predicate, condition[1])
                    found += [self._signed(loop, c) for c in sorted(needed or (), key=repr)]
        return found

    def _signed(self, loop: Loop, conjunct: Conjunct) -> Conjunct:
        """An unsigned comparison as a signed one, where its greater side is no negative number.

        That it is none must be known on every way into the loop.
        """
        if conjunct.polynomial is not None or conjunct.key[0] != "unsigned":
            return conjunct
        _, relation, low, high = conjunct.key
        if relation not in ("lt", "le") or low.range()[0] < 0:
            return conjunct
        wanted = Conjunct(high)
        for block in self._ssa.cfg.blocks[loop.header].preds:
            if self._loops.contains(loop, block):
                continue
            known = self._guards.of_block(block)
            if known is not None and not implies(known, wanted):
                return conjunct
        return Conjunct(high - low - 1 if relation == "lt" else high - low)


def _parts(conjunct: Conjunct) -> list[Polynomial]:
    """The polynomials that a conjunct is about."""
    if conjunct.polynomial is not None:
        return [conjunct.polynomial]
    return [part for part in conjunct.key if isinstance(part, Polynomial)]


_Bounds = dict[int, tuple[float, float]]


def _limits(known: Iterable[Conjunct]) -> _Bounds:
    """What conjuncts about a single atom say of it, by the atom's number."""
    out: _Bounds = {}
    for conjunct in known:
        poly = conjunct.polynomial
        terms = {} if poly is None else {m: c for m, c in poly.terms.items() if m}
        if poly is None or len(terms) != 1:
            continue
        ((monomial, scale),) = terms.items()
        if len(monomial) != 1:
            continue
        low, high = out.get(monomial[0], (-inf, inf))
        if scale > 0:
            low = max(low, -(poly.constant // scale))
        else:
            high = min(high, poly.constant // -scale)
        out[monomial[0]] = low, high
    return out


def bounds(poly: Polynomial, known: _Bounds) -> tuple[float, float]:
    """Inclusive bounds of a polynomial where atoms have these bounds, through quotients too."""
    low = high = float(poly.constant)
    atoms = poly.table.atoms
    for monomial, scale in poly.terms.items():
        if not monomial:
            continue
        a, b = 1.0, 1.0
        for number in monomial:
            c, d = _atom_bounds(atoms[number], known)
            ends = [_times(x, y) for x in (a, b) for y in (c, d)]
            a, b = min(ends), max(ends)
        ends = [_times(a, scale), _times(b, scale)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _atom_bounds(atom: Atom, known: _Bounds) -> tuple[float, float]:
    low, high = known.get(atom.number, (-inf, inf))
    low, high = max(low, atom.low), min(high, atom.high)
    if atom.kind == "fdiv":
        value, by = atom.data[:2]
        a, b = bounds(value, known)
        low, high = max(low, a // by), min(high, b // by)
    elif atom.kind in ("min", "max"):
        ends = [bounds(part, known) for part in atom.data if isinstance(part, Polynomial)]
        choose = min if atom.kind == "min" else max
        low = max(low, choose(e[0] for e in ends))
        high = min(high, choose(e[1] for e in ends))
    return low, high


def _times(a: float, b: float) -> float:
    return 0.0 if not a or not b else a * b


def _key(conjunct: Conjunct) -> tuple[object, ...]:
    if conjunct.polynomial is not None:
        return ("polynomial", conjunct.polynomial)
    kind, *data = conjunct.key
    if kind == "unequal":
        gap = data[0] - data[1]
        divisor = max(1, gap.gcd())
        if gap.constant % divisor == 0:
            gap = Polynomial(gap.table, {m: c // divisor for m, c in gap.terms.items()})
        return ("unequal", min((gap, -gap), key=repr))
    return tuple(conjunct.key)


__all__ = ["Rounds", "shifted"]
