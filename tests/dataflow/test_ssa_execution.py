"""Random kernels run on registers and on SSA values side by side: both must agree everywhere."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.dominance import DominatorsAnalysis
from ptxlint.cfg.graph import EXIT
from ptxlint.dataflow.ssa import ENTRY, MERGE, Ssa, SsaAnalysis
from ptxlint.dataflow.ssa_verifier import verify
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


machine = load("ptx_machine")
SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def facts_of(text: str) -> Facts:
    """The facts of a text's only kernel; any fault in it fails the test."""
    module = parse(text, "random.ptx")
    assert not module.problems, (module.problems, text)
    return Facts(module, module.kernels()[0])


class SsaMachine:
    """Follows a run of the register machine with SSA values."""

    def __init__(self, ssa: Ssa, thread: Any) -> None:
        self.ssa = ssa
        self.thread = thread
        self.values: dict[int, int] = {}
        self.block = ENTRY
        self.checked = 0

    def enter(self, block: int) -> None:
        """Take the phis' operands, all at once."""
        at = self.ssa.phi_sources(block).index(self.block) if block in self.ssa.phis else 0
        new = {phi: self.values[self.ssa.operands[phi][at]] for phi in self.ssa.phis.get(block, ())}
        self.values.update(new)
        self.block = block

    def step(self, step: Any) -> None:
        """Compare what is read, compute what is written, compare that."""
        ssa, instr, registers = self.ssa, step.instr, step.registers
        for register, value in zip(instr.uses, ssa.use_values[instr.index], strict=True):
            for same in (value, ssa.resolve(value)):
                assert self.values[same] == registers[register], (instr.index, register)
                self.checked += 1
        if step.written is None:
            return
        # All results first: a merge may take another instruction's, not another of this one.
        pairs = list(zip(ssa.def_values[instr.index], instr.defs, step.written, strict=True))
        for final, _, written in pairs:
            self.values[ssa.written(final)] = written
        for final, register, written in pairs:
            if ssa.kind[final] == MERGE:
                predicate, if_true, if_false = ssa.operands[final]
                self.values[final] = self.values[if_true if self.values[predicate] else if_false]
            executed = machine.guard_holds(instr, registers)
            assert self.values[final] == (written if executed else registers[register]), instr


def follow(text: str, thread: Any) -> int:
    """Run one thread both ways; the number of comparisons made."""
    facts = facts_of(text)
    ssa = facts.get(SsaAnalysis)
    assert verify(ssa, facts.get(DominatorsAnalysis)) == []
    follower = SsaMachine(ssa, thread)
    for value in ssa.at_entry:
        follower.values[value] = machine.initial(ssa.register[value], thread)
    for event in machine.run(facts.get(CfgAnalysis), thread):
        if event == EXIT:
            break
        if isinstance(event, int):
            follower.enter(event)
        else:
            follower.step(event)
    return follower.checked


@settings(SETTINGS, max_examples=150)
@given(st.randoms(use_true_random=False))
def test_random_control_flow(random: Random) -> None:
    generator = machine.Generator(random)
    text = generator.kernel(blocks=random.randrange(1, 8), statements=5)
    follow(text, machine.Thread(1, 37))


@settings(SETTINGS, max_examples=100)
@given(st.randoms(use_true_random=False))
def test_random_structured_code(random: Random) -> None:
    follow(machine.Generator(random).structured(3), machine.Thread(0, 5))


@pytest.mark.parametrize("seed", range(40))
def test_seeded_kernels_are_really_compared(seed: int) -> None:
    text = machine.Generator(Random(seed)).structured(3)
    assert follow(text, machine.Thread(1, 21)) > 0
