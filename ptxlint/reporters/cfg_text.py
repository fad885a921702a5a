"""A control-flow graph as text."""

from __future__ import annotations

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.dominance import DominatorsAnalysis, DominatorTree
from ptxlint.cfg.graph import EXIT
from ptxlint.facts import Facts
from ptxlint.reporters.cfg_view import CfgView, Edge, Node


def render_cfg_text(facts: Facts) -> str:
    """Blocks in text order with edges, dominator and loop depth, instructions below."""
    view = CfgView(facts)
    dominators = facts.get(DominatorsAnalysis)
    lines = [_headline(view, facts)]
    for region in view.loops.irreducible:
        members = ", ".join(f"B{block}" for block in sorted(region.blocks))
        lines.append(f"  irreducible region: {members}")
    edges: dict[int, list[Edge]] = {}
    for edge in view.edges:
        edges.setdefault(edge.source, []).append(edge)
    for node in view.nodes:
        lines.append("")
        lines += _block(node, edges.get(node.block, []), view, dominators)
    return "\n".join(lines) + "\n"


def _headline(view: CfgView, facts: Facts) -> str:
    cfg = facts.get(CfgAnalysis)
    blocks, loops = len(cfg.blocks), len(view.loops.loops)
    dead = blocks - len(cfg.reachable)
    text = f"{facts.function.kind} {view.name}: {blocks} blocks, {loops} loops"
    return text + (f", {dead} unreachable" if dead else "")


def _block(node: Node, edges: list[Edge], view: CfgView, dominators: DominatorTree) -> list[str]:
    state = "" if node.reachable else ", unreachable"
    depth = f", loop depth {node.depth}" if node.depth else ""
    lines = [f"  {node.title}{depth}{state}"]
    if node.python:
        lines.append(f"    from {node.python}")
    if node.reachable and node.block:
        lines.append(f"    immediate dominator B{dominators.idom[node.block]}")
    preds = view.cfg.blocks[node.block].preds
    if preds:
        lines.append("    preds " + ", ".join(f"B{pred}" for pred in sorted(preds)))
    if edges:
        lines.append("    succs " + ", ".join(_edge(edge, view) for edge in edges))
    return lines + [f"      {text}" for text in node.instructions]


def _edge(edge: Edge, view: CfgView) -> str:
    leave = view.cfg.blocks[edge.source].leave
    text = f"out ({leave})" if edge.target == EXIT else f"B{edge.target}"
    text += f" if {edge.label}" if edge.label else ""
    return text + (" (back)" if edge.back else "")
