"""A control-flow graph as SVG, laid out here: no Graphviz needed.

Blocks stand in layers, each below all its predecessors except those that come over a back edge;
the order within a layer follows the mean position of the neighbours. Forward edges that pass a
layer bend around its blocks; back edges run up along the right.
"""

from __future__ import annotations

from itertools import pairwise
from xml.sax.saxutils import escape

from ptxlint.cfg.graph import EXIT
from ptxlint.facts import Facts
from ptxlint.reporters.cfg_view import CfgView, Edge, Node

_CHAR, _LINE, _PAD = 6.7, 14.0, 8.0
_GAP_X, _GAP_Y, _LANE = 32.0, 44.0, 12.0
_SWEEPS = 6
_COLOURS = ("#ffffff", "#eef4ff", "#dbe8ff", "#c4d8ff", "#aac6ff")
"""Fill by loop depth."""


class _Box:
    """What takes room in a layer: a block, the way out, or a bend of a long edge."""

    __slots__ = ("height", "rows", "width", "x", "y")

    def __init__(self, rows: list[str]) -> None:
        self.rows = rows
        longest = max((len(row) for row in rows), default=0)
        self.width = longest * _CHAR + 2 * _PAD if rows else 4.0
        self.height = len(rows) * _LINE + 2 * _PAD if rows else 0.0
        self.x = 0.0
        self.y = 0.0


def render_cfg_svg(facts: Facts, marker: str = "tip") -> str:
    """The graph of one function. `marker` is the id of its arrowheads, which a page with several
    pictures must not have twice."""
    view = CfgView(facts)
    picture = _Picture(view, marker)
    picture.place()
    return picture.draw()


class _Picture:
    """The layout of one graph."""

    def __init__(self, view: CfgView, marker: str) -> None:
        self.view = view
        self.marker = marker
        self.boxes: list[_Box] = [_Box(node.rows()) for node in view.nodes]
        self.node_of: dict[int, int] = {node.block: at for at, node in enumerate(view.nodes)}
        self.paths: list[tuple[Edge, list[int]]] = []
        self.back: list[Edge] = []
        self.layer = self._layers()
        self.order: list[list[int]] = [[] for _ in range(max(self.layer, default=0) + 1)]
        self.above: dict[int, list[int]] = {}
        self.below: dict[int, list[int]] = {}
        self._route()

    def _layers(self) -> list[int]:
        """The layer of each box: the longest way down to it, back edges left out."""
        position = self.view.cfg.position
        layer = [0] * len(self.boxes)
        if any(edge.target == EXIT for edge in self.view.edges):
            self.node_of[EXIT] = len(self.boxes)
            self.boxes.append(_Box(["out"]))
            layer.append(0)
        for index in self.view.cfg.rpo:
            for target in self.view.cfg.blocks[index].succs:
                if position[target] > position[index]:
                    layer[target] = max(layer[target], layer[index] + 1)
        bottom = max(layer, default=0)
        dead = [b.index for b in self.view.cfg.blocks if position[b.index] < 0]
        for index in dead:
            layer[index] = bottom + 1
        if EXIT in self.node_of:
            layer[self.node_of[EXIT]] = bottom + (2 if dead else 1)
        return layer

    def _route(self) -> None:
        """Put boxes into layers and split long edges into one bend a layer."""
        for at, layer in enumerate(self.layer):
            self.order[layer].append(at)
        for edge in self.view.edges:
            source, target = self.node_of[edge.source], self.node_of[edge.target]
            if self.layer[target] <= self.layer[source]:
                self.back.append(edge)
                continue
            path = [source]
            for layer in range(self.layer[source] + 1, self.layer[target]):
                path.append(len(self.boxes))
                self.boxes.append(_Box([]))
                self.layer.append(layer)
                self.order[layer].append(path[-1])
            path.append(target)
            self.paths.append((edge, path))
            for upper, lower in pairwise(path):
                self.below.setdefault(upper, []).append(lower)
                self.above.setdefault(lower, []).append(upper)

    def place(self) -> None:
        """Order the layers to lessen crossings, then give every box its coordinates."""
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            layers = self.order if down else self.order[::-1]
            rank = {at: i for layer in self.order for i, at in enumerate(layer)}
            for layer in layers:
                layer.sort(key=lambda at: _mean(neighbours.get(at, []), rank, rank[at]))
                rank.update({at: i for i, at in enumerate(layer)})
        widths = [
            sum(self.boxes[at].width for at in layer) + _GAP_X * (len(layer) - 1)
            for layer in self.order
        ]
        self.width = max(widths, default=0.0) + 2 * _GAP_X
        y = _GAP_Y
        for layer, width in zip(self.order, widths, strict=True):
            x = (self.width - width) / 2
            for at in layer:
                box = self.boxes[at]
                box.x, box.y = x, y
                x += box.width + _GAP_X
            tallest = max((self.boxes[at].height for at in layer), default=0.0)
            for at in layer:
                if not self.boxes[at].rows:
                    self.boxes[at].height = tallest
            y += tallest + _GAP_Y
        self.height = y

    def draw(self) -> str:
        """The SVG text."""
        width = self.width + _LANE * (len(self.back) + 2)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{self.height:.0f}" viewBox="0 0 {width:.0f} {self.height:.0f}" '
            'font-family="monospace" font-size="11">',
            f"<title>{escape(self.view.name)}</title>",
            f'<defs><marker id="{self.marker}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#445"/></marker></defs>',
            f'<rect width="{width:.0f}" height="{self.height:.0f}" fill="#fff"/>',
            f'<text x="{_GAP_X:.0f}" y="20" font-weight="bold">{escape(self.view.name)}</text>',
        ]
        parts += [self._forward(edge, path) for edge, path in self.paths]
        parts += [self._backward(edge, lane) for lane, edge in enumerate(self.back, 1)]
        for node in self.view.nodes:
            parts.append(_draw_box(self.boxes[self.node_of[node.block]], node))
        if EXIT in self.node_of:
            parts.append(_draw_box(self.boxes[self.node_of[EXIT]], None))
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _forward(self, edge: Edge, path: list[int]) -> str:
        first = self.boxes[path[0]]
        points = [(first.x + first.width / 2, first.y + first.height)]
        for at in path[1:]:
            box = self.boxes[at]
            points.append((box.x + box.width / 2, box.y))
            if not box.rows:
                points.append((box.x + box.width / 2, box.y + box.height))
        return _line(points, edge, self.marker)

    def _backward(self, edge: Edge, lane: int) -> str:
        source = self.boxes[self.node_of[edge.source]]
        target = self.boxes[self.node_of[edge.target]]
        x = self.width + lane * _LANE
        below = source.y + source.height - _PAD
        above = target.y + _PAD
        points = [
            (source.x + source.width, below),
            (x, below),
            (x, above),
            (target.x + target.width, above),
        ]
        return _line(points, edge, self.marker)


def _mean(neighbours: list[int], rank: dict[int, int], own: int) -> float:
    """Mean position of the neighbours; a box without any stays where it is."""
    return sum(rank[at] for at in neighbours) / len(neighbours) if neighbours else float(own)


def _line(points: list[tuple[float, float]], edge: Edge, marker: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    colour, width = ("#2457c5", 1.6) if edge.back else ("#445", 1.0)
    line = (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
        f'marker-end="url(#{marker})"/>'
    )
    if not edge.label:
        return line
    (x0, y0), (x1, y1) = points[0], points[1]
    x, y = x0 + (x1 - x0) * 0.35 + 4, y0 + (y1 - y0) * 0.35 + 4
    return f'{line}<text x="{x:.1f}" y="{y:.1f}" fill="#445">{escape(edge.label)}</text>'


def _draw_box(box: _Box, node: Node | None) -> str:
    fill = _COLOURS[min(node.depth, len(_COLOURS) - 1)] if node is not None else "#ddd"
    dashed = ' stroke-dasharray="4 3"' if node is not None and not node.reachable else ""
    parts = [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="3" fill="{fill}" stroke="#445"{dashed}/>'
    ]
    for number, row in enumerate(box.rows):
        y = box.y + _PAD + _LINE * (number + 0.75)
        weight = ' font-weight="bold"' if number == 0 else ""
        parts.append(
            f'<text x="{box.x + _PAD:.1f}" y="{y:.1f}" xml:space="preserve"{weight}>'
            f"{escape(_printable(row))}</text>"
        )
    return "".join(parts)


def _printable(text: str) -> str:
    """Without characters that XML does not allow."""
    return "".join(c if c.isprintable() else " " for c in text)
