"""What goes into a maximum over lanes, warps and rounds, and what one of its operands says of it.

A tree has two sorts of nodes. A maximum is as large as any of its operands. All else is a copy or a
multiple of one of its alternatives: what ways of control bring, what stores to shared memory may
have left, the arms of a selection. Its leaves are the scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ptxlint.dataflow import floats
from ptxlint.dataflow.floats import BF16, F16, F32, FORMATS
from ptxlint.dataflow.reductions import WHOLE, Node, Reductions
from ptxlint.dataflow.ssa_values import MERGE, PHI, Ssa
from ptxlint.dataflow.value_flow import ADDRESS, CHOICE, ValueFlow
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Immediate, Operand
from ptxlint.ir.types import BITS

_SCALING: Final = frozenset({"mul", "neg", "cvt", "mov", "selp", "shfl"})
_HANDING: Final = frozenset({"shfl", "ld", "mov"})
_MAX_WALK: Final = 64
_MAX_TREE: Final = 2_048


class Start(NamedTuple):
    """A phi by which a loop carries a maximum: what it is before the loop and after a round."""

    phi: Node
    before: tuple[Node, ...]
    after: tuple[Node, ...]


class Maximum(NamedTuple):
    """A maximum over lanes, warps or rounds: its last `max` and the scores that go into it.

    `loops` are the headers of the loops that carry it. `scores` is None if there are too many.
    `exchanged` says that lanes or warps exchange something of it.
    """

    value: int
    at: Instr
    scores: tuple[int, ...] | None
    loops: tuple[int, ...]
    exchanged: bool
    inner: dict[Node, tuple[Node, ...]]
    """By node, its operands if it is a maximum, else its alternatives; scores have none."""
    starts: tuple[Start, ...]
    tops: frozenset[Node]
    """The nodes that are maxima."""
    fallible: frozenset[Node]
    """Selections one arm of which is -inf itself."""


class MaximumTrees:
    """The trees of a function."""

    def __init__(self, reductions: Reductions, flow: ValueFlow, instrs: list[Instr]) -> None:
        self._reductions = reductions
        self._flow = flow
        self._ssa: Ssa = flow.ssa
        self._instrs = instrs
        self._trees: dict[int, Maximum] = {}

    def of(self, root: int) -> Maximum:
        """The tree of a `max`, by its value."""
        found = self._trees.get(root)
        if found is None:
            found = self._trees[root] = self._build(root)
        return found

    def maxima_of(self, value: int, part: int = WHOLE) -> list[int]:
        """The maxima one of which a value is, perhaps scaled, replaced by a constant, or of a round
        before."""
        work = [self._node(value, part)]
        seen = set(work)
        found: list[int] = []
        for node in work:
            instr = self._reductions.definition(node.value)
            if instr is not None and is_maximum(instr):
                found.append(node.value)
                continue
            if len(seen) > _MAX_WALK:
                break
            for source in self.scaled(node):
                if source not in seen:
                    seen.add(source)
                    work.append(source)
        return found

    def is_of_maximum(self, node: Node) -> bool:
        """True if a node is a multiple or a copy of a maximum, on some way."""
        return bool(self.maxima_of(*node))

    def scaled(self, node: Node) -> list[Node]:
        """What a node is a multiple or a copy of."""
        ssa, (value, part) = self._ssa, node
        if ssa.kind[value] == MERGE and ssa.is_only_write(value):
            return [self._node(ssa.written(value), part)]
        if ssa.kind[value] in (PHI, MERGE):
            return [self._node(v, part) for v, role in self._flow.sources(value) if role != CHOICE]
        instr = self._reductions.definition(value)
        if instr is None:
            return []
        if instr.opcode == "ld" and instr.shape.space == "shared":
            stored = self._reductions.stored_before(value)
            return [self._node(n.value, part if n.part == WHOLE else n.part) for n in stored]
        if instr.opcode not in _SCALING:
            return []
        return [
            self._node(v, at)
            for v, role, at in self._flow.part_sources(value, part)
            if role not in (CHOICE, ADDRESS)
        ]

    def _node(self, value: int, part: int) -> Node:
        return self._reductions.node(Node(value, part))

    def _build(self, root: int) -> Maximum:
        at = self._instrs[self._ssa.instr[root]]
        work = [Node(root)]
        inner: dict[Node, tuple[Node, ...]] = {}
        scores: dict[int, None] = {}
        starts: list[Start] = []
        tops: set[Node] = set()
        fallible: set[Node] = set()
        is_whole = True
        exchanged = False
        for node in work:
            if node in inner:
                continue
            if len(inner) > _MAX_TREE:
                is_whole = False
                break
            instr = self._reductions.definition(node.value)
            exchanged = exchanged or (instr is not None and _exchanges(instr))
            start = self._start(node)
            if start is not None:
                starts.append(start)
                found = start.after
            elif instr is not None and is_maximum(instr):
                tops.add(node)
                found = self._operands(instr)
            else:
                found = self._alternatives(node, instr)
                if not found:
                    scores[node.value] = None
                elif self._may_be_lowest(node, instr):
                    fallible.add(node)
            inner[node] = found
            work += found
        loops = dict.fromkeys(self._ssa.phi_block[start.phi.value] for start in starts)
        return Maximum(
            root, at, tuple(scores) if is_whole else None, tuple(loops), exchanged, inner,
            tuple(starts), frozenset(tops), frozenset(fallible),
        )  # fmt: skip

    def _operands(self, instr: Instr) -> tuple[Node, ...]:
        end = 2 if instr.opcode == "redux" else None
        read = [self._reductions.read(instr, o) for o in instr.operands[1:end]]
        return tuple(self._node(v, WHOLE) for v in read if v is not None)

    def _alternatives(self, node: Node, instr: Instr | None) -> tuple[Node, ...]:
        found = self.scaled(node)
        joined = self._ssa.kind[node.value] == PHI
        if not joined and (instr is None or instr.opcode not in _HANDING):
            found = [n for n in found if self.is_of_maximum(n)]
        return tuple(found)

    def _start(self, node: Node) -> Start | None:
        """What a phi of a loop carries; what the loop starts from is no score."""
        phi, part = node
        if self._ssa.kind[phi] != PHI:
            return None
        loop = self._flow.loops.with_header(self._ssa.phi_block[phi])
        if loop is None:
            return None
        before, after = self._flow.carried(phi, loop)
        return Start(
            node,
            tuple(self._node(v, part) for v in before),
            tuple(self._node(v, part) for v in after),
        )

    def _may_be_lowest(self, node: Node, instr: Instr | None) -> bool:
        """True for a selection between a maximum and -inf."""
        if self._ssa.kind[node.value] == MERGE:
            return any(self.is_lowest(v) for v in self._ssa.operands[node.value][1:])
        if instr is None or instr.opcode != "selp":
            return False
        return any(self.is_lowest_operand(instr, operand) for operand in instr.operands[1:3])

    # Constants --------------------------------------------------------------------------------
    def is_lowest_operand(self, instr: Instr, operand: Operand) -> bool:
        """True for an operand that is the constant -inf."""
        value = self._reductions.read(instr, operand)
        if value is not None:
            return self.is_lowest(value)
        return isinstance(operand, Immediate) and _is_lowest(operand.value, BITS[instr.shape.type])

    def is_lowest(self, value: int) -> bool:
        """True for the constant -inf, or two of them, in the format that its bits are one in."""
        bits = self._flow.constant(value)
        return bits is not None and _is_lowest(bits, BITS.get(self._ssa.register[value].type, 32))


def lifted(maximum: Maximum, above: Iterable[Node]) -> set[Node]:
    """The nodes of a tree that are above -inf if these are."""
    users: dict[Node, list[Node]] = {}
    missing: dict[Node, int] = {}
    carried = {start.phi for start in maximum.starts}
    for node, operands in maximum.inner.items():
        if node in carried or node in maximum.fallible:
            continue
        inner = set(operands)
        missing[node] = 1 if node in maximum.tops else len(inner)
        for operand in inner:
            users.setdefault(operand, []).append(node)
    found = set(above)
    work = list(found)
    for node in work:
        for user in users.get(node, ()):
            missing[user] -= 1
            if not missing[user] and user not in found:
                found.add(user)
                work.append(user)
    return found


def not_above(maximum: Maximum) -> set[Node]:
    """The nodes of a tree that are not above the maximum: not one of several alternatives."""
    carried = {start.phi for start in maximum.starts}
    work = [Node(maximum.value)]
    seen = set(work)
    for node in work:
        inner = set(maximum.inner.get(node, ()))
        if node in carried or (len(inner) > 1 and node not in maximum.tops):
            continue
        work += sorted(inner - seen)
        seen |= inner
    return seen


def is_maximum(instr: Instr) -> bool:
    """True for a maximum of floating-point numbers."""
    if instr.opcode == "redux":
        return instr.shape.has("max") and instr.shape.type in FORMATS
    return instr.opcode == "max" and instr.shape.type in FORMATS


def _exchanges(instr: Instr) -> bool:
    """True for what brings a number from another lane or warp."""
    return instr.opcode in ("shfl", "redux") or instr.shape.space == "shared"


def _is_lowest(bits: int, width: int) -> bool:
    low, high = bits & 0xFFFF, bits >> 16 & 0xFFFF
    if width == 16:
        return _is_narrow_lowest(low)
    single = floats.decode(F32, bits & 0xFFFFFFFF).is_negative_infinity
    return single or (low == high and _is_narrow_lowest(low))


def _is_narrow_lowest(bits: int) -> bool:
    return any(floats.decode(form, bits).is_negative_infinity for form in (F16, BF16))


__all__ = ["Maximum", "MaximumTrees", "Start", "is_maximum", "lifted", "not_above"]
