"""Random kernels on concrete threads: where a launch is named in which threads part, they do."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import EXIT
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.convergence import Convergence, ConvergenceAnalysis, Parting
from ptxlint.dataflow.lane_bits import Level
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr

SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def load_machine() -> ModuleType:
    """A copy of its own of the machine beside this file; tests are no package."""
    path = Path(__file__).with_name("ptx_machine.py")
    spec = importlib.util.spec_from_file_location("convergence_ptx_machine", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load_machine()
PARAMETERS: dict[str, int] = {}
_memory = machine._first_result


def _first_result(instr: Instr, sources: list[int], thread: Any, when: int) -> int:
    """As the machine has it, but with the parameters of the launch."""
    if instr.opcode == "ld" and instr.shape.space == "param":
        name = instr.operands[1].base.name  # type: ignore[union-attr]
        return PARAMETERS.get(name, 0)
    return int(_memory(instr, sources, thread, when))


machine._first_result = _first_result


class Kernel:
    """A random kernel with its facts, and which barriers each thread comes to."""

    def __init__(self, text: str) -> None:
        module = parse(text, "random.ptx")
        assert not module.problems, (module.problems, text)
        self.facts = Facts(module, module.kernels()[0])
        self.cfg = self.facts.get(CfgAnalysis)
        self.loops = self.facts.get(LoopsAnalysis)
        self.convergence: Convergence = self.facts.get(ConvergenceAnalysis)
        self.barriers = [
            i
            for i in self.facts.function.instrs
            if i.opcode == "bar" and self.cfg.is_reachable(i) and not self._again(i)
        ]

    def _again(self, instr: Instr) -> bool:
        return self.loops.in_cycle(self.cfg.block_of[instr.index])

    def comes(self, instr: Instr, tid: int) -> bool | None:
        """Whether a thread of the first CTA comes to an instruction; None if its run is too long.

        Barriers here have no guards.
        """
        seen, ended = False, False
        home = self.cfg.block_of[instr.index]
        for step in machine.run(self.cfg, machine.Thread(0, tid), 600):
            if isinstance(step, int):
                ended = step == EXIT
                seen = seen or step == home
        return seen if ended or seen else None


def together(instr: Instr) -> Level:
    """How many threads a barrier is for."""
    return Level.WARP if instr.shape.has("warp") else Level.CTA


def parted(kernel: Kernel, instr: Instr, parting: Parting) -> bool | None:
    """Whether the two threads of a split do part.

    None if they do not come to the branch at all: what all threads decide alike may be anything.
    """
    split = parting.split
    assert split is not None
    PARAMETERS.clear()
    PARAMETERS.update(split.values)
    comes = kernel.comes(instr, split.comes) and kernel.comes(parting.branch, split.comes)
    stays = kernel.comes(instr, split.stays_away)
    if not comes or stays is None:
        return None
    return not stays


def check(text: str, counts: dict[str, int]) -> None:
    """Compare every claim about a kernel's barriers with what the machine does."""
    kernel = Kernel(text)
    for instr in kernel.barriers:
        parting = kernel.convergence.parting(instr, together(instr))
        if parting is None:
            counts["together"] = counts.get("together", 0) + 1
            PARAMETERS.clear()
            PARAMETERS.update({"n": 5, "m": 3})
            size = 32 if instr.shape.has("warp") else 64
            threads = [t for t in machine.SAMPLE if t < size]
            answers = {kernel.comes(instr, t) for t in threads} - {None}
            assert len(answers) < 2, (instr, answers, text)
        elif parting.split is not None:
            found = parted(kernel, instr, parting)
            counts["split"] = counts.get("split", 0) + (found is not None)
            assert found is not False, (instr, parting.split, text)


def structured(random: Random) -> str:
    """A kernel of loops and conditionals with a barrier wherever ways meet."""
    text: str = machine.Generator(random).structured(3)
    barrier = random.choice(["bar.sync 0;", "bar.warp.sync -1;"])
    return re.sub(r"^(L\d+:)$", rf"\1\n{barrier}", text, flags=re.MULTILINE)


def unstructured(random: Random) -> str:
    """A kernel of random branches."""
    return str(machine.Generator(random).kernel(6, 5))


@SETTINGS
@given(st.randoms(use_true_random=False))
def test_structured_kernels(random: Random) -> None:
    check(structured(random), {})


@SETTINGS
@given(st.randoms(use_true_random=False))
def test_kernels_with_random_branches(random: Random) -> None:
    check(unstructured(random), {})


def counted(kernels: int) -> dict[str, int]:
    """How many claims of each kind are tested in so many kernels."""
    counts: dict[str, int] = {}
    for seed in range(kernels):
        random = Random(seed)
        check(structured(random), counts)
        check(unstructured(random), counts)
    return counts


def test_the_claims_are_not_empty() -> None:
    counts = counted(150)
    assert counts["together"] > 20
    assert counts["split"] > 5


@pytest.mark.slow
def test_many_kernels() -> None:
    counts = counted(4000)
    assert counts["split"] > 200
