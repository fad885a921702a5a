"""The facts at every instruction, beside the PTX."""

from __future__ import annotations

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Block
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.describe import describe
from ptxlint.dataflow.liveness import LivenessAnalysis
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import MERGE, Ssa
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.reporters.cfg_view import python_lines

_TEXT_COLUMN = 72


def render_facts(facts: Facts) -> str:
    """Per block: Python lines, loop depth, live-in registers. Per instruction: live 32-bit
    registers, over which threads its result is the same (thread, warp, cta, grid), and what a
    value is made of that a guard decides."""
    function = facts.function
    cfg = facts.get(CfgAnalysis)
    pressure = facts.get(PressureAnalysis)
    values = _Values(facts)
    lines = [
        f"{function.kind} {function.name}: peak {pressure.peak.words} live 32-bit registers"
        + (f" at instruction {pressure.peak_instr.index}" if pressure.peak_instr else ""),
        "columns: instruction, live 32-bit registers after it, where its result is the same, PTX",
    ]
    for block in cfg.blocks:
        lines += ["", *_block_head(block, facts)]
        for instr in cfg.instructions(block):
            lines.append(_instruction(instr, pressure.words(instr), values))
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


class _Values:
    """What is known of the values that instructions define."""

    def __init__(self, facts: Facts) -> None:
        self._ssa: Ssa = facts.get(SsaAnalysis)
        self._uniformity = facts.get(UniformityAnalysis)

    def level(self, instr: Instr) -> str:
        """Over which threads the results are the same; "" without results."""
        values = self._ssa.def_values[instr.index]
        if not values:
            return ""
        return max(self._uniformity.value_uniformity(value) for value in values).name.lower()

    def merged(self, instr: Instr) -> str:
        """What the results are made of that a guard decides."""
        ssa = self._ssa
        return ", ".join(
            f"{ssa.register[value].name} = {describe(ssa, value)}"
            for value in ssa.def_values[instr.index]
            if ssa.kind[value] == MERGE
        )


def _instruction(instr: Instr, live: int, values: _Values) -> str:
    text = f"{instr.index:>6} {live:>4} {values.level(instr):<6}  {instr!r}"
    value = values.merged(instr)
    return f"{text:<{_TEXT_COLUMN}}  // {value}" if value else text
