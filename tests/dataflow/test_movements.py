"""Conditions that move through shared memory, held to what a machine sees that runs all threads."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.conditions import ANY_INDEX, Condition, Conditions
from ptxlint.dataflow.guards import Conjunct, GuardsAnalysis
from ptxlint.dataflow.lane_map import LaneMap, lane_width
from ptxlint.dataflow.movements import Movements, Way
from ptxlint.dataflow.reductions import ReductionsAnalysis
from ptxlint.dataflow.rounds import Rounds
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.symbolic import SymbolicAnalysis
from ptxlint.dataflow.uniformity import UniformityAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


def load(name: str) -> ModuleType:
    """A module beside this file; tests are no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"dataflow_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load("shared_machine")
PTX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"


class Subject:
    """A kernel, its movements, and the condition "the thread's number is beyond n"."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        width = lane_width(facts)
        assert width is not None
        self.width = width
        ssa = facts.get(SsaAnalysis)
        reductions = facts.get(ReductionsAnalysis)
        self.conditions = Conditions(width, facts.get(UniformityAnalysis), reductions.loops)
        rounds = Rounds(ssa, reductions.loops, facts.get(GuardsAnalysis))
        self.movements = Movements(facts, ssa, reductions, self.conditions, rounds)
        table = facts.get(SymbolicAnalysis).table
        bound = table.plain(table.atom("param", ("bound", 0), 0, 1 << 31))
        for place in range(width):
            bound = bound - table.plain(table.atom("bit", ("x", place), 0, 1)) * (1 << place)
        self.condition: Condition = self.conditions.of(Conjunct(bound - 1), ANY_INDEX)
        assert self.condition.map == LaneMap(0, tuple(1 << i for i in range(width)))

    def arrivals(self, seen: Any) -> list[tuple[tuple[Way, ...], ...]] | None:
        """By register the ways of its parts; None if some are not known."""
        if seen.operand:
            matrix = self.movements.matrix_arrivals(seen.load, seen.operand)
            return None if matrix is None else [matrix.ways]
        count = 1 + max(register for _, register, _ in seen.cells)
        found = [self.movements.arrivals(seen.load, at) for at in range(count)]
        return None if None in found else [f for f in found if f is not None]

    def arrived(self, way: Way, is_matrix: bool) -> LaneMap:
        """Which threads the data of all threads come from, as a map over the reading index."""
        if is_matrix:
            found = self.movements.on_matrix(way.route, self.condition)
            assert found is not None
            assert not found[0].lost
            map_ = found[1]
        else:
            condition = self.movements.through(way.route, self.condition)
            assert condition is not None
            assert not condition.lost
            map_ = condition.map
        assert map_ is not None
        return map_

    def compare(self, seen: Any) -> Counter[str]:
        """Hold the ways into a load to what it found."""
        counts: Counter[str] = Counter()
        arrivals = self.arrivals(seen)
        if arrivals is None:
            counts["unknown"] += 1
            return counts
        width = 1 + max(byte for _, _, byte in seen.cells)
        maps = {
            way: self.arrived(way, bool(seen.operand))
            for register in arrivals
            for part in register
            for way in part
        }
        for (index, register, byte), cell in seen.cells.items():
            parts = arrivals[register]
            if cell is None:
                continue
            ways = parts[byte * len(parts) // width]
            assert any(
                way.store.index == cell.instr
                and maps[way].holds_for(index)
                and maps[way].value(index) in cell.threads
                for way in ways
            ), f"{seen.load}: {register}, {byte} of {index} is from {cell}"
            counts["matrices" if seen.operand else "registers"] += 1
        return counts


KERNELS = {
    "sm_80/matmul_dot_fp16": "registers", "sm_80/flash_bwd_dq": "registers",
    "sm_80/int4_gemm": "registers", "sm_90/matmul_dot_tf32": "matrices",
    "sm_90/flash_fwd_d128": "matrices", "sm_90/layer_norm_bwd_reduce": "registers",
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_conditions_arrive_where_the_data_do(name: str) -> None:
    module = parse((PTX / f"{name}.ptx").read_text(), name)
    (function,) = [f for f in module.functions if not f.is_declaration]
    facts = Facts(module, function)
    subject = Subject(facts)
    total: Counter[str] = Counter()
    runner = machine.SharedMachine(facts, 1 << subject.width, Random(2))
    try:
        for seen in runner.run(4_000):
            total += subject.compare(seen)
    except machine.UnpredictableError:
        pass
    assert total[KERNELS[name]] > 0
    assert not total["unknown"]


LOOP = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global a, .param .u32 n) .reqntid 32
{{
.reg .pred %p<9>;
.reg .b32 %r<40>;
ld.param.u32 %r4, [n];
{before}
mov.b32 %r5, 0;
LOOP:
add.s32 %r5, %r5, {step};
setp.{relation}.s32 %p2, %r5, {limit};
@%p2 bra LOOP;
DONE: ret;
}}
"""
TILES = """setp.lt.s32 %p1, %r4, 1;
@%p1 bra DONE;
add.s32 %r7, %r4, 15;
shr.s32 %r6, %r7, 4;"""
AT_LEAST_ONE = """add.s32 %r7, %r4, 15;
shr.s32 %r8, %r7, 4;
max.s32 %r6, %r8, 1;"""


@pytest.mark.parametrize(
    ("loop", "comes", "goes"),
    [
        (LOOP.format(before="", step=16, relation="lt", limit="%r4"), -1, 14),
        (LOOP.format(before=TILES, step=1, relation="ne", limit="%r6"), -1, 14),
        (LOOP.format(before=AT_LEAST_ONE, step=1, relation="ne", limit="%r6"), -1, 14),
    ],
)
def test_a_condition_that_no_later_round_meets_ends_there(loop: str, comes: int, goes: int) -> None:
    """Rounds come as long as 16 K < n: beyond that there is nothing to be padding."""
    module = parse(loop, "k.ptx")
    facts = Facts(module, module.functions[0])
    subject = Subject(facts)
    (header,) = [found.header for found in facts.get(LoopsAnalysis).loops]
    table = facts.get(SymbolicAnalysis).table
    n = table.plain(table.atom("param", ("n", 0), -(2**31), 2**31 - 1))
    index = table.plain(table.atom("index", (header,), 0, 1 << 200, header))

    def after(slack: int) -> Condition | None:
        """What becomes of "n - 16 K + slack < 0" in the next round."""
        condition = subject.conditions.of(Conjunct(n - index * 16 + slack), 0)
        return subject.movements.in_next_round(condition, header)

    # In the next round it says n - 16 K + slack + 16 < 0.
    assert after(comes) is None
    assert after(goes) is None
    kept = after(comes - 17)
    assert kept is not None
    assert not kept.lost
    assert str(kept.conjunct) == str(Conjunct(n - index * 16 + comes - 1))
    still = subject.conditions.of(Conjunct(n - 40), 0)
    assert subject.movements.in_next_round(still, header) is still
