"""Graphs that `nvdisasm -bbcfg` draws, held against those of ptxlint by instruction."""

from __future__ import annotations

import re
from collections import defaultdict

from ptxlint.cfg.build import build
from ptxlint.cfg.graph import Cfg
from ptxlint.ir.function import Function

Drawing = tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]
"""Nodes with their opcodes, and edges between nodes."""


def drawn(text: str) -> dict[str, Drawing]:
    """What `nvdisasm -bbcfg` prints, by function."""
    out: dict[str, Drawing] = {}
    current: Drawing = ([], [])
    node = ""
    for line in text.splitlines():
        if found := re.match(r'subgraph "cluster_(.*)" \{', line):
            current = out[found[1]] = ([], [])
        elif found := re.match(r'"((?:[^"\\]|\\.)*)":\w+:\w+ -> "((?:[^"\\]|\\.)*)":', line):
            current[1].append((found[1], found[2]))
        elif found := re.fullmatch(r'"((?:[^"\\]|\\.)*)"', line):
            node = found[1]
        elif line.startswith('[label="{') and node:
            current[0].append((node, _opcodes(line.removeprefix('[label="{'))))
            node = ""
    return out


def _opcodes(body: str) -> list[str]:
    out = []
    for part in body.split(r"\l"):
        plain = re.sub(r"\|?<\w+>", "", part).replace("\\ ", " ").replace("\\", "").strip('|{}" ]')
        plain = re.sub(r"^@!?\w+\s+", "", plain.strip())
        if re.match(r"[A-Z]", plain) and not plain.endswith(":"):
            out.append(plain.split()[0].split(".")[0].rstrip(";"))
    return out


def difference(fn: Function, drawing: Drawing) -> str:
    """Where a function's graph and a drawing of it part, "" if they do not. Only what can be
    reached is looked at: what fills a section up behind the last way out is not drawn. That a
    function which calls itself is drawn with an edge to its start is no way through its graph."""
    nodes, edges = drawing
    opcodes = [opcode for _, opcodes in nodes for opcode in opcodes]
    if [i.opcode for i in fn.instrs[: len(opcodes)]] != opcodes:
        return "other instructions are drawn"
    theirs = _steps_of_drawing(nodes, edges)
    ours = _steps(build(fn))
    seen, waiting = set(), [0]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if at < len(fn.instrs) and fn.instrs[at].shape.row.is_call:
            theirs[at].discard(0)
        if ours[at] != theirs[at]:
            where = fn.instrs[at].opcode if at < len(fn.instrs) else "the end"
            return f"from {where} ({at}) to {sorted(ours[at])}, drawn to {sorted(theirs[at])}"
        waiting += ours[at]
    return ""


def _steps_of_drawing(
    nodes: list[tuple[str, list[str]]], edges: list[tuple[str, str]]
) -> dict[int, set[int]]:
    """From the index of each instruction to those that may follow."""
    first, last = {}, {}
    steps: dict[int, set[int]] = defaultdict(set)
    count = 0
    for name, opcodes in nodes:
        first[name] = count
        count += len(opcodes)
        last[name] = count - 1
        for at in range(first[name], last[name]):
            steps[at].add(at + 1)
    for start, end in edges:
        if start in last and end in first:
            steps[last[start]].add(first[end])
    return steps


def _steps(cfg: Cfg) -> dict[int, set[int]]:
    steps: dict[int, set[int]] = defaultdict(set)
    for block in cfg.blocks:
        for at in range(block.start, block.end - 1):
            steps[at].add(at + 1)
        if len(block):
            steps[block.end - 1] |= {cfg.blocks[at].start for at in block.succs}
    return steps


__all__ = ["Drawing", "difference", "drawn"]
