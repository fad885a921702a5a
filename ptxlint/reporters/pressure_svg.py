"""Live registers along a kernel as SVG: an area over the program, levels as horizontal lines."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape

from ptxlint.reporters.cfg_view import lines_of
from ptxlint.reporters.pressure_text import STRETCHES
from ptxlint.reporters.pressure_view import Held, PressureView

_LEFT, _TOP, _WIDTH, _HEIGHT = 60.0, 116.0, 800.0, 300.0
_RIGHT: Final = 320.0
"""Room for what the lines mean."""
_BAND, _ROW = 18.0, 16.0
_CHAR: Final = 6.2
_HELD: Final = 12
_STROKES: Final = {
    "registers": ('stroke="#0b6e3b" stroke-width="2"', "#0b6e3b"),
    "limit": ('stroke="#b00020" stroke-width="2" stroke-dasharray="8 3"', "#b00020"),
    "step": ('stroke="#555" stroke-dasharray="2 3"', "#444"),
}
"""How each kind of level is drawn, and the colour of its text."""


def render_pressure_svg(view: PressureView) -> str:
    """The picture of one function, with a title and a description for those who cannot see it."""
    shown = view.held[:_HELD]
    more = len(view.held) > len(shown)
    height = _TOP + _HEIGHT + 2 * _BAND + 40 + _ROW * (len(shown) + more + 1)
    width = _LEFT + _WIDTH + _RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="11" '
        'role="img" aria-labelledby="pressure-title pressure-desc">',
        f'<title id="pressure-title">{_text(f"{view.name} {view.arch}: {view.what}")}</title>',
        f'<desc id="pressure-desc">{_text(_description(view))}</desc>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
        _label(_LEFT, 20, f"{view.name} {view.arch}", 'font-weight="bold"'),
        _label(_LEFT, 36, view.what),
        _label(_LEFT, 52, view.resources_text[0]),
        _label(_LEFT, 68, "; ".join(view.resources_text[1:])),
        _label(_LEFT, 84, view.occupancy_text),
        *_axis(view),
        _area(view),
        *_levels(view),
        *_peak(view),
        *_bands(view),
        *_holders(view, shown),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _description(view: PressureView) -> str:
    held = [f"{h.registers} from {h.where}" for h in view.held[:_HELD]]
    levels = [level.text for level in view.levels]
    return ". ".join(
        [
            f"Peak: {view.peak_text}",
            "; ".join(view.resources_text),
            f"Occupancy: {view.occupancy_text}",
            *([f"Lines: {'; '.join(levels)}"] if levels else []),
            *([f"At the peak registers hold values: {', '.join(held)}"] if held else []),
        ]
    )


def _x(view: PressureView, at: int) -> float:
    return _LEFT + _WIDTH * at / max(1, len(view.instrs))


def _y(view: PressureView, registers: int) -> float:
    return _TOP + _HEIGHT * (1 - registers / view.top)


def _axis(view: PressureView) -> list[str]:
    bottom = _TOP + _HEIGHT
    out = [
        f'<path d="M{_LEFT:.1f} {_TOP:.1f}V{bottom:.1f}H{_LEFT + _WIDTH:.1f}" fill="none" '
        'stroke="#444"/>'
    ]
    for quarter in range(5):
        count = round(view.top * quarter / 4)
        out.append(_label(_LEFT - 6, _y(view, count) + 4, str(count), 'text-anchor="end"'))
    return out


def _area(view: PressureView) -> str:
    """The counts as an area; several instructions in one pixel show the most of them."""
    columns = int(_WIDTH)
    most: dict[int, int] = {}
    size = max(1, len(view.live))
    for at, live in enumerate(view.live):
        last = max(at * columns // size, (at + 1) * columns // size - 1)
        for column in range(at * columns // size, last + 1):
            most[column] = max(live, most.get(column, 0))
    path = [f"M{_LEFT:.1f} {_TOP + _HEIGHT:.1f}"]
    height: int | None = None
    for column in range(columns):
        live = most.get(column, 0)
        if live != height:
            path.append(f"H{_LEFT + column:.1f}V{_y(view, live):.1f}")
            height = live
    path.append(f"H{_LEFT + _WIDTH:.1f}V{_TOP + _HEIGHT:.1f}Z")
    return f'<path d="{"".join(path)}" fill="#9db8e8" stroke="#2457c5"/>'


def _levels(view: PressureView) -> list[str]:
    out = []
    used: list[float] = []
    order = ("registers", "limit", "step")
    for level in sorted(view.levels, key=lambda v: order.index(v.kind)):
        y = _y(view, level.registers)
        style, colour = _STROKES[level.kind]
        out.append(
            f'<line x1="{_LEFT:.1f}" y1="{y:.1f}" x2="{_LEFT + _WIDTH:.1f}" y2="{y:.1f}" {style}>'
            f"<title>{_text(level.text)}</title></line>"
        )
        # A label that would stand on another one is left to the tooltip.
        if all(abs(y - other) >= 12 for other in used):
            used.append(y)
            out.append(_label(_LEFT + _WIDTH + 6, y + 4, level.text, f'fill="{colour}"'))
    return out


def _peak(view: PressureView) -> list[str]:
    if view.peak is None or not view.peak_live:
        return []
    x, y = _x(view, view.peak.index), _y(view, view.peak_live)
    anchor, shift = ('text-anchor="end"', -6) if x > _LEFT + _WIDTH / 2 else ("", 6)
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#b00020"/>',
        _label(x + shift, y - 5, f"peak: {view.peak_text}", f'{anchor} font-weight="bold"'),
    ]


def _bands(view: PressureView) -> list[str]:
    """Where the program comes from, stretch by stretch, and how deep in loops it is."""
    y = _TOP + _HEIGHT + 6
    out = []
    for number, part in enumerate(view.stretches(STRETCHES)):
        instrs = view.instrs[part.start : part.end]
        x, end = _x(view, part.start), _x(view, part.end)
        depth = view.depth(part)
        fill = (
            ("#eef4ff", "#dbe8ff")[number % 2] if not depth else ("#f6d9a8", "#efc87f")[number % 2]
        )
        first, last = view.where(instrs[0]), view.where(instrs[-1])
        source = lines_of(instrs, view.facts.module)
        loop = ", in a loop" if depth else ""
        tip = f"{first} to {last}{loop}: {part.low} to {part.high} live; {source}"
        out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{end - x:.1f}" height="{_BAND:.1f}" '
            f'fill="{fill}" stroke="#8899bb"><title>{_text(tip)}</title></rect>'
        )
        label = source.rpartition(":")[2]
        if label and len(label) * _CHAR < end - x - 4:
            out.append(_label(x + 2, y + 13, label))
    legend = "lines of the source below the curve; orange is in a loop"
    return [*out, _label(_LEFT, y + _BAND + 14, legend, 'fill="#444"')]


def _holders(view: PressureView, shown: list[Held]) -> list[str]:
    if not shown:
        return []
    y = _TOP + _HEIGHT + 2 * _BAND + 40
    out = [_label(_LEFT, y, "At the peak registers hold values from:", 'font-weight="bold"')]
    for number, held in enumerate(shown, 1):
        text = f"{held.registers:>5}  {held.where}  {held.text}"
        out.append(_label(_LEFT, y + number * _ROW, text))
    if len(view.held) > len(shown):
        others = view.held[len(shown) :]
        text = f"{sum(h.registers for h in others):>5}  {len(others)} more lines"
        out.append(_label(_LEFT, y + (len(shown) + 1) * _ROW, text))
    return out


def _label(x: float, y: float, text: str, style: str = "") -> str:
    style = f" {style}" if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{style} xml:space="preserve">{_text(text)}</text>'


def _text(text: str) -> str:
    """Escaped, without characters that XML does not allow."""
    return escape("".join(c if c.isprintable() else " " for c in text))


__all__ = ["render_pressure_svg"]
