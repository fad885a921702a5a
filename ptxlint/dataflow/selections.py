"""Values chosen by comparing them: `selp(a, b, a > b)` is a maximum.

A maximum with its index is written so: the predicate compares two values (and two indices where
they tie), and selects both the value and the index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Negated, Operand, Register

_DEPTH: Final = 12
"""How deep a predicate's logic is followed."""
_ROUNDS: Final = 8
"""So often choices are looked through for those that depend on others that are none."""
_MOST_VALUES: Final = 256
"""A value made of more others is taken to depend on data."""
_ABOVE: Final = {
    "gt": True, "ge": True, "lt": False, "le": False, "eq": False, "ne": True,
    "gtu": True, "geu": True, "ltu": False, "leu": False, "equ": False, "neu": True,
    "hi": True, "hs": True, "lo": False, "ls": False, "num": True, "nan": False,
}  # fmt: skip
"""What relations between a and b give where a is the larger number."""
_MIRRORED: Final = {
    "gt": "lt", "ge": "le", "lt": "gt", "le": "ge", "gtu": "ltu", "geu": "leu", "ltu": "gtu",
    "leu": "geu", "hi": "lo", "hs": "ls", "lo": "hi", "ls": "hs",
}  # fmt: skip
_WIDENING: Final = frozenset({("f32", "bf16"), ("f32", "f16"), ("f64", "f32"), ("f64", "f16")})
_UNSIGNED: Final = frozenset({"hi", "hs", "lo", "ls"})
_FROM_DATA: Final = frozenset(
    {"ld", "ldu", "ldmatrix", "atom", "call", "shfl", "redux", "vote", "match", "activemask",
     "mma", "wgmma", "wmma", "tcgen05", "tex", "suld"}
)  # fmt: skip


class Choice(NamedTuple):
    """`selp` as the larger (`max`) or smaller (`min`) of two values, compared as `type`.

    `tests` are the instructions that make the predicate.
    """

    operator: str
    type: str
    first: int
    second: int
    predicate: int
    tests: frozenset[int]


class IndexChoice(NamedTuple):
    """The index of the larger of two values: `above` where the first is larger, else `below`.

    `inside` are all instructions of it, `root` the one that gives the index.
    """

    type: str
    root: Instr
    above: int
    below: int
    inside: frozenset[int]


class Selections:
    """Maxima and minima that are written with `setp` and `selp`."""

    def __init__(
        self,
        ssa: Ssa,
        origin: Callable[[int], int],
        stored: Callable[[int], list[int]],
    ) -> None:
        self._ssa = ssa
        self._origin = origin
        self._stored = stored
        """What was stored right before a barrier to where a value is loaded from."""
        self._instrs = ssa.cfg.function.instrs
        self._choices: dict[int, Choice] | None = None
        self.predicates: set[int] = set()
        """The roots of the predicates by which values are chosen."""
        self._of_index: dict[int, bool] = {}

    def choice(self, instr: Instr) -> Choice | None:
        """What a `selp` chooses, None if its predicate does not put its arms in order."""
        if self._choices is None:
            self._choices = self._find_all()
        return self._choices.get(instr.index)

    def _find_all(self) -> dict[int, Choice]:
        """All choices whose predicates decide nothing else but indices that go along."""
        cfg = self._ssa.cfg
        found: dict[int, Choice] = {}
        for instr in self._instrs:
            if instr.opcode == "selp" and cfg.is_reachable(instr):
                choice = self._find(instr)
                if choice is not None:
                    found[instr.index] = choice
        for _ in range(_ROUNDS):
            self.predicates = {self._ssa.root(c.predicate)[0] for c in found.values()}
            kept = {
                at: c for at, c in found.items() if self._decides_nothing_else(c, self._instrs[at])
            }
            if len(kept) == len(found):
                return found
            found = kept
        self.predicates = set()
        return {}

    def _find(self, instr: Instr) -> Choice | None:
        if instr.opcode != "selp" or instr.guard is not None:
            return None
        first, second = (self._read(instr, o) for o in instr.operands[1:3])
        predicate = self._read(instr, instr.operands[3])
        if first is None or second is None or predicate is None:
            return None
        arms = self._origin(first), self._origin(second)
        if arms[0] == arms[1]:
            return None
        order = _Order(arms[0], arms[1])
        above = self._truth(predicate, order, True, _DEPTH)
        below = self._truth(predicate, order, False, _DEPTH)
        if above is None or below is None or above == below or len(order.kinds) != 1:
            return None
        kind = order.kinds.pop()
        return Choice(
            "max" if above else "min", kind, first, second, predicate, frozenset(order.tests)
        )

    def index_of(self, value: int, other: int) -> IndexChoice | None:
        """The index that two values decide between, where only the index is wanted.

        The logic may lie in several `selp`, as `a > b ? i : a == b ? min(i, j) : j`.
        """
        order = _Order(value, other)
        chain = self._chain(order)
        if not chain:
            return None
        inner = {r for at in chain for r in self._ssa.def_values[at]}
        roots = [at for at in chain if not self._is_read_by(at, chain)]
        if len(roots) != 1:
            return None
        root = self._instrs[roots[0]]
        result = self._ssa.def_values[root.index][0]
        picked = [self._pick(result, order, above, chain, _DEPTH) for above in (True, False)]
        above, below = picked
        if above is None or below is None or above == below or len(order.kinds) != 1:
            return None
        if not self._is_closed(order.tests | chain, inner - {result}):
            return None
        inside = frozenset(order.tests | chain)
        return IndexChoice(order.kinds.pop(), root, above, below, inside)

    def _chain(self, order: _Order) -> set[int]:
        """The `selp` that comparisons of the two values decide."""
        found: set[int] = set()
        work = [i for i in self._ssa.instr_users(order.second) if i.opcode == "setp"]
        seen = {i.index for i in work}
        while work:
            instr = work.pop()
            if instr.opcode == "selp":
                found.add(instr.index)
            for value in self._ssa.def_values[instr.index]:
                for user in self._ssa.instr_users(value):
                    if user.opcode not in ("selp", "and", "or", "xor", "not", "setp"):
                        continue
                    logical = user.opcode == "selp" or user.shape.type == "pred"
                    if (logical or user.opcode == "setp") and user.index not in seen:
                        seen.add(user.index)
                        work.append(user)
            if len(seen) > _MOST_VALUES:
                return set()
        return found | self._inner(found)

    def _inner(self, chain: set[int]) -> set[int]:
        """The `selp` that are an arm of another one."""
        found: set[int] = set()
        for at in chain:
            instr = self._instrs[at]
            for operand in instr.operands[1:3]:
                value = self._read(instr, operand)
                if value is not None and self._ssa.kind[value] == RESULT:
                    made = self._instrs[self._ssa.instr[value]]
                    if made.opcode == "selp" and len(self._ssa.instr_users(value)) == 1:
                        found.add(made.index)
        return found

    def _is_read_by(self, at: int, chain: set[int]) -> bool:
        users = self._ssa.instr_users(self._ssa.def_values[at][0])
        return any(user.index in chain for user in users)

    def _is_closed(self, inside: set[int], values: set[int]) -> bool:
        """True if nothing else reads what these instructions make."""
        made = {v for at in inside if self._instrs[at].opcode != "selp"
                for v in self._ssa.def_values[at]}  # fmt: skip
        return all(
            not self._ssa.value_users(v)
            and all(user.index in inside for user in self._ssa.instr_users(v))
            for v in made | values
        )

    def _pick(
        self, value: int, order: _Order, above: bool, chain: set[int], depth: int
    ) -> int | None:
        """The one value that nested `selp` give, None if it may be several."""
        value = self._ssa.resolve(value)
        if self._ssa.kind[value] != RESULT or self._ssa.instr[value] not in chain or not depth:
            return self._origin(value)
        instr = self._instrs[self._ssa.instr[value]]
        predicate = self._read(instr, instr.operands[3])
        truth = None
        if predicate is not None:
            truth = self._truth(predicate, order, above, _DEPTH)
        arms = instr.operands[1:3] if truth is None else (instr.operands[1 if truth else 2],)
        found = set()
        for arm in arms:
            inner = self._read(instr, arm)
            found.add(None if inner is None else self._pick(inner, order, above, chain, depth - 1))
        return found.pop() if len(found) == 1 else None

    def _decides_nothing_else(self, choice: Choice, chosen: Instr) -> bool:
        """True if what makes a predicate chooses the value, and an index that goes with it."""
        root = self._ssa.root(choice.predicate)[0]
        for test in choice.tests:
            for value in self._ssa.def_values[test]:
                if self._ssa.value_users(value):
                    return False
                for reader in self._ssa.instr_users(value):
                    if reader.index in choice.tests or reader is chosen:
                        continue
                    predicate = None
                    if reader.opcode == "selp":
                        predicate = self._read(reader, reader.operands[3])
                    if predicate is None or self._ssa.root(predicate)[0] != root:
                        return False
                    arms = [self._read(reader, o) for o in reader.operands[1:3]]
                    if not all(a is None or self.is_chosen_index(a) for a in arms):
                        return False
        return True

    def _read(self, instr: Instr, operand: Operand) -> int | None:
        if not isinstance(operand, Register):
            return None
        uses = self._ssa.use_values[instr.index]
        return self._ssa.resolve(uses[instr.uses.index(operand)])

    def _truth(self, predicate: int, order: _Order, above: bool, depth: int) -> bool | None:
        """What a predicate is where the first arm is the larger (or smaller) number."""
        ssa = self._ssa
        predicate = ssa.resolve(predicate)
        if depth <= 0 or ssa.kind[predicate] != RESULT:
            return None
        instr = self._instrs[ssa.instr[predicate]]
        if instr.guard is not None:
            return None
        if instr.opcode == "setp":
            if ssa.result[predicate]:
                return None
            order.tests.add(instr.index)
            return self._compared(instr, order, above, depth)
        if instr.opcode not in ("and", "or", "xor", "not", "mov"):
            return None
        order.tests.add(instr.index)
        parts = [self._operand(instr, o, order, above, depth) for o in instr.operands[1:]]
        return _logic(instr.opcode, parts)

    def _operand(
        self, instr: Instr, operand: Operand, order: _Order, above: bool, depth: int
    ) -> bool | None:
        if isinstance(operand, Negated) and operand.sign == "!":
            found = self._operand(instr, operand.operand, order, above, depth)
            return None if found is None else not found
        value = self._read(instr, operand)
        return None if value is None else self._truth(value, order, above, depth - 1)

    def _compared(self, instr: Instr, order: _Order, above: bool, depth: int) -> bool | None:
        shape = instr.shape
        relation = shape.modifiers[0]
        truth: bool | None = None
        read = [self._read(instr, o) for o in instr.operands[1:3]]
        compared = tuple(None if v is None else self._origin(v) for v in read)
        pair = (order.first, order.second)
        kind = shape.type
        if compared not in (pair, pair[::-1]):
            compared, kind = self._before_widening(compared)
        if compared in (pair, pair[::-1]):
            own = relation if compared == pair else _MIRRORED.get(relation, relation)
            known = _ABOVE.get(own if above else _MIRRORED.get(own, own))
            if known is not None:
                truth = known
                if own in _MIRRORED:
                    order.kinds.add(_kind(kind, own))
        if len(instr.operands) == 4:
            given = self._operand(instr, instr.operands[3], order, above, depth)
            operator = next((m for m in ("and", "or", "xor") if shape.has(m)), "")
            return _logic(operator, [truth, given])
        return truth

    def _before_widening(
        self, compared: tuple[int | None, ...]
    ) -> tuple[tuple[int | None, ...], str]:
        """The narrow floats that two values are the same numbers as, and their type.

        Every number of the narrow type is one of the wide type: what is in order stays so.
        """
        found: list[int | None] = []
        kinds: set[str] = set()
        for value in compared:
            instr = None
            if value is not None and self._ssa.kind[value] == RESULT:
                instr = self._instrs[self._ssa.instr[value]]
            if instr is None or instr.opcode != "cvt" or instr.shape.types not in _WIDENING:
                return (), ""
            source = self._read(instr, instr.operands[1])
            found.append(None if source is None else self._origin(source))
            kinds.add(instr.shape.types[1])
        return (tuple(found), kinds.pop()) if len(kinds) == 1 else ((), "")

    def is_of_index(self, value: int) -> bool:
        """True if a value or predicate is made of indices and parameters alone."""
        value = self._ssa.resolve(value)
        found = self._of_index.get(value)
        if found is None:
            found = self._of_index[value] = self._is_of_index(value, False)
        return found

    def is_chosen_index(self, value: int) -> bool:
        """True if a value is of indices that travel with the values that are chosen."""
        return self._is_of_index(self._ssa.resolve(value), True)

    def _is_of_index(self, value: int, travels: bool) -> bool:
        ssa = self._ssa
        work, seen = [value], {value}
        while work:
            current = work.pop()
            if len(seen) > _MOST_VALUES:
                return False
            kind = ssa.kind[current]
            operands = ssa.operands[current]
            if kind == RESULT:
                instr = self._instrs[ssa.instr[current]]
                if instr.opcode == "ld" and instr.shape.space == "shared" and travels:
                    operands = tuple(self._stored(current))
                    if not operands:
                        return False
                elif not self._is_plain(instr, travels):
                    return False
            elif kind not in (PHI, MERGE):
                continue
            for operand in operands:
                resolved = ssa.resolve(operand)
                if resolved in seen or (travels and ssa.root(resolved)[0] in self.predicates):
                    continue
                seen.add(resolved)
                work.append(resolved)
        return True

    def _is_plain(self, instr: Instr, travels: bool) -> bool:
        """True for an instruction that brings no data of its own."""
        if instr.opcode == "ld" and instr.shape.space == "param":
            return True
        return instr.opcode not in _FROM_DATA or (travels and instr.opcode == "shfl")


class _Order:
    """Two values that a predicate is asked about, with what it was found to compare."""

    def __init__(self, first: int, second: int) -> None:
        self.first = first
        self.second = second
        self.kinds: set[str] = set()
        self.tests: set[int] = set()


def _kind(type_: str, relation: str) -> str:
    """The type as which values are compared."""
    if type_[0] in "fs" or type_ == "bf16":
        return type_
    return "u" + type_[1:] if type_[0] == "u" or relation in _UNSIGNED else "?"


def _logic(operator: str, parts: list[bool | None]) -> bool | None:
    """Logic of three values."""
    if operator == "and":
        return False if False in parts else None if None in parts else True
    if operator == "or":
        return True if True in parts else None if None in parts else False
    if None in parts or not parts:
        return None
    if operator == "xor":
        return parts[0] != parts[1]
    return not parts[0] if operator == "not" else parts[0] if operator == "mov" else None


__all__ = ["Choice", "IndexChoice", "Selections"]
