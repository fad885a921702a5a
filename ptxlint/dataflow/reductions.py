"""Reductions: trees of one associative operator over a thread's values, lanes, warps, iterations.

A tree is found from its root downwards. Its nodes are the operator itself, the combination of a
value with what `shfl.sync` brings from another lane, `redux.sync`, a value that was stored to
shared memory before a barrier and is loaded behind it, joins, and accumulators that a loop carries.
A scan (`shfl.up`, and `selp` by the lane) is such a tree too, one that is `partial`: lanes take in
only a part of the others. A maximum that brings its index along chooses by `selp`. What none of
these explains is a leaf. A product that `fma` adds is a leaf too.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.exchanges import ALL_LANES, exchanged_lanes
from ptxlint.dataflow.lane_bits import LANE, WARP_BITS
from ptxlint.dataflow.lane_hops import LaneHops
from ptxlint.dataflow.lane_map import lane_width
from ptxlint.dataflow.scan_lanes import ScanLanes
from ptxlint.dataflow.selections import Choice, Selections
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.dataflow.tensor_instruction import is_tensor_product
from ptxlint.dataflow.uniformity import Uniformity, UniformityAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import Operand, Register, Vector
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

WHOLE: Final = -1
"""The part of a value that is no half of a packed register."""
_FEWEST_ELEMENTS: Final = 3
"""Two elements may as well be two halves of a complex number."""
_MAX_NODES: Final = 20_000
"""A tree with more nodes is cut off; what is left are leaves."""
_OPERATORS: Final = {
    "add": "add", "fma": "add", "max": "max", "min": "min", "mul": "mul",
    "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_WIDENING: Final = (("f32", "bf16"), ("f32", "f16"))
_LOGICAL: Final = frozenset({"and", "or", "xor"})
_MODES: Final = {"min": "all", "and": "all", "max": "any", "or": "any"}
"""What predicates mean to an operator that takes them as 1 and 0."""
_LOGIC_OF: Final = {"all": "and", "any": "or"}
_REDUX: Final = frozenset({"add", "max", "min", "and", "or", "xor"})
_PACKED: Final = frozenset({"f16x2", "bf16x2", "f32x2"})
_LOW: Final = 0x10
"""What a byte of the selector of `prmt` is that takes the low half of its first source."""
_LOW_OF_SECOND: Final = 0x54
_UNROLLED: Final = _PACKED | {"f16", "bf16", "f32", "f64"}
_MOVES: Final = frozenset({"mov", "cvt"})
_CONTRACTIONS: Final = frozenset({"mma", "wgmma", "wmma"})


class Node(NamedTuple):
    """An SSA value, or one half (0 low, 1 high) of a packed one."""

    value: int
    part: int = WHOLE


class Leaf(NamedTuple):
    """What goes into a reduction: a node, or the product of the `fma` at `product`.

    `init` is true for what an accumulator holds before its loop. `ways` are the joins that it comes
    through, each with the number of the operand. `lanes` are the bits of the lane number over which
    the leaf is combined before it is `handed` over through shared memory, if it is: behind that
    it lies in another lane. What goes in is its magnitude if it is `absolute`. `narrow` is the
    type of an operand that is widened where it is added.
    """

    node: Node
    product: Instr | None = None
    init: bool = False
    ways: tuple[tuple[int, int], ...] = ()
    lanes: int = 0
    handed: bool = False
    absolute: bool = False
    narrow: str = ""


class Reduction(NamedTuple):
    """One combine tree.

    `lanes` are the bits of the lane number over which `shfl` or `redux` combine, `warps` says that
    warps exchange through shared memory, `loops` are the headers of the loops that carry it.
    `instrs` are the combining instructions in program order. In a `partial` one some lanes take in
    only a part of the others; `chosen` says that an index travels with the value. `edges` are the
    pairs of a node and one that it is made of, for trees whose nodes lie in several lanes.
    """

    operator: str
    type: str
    leaves: tuple[Leaf, ...]
    lanes: int
    warps: bool
    loops: tuple[int, ...]
    result: int
    instrs: tuple[Instr, ...]
    partial: bool = False
    chosen: bool = False
    edges: tuple[tuple[Node, Node], ...] = ()

    @property
    def at(self) -> Instr:
        """The instruction that stands for the reduction: its last one."""
        return self.instrs[-1]


class _Step(NamedTuple):
    """`combine(source, exchange(source))`; `fused` if the source is the product of an `fma`.

    `again` is the exchange of the other half, `beside` a third operand that has no part in it.
    """

    source: int
    exchange: Instr
    combine: Instr
    lanes: int
    fused: bool
    partial: bool = False
    choice: Choice | None = None
    again: Instr | None = None
    beside: int | None = None

    @property
    def operator(self) -> str | None:
        """What it combines with."""
        if self.choice is not None:
            return self.choice.operator
        if self.combine.opcode == "redux":
            return self.combine.shape.modifiers[1]
        return operator_of(self.combine)

    @property
    def type(self) -> str:
        """The type in which it combines."""
        return _type_of(self.combine) if self.choice is None else self.choice.type


class _Exchange(NamedTuple):
    """`other` is what `shfl` (and `again`, for the other half) brings of `source`."""

    shfl: Instr
    again: Instr | None
    source: int
    other: int
    lanes: int
    partial: bool


class Reductions:
    """The reductions of a function, in the order of their last instruction."""

    def __init__(self, facts: Facts) -> None:
        self.ssa: Ssa = facts.get(SsaAnalysis)
        self.loops: LoopForest = facts.get(LoopsAnalysis)
        self._uniformity: Uniformity = facts.get(UniformityAnalysis)
        self._instrs = facts.function.instrs
        self._behind: dict[Node, Node] = {}
        self._writers: dict[Shape, bool] = {}
        self._scanned: set[int] = set()
        self._stores_before: dict[int, list[Instr]] = {}
        self._between: dict[tuple[int, int, str, int, int], list[Node]] = {}
        threads = facts.max_threads() or 1024
        self._index_bits = (1 << (threads - 1).bit_length()) - 1
        """The bits of the thread index that the largest CTA has."""
        self._steps: dict[Node, _Step] = {}
        """By the combined value, or half."""
        self.exchanges: list[Instr] = []
        """Every `shfl` and `redux` in reachable code."""
        self.recognised: set[int] = set()
        """The exchanges that are part of a reduction."""
        self.companions: set[int] = set()
        """The exchanges of indices that travel with a maximum or minimum."""
        self.accumulators: set[int] = set()
        """The phis that loops carry as a part of some reduction."""
        self.selections = Selections(self.ssa, self.origin, self._stored_values)
        self._partial: set[Node] = set()
        """Values of scans, each made of a part of the lanes."""
        self._inputs: set[Node] = set()
        self.contractions = [
            i for i in self._reachable() if i.opcode in _CONTRACTIONS or is_tensor_product(i)
        ]
        self.hops = LaneHops(facts)
        self._scan_lanes = ScanLanes(
            self.ssa, self.loops, self._uniformity, lane_width(facts), self._readers, self.origin
        )
        self.moves: set[int] = set()
        """The `shfl` that hand what a scan made to other lanes, and combine nothing."""
        self.shifts: set[int] = set()
        """Those that read it from lanes further down, to be combined with something else."""
        """What moves between lanes without being combined."""
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
        """The resolved value of a register operand; None for anything else, such as a register that
        is written only."""
        if not isinstance(operand, Register):
            return None
        try:
            at = instr.uses.index(operand)
        except ValueError:
            return None
        return self.ssa.resolve(self.ssa.use_values[instr.index][at])

    def depends(self, value: int) -> int:
        """The bits of the thread index on which a value may depend."""
        return self._uniformity.dependence(value) & (LANE | WARP_BITS) & self._index_bits

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
        found = self._behind.get(node)
        if found is None:
            found = self._behind[node] = self._node_behind(node)
        return found

    def _node_behind(self, node: Node) -> Node:
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
        reachable = self._reachable()
        for instr in reachable:
            if instr.opcode == "redux":
                self.exchanges.append(instr)
                source = self.read(instr, instr.operands[1])
                if source is not None and instr.shape.modifiers[1] in _REDUX:
                    result = self.ssa.def_values[instr.index][0]
                    self._steps[Node(self.ssa.resolve(result))] = _Step(
                        source, instr, instr, ALL_LANES, False
                    )
            elif instr.opcode == "shfl":
                if not self.ssa.users(self.ssa.def_values[instr.index][0]):
                    continue
                self.exchanges.append(instr)
                self._find_combine(instr)
        self._find_companions(reachable)

    def _find_combine(self, shfl: Instr) -> None:
        lanes = exchanged_lanes(shfl)
        partial = not lanes and shfl.shape.has("up")
        if partial:
            lanes = self.scanned(shfl)
        source = self.read(shfl, shfl.operands[1])
        if not lanes or source is None or shfl.guard is not None:
            return
        source = self.origin(source)
        other = self.ssa.resolve(self.ssa.def_values[shfl.index][0])
        exchange = _Exchange(shfl, None, source, other, lanes, partial)
        for reader in self._readers(other):
            self._find_step(exchange, reader)
            if reader.opcode == "mov" and isinstance(reader.operands[-1], Vector):
                self._find_packed(exchange, reader)
                self._find_wide(exchange, reader)
            elif reader.opcode == "prmt":
                self._find_packed(exchange, reader)

    def scanned(self, shfl: Instr) -> int:
        """The bits in which lanes differ from those of which they take in anything by a `shfl`."""
        return self._scan_lanes.of(shfl, lambda reader: operator_of(reader) is not None)

    def _find_step(self, exchange: _Exchange, reader: Instr) -> None:
        step = self._combination(exchange, reader)
        if step is None:
            return
        node = Node(self.ssa.resolve(self.ssa.def_values[reader.index][0]))
        self._steps[node] = step
        if step.partial:
            self._partial |= {node, Node(exchange.other)}

    def _find_wide(self, exchange: _Exchange, packing: Instr) -> None:
        """Combinations of a 64-bit value whose halves came one by one from another lane."""
        vector = packing.operands[-1]
        assert isinstance(vector, Vector)
        if BITS.get(packing.shape.type) != 64 or len(vector.elements) != 2:
            return
        parts: list[Node] = []
        shuffles: list[Instr] = []
        for element in vector.elements:
            value = self.read(packing, element)
            shfl = None if value is None else self.definition(self.origin(value))
            if shfl is None or shfl.opcode != "shfl" or shfl.guard is not None:
                return
            source = self.read(shfl, shfl.operands[1])
            lanes = exchanged_lanes(shfl) or (self.scanned(shfl) if exchange.partial else 0)
            if source is None or lanes != exchange.lanes:
                return
            shuffles.append(shfl)
            parts.append(self.node(Node(source)))
        low, high = parts
        if low.value != high.value or (low.part, high.part) != (0, 1):
            return
        first, again = shuffles
        other = self.ssa.resolve(self.ssa.def_values[packing.index][0])
        whole = exchange._replace(shfl=first, again=again, source=low.value, other=other)
        for reader in self._readers(other):
            if reader.shape.type not in _PACKED:
                self._find_step(whole, reader)

    def _stored_values(self, value: int) -> list[int]:
        """What was stored where a value is loaded from; nothing if it is not known."""
        return [node.value for node in self.stored_before(value) if node.part == WHOLE]

    def _find_companions(self, reachable: list[Instr]) -> None:
        """Let an index travel with the value that it belongs to: both are chosen alike."""
        if not any(step.choice is not None for step in self._steps.values()):
            return
        for instr in reachable:
            if instr.opcode == "shfl":
                self._find_companion(instr)
        taken = {step.exchange.index for step in self._steps.values()} | self.companions
        for instr in self.exchanges:
            if instr.opcode == "shfl" and instr.index not in taken:
                self._find_last_index(instr)

    def _find_companion(self, shfl: Instr) -> None:
        source = self.read(shfl, shfl.operands[1])
        if source is None or not self.selections.is_chosen_index(source):
            return
        tests = {t for step in self._steps.values() if step.choice for t in step.choice.tests}
        for user in self._readers(self.ssa.def_values[shfl.index][0]):
            if user.index in tests or self._packs_alike(user):
                continue
            predicate = None if user.opcode != "selp" else self.read(user, user.operands[3])
            if predicate is None or self.ssa.root(predicate)[0] not in self.selections.predicates:
                return
        self.companions.add(shfl.index)

    def _packs_alike(self, instr: Instr) -> bool:
        """True for a `mov` that makes one word of two."""
        return instr.opcode == "mov" and isinstance(instr.operands[-1], Vector)

    def _find_last_index(self, shfl: Instr) -> None:
        """The last step of a maximum of which only the index is wanted."""
        lanes = exchanged_lanes(shfl)
        source = self.read(shfl, shfl.operands[1])
        if not lanes or source is None or shfl.guard is not None:
            return
        source = self.origin(source)
        before = self._steps.get(Node(source))
        other = self.ssa.resolve(self.ssa.def_values[shfl.index][0])
        found = self.selections.index_of(source, other)
        if before is None or before.choice is None or found is None or found.type == "?":
            return
        for own, brought, operator in (
            (found.above, found.below, "max"),
            (found.below, found.above, "min"),
        ):
            exchange = self.definition(brought)
            if exchange is None or exchange.opcode != "shfl" or exchange.guard is not None:
                continue
            index = self.read(exchange, exchange.operands[1])
            if index is None or self.origin(index) != own or exchanged_lanes(exchange) != lanes:
                continue
            right = operator == before.choice.operator
            if not right or not self.selections.is_chosen_index(index):
                continue
            self.companions.add(exchange.index)
            choice = before.choice._replace(first=source, second=other, tests=found.inside)
            for node in [n for n, s in self._steps.items() if s.combine.index in found.inside]:
                # An index that is the smaller where values tie is no minimum.
                del self._steps[node]
            result = self.ssa.resolve(self.ssa.def_values[found.root.index][0])
            self._steps[Node(result)] = _Step(source, shfl, found.root, lanes, False, False, choice)

    def _find_packed(self, exchange: _Exchange, packing: Instr) -> None:
        """Combinations of a packed register that one half came into from another lane."""
        shfl, _, source, other, lanes, partial = exchange
        packed = self.ssa.resolve(self.ssa.def_values[packing.index][0])
        wanted = self.node(Node(source))
        for part, value in enumerate(self._halves_of(packing)):
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
                    self._steps[Node(result, part)] = _Step(
                        source, shfl, reader, lanes, False, partial
                    )
                    if partial:
                        self._partial.add(Node(result, part))

    def _halves_of(self, packing: Instr) -> list[int | None]:
        """The values whose low halves a packed register has, the low one first."""
        if packing.opcode == "mov":
            vector = packing.operands[-1]
            assert isinstance(vector, Vector)
            return [self.read(packing, element) for element in vector.elements[:2]]
        selector = self.constant(packing, packing.operands[-1])
        if selector is None or len(packing.shape.modifiers) != 1:
            return []
        places = {_LOW: 1, _LOW_OF_SECOND: 2}
        found = [places.get(selector >> shift & 0xFF) for shift in (0, 8)]
        return [None if at is None else self.read(packing, packing.operands[at]) for at in found]

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

    def _combination(self, exchange: _Exchange, reader: Instr) -> _Step | None:
        if len(reader.defs) != 1 or reader.guard is not None:
            return None
        shfl, again, source, other, lanes, partial = exchange
        pair = sorted((source, other))
        if reader.opcode == "selp":
            choice = self.selections.choice(reader)
            if choice is None or partial or choice.type == "?":
                return None
            if sorted((self.origin(choice.first), self.origin(choice.second))) != pair:
                return None
            return _Step(source, shfl, reader, lanes, False, False, choice, again)
        if operator_of(reader) is None:
            return None
        values = [self.read(reader, o) for o in reader.operands[1:]]
        origins = [None if v is None else self.origin(v) for v in values]
        if narrow_type(reader) and origins[0] is not None:
            origins[0] = source if origins[0] == self._before_widening(source) else None
        if reader.opcode == "fma":
            made = self.definition(source)
            if origins[2] != other or made is None or made.opcode != "mul":
                return None
            factors = sorted(str(self.read(made, o)) for o in made.operands[1:3])
            if factors != sorted(map(str, values[:2])):
                return None
            return _Step(source, shfl, reader, lanes, True, partial)
        known = [o for o in origins if o is not None]
        if len(known) != len(origins):
            return None
        beside = [v for v, o in zip(values, known, strict=True) if o not in pair]
        if len(known) - len(beside) != 2 or sorted(o for o in known if o in pair) != pair:
            return None
        third = beside[0] if beside else None
        return _Step(source, shfl, reader, lanes, False, partial, None, again, third)

    def _before_widening(self, value: int) -> int | None:
        """The narrow number that a value is made of by `cvt.f32.bf16` or the like."""
        made = self.definition(value)
        if made is None or made.opcode != "cvt" or made.shape.types not in _WIDENING:
            return None
        source = self.read(made, made.operands[1])
        return None if source is None else self.origin(source)

    # Trees ------------------------------------------------------------------------------------
    def _find_trees(self) -> None:
        roots = {node: step.combine.index for node, step in self._steps.items()}
        if self._partial:
            self._find_partial(roots)
            self._find_inputs()
        consumed: set[Node] = set()
        for node in sorted(roots, key=lambda n: (-roots[n], n.part)):
            if node not in consumed:
                self._grow(node, consumed)
        for block in sorted(self.ssa.phis, reverse=True):
            for phi in self.ssa.phis[block]:
                if not self.accumulates(phi):
                    continue
                for node in self._parts(phi):
                    if node not in consumed:
                        self._grow(node, consumed)
        self._find_unrolled()
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
            if found in _LOGICAL:
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

    def _find_partial(self, roots: dict[Node, int]) -> None:
        """Follow what scans make upwards: sums of partial sums, selected by the lane.

        These are roots as well, and their own leaves' readers may be many.
        """
        handed: dict[int, list[int]] | None = None
        operators = {self._steps[n].operator for n in self._partial if n in self._steps}
        if len(operators) != 1:
            return
        operator = operators.pop()
        work = [n.value for n in self._partial]
        while work:
            value = work.pop()
            found = [~u for u in self.ssa.users(value) if u < 0 and self.ssa.kind[~u] != PHI]
            for reader in self._readers(value):
                if reader.opcode == "st" and reader.shape.space == "shared":
                    handed = self._handed() if handed is None else handed
                    found += handed.get(value, [])
                elif self._goes_on(reader, operator):
                    found.append(self.ssa.def_values[reader.index][0])
            for result in found:
                node = Node(self.ssa.resolve(result))
                step = self._steps.get(node)
                if step is not None and not step.partial:
                    # What is summed up behind a scan takes in the lanes that hold padding.
                    continue
                if node not in self._partial:
                    self._partial.add(node)
                    work.append(node.value)
                    made = self.definition(node.value)
                    if made is not None and operator_of(made) == operator:
                        roots[node] = made.index

    def _goes_on(self, reader: Instr, operator: str | None) -> bool:
        """True for what combines partial results, moves them or selects them by the lane."""
        if reader.guard is not None or len(reader.defs) != 1:
            return False
        if reader.opcode == "selp":
            # With a constant it is a mask, behind which padding is something else.
            read = [self.read(reader, o) for o in reader.operands[1:]]
            if None in read or any(
                self.constant(reader, o) is not None for o in reader.operands[1:3]
            ):
                return False
            return self.selections.is_of_index(read[2] or 0)
        return reader.opcode == "shfl" or operator_of(reader) == operator

    def _find_inputs(self) -> None:
        """Where one scan takes in what another one gave: its lanes hold padding by then.

        The steps of one scan reach further from one to the next.
        """
        for step in list(self._steps.values()):
            if not step.partial:
                continue
            reach = fold(step.exchange.operands[2]) or 0
            work, seen = [step.source], {step.source}
            while work:
                value = work.pop()
                node = Node(value)
                inner = self._steps.get(node)
                if inner is not None and inner.partial:
                    if (fold(inner.exchange.operands[2]) or 0) >= reach:
                        self._inputs.add(Node(step.source))
                        break
                    continue
                if node not in self._partial:
                    continue
                made = self.definition(value)
                operands = self.ssa.operands[value]
                if made is not None and made.opcode == "ld":
                    operands = tuple(self._stored_values(value))
                for operand in map(self.ssa.resolve, operands):
                    if operand not in seen:
                        seen.add(operand)
                        work.append(operand)

    def newest(self, combine: Instr) -> tuple[int, int] | None:
        """The element that one thread's sum in a scan takes in, and the sum of those before it.

        Those before it go into the scan's result for the last of them as well, while it goes into
        no other sum. None for what is no such sum.
        """
        if len(combine.operands) != 3 or operator_of(combine) is None:
            return None
        values = [self.read(combine, o) for o in combine.operands[1:]]
        a, b = values
        if a is None or b is None or a == b:
            return None
        several = [len({r.index for r in self._readers(v)}) > 1 for v in (a, b)]
        if several[0] == several[1]:
            return None
        element, before = (b, a) if several[0] else (a, b)
        if self.ssa.value_users(element) or self.is_partial(self.node(Node(element))):
            return None
        return element, before

    def is_input(self, node: Node) -> bool:
        """True for a value of one scan that goes into another."""
        return node in self._inputs

    def _handed(self) -> dict[int, list[int]]:
        """By value stored to shared memory: what is loaded behind the next barrier."""
        found: dict[int, list[int]] = {}
        for instr in self._reachable():
            if instr.opcode != "ld" or instr.shape.space != "shared":
                continue
            for value in self.ssa.def_values[instr.index]:
                for node in self.stored_before(value):
                    if node.part == WHOLE:
                        found.setdefault(self.node(node).value, []).append(value)
        return found

    def _grow(self, root: Node, consumed: set[Node]) -> None:
        step = self._steps.get(root)
        made = self.definition(root.value)
        if step is not None:
            operator, kind = step.operator, step.type
        elif root in self._partial and made is not None:
            operator, kind = operator_of(made), _type_of(made)
        else:
            operator, kind = self.accumulates(root.value), ""
        if operator is None:
            return
        tree = _Tree(self, operator, consumed)
        tree.grow(root)
        if not tree.instrs:
            return
        instrs = tuple(self._instrs[at] for at in sorted(tree.instrs))
        self.all.append(
            Reduction(
                operator, kind or _type_of(instrs[-1]), tuple(tree.leaves), tree.lanes, tree.warps,
                tuple(sorted(tree.loops)), root.value, instrs, tree.partial, tree.chosen,
                tuple(tree.edges) if tree.partial or tree.warps else (),
            )
        )  # fmt: skip

    def _find_unrolled(self) -> None:
        """Trees over elements that one thread holds: no lane is exchanged and no loop is left.

        What is combined is the same expression of the source, and so are the elements.
        """
        taken = {i.index for reduction in self.all for i in reduction.instrs}
        for instr in reversed(self._reachable()):
            operator = operator_of(instr)
            if operator is None or instr.index in taken or not self._is_unrolled(instr, operator):
                continue
            result = self.ssa.resolve(self.ssa.def_values[instr.index][0])
            packed = instr.shape.type in _PACKED
            for root in (Node(result, 0), Node(result, 1)) if packed else (Node(result),):
                self._grow_unrolled(root, operator, taken)

    def _grow_unrolled(self, root: Node, operator: str, taken: set[int]) -> None:
        tree = _Tree(self, operator, set())
        tree.grow(root)
        instrs = tuple(self._instrs[at] for at in sorted(tree.instrs))
        if tree.lanes or tree.warps or tree.loops or not self._is_one_place(tree, instrs):
            return
        taken |= tree.instrs
        kind, leaves = _type_of(instrs[-1]), tuple(tree.leaves)
        self.all.append(Reduction(operator, kind, leaves, 0, False, (), root.value, instrs))

    def _is_unrolled(self, instr: Instr, operator: str) -> bool:
        """True for the last of some instructions that combine floats at one place."""
        if instr.guard is not None or instr.shape.type not in _UNROLLED or len(instr.defs) != 1:
            return False
        place = _place(instr)
        if place is None:
            return False

        def goes_with(other: Instr | None) -> bool:
            return other is not None and operator_of(other) == operator and _place(other) == place

        before = (self.read(instr, operand) for operand in instr.operands[1:])
        parts = (0, 1) if instr.shape.type in _PACKED else (WHOLE,)
        made = (
            self.definition(self.node(Node(v, part)).value)
            for v in before if v is not None for part in parts
        )  # fmt: skip
        if not any(map(goes_with, made)):
            return False
        result = self.ssa.resolve(self.ssa.def_values[instr.index][0])
        return not any(map(goes_with, self._readers_of_parts(result)))

    def _readers_of_parts(self, value: int) -> list[Instr]:
        """What reads a value, or half of it, behind moves, packing and unpacking."""
        out: list[Instr] = []
        for reader in self._readers(value):
            if reader.opcode == "mov" and isinstance(reader.operands[0], Vector):
                for half in self.ssa.def_values[reader.index]:
                    out += self._readers(half)
            elif reader.opcode == "mov" and isinstance(reader.operands[-1], Vector):
                out += self._readers(self.ssa.def_values[reader.index][0])
            else:
                out.append(reader)
        return out

    def _is_one_place(self, tree: _Tree, instrs: tuple[Instr, ...]) -> bool:
        """True if all that combines is one place of the source, and all elements are another."""
        if len(tree.leaves) < _FEWEST_ELEMENTS or len({_place(i) for i in instrs}) != 1:
            return False
        made = set()
        for leaf in tree.leaves:
            at = self.ssa.instr[leaf.node.value] if leaf.product is None else leaf.product.index
            if at < 0:
                return False
            instr = self._instrs[at]
            made.add((instr.opcode, _place(instr)))
        return len(made) == 1 and len({leaf.node for leaf in tree.leaves}) == len(tree.leaves)

    def is_partial(self, node: Node) -> bool:
        """True for a value of a scan."""
        return node in self._partial

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
        block = self.ssa.cfg.block_of[load.index]
        if block not in self._scanned:
            self._scanned.add(block)
            self._scan_shared(block)
        stores = self._stores_before.get(load.index)
        if stores is None:
            return []
        target = load.operands[0]
        place = -1
        if isinstance(target, Vector):
            place = _position(load, target, self.ssa.register[value])
        count = len(target.elements) if isinstance(target, Vector) else 1
        key = (stores[0].index, stores[-1].index, load.shape.type, count, place)
        known = self._between.get(key)
        if known is None:
            known = self._between[key] = []
            for store in stores:
                found = self._stored(store, load, place)
                if found is None:
                    known.clear()
                    break
                known += found
        return known

    def _scan_shared(self, index: int) -> None:
        """Find for each shared load of a block the stores between the two barriers before it."""
        block = self.ssa.cfg.blocks[index]
        handed: list[Instr] = []
        stores: list[Instr] = []
        spoilt = False
        for instr in self._instrs[block.start : block.end]:
            opcode = instr.opcode
            if opcode in ("bar", "barrier") and "warp" not in instr.shape.modifiers:
                if stores or spoilt:
                    handed = [] if spoilt else stores
                    stores, spoilt = [], False
            elif opcode == "st" and instr.shape.space == "shared":
                stores.append(instr)
            elif opcode == "ld":
                if handed and not stores and not spoilt and instr.shape.space == "shared":
                    self._stores_before[instr.index] = handed
            elif opcode == "stmatrix" or self._may_store(instr.shape):
                spoilt = True

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
    absolute: bool = False
    mode: str = ""


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
        self.edges: list[tuple[Node, Node]] = []
        self._seen: set[Node] = set()
        self._place = _Place(Node(0), True)
        self._lanes = 0
        """The lanes over which what lies below the node at hand is combined on its side of shared
        memory."""
        self._handed = False
        self._absolute = False
        self._beside: Node | None = None
        """A child that is not combined over the lanes of its siblings."""
        self._mode = ""
        """What the nodes below are: `bits` that are counted, predicates of which `all` or `any`
        hold, or plain numbers."""
        self._is_scan = False
        self.partial = False
        self.chosen = False

    def grow(self, root: Node) -> None:
        """Follow every node down to the leaves."""
        self._is_scan = self._owner.is_partial(root)
        work: list[_Place] = [_Place(root, True)]
        while work:
            place = work.pop()
            node = self._owner.node(place.node)
            if node in self._seen:
                continue
            self._seen.add(node)
            self._place = place
            self._lanes, self._handed = place.lanes, place.handed
            self._absolute, self._mode = place.absolute, place.mode
            children = None
            if len(self._seen) < _MAX_NODES:
                children = self._children(node, place.is_root)
            if children is None:
                self._add(node, None, place.init)
                continue
            is_join = self._is_join(node.value)
            for at in reversed(range(len(children))):
                child, first = children[at]
                self.edges.append((node, self._owner.node(child)))
                way = ((self._ssa.phi_block[node.value], at),) if is_join else ()
                init = place.init or first
                lanes = place.lanes if child == self._beside else self._lanes
                ways = place.ways + way
                work.append(
                    _Place(
                        child,
                        False,
                        init,
                        ways,
                        lanes,
                        self._handed,
                        self._absolute,
                        self._mode,
                    )
                )

    def _add(self, node: Node, product: Instr | None, init: bool = False, narrow: str = "") -> None:
        place = self._place
        leaf = Leaf(
            node, product, init, place.ways, self._lanes, self._handed, self._absolute, narrow
        )
        self.leaves.append(leaf)
        above = self._owner.node(place.node)
        if node != above:
            self.edges.append((above, node))

    def _is_join(self, value: int) -> bool:
        """True for a phi that no loop carries."""
        if self._ssa.kind[value] != PHI:
            return False
        return self._owner.loops.with_header(self._ssa.phi_block[value]) is None

    def _children(self, node: Node, is_root: bool) -> list[tuple[Node, bool]] | None:
        """The nodes that this one combines (and whether they are initial values); None: a leaf."""
        owner, value = self._owner, node.value
        self._beside = None
        if owner.is_partial(node) and (
            owner.is_input(node) if self._is_scan else not self._is_sum_of_scans(node)
        ):
            return None
        step = owner.step_at(node)
        if self._is_scan and not owner.is_partial(node) and self._is_whole(node):
            return None
        if step is not None and step.operator == self.operator:
            return self._exchange(step, node)
        if self._ssa.kind[value] == PHI:
            return self._phi(node)
        if self._ssa.kind[value] == MERGE:
            return self._from_some_lanes(value)
        instr = owner.definition(value)
        if instr is None:
            return None
        if self._mode:
            return self._logic(instr)
        if instr.opcode == "popc" and self.operator == "add" and instr.guard is None:
            return self._enter("bits", instr, instr.operands[1])
        if instr.opcode == "selp":
            return self._selected(instr, node)
        if instr.opcode == "shfl":
            return self._moved(instr)
        if instr.opcode == "ld" and node.part == WHOLE:
            return self._shared(value)
        if operator_of(instr) != self.operator or instr.guard is not None:
            return None
        if (instr.shape.type in _PACKED) != (node.part != WHOLE):
            return None
        free = is_root or owner.is_partial(node)
        if not free and not self._is_private(value, node.part) and not self._is_prefix(value):
            return None
        self.partial = self.partial or owner.is_partial(node)
        if owner.is_partial(node):
            self._consumed.add(node)
        return self._combined(instr, node.part)

    def _is_whole(self, node: Node) -> bool:
        """True for what was summed up as a whole, or over the rounds of a loop, and is no part of
        the scan that it is added to."""
        owner, value = self._owner, node.value
        block = self._ssa.phi_block.get(value)
        if block is None or owner.loops.with_header(block) is None:
            return owner.step_at(node) is not None
        return not any(
            owner.is_partial(owner.node(Node(v, node.part))) for v in self._ssa.operands[value]
        )

    def _selected(self, instr: Instr, node: Node) -> list[tuple[Node, bool]] | None:
        """The arms of a `selp` that picks the larger (or smaller), or picks by the lane."""
        owner = self._owner
        choice = owner.selections.choice(instr)
        if choice is not None and choice.operator == self.operator:
            self.chosen = True
            self.instrs |= {instr.index, *choice.tests}
            return [(Node(choice.first), False), (Node(choice.second), False)]
        if not owner.is_partial(node):
            return self._from_warps(instr) or self._from_predicate(instr)
        self.instrs.add(instr.index)
        values = [owner.read(instr, o) for o in instr.operands[1:3]]
        return [(Node(v), False) for v in values if v is not None]

    def _from_some_lanes(self, merge: int) -> list[tuple[Node, bool]] | None:
        """What other warps handed over to the lanes that a guarded load names; the others hold
        nothing that was ever written."""
        ssa, owner = self._ssa, self._owner
        if not ssa.is_only_write(merge):
            return None
        loaded = ssa.written(merge)
        made = owner.definition(loaded)
        predicate = None if made is None else ssa.guard_value(made)
        if predicate is None or not owner.selections.is_of_index(predicate):
            return None
        return self._shared(loaded)

    def _from_warps(self, instr: Instr) -> list[tuple[Node, bool]] | None:
        """What other warps handed over, in the lanes that there are warps for."""
        owner = self._owner
        values = [v for o in instr.operands[1:3] if (v := owner.read(instr, o)) is not None]
        predicate = owner.read(instr, instr.operands[3])
        if len(values) != 1 or predicate is None or not owner.selections.is_of_index(predicate):
            return None
        made = owner.definition(owner.node(Node(values[0])).value)
        if made is None or made.opcode != "ld" or not owner.stored_before(values[0]):
            return None
        self.instrs.add(instr.index)
        return [(Node(values[0]), False)]

    def _from_predicate(self, instr: Instr) -> list[tuple[Node, bool]] | None:
        """The predicates of which all or any must hold for a 1."""
        mode = _MODES.get(self.operator)
        if mode is None or [fold(o) for o in instr.operands[1:3]] not in ([1, 0], [-1, 0]):
            return None
        return self._enter(mode, instr, instr.operands[3])

    def _enter(self, mode: str, instr: Instr, operand: Operand) -> list[tuple[Node, bool]] | None:
        value = self._owner.read(instr, operand)
        made = None if value is None else self._owner.definition(value)
        if value is None or made is None or not self._is_private(value, WHOLE):
            return None
        if mode != "bits" and (made.opcode != _LOGIC_OF[mode] or made.shape.type != "pred"):
            return None
        self._mode = mode
        self.instrs.add(instr.index)
        return [(Node(value), False)]

    def _logic(self, instr: Instr) -> list[tuple[Node, bool]] | None:
        """What bits that are counted, or predicates, are put together from."""
        owner, mode = self._owner, self._mode
        if instr.guard is not None or len(instr.defs) != 1:
            return None
        operands = instr.operands[1:]
        if mode == "bits":
            constants = [o for o in operands[1:] if owner.constant(instr, o) is not None]
            shifts = instr.opcode in ("shl", "shr", "and") and len(constants) == 1
            if instr.opcode != "or" and instr.opcode != "cvt" and not shifts:
                return None
            operands = tuple(o for o in operands if o not in constants)
        elif instr.opcode != _LOGIC_OF[mode] or instr.shape.type != "pred":
            return None
        values = [owner.read(instr, o) for o in operands]
        found = [Node(v) for v in values if v is not None]
        if len(found) != len(operands) or not self._is_private(
            owner.ssa.resolve(owner.ssa.def_values[instr.index][0]), WHOLE
        ):
            return None
        self.instrs.add(instr.index)
        return [(n, False) for n in found]

    def _moved(self, shfl: Instr) -> list[tuple[Node, bool]] | None:
        """What another lane holds."""
        owner = self._owner
        source = owner.read(shfl, shfl.operands[1])
        result = self._ssa.def_values[shfl.index][0]
        if source is None or shfl.guard is not None:
            return None
        if not owner.is_partial(Node(self._ssa.resolve(result))) and owner.hops.of(result):
            # It came from one lane, and is combined here for the first time.
            return None
        readers = {r.index: r for r in owner._readers(result)}
        inside = all(
            owner.is_partial(Node(self._ssa.resolve(v)))
            for r in readers.values()
            for v in self._ssa.def_values[r.index]
        )
        if not inside and not self._is_private(self._ssa.resolve(result), WHOLE):
            return None
        self.partial = True
        if shfl.shape.has("bfly") and fold(shfl.operands[2]) is not None:
            # All lanes change places: what differs in some bits of their numbers still does.
            owner.moves.add(shfl.index)
        else:
            owner.shifts.add(shfl.index)
            lanes = owner.scanned(shfl)
            self._lanes |= lanes
            self.lanes |= lanes
        self.instrs.add(shfl.index)
        self._owner.recognised.add(shfl.index)
        return [(Node(source), False)]

    def _exchange(self, step: _Step, node: Node) -> list[tuple[Node, bool]]:
        self._consumed.add(node)
        self.partial = self.partial or step.partial
        if step.choice is not None:
            self.chosen = True
            self.instrs |= step.choice.tests
        if step.again is not None:
            self.instrs.add(step.again.index)
            self._owner.recognised.add(step.again.index)
        self._absolute = self._absolute or step.combine.shape.has("abs")
        self.lanes |= step.lanes
        self._lanes |= step.lanes
        self.instrs |= {step.exchange.index, step.combine.index}
        self._owner.recognised.add(step.exchange.index)
        if step.fused:
            self._add(Node(step.source), None)
            return []
        if step.beside is None:
            return [(Node(step.source), False)]
        self._beside = Node(step.beside)
        return [(Node(step.source), False), (self._beside, False)]

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
        owner.accumulators.add(phi)
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
            if step is not None and step.operator == self.operator:
                continue
            instr = self._owner.definition(source.value)
            if instr is None or not self._is_own(instr, source):
                return None
        self.warps = True
        self._lanes, self._handed = 0, True
        return [(node, False) for node in stored]

    def _is_own(self, instr: Instr, node: Node) -> bool:
        """True for what combines with the tree's operator."""
        if operator_of(instr) == self.operator or self._owner.is_partial(node):
            return True
        choice = self._owner.selections.choice(instr) if instr.opcode == "selp" else None
        return choice is not None and choice.operator == self.operator

    def _is_private(self, value: int, part: int) -> bool:
        """True if nothing but one instruction (and loops that carry it) reads the value."""
        readers = {reader.index for reader in self._owner._readers(value)}
        exchanges = {at for at in readers if self._owner._instrs[at].opcode == "shfl"}
        unpacking = 1 if part == WHOLE else 2
        for phi in self._ssa.value_users(value):
            if self._ssa.kind[phi] != PHI:
                return False
        return len(readers - exchanges) <= unpacking

    def _is_sum_of_scans(self, node: Node) -> bool:
        """True for a sum of two results of scans, which is no step of either."""
        owner = self._owner
        made = owner.definition(node.value)
        if made is None or operator_of(made) != self.operator or owner.step_at(node) is not None:
            return False
        if node.part != WHOLE or len(made.operands) != 3 or made.guard is not None:
            return False
        for operand in made.operands[1:]:
            value = owner.read(made, operand)
            below = None if value is None else owner.node(Node(value))
            if below is None or not owner.is_partial(below):
                return False
            definition = owner.definition(below.value)
            if definition is None or definition.opcode == "shfl":
                return False
        return True

    def _is_prefix(self, value: int) -> bool:
        """True for what one thread sums up of its own elements in a scan: nothing but the scan
        reads it, though several times."""
        owner = self._owner
        if not self._is_scan or self._ssa.value_users(value):
            return False
        return all(
            reader.opcode == "shfl"
            or operator_of(reader) == self.operator
            or owner.is_partial(Node(self._ssa.resolve(self._ssa.def_values[reader.index][0])))
            for reader in owner._readers(value)
            if reader.defs
        )

    def _combined(self, instr: Instr, part: int) -> list[tuple[Node, bool]] | None:
        owner = self._owner
        operands = instr.operands[3:] if instr.opcode == "fma" else instr.operands[1:]
        values = [owner.read(instr, o) for o in operands]
        found = [Node(v, part) for v in values if v is not None]
        # A constant for all lanes next to a lane's own value is part of what each lane puts in.
        mixed = len(found) < len(values) or any(owner.is_uniform(n.value) for n in found)
        # In a scan each element takes in what others hold, and nothing combines them again.
        mixed = mixed or (not self._is_scan and self._are_apart(found))
        if not found or (mixed and not owner.is_uniform(owner.ssa.def_values[instr.index][0])):
            return None
        self.instrs.add(instr.index)
        narrow = narrow_type(instr)
        if narrow and instr.opcode != "fma" and values[0] is not None:
            self._add(Node(values[0], part), None, False, narrow)
            found = [Node(v, part) for v in values[1:] if v is not None]
        if instr.opcode == "fma":
            result = self._ssa.def_values[instr.index][0]
            self._add(Node(result, part), instr)
        return [(n, False) for n in found]

    def _are_apart(self, nodes: list[Node]) -> bool:
        """True if lanes that are combined further up share one of the values and not another.

        Then what each lane puts in is the two together. Taken in twice, a maximum stays what it is.
        """
        if self.operator not in ("add", "mul", "xor"):
            return False
        above = self._lanes | (WARP_BITS if self._handed else 0)
        depends = [self._owner.depends(n.value) & above for n in nodes]
        return any(d != depends[0] for d in depends)


def _place(instr: Instr) -> tuple[int, int, int] | None:
    """Where in the source an instruction comes from."""
    loc = instr.loc
    return None if loc is None else (loc.file, loc.line, loc.column)


def operator_of(instr: Instr) -> str | None:
    """The associative operator that an instruction applies; None if it is none.

    A difference or a product's high half is none; nor is an `fma` whose sum is an integer.
    """
    shape = instr.shape
    if shape.opcode not in _OPERATORS or shape.has("cc") or shape.has("sat"):
        return None
    if shape.opcode in ("mul", "fma") and shape.type[:1] not in ("f", "b"):
        return None
    if shape.opcode in _LOGICAL and shape.type == "pred":
        return None
    return _OPERATORS[shape.opcode]


def narrow_type(instr: Instr) -> str:
    """The type of the operands that an instruction widens, "" if it does not.

    All but the last source are of it (PTX ISA, "Mixed Precision Floating Point Instructions").
    """
    types = instr.shape.types
    mixed = instr.opcode in ("add", "sub", "fma") and len(types) == 2 and types[0] == "f32"
    return types[1] if mixed and types[1] in ("f16", "bf16") else ""


def _type_of(instr: Instr) -> str:
    """The type of a result."""
    return instr.shape.types[0] if narrow_type(instr) else instr.shape.type


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
