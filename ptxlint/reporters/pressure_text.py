"""Live registers along a kernel as bars of text."""

from __future__ import annotations

from typing import Final

from ptxlint.reporters.cfg_view import lines_of
from ptxlint.reporters.pressure_view import Held, Level, PressureView

STRETCHES: Final = 40
"""Rows of the picture at most."""
_HELD: Final = 12
_BAR: Final = 50
_FULL, _PARTLY = "█", "▒"
_LINES: Final = {"registers": "│", "limit": "┃", "step": "┊"}


def render_pressure(view: PressureView) -> str:
    """What is known, a bar a stretch of the program, and the lines that hold values at the peak."""
    if not view.instrs:
        return f"{view.name} {view.arch}: no instructions\n"
    out = [
        f"{view.name} {view.arch}: {view.what}",
        f"  peak       {view.peak_text}",
        f"  kernel     {'; '.join(view.resources_text)}",
        f"  occupancy  {view.occupancy_text}",
        "",
        *_picture(view),
        "",
        *_legend(view),
        *_holders(view),
    ]
    return "\n".join(line.rstrip() for line in out) + "\n"


def _picture(view: PressureView) -> list[str]:
    stretches = view.stretches(STRETCHES)
    marks = _columns(view)
    peak = view.peak.index if view.peak is not None else -1
    labels = []
    for part in stretches:
        first, last = (view.where(view.instrs[at]) for at in (part.start, part.end - 1))
        labels.append(first if first == last else f"{first}-{last}")
    what = "address" if view.is_machine else "line"
    width = max(len(what), *map(len, labels))
    rows = [f"    {what:>{width}}  loop  live  {_scale(view.top)}  source"]
    for part, label in zip(stretches, labels, strict=True):
        mark = ">" if part.start <= peak < part.end else " "
        low, high = (_column(count, view.top) for count in (part.low, part.high))
        bar = list((_FULL * low + _PARTLY * (high - low)).ljust(_BAR))
        for column, sign in marks.items():
            if bar[column] == " ":
                bar[column] = sign
        loop = "|" * min(4, view.depth(part))
        source = lines_of(view.instrs[part.start : part.end], view.facts.module)
        text = "".join(bar)
        rows.append(f"  {mark} {label:>{width}}  {loop:<4}  {part.high:>4}  {text}  {source}")
    return rows


def _column(count: int, top: int) -> int:
    """How many columns a count takes; one at least, if it is any."""
    return max(count > 0, round(_BAR * count / top))


def _columns(view: PressureView) -> dict[int, str]:
    """Where the levels stand: the most important one of each column."""
    order = ("step", "limit", "registers")
    levels = sorted(view.levels, key=lambda level: order.index(level.kind))
    return {max(0, _column(v.registers, view.top) - 1): _LINES[v.kind] for v in levels}


def _scale(top: int) -> str:
    return "0" + f"{top}".rjust(_BAR - 1)


def _legend(view: PressureView) -> list[str]:
    out = [f"  {_FULL} fewest and {_PARTLY} most live in a stretch, > the peak, | in a loop"]
    by_kind: dict[str, list[Level]] = {}
    for level in view.levels:
        by_kind.setdefault(level.kind, []).append(level)
    for kind in ("registers", "limit"):
        out += [f"  {_LINES[kind]} {level.text}" for level in by_kind.get(kind, ())]
    if steps := [level.text for level in by_kind.get("step", ())]:
        more = [text.replace(" an SM", "").replace(" registers", "") for text in steps[1:]]
        out.append(f"  {_LINES['step']} {', '.join([steps[0], *more])}")
    return out


def _holders(view: PressureView) -> list[str]:
    if not view.held:
        return []
    out = ["", "At the peak registers hold values from:"]
    shown = view.held if len(view.held) <= _HELD else view.held[: _HELD - 1]
    width = max(len(held.where) for held in shown)
    out += [_held(held, width) for held in shown]
    others = view.held[len(shown) :]
    if others:
        out.append(f"{sum(h.registers for h in others):>6}  {len(others)} more lines")
    return out


def _held(held: Held, width: int) -> str:
    return f"{held.registers:>6}  {held.where:<{width}}  {held.text}"


__all__ = ["STRETCHES", "render_pressure"]
