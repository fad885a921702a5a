"""The values of SSA form: what they are, what they equal, who reads them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Final

from ptxlint.cfg.graph import Cfg
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Atom, Register, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

UNDEFINED: Final = 0
"""What a register holds at function entry when nothing was written to it."""
ARGUMENT: Final = 1
"""What the caller put into a `.reg` parameter of a `.func`."""
RESULT: Final = 2
"""What an instruction writes; operands are the values that it reads, as in `use_values`."""
PHI: Final = 3
"""A block parameter; operands as in `Ssa.phi_sources` of its block."""
MERGE: Final = 4
"""Operands (p, t, f): `p ? t : f`, made by a predicated definition."""
INSERT: Final = 5
"""Operands (part, old): the old value with a part of it written (`%v.x`)."""

ENTRY: Final = -1
"""The source of a phi operand that stands for the entry of the function."""


class Ssa:
    """The values of a function. The lists `kind` to `register` are indexed by value.

    In unreachable blocks a register holds what the same block wrote last, else its undefined
    value; no value of theirs flows into reachable code.
    """

    __slots__ = (
        "_resolved",
        "_roots",
        "_users",
        "at_entry",
        "cfg",
        "def_values",
        "instr",
        "kind",
        "operands",
        "phi_block",
        "phis",
        "register",
        "result",
        "use_values",
    )

    def __init__(self, cfg: Cfg) -> None:
        count = len(cfg.function.instrs)
        self.cfg = cfg
        self.kind: list[int] = []
        self.instr: list[int] = []
        """The defining instruction; -1 for a phi and for what is there at entry."""
        self.result: list[int] = []
        """Which of `Instr.defs` the value is for; 0 for a phi and for what is there at entry."""
        self.operands: list[tuple[int, ...]] = []
        self.register: list[Register] = []
        self.at_entry: list[int] = []
        """The UNDEFINED and ARGUMENT values, one for each register that needs it."""
        self.phis: dict[int, list[int]] = {}
        """The phis of each block that has some."""
        self.phi_block: dict[int, int] = {}
        self.use_values: list[tuple[int, ...]] = [()] * count
        """By instruction: the values it reads, aligned with `Instr.uses`."""
        self.def_values: list[tuple[int, ...]] = [()] * count
        """By instruction: what its registers hold after it, aligned with `Instr.defs`."""
        self._users: tuple[list[int], list[int]] | None = None
        self._resolved: list[int] = []
        self._roots: dict[int, tuple[int, bool]] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def block_of(self, value: int) -> int:
        """The block in which a value comes to be; the entry for what is there at entry."""
        index = self.instr[value]
        if index >= 0:
            return self.cfg.block_of[index]
        return self.phi_block.get(value, self.cfg.entry)

    def phi_sources(self, block: int) -> list[int]:
        """The predecessors that a phi's operands come from; `ENTRY` last in the entry block."""
        preds = self.cfg.blocks[block].preds
        return [*preds, ENTRY] if block == self.cfg.entry else preds

    def written(self, value: int) -> int:
        """What the defining instruction itself writes: the RESULT behind a MERGE or INSERT."""
        while True:
            kind = self.kind[value]
            if kind == MERGE:
                value = self.operands[value][self._new_arm(value)]
            elif kind == INSERT:
                value = self.operands[value][0]
            else:
                return value

    def old(self, value: int) -> int:
        """The value that a MERGE or INSERT leaves where it does not write."""
        if self.kind[value] == MERGE:
            return self.operands[value][3 - self._new_arm(value)]
        return self.operands[value][1]

    def is_only_write(self, merge: int) -> bool:
        """True if a register holds nothing that was ever written where a MERGE does not write it.

        That is so in every round of a loop if the predicate does not change in it.
        """
        position = self.cfg.position
        made = position[self.block_of(self.root(self.operands[merge][0])[0])]
        seen = {merge, self.resolve(merge)}
        work = [self.resolve(self.old(merge))]
        for value in work:
            if value in seen:
                continue
            seen.add(value)
            if self.kind[value] == PHI and made < position[self.phi_block[value]]:
                work += [self.resolve(v) for v in self.operands[value]]
            elif self.kind[value] != UNDEFINED:
                return False
        return True

    def _new_arm(self, merge: int) -> int:
        instr = self.cfg.function.instrs[self.instr[merge]]
        return 1 if instr.shape.guard == "@" else 2

    def guard_value(self, instr: Instr) -> int | None:
        """The value of an instruction's guard predicate, None if it has no guard."""
        return self.use_values[instr.index][0] if instr.guard is not None else None

    def root(self, predicate: int) -> tuple[int, bool]:
        """A predicate as another one and whether it is the same (True) or its negation.

        Looks through moves, `not.pred` and the second result of `setp p|q`.
        """
        found = self._roots.get(predicate)
        if found is None:
            found = self._roots[predicate] = self._find_root(predicate)
        return found

    def _find_root(self, predicate: int) -> tuple[int, bool]:
        same = True
        while self.kind[predicate] == RESULT:
            instr = self.cfg.function.instrs[self.instr[predicate]]
            opcode = instr.shape.opcode
            if opcode == "setp":
                if not self.result[predicate] or not _is_complementary(instr.shape):
                    break
                # The first result stands right before the second one.
                first = self.written(self.def_values[instr.index][0])
                return first, not same
            if opcode not in ("mov", "not") or type(_moved(instr)) is not Register:
                break
            same ^= opcode == "not"
            predicate = self.operands[predicate][-1]
        return predicate, same

    def resolve(self, value: int) -> int:
        """The value that this one always equals, with moves and needless merges looked through.

        Seen through are moves between registers of one width, phis (also cycles of phis) that merge
        a single value, merges of one value or under a constant predicate. All bits agree.
        """
        if not self._resolved:
            self._resolved = _resolve_all(self)
        return self._resolved[value]

    def assuming(self, value: int, predicate: int, truth: bool) -> int:
        """What a value equals where a predicate has this truth: the arms of merges under it.

        An instruction under the same guard as a masked load reads what was loaded.
        """
        root, same = self.root(predicate)
        value = self.resolve(value)
        while self.kind[value] == MERGE:
            inner, inner_same = self.root(self.operands[value][0])
            if inner != root:
                break
            value = self.resolve(self.operands[value][1 if (truth == same) == inner_same else 2])
        return value

    def users(self, value: int) -> list[int]:
        """Who reads a value, once for each operand that does.

        Instruction i is given as i, and ~v stands for the phi, MERGE or INSERT v.
        """
        starts, flat = self._users or self.all_users()
        return flat[starts[value] : starts[value + 1]]

    def all_users(self) -> tuple[list[int], list[int]]:
        """The users of all values one after the other, as in `users`, by where each begins."""
        if self._users is None:
            self._users = _collect_users(self)
        return self._users

    def instr_users(self, value: int) -> list[Instr]:
        """The instructions that read a value, once for each operand that does."""
        instrs = self.cfg.function.instrs
        return [instrs[user] for user in self.users(value) if user >= 0]

    def value_users(self, value: int) -> list[int]:
        """The phis, merges and partial writes that a value flows into."""
        return [~user for user in self.users(value) if user < 0]

    def __repr__(self) -> str:
        return f"Ssa({self.cfg.function.name}, {len(self.kind)} values)"


def _moved(instr: Instr) -> Atom | None:
    """The source of an instruction with one plain operand written and one read, else None."""
    shape = instr.shape
    patterns = shape.patterns
    if len(patterns) != 2 or shape.partial:
        return None
    written, read = patterns
    if written[0] != "s" or read[0] != "s" or len(read) != 2:
        return None
    return instr.args[read[1]]


def _is_complementary(shape: Shape) -> bool:
    """True for `setp p|q, a, b`, where q is not p; false with a third, boolean operand."""
    return len(shape.patterns) == 3 and shape.patterns[0][0] == "b"


def _width(register: Register) -> int:
    return BITS.get(register.type, 0) * register.vector


def copied(ssa: Ssa, value: int) -> int:
    """The value that a RESULT is a bit for bit copy of, -1 if it is none."""
    instr = ssa.cfg.function.instrs[ssa.instr[value]]
    if instr.shape.opcode != "mov":
        return -1
    source = _moved(instr)
    if source is None:
        return _unpacked(ssa, instr, value)
    if type(source) is not Register or _width(source) != _width(ssa.register[value]):
        return -1
    return ssa.operands[value][-1]


def _unpacked(ssa: Ssa, instr: Instr, value: int) -> int:
    """What `mov {a, b}, r` takes out again as it was put in by `mov r, {x, y}`, -1 if it is not."""
    if not _is_unpacking(instr) or len(ssa.operands[value]) != 1:
        return -1
    packed = ssa.operands[value][0]
    if ssa.kind[packed] != RESULT:
        return -1
    packing = ssa.cfg.function.instrs[ssa.instr[packed]]
    if packing.shape.opcode != "mov" or packing.shape.guard or len(packing.operands) != 2:
        return -1
    parts, target = packing.operands[1], instr.operands[0]
    if not isinstance(parts, Vector) or not isinstance(target, Vector):
        return -1
    registers = [e for e in parts.elements if isinstance(e, Register)]
    taken = target.elements.index(ssa.register[value])
    counts = {len(registers), len(parts.elements), len(target.elements), len(ssa.operands[packed])}
    if len(counts) != 1:
        return -1
    widths = {_width(r) for r in registers} | {_width(ssa.register[value])}
    return ssa.operands[packed][taken] if len(widths) == 1 else -1


def _is_unpacking(instr: Instr) -> bool:
    shape = instr.shape
    return (
        len(instr.operands) == 2 and shape.guard == "" and isinstance(instr.operands[1], Register)
    )


def _constant_predicate(ssa: Ssa, predicate: int) -> bool | None:
    """The truth of a predicate that is set to a constant, else None."""
    root, same = ssa.root(predicate)
    if ssa.kind[root] != RESULT:
        return None
    instr = ssa.cfg.function.instrs[ssa.instr[root]]
    if instr.shape.opcode != "mov" or len(instr.operands) != 2:
        return None
    constant = fold(instr.operands[1])
    return None if constant is None else (constant != 0) == same


def _candidates(ssa: Ssa) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Values that may equal another one, with the values that would all have to be that one."""
    for value, kind in enumerate(ssa.kind):
        if kind == RESULT:
            source = copied(ssa, value)
            if source >= 0:
                yield value, (source,)
        elif kind == PHI:
            yield value, ssa.operands[value]
        elif kind == MERGE:
            predicate, if_true, if_false = ssa.operands[value]
            known = _constant_predicate(ssa, predicate)
            if known is None:
                yield value, (if_true, if_false)
            else:
                yield value, (if_true if known else if_false,)


def _resolve_all(ssa: Ssa) -> list[int]:
    """By value, the one that it equals. Optimistic, so that cycles of needless phis fall too."""
    unknown = -1
    candidates = list(_candidates(ssa))
    resolved = list(range(len(ssa.kind)))
    for value, _ in candidates:
        resolved[value] = unknown
    changed = True
    while changed:
        changed = False
        for value, operands in candidates:
            before = resolved[value]
            if before == value:
                continue
            found = unknown
            for operand in operands:
                target = resolved[operand]
                if target in (unknown, found):
                    continue
                if found != unknown:
                    found = value
                    break
                found = target
            if found != before:
                # It was one value before and is another now: it stands for itself.
                resolved[value] = found if before == unknown else value
                changed = True
    for value, _ in candidates:
        if resolved[value] == unknown:
            resolved[value] = value
    return resolved


def _collect_users(ssa: Ssa) -> tuple[list[int], list[int]]:
    """All users in one list, ordered by the value they read, and where each value's begin."""
    joined = [(~v, ssa.operands[v]) for v, kind in enumerate(ssa.kind) if kind > RESULT]
    counts = [0] * (len(ssa.kind) + 1)
    for values in ssa.use_values:
        for value in values:
            counts[value] += 1
    for _, values in joined:
        for value in values:
            counts[value] += 1
    ends = list(accumulate(counts))
    flat = [0] * ends[-1]
    # Filled from the back, so that in the end each entry is where a value's users begin.
    for user, values in chain(reversed(joined), _backwards(ssa.use_values)):
        for value in values:
            ends[value] -= 1
            flat[ends[value]] = user
    return ends, flat


def _backwards(use_values: list[tuple[int, ...]]) -> Iterator[tuple[int, tuple[int, ...]]]:
    last = len(use_values) - 1
    for at, values in enumerate(reversed(use_values)):
        if values:
            yield last - at, values
