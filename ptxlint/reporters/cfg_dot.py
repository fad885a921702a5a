"""A control-flow graph in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterable

from ptxlint.cfg.graph import EXIT
from ptxlint.facts import Facts
from ptxlint.reporters.cfg_view import CfgView, Edge, Node


def render_cfg_dot(functions: Iterable[Facts]) -> str:
    """One digraph, a cluster a function."""
    lines = ["digraph cfg {", '  node [shape=box, fontname="monospace", fontsize=10];']
    for number, facts in enumerate(functions):
        view = CfgView(facts)
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(view.name)};"]
        lines += [f"    {_name(number, node.block)} [{_node(node)}];" for node in view.nodes]
        if any(edge.target == EXIT for edge in view.edges):
            lines.append(f"    {_name(number, EXIT)} [label=out, shape=ellipse];")
        lines += [f"    {_edge(number, edge)};" for edge in view.edges]
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _name(number: int, block: int) -> str:
    return f"f{number}_out" if block == EXIT else f"f{number}_b{block}"


def _node(node: Node) -> str:
    # \l ends a line and aligns it left.
    label = "".join(_escaped(row) + "\\l" for row in node.rows())
    style = "" if node.reachable else ", style=dashed"
    return f'label="{label}"{style}'


def _edge(number: int, edge: Edge) -> str:
    attributes = []
    if edge.label:
        attributes.append(f"label={_quoted(edge.label)}")
    if edge.back:
        attributes.append("style=bold")
    text = f"{_name(number, edge.source)} -> {_name(number, edge.target)}"
    return f"{text} [{', '.join(attributes)}]" if attributes else text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
