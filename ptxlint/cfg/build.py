"""From a function's instructions to its control-flow graph."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from ptxlint.cfg.graph import EXIT, Block, Cfg
from ptxlint.facts import Analysis, Facts
from ptxlint.ir.function import Function, Prototype
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Label, Register, Symbol

_LEAVES = frozenset({"return", "exit", "trap", "noreturn", "abort"})
_ASSERTION_HANDLER = "__assertfail"


class _Ending(NamedTuple):
    """How a block ends: the instruction, its kind, and where it may jump (instruction indices).

    `kind` is a terminator kind of the opcode table, or `noreturn`, or `abort`.
    """

    instr: Instr
    kind: str
    targets: tuple[int, ...]


def build(fn: Function, noreturn: frozenset[str] = frozenset()) -> Cfg:
    """The control-flow graph of a function.

    `noreturn` names the functions that never return to their caller (PTX ISA, ".noreturn").
    A jump to a label that is not declared goes to every label of the function. A declaration
    has a graph of one empty block.
    """
    endings = _endings(fn, noreturn)
    blocks, block_of = _split(len(fn.instrs), endings)
    _connect(blocks, block_of, endings)
    return Cfg(fn, blocks, block_of)


class CfgAnalysis(Analysis[Cfg]):
    """The control-flow graph as facts of a function."""

    name: ClassVar[str] = "cfg"

    def run(self, facts: Facts) -> Cfg:
        """Build the graph; the module says which callees never return."""
        functions = facts.module.functions
        noreturn = frozenset(f.name for f in functions if "noreturn" in f.directives)
        return build(facts.function, noreturn)


def _endings(fn: Function, noreturn: frozenset[str]) -> list[_Ending]:
    """The instructions that end a block, in text order."""
    endings: list[_Ending] = []
    silent = _silent_names(fn, noreturn)
    targets = _Targets(fn)
    for instr in fn.instrs:
        row = instr.shape.row
        kind = row.terminator
        if kind:
            endings.append(_Ending(instr, kind, targets.of(instr, kind)))
        elif silent and row.is_call and (names := _named(instr) & silent):
            aborts = _ASSERTION_HANDLER in names
            endings.append(_Ending(instr, "abort" if aborts else "noreturn", ()))
    return endings


def _silent_names(fn: Function, noreturn: frozenset[str]) -> frozenset[str]:
    """Names whose mention as callee, prototype or call table makes a call that never returns."""
    prototypes = {
        item.name
        for item in fn.items
        if type(item) is Prototype and any(name == "noreturn" for name, _ in item.attributes)
    }
    tables = {
        table.name
        for table in fn.targets.values()
        if table.kind == "calltargets" and table.targets and noreturn.issuperset(table.targets)
    }
    return noreturn | prototypes | tables


def _named(call: Instr) -> frozenset[str]:
    """What a call names as its callee, prototype or table."""
    return frozenset(
        atom.name
        for atom in call.args
        if type(atom) is Symbol and atom.kind not in ("param", "variable")
    )


class _Targets:
    """Finds the instruction indices that a jump may go to."""

    def __init__(self, fn: Function) -> None:
        self._fn = fn
        self._by_name: dict[str, list[int]] | None = None

    def of(self, instr: Instr, kind: str) -> tuple[int, ...]:
        """Targets of a jump in operand order, none for other kinds."""
        if kind == "branch":
            # The target of a label that is defined nowhere is -1.
            found = [a.target for a in instr.args if type(a) is Label and a.target >= 0]
            return tuple(found) if found else self._all()
        if kind == "indirect":
            return self._listed(instr)
        return ()

    def _all(self) -> tuple[int, ...]:
        return tuple(sorted({label.target for label in self._fn.labels}))

    def _listed(self, instr: Instr) -> tuple[int, ...]:
        """Targets of `brx.idx`: those of its list; every label if the list is not known."""
        lists = self._fn.targets
        names = [a.name for a in instr.args if isinstance(a, Symbol | Label) and a.name in lists]
        if not names:
            return self._all()
        by_name = self._labels_by_name()
        out: list[int] = []
        for name in lists[names[-1]].targets:
            if name not in by_name:
                return self._all()
            out += by_name[name]
        return tuple(out)

    def _labels_by_name(self) -> dict[str, list[int]]:
        # Scopes may repeat a name: a list that names it may mean any of them.
        if self._by_name is None:
            self._by_name = {}
            for label in self._fn.labels:
                self._by_name.setdefault(label.name, []).append(label.target)
        return self._by_name


def _split(count: int, endings: list[_Ending]) -> tuple[list[Block], list[int]]:
    """Blocks without edges, and the block of each instruction."""
    starts = {0}
    for ending in endings:
        starts.add(ending.instr.index + 1)
        starts.update(ending.targets)
    # Behind the last instruction a block is needed only where something jumps there.
    if count and not any(count in ending.targets for ending in endings):
        starts.discard(count)
    order = sorted(starts)
    blocks: list[Block] = []
    block_of: list[int] = []
    for index, start in enumerate(order):
        end = order[index + 1] if index + 1 < len(order) else count
        blocks.append(Block(index, start, end))
        block_of += [index] * (end - start)
    return blocks, block_of


def _connect(blocks: list[Block], block_of: list[int], endings: list[_Ending]) -> None:
    """Add the edges, their conditions and the ways out."""
    after_last = len(blocks) - 1
    ending_of = {block_of[ending.instr.index]: ending for ending in endings}
    for block in blocks:
        ending = ending_of.get(block.index)
        follower = block.index + 1 if block.index < after_last else EXIT
        if ending is None:
            _fall(block, follower)
            continue
        count = len(block_of)
        taken = [block_of[t] if t < count else after_last for t in ending.targets]
        block.succs = list(dict.fromkeys(taken))
        if ending.kind in _LEAVES:
            block.leave = ending.kind
        shape = ending.instr.shape
        if shape.guard:
            guard = ending.instr.guard
            both = follower in block.succs or (follower == EXIT and bool(block.leave))
            # In a faulty text the guard may be a name that is not declared.
            if not both and isinstance(guard, Register):
                block.condition = (guard, shape.guard == "@")
            block.fallthrough = follower
            _fall(block, follower)
        elif not block.succs and not block.leave:
            # A jump that has no label to go to at all: nothing is known, so let it go on.
            _fall(block, follower)


def _fall(block: Block, follower: int) -> None:
    """Let a block go on to the one that follows it in the text, or out at the end."""
    if follower == EXIT:
        block.leave = block.leave or "end"
    elif follower in block.succs:
        block.succs.remove(follower)
        block.succs.append(follower)
    else:
        block.succs.append(follower)
