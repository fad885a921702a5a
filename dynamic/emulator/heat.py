"""Counts a Python line, as a heat map in text and SVG and as plain data."""

from __future__ import annotations

import html
from typing import Final

from ptxlint.dynamic.emulator.counters import Count
from ptxlint.dynamic.emulator.lines import Line, lines
from ptxlint.dynamic.emulator.session import Emulation

_SHADES: Final = " ░▒▓█"
_ROW: Final = 18
_BAR: Final = 160
_LEFT: Final = 560


def _rows(run: Emulation) -> list[Line]:
    assert run.counters is not None
    found: list[Line] = lines(run.counters, run.places)
    return found


def heat_text(run: Emulation) -> str:
    """A table: share of executed instructions as a shade, counts, the line."""
    rows = _rows(run)
    most = max((row.count.warps for row in rows), default=0) or 1
    out = [
        f"{run.kernel} {run.place}".rstrip(),
        f"{'':2}{'warp instrs':>12} {'parted':>7} {'bytes':>12} {'sectors':>9} {'conflicts':>9}"
        "   line",
    ]
    path = ""
    for row in rows:
        if row.path != path:
            path = row.path
            out.append(path)
        c = row.count
        shade = _SHADES[min(4, 5 * c.warps // (most + 1))]
        conflicts = max(0, c.turns - _least_turns(c))
        numbers = "".join(
            f" {n:>{w},}" if n else f" {'.':>{w}}"
            for n, w in ((c.divergent, 7), (c.bytes, 12), (c.sectors, 9), (conflicts, 9))
        )
        out.append(f"{shade * 2}{c.warps:>12,}{numbers}  {row.line:>5} {row.text[:100]}")
    return "\n".join(out) + "\n"


def _least_turns(count: Count) -> int:
    """Turns that shared memory takes at least for so many accesses and bytes."""
    if not count.turns:
        return 0
    least: int = max(0 if count.sectors else count.accesses, -(-count.bytes // 128))
    return least


def heat_svg(run: Emulation) -> str:
    """The same as a picture: a bar a line, as long and as dark as its share."""
    rows = _rows(run)
    most = max((row.count.warps for row in rows), default=0) or 1
    height = _ROW * (len(rows) + 2)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _BAR + 220}" height="{height}" '
        'font-family="monospace" font-size="12">',
        f'<text x="8" y="{_ROW - 4}" font-weight="bold">{html.escape(run.kernel)} '
        f"{html.escape(run.place)}</text>",
    ]
    for at, row in enumerate(rows, 2):
        share = row.count.warps / most
        y = at * _ROW - 4
        text = html.escape(f"{row.line:>5} {row.text[:72]}")
        width = max(1, round(share * _BAR))
        out.append(f'<text x="8" y="{y}" xml:space="preserve">{text}</text>')
        out.append(
            f'<rect x="{_LEFT}" y="{y - 11}" width="{width}" height="13" '
            f'fill="rgb(214,{round(190 - 150 * share)},{round(120 - 90 * share)})"/>'
        )
        out.append(
            f'<text x="{_LEFT + _BAR + 8}" y="{y}">{row.count.warps:,} instr, '
            f"{row.count.bytes:,} B</text>"
        )
    out.append("</svg>")
    return "\n".join(out) + "\n"


def counts_to_dict(run: Emulation) -> list[dict[str, object]]:
    """The counted lines as plain data."""
    return [
        {"path": row.path, "line": row.line}
        | {name: getattr(row.count, name) for name in Count.__slots__}
        for row in _rows(run)
    ]


__all__ = ["counts_to_dict", "heat_svg", "heat_text"]
