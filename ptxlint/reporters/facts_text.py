"""The facts at every instruction, beside the PTX."""

from __future__ import annotations

from collections.abc import Callable

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Block
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.liveness import LivenessAnalysis
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.reporters.cfg_view import python_lines
from ptxlint.reporters.facts_view import FactsView

_TEXT_COLUMN = 72

Wanted = Callable[[Instr], bool]


def render_facts(view: FactsView, wanted: Wanted) -> str:
    """Per block: Python lines, loop depth, what holds there, live-in registers. Per instruction:
    live 32-bit registers, over which threads its result is the same (thread, warp, cta, grid), and
    behind it what is known of its results, its access, and what rules say of it."""
    facts = view.facts
    function = facts.function
    cfg = facts.get(CfgAnalysis)
    pressure = facts.get(PressureAnalysis)
    lines = [
        f"{function.kind} {function.name}: peak {pressure.peak.words} live 32-bit registers"
        + (f" at instruction {pressure.peak_instr.index}" if pressure.peak_instr else ""),
        "columns: instruction, live 32-bit registers after it, where its result is the same, PTX",
    ]
    if view.launched is not None:
        lines.append(view.launched.text)
    lines += [f"mask {mask.name}: {view.mask_text(mask)}" for mask in view.masks]
    lines += [fact.text for fact in view.of_function()]
    for block in cfg.blocks:
        shown = [instr for instr in cfg.instructions(block) if wanted(instr)]
        if shown or not len(block):
            lines += ["", *_block_head(block, facts, view)]
        for instr in shown:
            lines += _instruction(instr, view)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _block_head(block: Block, facts: Facts, view: FactsView) -> list[str]:
    cfg = facts.get(CfgAnalysis)
    if block.index not in cfg.reachable:
        return [f"B{block.index}: unreachable"]
    liveness = facts.get(LivenessAnalysis)
    depth = facts.get(LoopsAnalysis).depth(block.index)
    head = f"B{block.index}:" + (f" loop depth {depth}" if depth else "")
    python = python_lines(block, cfg, facts.module)
    live = [r.name for r in facts.function.registers if liveness.is_live_in(block.index, r)]
    lines = [f"{head} from {python}" if python else head]
    path = view.path(block.index)
    if path:
        lines.append(f"  where {path}")
    if live:
        lines.append(f"  live in: {', '.join(live)}")
    return lines


def _instruction(instr: Instr, view: FactsView) -> list[str]:
    text = f"{instr.index:>6} {view.live(instr):>4} {view.level(instr):<6}  {instr!r}"
    known = [fact.text for fact in view.of(instr)]
    if not known:
        return [text]
    first, *rest = known
    margin = " " * _TEXT_COLUMN
    return [f"{text:<{_TEXT_COLUMN}}  // {first}", *(f"{margin}  // {more}" for more in rest)]
