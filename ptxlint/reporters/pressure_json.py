"""Live registers along kernels as JSON. Keys are added, never renamed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from ptxlint.ir.instruction import Instr
from ptxlint.reporters.pressure_view import PressureView

VERSION: Final = 1


def render_pressure_json(views: Iterable[PressureView]) -> str:
    """`{"version": 1, "functions": […]}`, an entry an instruction."""
    functions = [_function(view) for view in views]
    return json.dumps({"version": VERSION, "functions": functions}, indent=1) + "\n"


def _function(view: PressureView) -> dict[str, Any]:
    now, known = view.occupancy, view.known
    return {
        "name": view.name,
        "arch": view.arch,
        "path": view.facts.module.source.path,
        "level": "sass" if view.is_machine else "ptx",
        "peak": None if view.peak is None else _instruction(view, view.peak),
        "held": [
            {"registers": h.registers, "source": _source((h.path, h.line) if h.path else None),
             "text": h.text}
            for h in view.held
        ],
        "resources": {} if known is None else known.as_data(),
        "note": view.note,
        "occupancy": None if now is None else {
            "ctas": now.ctas_per_sm, "warps": now.warps_per_sm,
            "fraction": round(now.fraction, 4), "limited_by": list(now.limiters),
        },
        "levels": [
            {"kind": v.kind, "registers": v.registers, "text": v.text} for v in view.levels
        ],
        "instructions": [_instruction(view, instr) for instr in view.instrs],
    }  # fmt: skip


def _instruction(view: PressureView, instr: Instr) -> dict[str, Any]:
    return {
        "index": instr.index,
        "line": view.facts.module.source.position(instr.offset).line,
        "where": view.where(instr),
        "live": view.live[instr.index],
        "source": _source(view.source(instr)),
    }


def _source(place: tuple[str, int] | None) -> dict[str, Any] | None:
    return None if place is None else {"path": place[0], "line": place[1]}


__all__ = ["render_pressure_json"]
