"""The control-flow graph of one function: basic blocks, edges, edge conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from ptxlint.ir.function import Function
    from ptxlint.ir.instruction import Instr
    from ptxlint.ir.operand import Register

EXIT: Final = -1
"""The virtual block behind every way out of the function; the target of an edge that leaves."""

Condition: TypeAlias = "tuple[Register, bool]"
"""A predicate register and the value it has when an edge is taken."""


class Block:
    """A basic block: `Function.instrs[start:end]`, entered at the top, left at the bottom.

    `succs` lists each successor once, the fallthrough last. `preds` lists each predecessor once;
    a reachable block lists reachable predecessors only, so dead code never flows into live code.
    `leave` says how control leaves the function at the end of this block: "" (it does not),
    `return`, `exit`, `trap`, `noreturn` (a call that never comes back), `abort` (such a call of
    CUDA's assertion handler, which ends the grid as a trap does) or `end` (the last instruction is
    passed). With a guarded terminator a block can both leave and go on.

    When the terminator is guarded, `condition` is its predicate and the value under which it
    acts, and `fallthrough` the block that follows when it does not. `condition` is None when the
    end is unconditional or both ways lead to the same place.
    """

    __slots__ = ("condition", "end", "fallthrough", "index", "leave", "preds", "start", "succs")

    def __init__(self, index: int, start: int, end: int) -> None:
        self.index = index
        self.start = start
        self.end = end
        self.succs: list[int] = []
        self.preds: list[int] = []
        self.leave = ""
        self.condition: Condition | None = None
        self.fallthrough = EXIT

    def __len__(self) -> int:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Block({self.index}: {self.start}..{self.end} -> {self.succs})"


class Cfg:
    """Blocks in text order; block 0 is the entry, also of a function without instructions.

    A block may be empty: the entry of an empty function, and the block of a branch target that
    stands behind the last instruction.
    """

    __slots__ = (
        "block_of",
        "blocks",
        "exits",
        "function",
        "position",
        "reachable",
        "rpo",
    )

    entry: Final = 0

    def __init__(self, function: Function, blocks: list[Block], block_of: list[int]) -> None:
        self.function = function
        self.blocks = blocks
        self.block_of = block_of
        """Instruction index to block index."""
        self.rpo = _reverse_postorder(blocks)
        """Indices of the reachable blocks in reverse postorder of a depth-first walk."""
        self.reachable = frozenset(self.rpo)
        self.position: list[int] = [-1] * len(blocks)
        """Block index to its place in `rpo`, -1 for an unreachable block."""
        for place, index in enumerate(self.rpo):
            self.position[index] = place
        self.exits: list[int] = sorted(i for i in self.rpo if blocks[i].leave)
        """Reachable blocks at whose end control can leave the function."""
        self._link_predecessors()

    def _link_predecessors(self) -> None:
        blocks, position = self.blocks, self.position
        for block in blocks:
            live = position[block.index] >= 0
            for target in block.succs:
                if live or position[target] < 0:
                    blocks[target].preds.append(block.index)

    def block_at(self, instr: Instr) -> Block:
        """The block that holds an instruction."""
        return self.blocks[self.block_of[instr.index]]

    def instructions(self, block: Block | int) -> list[Instr]:
        """The instructions of a block."""
        if isinstance(block, int):
            block = self.blocks[block]
        return self.function.instrs[block.start : block.end]

    def terminator(self, block: Block | int) -> Instr | None:
        """The last instruction of a block if it is what ends it, else None."""
        if isinstance(block, int):
            block = self.blocks[block]
        if block.start == block.end:
            return None
        last = self.function.instrs[block.end - 1]
        if last.shape.row.terminator or block.leave in ("noreturn", "abort"):
            return last
        return None

    def edges_from(self, block: Block) -> list[int]:
        """The targets of a block's out-edges, `EXIT` among them if control can leave here."""
        return [*block.succs, EXIT] if block.leave else block.succs

    def edge_condition(self, source: int, target: int) -> Condition | None:
        """What holds when the edge is taken; None when nothing can be said.

        `target` is a successor of `source` or `EXIT`.
        """
        block = self.blocks[source]
        if block.condition is None:
            return None
        register, value = block.condition
        return (register, value != (target == block.fallthrough))

    def is_reachable(self, instr: Instr) -> bool:
        """True if some path from the entry leads to the instruction."""
        return self.position[self.block_of[instr.index]] >= 0

    def unreachable_blocks(self) -> Iterator[Block]:
        """The non-empty blocks that no path from the entry leads to, in text order."""
        position = self.position
        return (b for b in self.blocks if position[b.index] < 0 and b.end > b.start)

    def to_networkx(self) -> Any:
        """A `networkx.DiGraph` of the block indices; edges carry their `condition`."""
        import networkx

        graph = networkx.DiGraph()
        for block in self.blocks:
            graph.add_node(block.index, start=block.start, end=block.end, leave=block.leave)
        for block in self.blocks:
            for target in block.succs:
                condition = self.edge_condition(block.index, target)
                graph.add_edge(block.index, target, condition=condition)
        return graph

    def __repr__(self) -> str:
        return f"Cfg({self.function.name}, {len(self.blocks)} blocks)"


def _reverse_postorder(blocks: list[Block]) -> list[int]:
    """Reverse postorder of the blocks that the first one reaches.

    Of several successors the last in the text is walked first, which keeps the order close to it.
    """
    seen = bytearray(len(blocks))
    seen[0] = 1
    order: list[int] = []
    stack: list[tuple[int, Iterator[int]]] = [(0, _last_first(blocks[0]))]
    while stack:
        index, rest = stack[-1]
        for target in rest:
            if not seen[target]:
                seen[target] = 1
                stack.append((target, _last_first(blocks[target])))
                break
        else:
            order.append(index)
            stack.pop()
    order.reverse()
    return order


def _last_first(block: Block) -> Iterator[int]:
    succs = block.succs
    return iter(succs if len(succs) < 2 else sorted(succs, reverse=True))
