"""What decides whether an instruction of machine code runs: a slice of the program dependence
graph back to what the kernel is given.

An instruction runs or not by its predicate and by the branches that its block depends on; those
read registers, whose values depend on what wrote them, on whether that ran, and so on (Ferrante,
Ottenstein and Warren, 1987, as in `ptxlint.cfg.control_dependence`). Whatever is not followed
exactly counts as a dependence, so that what is not found does not decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.dataflow.inputs import ANY, MEMORY, THREAD, WORD, Input, words
from ptxlint.dataflow.local_memory import frame_bytes
from ptxlint.dataflow.reaching import ReachingAnalysis
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of
from ptxlint.ir.operand import (
    Address,
    Expr,
    Immediate,
    Label,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.ir.sass.function import SassFunction

_ANYWHERE: Final = -1
"""Stands for the bytes of a store whose place in the frame is not plain to see."""
_AXES: Final = {".X": 0, ".Y": 1, ".Z": 2}
_LOADS: Final = ("load", "atomic")
_THREADS: Final = (
    "SR_TID", "SR_LANE", "SR_LMASK", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK",
    "SR_GEMASK", "SR_VIRTID", "SR_WARP", "SR_NWARP",
)  # fmt: skip


class MachineDeciders:
    """The inputs that decide whether instructions of one function run."""

    def __init__(self, facts: Facts, has_calls: bool) -> None:
        self._fn = facts.function
        self._cfg = facts.get(CfgAnalysis)
        self._control = facts.get(ControlDependenceAnalysis)
        self._reaching = facts.get(ReachingAnalysis)
        self._bits: dict[Input, int] = {}
        self._masks: dict[int, int] = {}
        count = len(self._fn.instrs)
        # Nodes beyond the instructions: what callees leave, what shared memory holds, and what the
        # bytes of the frame hold that a load reads.
        self._callees, self._shared = count, count + 1
        self._frame: dict[range | None, int] = {}
        self._in_frame: dict[int, list[int]] = {}
        self._stored: dict[int, list[int]] | None = None
        reachable = self._cfg.is_reachable
        self._stores = {
            space: [i for i in self._fn.instrs if space in memory_of(i.shape).writes]
            for space in ("shared", "local")
        }
        self._away = [i for i in self._fn.instrs if not reachable(i)] if has_calls else []
        self._left_by_callees = {r for i in self._away for r in i.defs}

    def of(self, instr: Instr) -> frozenset[Input]:
        """All inputs that may decide whether an instruction runs."""
        mask = 0
        for node in self._on_running(instr):
            mask |= self._mask(node)
        return frozenset(known for known, bit in self._bits.items() if mask >> bit & 1)

    # The graph --------------------------------------------------------------------------------
    def _on_running(self, instr: Instr) -> Iterator[int]:
        """What the running of an instruction depends on: its predicates, and branches."""
        for register in instr.uses:
            if register.type == "pred":
                yield from self._written(instr, register)
        yield from self._branches(self._cfg.block_of[instr.index])

    def _before(self, node: int) -> Iterator[int]:
        """What the value that a node stands for depends on."""
        if node == self._callees:
            registers = {r for i in self._away for r in i.uses}
            for register in registers:
                yield from self._reaching.definitions(register)
            return
        if node == self._shared:
            yield from (i.index for i in self._stores["shared"])
            return
        if node in self._in_frame:
            yield from self._in_frame[node]
            return
        instr = self._fn.instrs[node]
        for register in instr.uses:
            yield from self._written(instr, register)
        yield from self._branches(self._cfg.block_of[node])
        yield from self._held(instr)

    def _written(self, instr: Instr, register: Register) -> Iterator[int]:
        if register in self._left_by_callees:
            yield self._callees
        yield from (at for at in self._reaching.defs_of(instr, register) if at >= 0)

    def _branches(self, block: int) -> Iterator[int]:
        for dependence in self._control.direct(block):
            yield self._cfg.blocks[dependence.branch].end - 1

    def _held(self, instr: Instr) -> Iterator[int]:
        """What memory may hold that an instruction loads."""
        reads = memory_of(instr.shape).reads
        if "shared" in reads:
            yield self._shared
        if "local" in reads:
            yield self._bytes_of_frame(frame_bytes(instr))

    def _bytes_of_frame(self, place: range | None) -> int:
        """The node of these bytes; None is any of them."""
        node = self._frame.get(place)
        if node is None:
            node = self._frame[place] = self._shared + 1 + len(self._frame)
            stored = self._stores_by_byte()
            if place is None:
                found = {i.index for i in self._stores["local"]}
            else:
                found = {at for byte in (*place, _ANYWHERE) for at in stored.get(byte, ())}
            self._in_frame[node] = sorted(found)
        return node

    def _stores_by_byte(self) -> dict[int, list[int]]:
        """The stores to each byte of the frame."""
        if self._stored is None:
            self._stored = {}
            for instr in self._stores["local"]:
                for byte in frame_bytes(instr) or (_ANYWHERE,):
                    self._stored.setdefault(byte, []).append(instr.index)
        return self._stored

    # Inputs -----------------------------------------------------------------------------------
    def _own(self, node: int) -> int:
        """The inputs that a node reads itself."""
        if node == self._callees:
            found = [known for i in self._away for known in self._read(i)]
        elif node > self._callees:
            return 0
        else:
            found = list(self._read(self._fn.instrs[node]))
        mask = 0
        for known in found:
            mask |= 1 << self._bits.setdefault(known, len(self._bits))
        return mask

    def _read(self, instr: Instr) -> Iterator[Input]:
        category = instr.shape.row.category
        if category in _LOADS:
            yield MEMORY
        elif category == "warp":
            yield THREAD
        for operand in instr.operands:
            yield from self._named(instr, operand)

    def _named(self, instr: Instr, operand: Operand) -> Iterator[Input]:
        if isinstance(operand, Address):
            if Symbol("c", "unknown") in operand.rest:
                yield from self._constant(instr, operand)
        elif isinstance(operand, Expr) and isinstance(operand.operands[0], SpecialRegister):
            yield from _special(operand.operands[0].name, _AXES.get(operand.operator, 0))
        elif isinstance(operand, SpecialRegister):
            yield from _special(operand.name, 0)
        elif isinstance(operand, Negated):
            yield from self._named(instr, operand.operand)
        elif isinstance(operand, Expr | Vector):
            parts = operand.operands if isinstance(operand, Expr) else operand.elements
            for part in parts:
                yield from self._named(instr, part)

    def _constant(self, instr: Instr, address: Address) -> Iterator[Input]:
        """The parameters in `c[bank][offset]`."""
        bank = next((p for p in address.rest if isinstance(p, Immediate)), None)
        if bank is not None and bank.value:
            yield MEMORY
            return
        if bank is None or not isinstance(address.base, Immediate):
            yield ANY
            return
        yield from words(address.base.value + address.offset, _constant_bytes(instr))

    # The slice --------------------------------------------------------------------------------
    def _mask(self, start: int) -> int:
        """The inputs that a node depends on, as bits: those of its strongly connected component
        and of all before it (Tarjan's algorithm, without recursion)."""
        masks = self._masks
        if start in masks:
            return masks[start]
        number, low, gathered = {start: 0}, {start: 0}, {start: self._own(start)}
        is_open = {start: True}
        path = [(start, self._before(start))]
        while path:
            node, rest = path[-1]
            for before in rest:
                if before in masks:
                    gathered[node] |= masks[before]
                elif before not in number:
                    number[before] = low[before] = len(number)
                    gathered[before] = self._own(before)
                    is_open[before] = True
                    path.append((before, self._before(before)))
                    break
                else:
                    low[node] = min(low[node], number[before])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    low[above] = min(low[above], low[node])
                    gathered[above] |= gathered[node]
                if low[node] == number[node]:
                    self._close(node, is_open, gathered)
        return masks[start]

    def _close(self, node: int, is_open: dict[int, bool], gathered: dict[int, int]) -> None:
        """Settle a component: the nodes that were opened last, back to this one."""
        members: list[int] = []
        while not members or members[-1] != node:
            members.append(is_open.popitem()[0])
        mask = 0
        for member in members:
            mask |= gathered[member]
        self._masks.update(dict.fromkeys(members, mask))


class MachineDecidersAnalysis(Analysis[MachineDeciders | None]):
    """What decides in machine code; None for a function that calls what is not in it."""

    name: ClassVar[str] = "machine-deciders"
    requires: ClassVar[tuple[type[Analysis[Any]], ...]] = (
        CfgAnalysis,
        ControlDependenceAnalysis,
        ReachingAnalysis,
    )

    def run(self, facts: Facts) -> MachineDeciders | None:
        """Look at the calls; slices are made when they are asked for."""
        fn = facts.function
        calls = [i for i in fn.instrs if i.shape.row.is_call]
        if not all(_is_inside(fn, call) for call in calls):
            return None
        return MachineDeciders(facts, bool(calls))


def _is_inside(fn: Function, call: Instr) -> bool:
    """True for a call of code that stands behind the function's own, as of a division."""
    target = call.args[-1] if call.args else None
    if isinstance(target, Immediate):
        return isinstance(fn, SassFunction) and target.value in fn.addresses
    names = {label.name for label in fn.labels}
    return isinstance(target, Symbol | Label) and target.name in names


def _special(name: str, axis: int) -> Iterator[Input]:
    """What a special register tells."""
    if name == "SR_CTAID":
        yield Input("ctaid", axis)
    elif name.startswith(("SR_CgaCta", "SR_CLUSTER", "SR_VIRTCFG", "SR_VIRTID")):
        yield from (Input("ctaid", at) for at in range(3))
    if name.startswith(_THREADS):
        yield THREAD


def _constant_bytes(instr: Instr) -> int:
    """How many bytes an instruction reads at a constant's address, or some more."""
    modifiers = instr.shape.modifiers
    if "128" in modifiers:
        return 16
    is_long = instr.shape.row.category == "double" or "WIDE" in modifiers
    return 8 if is_long or any(m in ("64", "U64", "S64") for m in modifiers) else WORD


__all__ = ["MachineDeciders", "MachineDecidersAnalysis"]
