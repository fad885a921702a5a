"""The facts at every instruction, beside the PTX."""

from __future__ import annotations

from collections.abc import Callable

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Block
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.describe import describe
from ptxlint.dataflow.liveness import LivenessAnalysis
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, Ssa
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.reporters.cfg_view import python_lines

_TEXT_COLUMN = 64


def render_facts(facts: Facts) -> str:
    """Per block: Python lines, loop depth, live-in registers; per instruction: live 32-bit
    registers, and for a value that a guard decides, what it is made of."""
    function = facts.function
    cfg = facts.get(CfgAnalysis)
    pressure = facts.get(PressureAnalysis)
    ssa = facts.get(SsaAnalysis)
    lines = [
        f"{function.kind} {function.name}: peak {pressure.peak.words} live 32-bit registers"
        + (f" at instruction {pressure.peak_instr.index}" if pressure.peak_instr else ""),
        "columns: instruction, live 32-bit registers after it, PTX, value",
    ]
    merged = _merged_values(ssa)
    for block in cfg.blocks:
        lines += ["", *_block_head(block, facts)]
        for instr in cfg.instructions(block):
            lines.append(_instruction(instr, pressure.words(instr), merged))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _block_head(block: Block, facts: Facts) -> list[str]:
    cfg = facts.get(CfgAnalysis)
    if block.index not in cfg.reachable:
        return [f"B{block.index}: unreachable"]
    liveness = facts.get(LivenessAnalysis)
    depth = facts.get(LoopsAnalysis).depth(block.index)
    head = f"B{block.index}:" + (f" loop depth {depth}" if depth else "")
    python = python_lines(block, cfg, facts.module)
    live = [r.name for r in facts.function.registers if liveness.is_live_in(block.index, r)]
    lines = [f"{head} from {python}" if python else head]
    if live:
        lines.append(f"  live in: {', '.join(live)}")
    return lines


def _instruction(instr: Instr, live: int, merged: Callable[[Instr], str]) -> str:
    text = f"{instr.index:>6} {live:>4}  {instr!r}"
    value = merged(instr)
    return f"{text:<{_TEXT_COLUMN}}  // {value}" if value else text


def _merged_values(ssa: Ssa) -> Callable[[Instr], str]:
    """Expressions of the values that an instruction defines under a guard."""
    by_instr: dict[int, list[int]] = {}
    for value in range(len(ssa)):
        if ssa.kind[value] == MERGE:
            by_instr.setdefault(ssa.instr[value], []).append(value)

    def of(instr: Instr) -> str:
        values = by_instr.get(instr.index, [])
        return ", ".join(f"{ssa.register[v].name} = {describe(ssa, v)}" for v in values)

    return of
