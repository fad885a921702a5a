"""What a picture of a control-flow graph shows, whatever it is drawn with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import EXIT, Block, Cfg
from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module

SHOWN = 8
"""Instructions of a block that a picture shows; the text form shows all."""


class Edge(NamedTuple):
    """An edge of the picture; `target` is `EXIT` for the way out, `back` closes a loop."""

    source: int
    target: int
    label: str
    back: bool


class Node(NamedTuple):
    """A block: its title, the Python lines its code comes from, its instructions as text."""

    block: int
    title: str
    python: str
    instructions: tuple[str, ...]
    depth: int
    reachable: bool

    def rows(self) -> list[str]:
        """The lines of its box: all of the head, the first instructions, how many more."""
        more = len(self.instructions) - SHOWN
        rows = [self.title, *([self.python] if self.python else []), *self.instructions[:SHOWN]]
        return [*rows, f"… {more} more"] if more > 0 else rows


class CfgView:
    """Nodes and edges of one function."""

    def __init__(self, facts: Facts) -> None:
        self.name = facts.function.name
        self.cfg: Cfg = facts.get(CfgAnalysis)
        self.loops: LoopForest = facts.get(LoopsAnalysis)
        self._module = facts.module
        self._labels = self._label_names()
        self.nodes = [self._node(block) for block in self.cfg.blocks]
        self.edges = [edge for block in self.cfg.blocks for edge in self._edges(block)]

    def _label_names(self) -> dict[int, str]:
        """Label by block index, the first of several."""
        names: dict[int, str] = {}
        block_of = self.cfg.block_of
        for label in self.cfg.function.labels:
            if label.target < len(block_of):
                block = block_of[label.target]
                if self.cfg.blocks[block].start == label.target:
                    names.setdefault(block, label.name)
        return names

    def _node(self, block: Block) -> Node:
        label = self._labels.get(block.index, "")
        size = len(block)
        title = f"B{block.index}" + (f" {label}" if label else "")
        title += f" ({size} instruction{'' if size == 1 else 's'})"
        return Node(
            block.index,
            title,
            python_lines(block, self.cfg, self._module),
            tuple(repr(instr) for instr in self.cfg.instructions(block)),
            self.loops.depth(block.index) if block.index in self.cfg.reachable else 0,
            block.index in self.cfg.reachable,
        )

    def _edges(self, block: Block) -> list[Edge]:
        out = []
        for target in self.cfg.edges_from(block):
            condition = self.cfg.edge_condition(block.index, target)
            label = ""
            if condition is not None:
                register, value = condition
                label = register.name if value else f"!{register.name}"
            loop = self.loops.with_header(target) if target != EXIT else None
            back = loop is not None and block.index in loop.latches
            out.append(Edge(block.index, target, label, back))
        return out


def python_lines(block: Block, cfg: Cfg, module: Module) -> str:
    """`softmax.py:10-12, 15` for the lines that a block's instructions come from."""
    return lines_of(cfg.instructions(block), module)


def lines_of(instrs: Iterable[Instr], module: Module) -> str:
    """`softmax.py:10-12, 15` for the lines that instructions come from."""
    lines: dict[str, set[int]] = {}
    for instr in instrs:
        frame = module.python_frame(instr.loc)
        if frame is not None and frame.line > 0:
            lines.setdefault(frame.path, set()).add(frame.line)
    parts = []
    for path, numbers in lines.items():
        name = path.replace("\\", "/").rsplit("/", 1)[-1]
        parts.append(f"{name}:{_ranges(sorted(numbers))}")
    return ", ".join(parts)


def _ranges(numbers: list[int]) -> str:
    """`10-12, 15` for [10, 11, 12, 15]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
