"""Slices run on arrays of lanes against machines that run whole kernels, a thread at a time."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ptxlint.cfg.control_dependence import ControlDependenceAnalysis
from ptxlint.cfg.dominance import PostDominatorsAnalysis
from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr
from ptxlint.launch.binding import Bound, bind
from ptxlint.launch.machine import Machine
from ptxlint.launch.memory_steps import MemorySteps
from ptxlint.launch.slices import slice_of, target_of
from ptxlint.launches import Argument, Launch, Scalar


def load(name: str) -> ModuleType:
    """A module of the dataflow tests; tests are no package."""
    path = Path(__file__).parents[1] / "dataflow" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"launch_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


judge = load("ptx_machine")
CTAS = [(0, 0, 0), (1, 0, 0)]
FUEL = 60


def facts_of(text: str) -> Facts:
    """The facts of a text's only kernel; any fault in it fails the test."""
    module = parse(text, "random.ptx")
    assert not module.problems, (module.problems, text)
    return Facts(module, module.kernels()[0])


def bound_of(facts: Facts, values: dict[str, int]) -> Bound:
    """A launch of as many threads as the judge runs, with these numbers."""
    arguments: dict[str, Argument] = {name: Scalar("u32", v) for name, v in values.items()}
    launch = Launch((judge.CTAS, 1, 1), (judge.THREADS, 1, 1), arguments)
    return bind(facts.function, launch, {})


def machine_of(facts: Facts, bound: Bound) -> Machine:
    """The machine of a kernel under a launch."""
    ssa = facts.get(SsaAnalysis)
    memory = MemorySteps(ssa, facts.module, facts.get(AccessAnalysis), bound, {})
    return Machine(ssa, facts.get(PostDominatorsAnalysis), bound, memory)


def with_loads(text: str, random: Random) -> str:
    """Loads, of what nobody reads, put into a kernel at random places."""
    out = []
    for line in text.replace(".b32 %r<10>", ".b32 %r<11>").split("\n"):
        out.append(line)
        if line.endswith(";") and not line.startswith(".") and random.random() < 0.2:
            guard = f"@{random.choice(['', '!'])}%p{random.randrange(4)} "
            guard = guard if random.random() < 0.4 else ""
            place = f"[%r{random.randrange(7)}+{random.choice([0, 4, -8])}]"
            out.append(f"{guard}ld.global.u32 %r10, {place};")
    # Nothing may stand between a kernel's head and its first block but declarations.
    return "\n".join(out)


def expected(facts: Facts, thread: Any) -> tuple[dict[int, list[int]], bool]:
    """By load the addresses that a thread loads from; and whether it came to its end."""
    from ptxlint.cfg.build import CfgAnalysis
    from ptxlint.cfg.graph import EXIT

    found: dict[int, list[int]] = {}
    ended = False
    for step in judge.run(facts.get(CfgAnalysis), thread, FUEL):
        if isinstance(step, int):
            ended = step == EXIT
            continue
        if is_load(step.instr) and judge.guard_holds(step.instr, step.registers):
            address = judge.sources_of(step.instr, step.registers, thread)[0]
            found.setdefault(step.instr.index, []).append(address)
    return found, ended


def is_load(instr: Instr) -> bool:
    """True for a load from global memory."""
    return instr.opcode == "ld" and instr.shape.space == "global"


def met(machine: Machine, facts: Facts, instrs: list[Instr]) -> tuple[dict[Any, list[int]], Any]:
    """By load, CTA and thread the addresses that the machine says; and the run."""
    control = facts.get(ControlDependenceAnalysis)
    targets = [t for t in (target_of(machine.ssa, i) for i in instrs) if t is not None]
    piece = slice_of(machine.ssa, control, targets, machine.is_followed)
    run = machine.run(piece, CTAS, 1_500)
    found: dict[Any, list[int]] = {}
    for meeting in run.meetings():
        address = np.broadcast_to(meeting.address, meeting.lanes.shape)
        for cta, tid in zip(*np.nonzero(meeting.lanes), strict=True):
            key = meeting.target.instr.index, int(cta), int(tid)
            found.setdefault(key, []).append(int(address[cta, tid]) & 0xFFFFFFFF)
    return found, run


def is_known(run: Any, instr: Instr, thread: Any) -> bool:
    """True if a run claims to know all that a thread does at an instruction."""
    unsure = run.unsure.get(instr.index)
    lost = run.given_up if unsure is None else run.given_up | unsure
    return not run.is_out_of_budget and not lost[thread.cta, thread.tid]


def check(text: str, together: bool) -> tuple[int, int]:
    """Hold a kernel's loads to the judge; how many meetings were held, and how many lanes known."""
    facts = facts_of(text)
    scramble = judge.scramble
    values = {n: scramble(scramble(1, ord(n))) for n in "nm"}
    machine = machine_of(facts, bound_of(facts, values))
    loads = [i for i in facts.function.instrs if is_load(i) and machine.ssa.cfg.is_reachable(i)]
    wanted = {t: expected(facts, t) for t in judge.all_threads()}
    held = known = 0
    for instrs in [loads] if together else [[i] for i in loads]:
        found, run = met(machine, facts, instrs)
        for thread, (addresses, ended) in wanted.items():
            for instr in instrs:
                is_whole = is_known(run, instr, thread)
                known += is_whole
                right = addresses.get(instr.index, [])
                ours = found.get((instr.index, thread.cta, thread.tid), [])
                held += len(ours)
                if ended and is_whole:
                    assert ours == right, (text, instr, thread)
                elif ended:
                    # What was not known is left out, the rest comes in its order.
                    rest = iter(right)
                    assert all(address in rest for address in ours), (text, instr, thread)
                elif is_whole or run.is_out_of_budget:
                    short = min(len(ours), len(right))
                    if instr.index not in run.unsure:
                        assert ours[:short] == right[:short], (text, instr, thread)
    return held, known


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("kind", ["integers", "kernel", "structured", "rounds"])
def test_random_kernels(kind: str, together: bool) -> None:
    """What the machine says of random kernels is what these do."""
    held = known = 0
    for seed in range(30):
        random = Random(f"{kind}{seed}")
        generator = judge.Generator(random)
        text = {
            "integers": lambda g: g.integers(12),
            "kernel": lambda g: g.kernel(5, 5),
            "structured": lambda g: g.structured(2),
            "rounds": lambda g: g.rounds(),
        }[kind](generator)
        some = check(with_loads(text, random), together)
        held, known = held + some[0], known + some[1]
    assert held > 800
    assert known > 500
