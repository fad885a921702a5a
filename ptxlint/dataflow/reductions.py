"""Reductions: trees of one associative operator over a thread's values, lanes, warps, iterations.

A tree is found from its root downwards. Its nodes are the operator itself, the combination of a
value with what `shfl.sync` brings from another lane, `redux.sync`, a value that was stored to
shared memory before a barrier and is loaded behind it, joins, and accumulators that a loop carries.
What none of these explains is a leaf. A product that `fma` adds is a leaf too.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.lane_bits import LANE, WARP_BITS
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import PHI, RESULT, Ssa
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Operand, Register, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

WHOLE: Final = -1
"""The part of a value that is no half of a packed register."""
ALL_LANES: Final = 31
_MAX_NODES: Final = 20_000
"""A tree with more nodes is cut off; what is left are leaves."""
_OPERATORS: Final = {"add": "add", "fma": "add", "max": "max", "min": "min", "mul": "mul"}
_PACKED: Final = frozenset({"f16x2", "bf16x2", "f32x2"})
_MOVES: Final = frozenset({"mov", "cvt"})
_CONTRACTIONS: Final = frozenset({"mma", "wgmma", "tcgen05", "wmma"})


class Node(NamedTuple):
    """An SSA value, or one half (0 low, 1 high) of a packed one."""

    value: int
    part: int = WHOLE


class Leaf(NamedTuple):
    """What goes into a reduction: a node, or the product of the `fma` at `product`.

    `init` is true for what an accumulator holds before its loop. `ways` are the joins that it comes
    through, each with the number of the operand. `lanes` are the bits of the lane number over which
    the leaf is combined before it is `handed` over through shared memory, if it is: behind that
    it lies in another lane.
    """

    node: Node
    product: Instr | None = None
    init: bool = False
    ways: tuple[tuple[int, int], ...] = ()
    lanes: int = 0
    handed: bool = False


class Reduction(NamedTuple):
    """One combine tree.

    `lanes` are the bits of the lane number over which `shfl` or `redux` combine, `warps` says that
    warps exchange through shared memory, `loops` are the headers of the loops that carry it.
    `instrs` are the combining instructions in program order.
    """

    operator: str
    type: str
    leaves: tuple[Leaf, ...]
    lanes: int
    warps: bool
    loops: tuple[int, ...]
    result: int
    instrs: tuple[Instr, ...]

    @property
    def at(self) -> Instr:
        """The instruction that stands for the reduction: its last one."""
        return self.instrs[-1]


class _Step(NamedTuple):
    """`combine(source, exchange(source))`; `fused` if the source is the product of an `fma`."""

    source: int
    exchange: Instr
    combine: Instr
    lanes: int
    fused: bool


class Reductions:
    """The reductions of a function, in the order of their last instruction."""

    def __init__(self, facts: Facts) -> None:
        self.ssa: Ssa = facts.get(SsaAnalysis)
        self.loops: LoopForest = facts.get(LoopsAnalysis)
        self._uniformity: Uniformity = facts.get(UniformityAnalysis)
        self._instrs = facts.function.instrs
        self._writers: dict[Shape, bool] = {}
        self._steps: dict[Node, _Step] = {}
        """By the combined value, or half."""
        self.exchanges: list[Instr] = []
        """Every `shfl` and `redux` in reachable code."""
        self.recognised: set[int] = set()
        """The exchanges that are part of a reduction."""
        self.contractions = [i for i in self._reachable() if i.opcode in _CONTRACTIONS]
        self._find_steps()
        self.all: list[Reduction] = []
        self.members: dict[int, int] = {}
        """The combining instructions, to the number of their reduction."""
        self._find_trees()

    def _reachable(self) -> list[Instr]:
        cfg = self.ssa.cfg
        return [
            self._instrs[at]
            for b in sorted(cfg.rpo)
            for at in range(cfg.blocks[b].start, cfg.blocks[b].end)
        ]

    # Values -----------------------------------------------------------------------------------
    def definition(self, value: int) -> Instr | None:
        """The instruction whose result a value is."""
        if self.ssa.kind[value] != RESULT:
            return None
        return self._instrs[self.ssa.instr[value]]

    def read(self, instr: Instr, operand: Operand) -> int | None:
        """The resolved value of a register operand; None for anything else."""
        if not isinstance(operand, Register):
            return None
        uses = self.ssa.use_values[instr.index]
        return self.ssa.resolve(uses[instr.uses.index(operand)])

    def is_uniform(self, value: int) -> bool:
        """True if all threads of a CTA hold the same."""
        return not self._uniformity.dependence(value) & (LANE | WARP_BITS)

    def constant(self, instr: Instr, operand: Operand) -> int | None:
        """The integer that an operand is, also through a `mov` of a constant."""
        found = fold(operand)
        value = self.read(instr, operand)
        if found is not None or value is None:
            return found
        made = self.definition(value)
        if made is None or made.opcode != "mov" or len(made.operands) != 2:
            return None
        return fold(made.operands[1])

    def origin(self, value: int) -> int:
        """The value behind moves and changes of width between 16 and 32 bits."""
        value = self.ssa.resolve(value)
        for _ in range(8):
            instr = self.definition(value)
            if instr is None or not _is_move(instr):
                return value
            source = self.read(instr, instr.operands[1])
            if source is None:
                return value
            value = source
        return value

    def node(self, node: Node) -> Node:
        """The node behind moves, packing and unpacking."""
        value, part = self.ssa.resolve(node.value), node.part
        for _ in range(16):
            instr = self.definition(value)
            if instr is None or instr.opcode != "mov":
                break
            source, target = instr.operands[-1], instr.operands[0]
            inner: int | None = None
            place = WHOLE
            if part != WHOLE and isinstance(source, Vector) and len(source.elements) == 2:
                inner = self.read(instr, source.elements[part])
            elif part == WHOLE and isinstance(target, Vector) and len(target.elements) == 2:
                inner = self.read(instr, source)
                place = _position(instr, target, self.ssa.register[value])
            if inner is None:
                break
            value, part = inner, place
        return Node(value, part)

    # Steps ------------------------------------------------------------------------------------
    def _find_steps(self) -> None:
        for instr in self._reachable():
            if instr.opcode == "redux":
                self.exchanges.append(instr)
                source = self.read(instr, instr.operands[1])
                if instr.shape.has("abs"):
                    continue
                if source is not None and instr.shape.modifiers[1] in ("add", "max", "min"):
                    result = self.ssa.def_values[instr.index][0]
                    self._steps[Node(self.ssa.resolve(result))] = _Step(
                        source, instr, instr, ALL_LANES, False
                    )
            elif instr.opcode == "shfl":
                self.exchanges.append(instr)
                self._find_combine(instr)

    def _find_combine(self, shfl: Instr) -> None:
        lanes = exchanged_lanes(shfl)
        source = self.read(shfl, shfl.operands[1])
        if not lanes or source is None or shfl.guard is not None:
            return
        source = self.origin(source)
        for reader in self._readers(self.ssa.def_values[shfl.index][0]):
            step = self._combination(shfl, reader, source, lanes)
            if step is not None:
                result = self.ssa.def_values[reader.index][0]
                self._steps[Node(self.ssa.resolve(result))] = step
            elif reader.opcode == "mov" and isinstance(reader.operands[-1], Vector):
                self._find_packed(shfl, reader, source, lanes)

    def _find_packed(self, shfl: Instr, packing: Instr, source: int, lanes: int) -> None:
        """Combinations of a packed register that one half came into from another lane."""
        vector = packing.operands[-1]
        assert isinstance(vector, Vector)
        other = self.ssa.resolve(self.ssa.def_values[shfl.index][0])
        packed = self.ssa.resolve(self.ssa.def_values[packing.index][0])
        wanted = self.node(Node(source))
        for part, element in enumerate(vector.elements[:2]):
            value = self.read(packing, element)
            if value is None or self.origin(value) != other:
                continue
            for reader in self._readers(packed):
                values = [self.read(reader, o) for o in reader.operands[1:]]
                if operator_of(reader) is None or reader.shape.type not in _PACKED:
                    continue
                if len(values) != 2 or packed not in values or reader.guard is not None:
                    continue
                partner = values[1 - values.index(packed)]
                if partner is not None and self.node(Node(partner, part)) == wanted:
                    result = self.ssa.resolve(self.ssa.def_values[reader.index][0])
                    self._steps[Node(result, part)] = _Step(source, shfl, reader, lanes, False)

    def _readers(self, value: int) -> list[Instr]:
        """The instructions that read a value, moves looked through."""
        out: list[Instr] = []
        work = [value]
        for _ in range(32):
            if not work:
                break
            for reader in self.ssa.instr_users(work.pop()):
                if _is_move(reader) and len(reader.defs) == 1:
                    work.append(self.ssa.def_values[reader.index][0])
                else:
                    out.append(reader)
        return out

    def _combination(self, shfl: Instr, reader: Instr, source: int, lanes: int) -> _Step | None:
        if operator_of(reader) is None or len(reader.defs) != 1 or reader.guard is not None:
            return None
        other = self.ssa.resolve(self.ssa.def_values[shfl.index][0])
        values = [self.read(reader, o) for o in reader.operands[1:]]
        origins = [None if v is None else self.origin(v) for v in values]
        if reader.opcode == "fma":
            made = self.definition(source)
            if origins[2] != other or made is None or made.opcode != "mul":
                return None
            factors = sorted(str(self.read(made, o)) for o in made.operands[1:3])
            if factors != sorted(map(str, values[:2])):
                return None
            return _Step(source, shfl, reader, lanes, True)
        if len(origins) == 2 and sorted(map(str, origins)) == sorted(map(str, (source, other))):
            return _Step(source, shfl, reader, lanes, False)
        return None

    # Trees ------------------------------------------------------------------------------------
    def _find_trees(self) -> None:
        roots = sorted(self._steps, key=lambda n: (-self._steps[n].combine.index, n.part))
        consumed: set[Node] = set()
        for node in roots:
            if node not in consumed:
                self._grow(node, consumed)
        for block in sorted(self.ssa.phis, reverse=True):
            for phi in self.ssa.phis[block]:
                if not self.accumulates(phi):
                    continue
                for node in self._parts(phi):
                    if node not in consumed:
                        self._grow(node, consumed)
        self.all.sort(key=lambda r: r.at.index)
        for number, reduction in enumerate(self.all):
            for instr in reduction.instrs:
                self.members[instr.index] = number

    def _parts(self, phi: int) -> tuple[Node, ...]:
        """An accumulator as a whole, or by halves where packed instructions add to it."""
        packed = any(i.shape.type in _PACKED for i in self._readers(phi))
        return (Node(phi, 0), Node(phi, 1)) if packed else (Node(phi),)

    def accumulates(self, phi: int) -> str | None:
        """The operator with which a loop carries a floating-point phi, None if it does not."""
        ssa = self.ssa
        loop = self.loops.with_header(ssa.phi_block[phi])
        if loop is None:
            return None
        for source, latch in zip(
            ssa.phi_sources(ssa.phi_block[phi]), ssa.operands[phi], strict=True
        ):
            if source < 0 or not self.loops.contains(loop, source):
                continue
            instr = self.definition(ssa.resolve(latch))
            found = None if instr is None else operator_of(instr)
            if instr is None or found is None or instr.shape.type[:1] in "su":
                return None
            return found if self._reaches(ssa.resolve(latch), phi, found) else None
        return None

    def _reaches(self, latch: int, phi: int, operator: str) -> bool:
        """True if the phi is an operand of the operator's chain at its loop's end."""
        work, seen = [latch], {latch}
        for _ in range(256):
            if not work:
                break
            instr = self.definition(work.pop())
            if instr is None or operator_of(instr) != operator:
                continue
            operands = instr.operands[3:] if instr.opcode == "fma" else instr.operands[1:]
            for operand in operands:
                value = self.read(instr, operand)
                if value == phi:
                    return True
                if value is not None and value not in seen:
                    seen.add(value)
                    work.append(value)
        return False

    def _grow(self, root: Node, consumed: set[Node]) -> None:
        step = self._steps.get(root)
        first = step.combine if step is not None else None
        operator = _step_operator(first) if first is not None else self.accumulates(root.value)
        if operator is None:
            return
        tree = _Tree(self, operator, consumed)
        tree.grow(root)
        if not tree.instrs:
            return
        instrs = tuple(self._instrs[at] for at in sorted(tree.instrs))
        kind = first.shape.type if first is not None else instrs[-1].shape.type
        self.all.append(
            Reduction(
                operator, kind, tuple(tree.leaves), tree.lanes, tree.warps,
                tuple(sorted(tree.loops)), root.value, instrs,
            )
        )  # fmt: skip

    def step(self, value: int) -> _Step | None:
        """The exchange between lanes that made a value."""
        return self._steps.get(self.node(Node(value)))

    @property
    def has_packed_steps(self) -> bool:
        """True if halves of packed registers are combined over lanes."""
        return any(node.part != WHOLE for node in self._steps)

    def step_at(self, node: Node) -> _Step | None:
        """The exchange between lanes that made a value or a half of one."""
        return self._steps.get(node)

    def stored_before(self, value: int) -> list[Node]:
        """What was stored to shared memory right before the barrier before a shared load.

        What lies at the load's own place in a vector where stores and load have the same width.
        """
        load = self.definition(value)
        if load is None or load.opcode != "ld" or load.shape.space != "shared":
            return []
        cfg = self.ssa.cfg
        block = cfg.blocks[cfg.block_of[load.index]]
        target = load.operands[0]
        place = -1
        if isinstance(target, Vector):
            place = _position(load, target, self.ssa.register[value])
        barrier = False
        stores: list[Instr] = []
        for at in range(load.index - 1, block.start - 1, -1):
            instr = self._instrs[at]
            if instr.opcode in ("bar", "barrier") and "warp" not in instr.shape.modifiers:
                if stores:
                    break
                barrier = True
            elif instr.opcode in ("st", "stmatrix") and instr.shape.space == "shared":
                if not barrier or instr.opcode != "st":
                    return []
                stores.append(instr)
            elif self._may_store(instr.shape):
                return []
        out: list[Node] = []
        for store in stores:
            found = self._stored(store, load, place)
            if found is None:
                return []
            out += found
        return out

    def _may_store(self, shape: Shape) -> bool:
        """True for what may write shared memory in other ways than `st.shared` does."""
        found = self._writers.get(shape)
        if found is None:
            writes = memory_of(shape).writes
            found = shape.row.is_call or "" in writes or any(w.startswith("shared") for w in writes)
            self._writers[shape] = found
        return found

    def _stored(self, store: Instr, load: Instr, place: int) -> list[Node] | None:
        """What one store may have put where a load reads; None if it is not known."""
        data, target = store.operands[1], load.operands[0]
        elements: tuple[Operand, ...] = data.elements if isinstance(data, Vector) else (data,)
        count = len(target.elements) if isinstance(target, Vector) else 1
        widths = BITS.get(store.shape.type, 0), BITS.get(load.shape.type, 0)
        values = [self.read(store, e) for e in elements]
        known = [v for v in values if v is not None]
        if len(known) < len(values):
            return None
        if widths[0] == widths[1]:
            chosen = known if count != len(known) or place < 0 else [known[place]]
            return [Node(v) for v in chosen]
        if widths[0] != 2 * widths[1]:
            return None
        # A packed store: its halves are the load's words.
        if count == 2 * len(known) and place >= 0:
            return [Node(known[place // 2], place % 2)]
        return [Node(v, part) for v in known for part in (0, 1)]


class _Place(NamedTuple):
    """A node that a tree has come to, with what its leaves inherit."""

    node: Node
    is_root: bool
    init: bool = False
    ways: tuple[tuple[int, int], ...] = ()
    lanes: int = 0
    handed: bool = False


class _Tree:
    """One tree while it grows."""

    def __init__(self, owner: Reductions, operator: str, consumed: set[Node]) -> None:
        self._owner = owner
        self._ssa = owner.ssa
        self.operator = operator
        self._consumed = consumed
        self.leaves: list[Leaf] = []
        self.lanes = 0
        self.warps = False
        self.loops: set[int] = set()
        self.instrs: set[int] = set()
        self._seen: set[Node] = set()
        self._place = _Place(Node(0), True)
        self._lanes = 0
        """The lanes over which what lies below the node at hand is combined on its side of shared
        memory."""
        self._handed = False

    def grow(self, root: Node) -> None:
        """Follow every node down to the leaves."""
        work: list[_Place] = [_Place(root, True)]
        while work:
            place = work.pop()
            node = self._owner.node(place.node)
            if node in self._seen:
                continue
            self._seen.add(node)
            self._place = place
            self._lanes, self._handed = place.lanes, place.handed
            children = None
            if len(self._seen) < _MAX_NODES:
                children = self._children(node, place.is_root)
            if children is None:
                self._add(node, None, place.init)
                continue
            is_join = self._is_join(node.value)
            for at in reversed(range(len(children))):
                child, first = children[at]
                way = ((self._ssa.phi_block[node.value], at),) if is_join else ()
                init = place.init or first
                work.append(_Place(child, False, init, place.ways + way, self._lanes, self._handed))

    def _add(self, node: Node, product: Instr | None, init: bool = False) -> None:
        leaf = Leaf(node, product, init, self._place.ways, self._lanes, self._handed)
        self.leaves.append(leaf)

    def _is_join(self, value: int) -> bool:
        """True for a phi that no loop carries."""
        if self._ssa.kind[value] != PHI:
            return False
        return self._owner.loops.with_header(self._ssa.phi_block[value]) is None

    def _children(self, node: Node, is_root: bool) -> list[tuple[Node, bool]] | None:
        """The nodes that this one combines (and whether they are initial values); None: a leaf."""
        owner, value = self._owner, node.value
        step = owner.step_at(node)
        if step is not None and _step_operator(step.combine) == self.operator:
            return self._exchange(step, node)
        if self._ssa.kind[value] == PHI:
            return self._phi(node)
        instr = owner.definition(value)
        if instr is None:
            return None
        if instr.opcode == "ld" and node.part == WHOLE:
            return self._shared(value)
        if operator_of(instr) != self.operator or instr.guard is not None:
            return None
        if (instr.shape.type in _PACKED) != (node.part != WHOLE):
            return None
        if not is_root and not self._is_private(value, node.part):
            return None
        return self._combined(instr, node.part)

    def _exchange(self, step: _Step, node: Node) -> list[tuple[Node, bool]]:
        self._consumed.add(node)
        self.lanes |= step.lanes
        self._lanes |= step.lanes
        self.instrs |= {step.exchange.index, step.combine.index}
        self._owner.recognised.add(step.exchange.index)
        if step.fused:
            self._add(Node(step.source), None)
            return []
        return [(Node(step.source), False)]

    def _phi(self, node: Node) -> list[tuple[Node, bool]] | None:
        ssa, owner = self._ssa, self._owner
        phi, part = node
        block = ssa.phi_block[phi]
        loop = owner.loops.with_header(block)
        if loop is None:
            return [(Node(v, part), False) for v in ssa.operands[phi]]
        if owner.accumulates(phi) != self.operator:
            return None
        self._consumed.add(node)
        self.loops.add(loop.header)
        inside = [s >= 0 and owner.loops.contains(loop, s) for s in ssa.phi_sources(block)]
        return [(Node(v, part), not b) for v, b in zip(ssa.operands[phi], inside, strict=True)]

    def _shared(self, value: int) -> list[tuple[Node, bool]] | None:
        """What another warp combined and handed over through shared memory."""
        stored = self._owner.stored_before(value)
        if not stored:
            return None
        for node in stored:
            source = self._owner.node(node)
            step = self._owner.step_at(source)
            if step is not None and _step_operator(step.combine) == self.operator:
                continue
            instr = self._owner.definition(source.value)
            if instr is None or operator_of(instr) != self.operator:
                return None
        self.warps = True
        self._lanes, self._handed = 0, True
        return [(node, False) for node in stored]

    def _is_private(self, value: int, part: int) -> bool:
        """True if nothing but one instruction (and loops that carry it) reads the value."""
        readers = {reader.index for reader in self._owner._readers(value)}
        exchanges = {at for at in readers if self._owner._instrs[at].opcode == "shfl"}
        unpacking = 1 if part == WHOLE else 2
        for phi in self._ssa.value_users(value):
            if self._ssa.kind[phi] != PHI:
                return False
        return len(readers - exchanges) <= unpacking

    def _combined(self, instr: Instr, part: int) -> list[tuple[Node, bool]] | None:
        owner = self._owner
        operands = instr.operands[3:] if instr.opcode == "fma" else instr.operands[1:]
        values = [owner.read(instr, o) for o in operands]
        found = [Node(v, part) for v in values if v is not None]
        # A constant for all lanes next to a lane's own value is part of what each lane puts in.
        mixed = len(found) < len(values) or any(owner.is_uniform(n.value) for n in found)
        if not found or (mixed and not owner.is_uniform(owner.ssa.def_values[instr.index][0])):
            return None
        self.instrs.add(instr.index)
        if instr.opcode == "fma":
            result = self._ssa.def_values[instr.index][0]
            self._add(Node(result, part), instr)
        return [(n, False) for n in found]


def operator_of(instr: Instr) -> str | None:
    """The associative operator that an instruction applies; None if it is none.

    A difference or a product's high half is none; nor is an `fma` whose sum is an integer.
    """
    shape = instr.shape
    if shape.opcode not in _OPERATORS or shape.has("cc") or shape.has("sat"):
        return None
    if shape.opcode in ("mul", "fma") and shape.type[:1] not in ("f", "b"):
        return None
    return _OPERATORS[shape.opcode]


def _step_operator(instr: Instr) -> str | None:
    if instr.opcode == "redux":
        return instr.shape.modifiers[1]
    return operator_of(instr)


def exchanged_lanes(shfl: Instr) -> int:
    """The bits of the lane number that a `shfl` changes; 0 if they are not known."""
    amount = fold(shfl.operands[2])
    clamp = fold(shfl.operands[3])
    if amount is None or clamp is None or amount not in (1, 2, 4, 8, 16):
        return 0
    if "bfly" in shfl.shape.modifiers and clamp == ALL_LANES:
        return amount
    # A tree of `down` leaves the result in the lowest lane only.
    return amount if "down" in shfl.shape.modifiers and clamp == ALL_LANES else 0


def _is_move(instr: Instr) -> bool:
    """True for moves of a register and changes between its 16- and 32-bit containers."""
    if instr.opcode not in _MOVES or len(instr.operands) != 2 or len(instr.uses) != 1:
        return False
    if not all(isinstance(o, Register) for o in instr.operands):
        return False
    if instr.opcode == "mov":
        return True
    return set(instr.shape.types) <= {"u16", "u32", "b16", "b32"}


def _position(instr: Instr, target: Vector, register: Register) -> int:
    """Which element of a vector destination a register is."""
    return next(at for at, element in enumerate(target.elements) if element is register)


class ReductionsAnalysis(Analysis[Reductions]):
    """Combine trees as facts of a function."""

    name: ClassVar[str] = "reductions"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        SsaAnalysis,
        LoopsAnalysis,
        UniformityAnalysis,
    )

    def run(self, facts: Facts) -> Reductions:
        """Find all trees."""
        return Reductions(facts)


__all__ = ["WHOLE", "Leaf", "Node", "Reduction", "Reductions", "ReductionsAnalysis"]
