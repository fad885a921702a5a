"""Counts a Python line, as a heat map in text and SVG and as plain data."""

from __future__ import annotations

import html
from typing import Final

from ptxlint.dynamic.emulator.counters import Count
from ptxlint.dynamic.emulator.lines import Line, lines
from ptxlint.dynamic.emulator.session import Emulation
from ptxlint.wording import counted

_SHADES: Final = " ░▒▓█"
_ROW: Final = 18
_BAR: Final = 160
_LEFT: Final = 560


def _rows(run: Emulation) -> list[Line]:
    assert run.counters is not None
    found: list[Line] = lines(run.counters, run.places)
    return found


def heat_text(run: Emulation) -> str:
    """A table: share of executed instructions as a shade, counts, the line. `sectors` are those of
    global memory, and `each` is how many an access of a warp took of them; `conflicts` are turns
    of shared memory that its banks cost."""
    rows = _rows(run)
    most = max((row.count.warps for row in rows), default=0) or 1
    out = [
        f"{run.kernel} {run.place}".rstrip(),
        f"{'':2}{'warp instrs':>12} {'parted':>7} {'bytes':>12} {'sectors':>9} {'each':>5} "
        f"{'conflicts':>9}   line",
    ]
    path = ""
    for row in rows:
        if row.path != path:
            path = row.path
            out.append(path)
        c = row.count
        shade = _SHADES[min(4, 5 * c.warps // (most + 1))]
        each = f"{c.sectors / c.accesses:.1f}" if c.accesses else "."
        cells = (
            _cell(c.divergent, 7), _cell(c.bytes, 12), _cell(c.sectors, 9), f"{each:>5}",
            _cell(c.conflicts, 9),
        )  # fmt: skip
        out.append(f"{shade * 2}{c.warps:>12,} {' '.join(cells)}  {row.line:>5} {row.text[:100]}")
    return "\n".join(out) + "\n"


def _cell(number: int, width: int) -> str:
    return f"{number:>{width},}" if number else f"{'.':>{width}}"


def heat_svg(run: Emulation) -> str:
    """The same as a picture: a bar a line, as long and as dark as its share."""
    rows = _rows(run)
    most = max((row.count.warps for row in rows), default=0) or 1
    height = _ROW * (len(rows) + 2)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _BAR + 420}" height="{height}" '
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
        out.append(f'<text x="{_LEFT + _BAR + 8}" y="{y}">{html.escape(_told(row.count))}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _told(count: Count) -> str:
    """All counts of a line that are not zero, in words."""
    parts = [f"{count.warps:,} instr"]
    if count.divergent:
        parts.append(f"{count.divergent:,} parted")
    if count.bytes:
        parts.append(f"{count.bytes:,} B")
    if count.accesses:
        parts.append(f"{count.sectors / count.accesses:.1f} sectors each")
    if count.conflicts:
        parts.append(counted(count.conflicts, "conflict"))
    return ", ".join(parts)


def counts_to_dict(run: Emulation) -> list[dict[str, object]]:
    """The counted lines as plain data."""
    return [
        {"path": row.path, "line": row.line}
        | {name: getattr(row.count, name) for name in sorted(Count.__slots__)}
        for row in _rows(run)
    ]


__all__ = ["counts_to_dict", "heat_svg", "heat_text"]
