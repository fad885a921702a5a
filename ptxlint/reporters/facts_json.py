"""The facts at every instruction as JSON. Keys are added, never renamed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.ir.instruction import Instr
from ptxlint.reporters.facts_text import Wanted
from ptxlint.reporters.facts_view import Fact, FactsView

VERSION: Final = 1


def render_facts_json(views: Iterable[FactsView], wanted: Wanted) -> str:
    """`{"version": 1, "functions": […]}`, an entry an instruction."""
    functions = [_function(view, wanted) for view in views]
    return json.dumps({"version": VERSION, "functions": functions}, indent=1) + "\n"


def _function(view: FactsView, wanted: Wanted) -> dict[str, Any]:
    facts = view.facts
    function = facts.function
    cfg = facts.get(CfgAnalysis)
    return {
        "name": function.name,
        "kind": function.kind,
        "arch": facts.module.arch,
        "path": facts.module.source.path,
        "parameters": {p.name: facts.words.parameter(p.name) for p in function.params},
        "launch": None if view.launched is None else view.launched.text,
        "masks": {mask.name: view.mask_text(mask) for mask in view.masks},
        "facts": [_fact(fact) for fact in view.of_function()],
        "blocks": [
            {"block": block.index, "where": view.path(block.index)}
            for block in cfg.blocks
            if block.index in cfg.reachable
        ],
        "instructions": [
            _instruction(instr, cfg.block_of[instr.index], view)
            for instr in function.instrs
            if wanted(instr)
        ],
    }


def _instruction(instr: Instr, block: int, view: FactsView) -> dict[str, Any]:
    module = view.facts.module
    frame = module.python_frame(instr.loc)
    source = None
    if frame is not None and frame.line > 0:
        source = {"path": frame.path, "line": frame.line, "column": max(1, frame.column)}
    return {
        "index": instr.index,
        "block": block,
        "line": module.source.position(instr.offset).line,
        "source": source,
        "text": repr(instr),
        "live": view.live(instr),
        "uniform": view.level(instr),
        "facts": [_fact(fact) for fact in view.of(instr)],
    }


def _fact(fact: Fact) -> dict[str, Any]:
    return {"kind": fact.kind, **fact.data, "text": fact.text}
