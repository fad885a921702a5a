"""Random kernels on all threads of a small grid: what is called uniform must be equal."""

from __future__ import annotations

import importlib.util
from collections.abc import Hashable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.dominance import AbortFreePostDominatorsAnalysis
from ptxlint.cfg.graph import EXIT
from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.lane_bits import CTA_BIT, INDEX_BITS, MEMORY, WARP_BITS
from ptxlint.dataflow.ssa import MERGE, SsaAnalysis
from ptxlint.dataflow.uniformity import Level, UniformityAnalysis
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
FUEL = 60
"""How many blocks a thread may execute."""
SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
Key = tuple[Hashable, ...]


def facts_of(text: str) -> Facts:
    """The facts of a text's only kernel; any fault in it fails the test."""
    module = parse(text, "random.ptx")
    assert not module.problems, (module.problems, text)
    return Facts(module, module.kernels()[0])


class Instances:
    """Names the executions of blocks of one thread by the iterations of the loops around them."""

    def __init__(self, loops: LoopForest) -> None:
        self._loops = loops
        self._irreducible = {b for region in loops.irreducible for b in region.blocks}
        self._rounds: dict[int, int] = {}
        self._visits: dict[int, int] = {}
        self._last = -1

    def enter(self, block: int) -> Key:
        """The name of this execution of the block."""
        header = self._loops.with_header(block)
        if header is not None:
            again = self._last >= 0 and self._loops.contains(header, self._last)
            self._rounds[block] = self._rounds[block] + 1 if again else 0
        self._last = block
        key: list[Hashable] = [block]
        if block in self._irreducible:
            key.append(self._visits.get(block, 0))
            self._visits[block] = self._visits.get(block, 0) + 1
        loop = self._loops.innermost(block)
        while loop is not None:
            key.append(self._rounds.get(loop.header, 0))
            loop = loop.parent
        return tuple(key)


class Ledger:
    """Values by (what, instance, what they may depend on): one value a key, or a false claim."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[int, Any]] = {}
        self.uniform = 0

    def check(self, what: Key, dependence: int, thread: Any, value: int) -> None:
        """A value of this dependence in a thread."""
        if dependence & MEMORY:
            dependence |= WARP_BITS
        index = thread.tid & dependence & ((1 << INDEX_BITS) - 1)
        cta = thread.cta if dependence & CTA_BIT else 0
        key = (*what, dependence, index, cta)
        first, who = self._seen.setdefault(key, (value, thread))
        assert first == value, f"{what}: {first} in {who}, {value} in {thread}: {dependence:011b}"
        self.uniform += who != thread


class Checker:
    """Checks every claim about values, uses and branches of a kernel while threads run."""

    def __init__(self, text: str) -> None:
        self.facts = facts_of(text)
        self.cfg, self.ssa = self.facts.get(CfgAnalysis), self.facts.get(SsaAnalysis)
        self.uniform = self.facts.get(UniformityAnalysis)
        self.ledger = Ledger()

    def check_block(self, steps: Any, block: int, key: Key, runner: Any) -> None:
        """Execute a block of one thread, whose name among executions is `key`."""
        self.check_phis(block, key, runner)
        for step in steps:
            self.check_uses(step, key, runner.thread)
            self.check_results(step, key, runner.thread)

    def check_phis(self, block: int, key: Key, runner: Any) -> None:
        """What the phis of a block hold at its top."""
        for phi in self.ssa.phis.get(block, ()):
            found = runner.registers[self.ssa.register[phi]]
            dependence = self.uniform.dependence(phi)
            self.ledger.check(("phi", phi, *key), dependence, runner.thread, found)

    def check_uses(self, step: Any, key: Key, thread: Any) -> None:
        """What an instruction reads, and where it branches."""
        instr = step.instr
        for use, register in enumerate(instr.uses):
            dependence = self.uniform.use_dependence(instr, use)
            found = step.registers[register]
            self.ledger.check(("use", instr.index, use, *key), dependence, thread, found)
        block = self.cfg.block_at(instr)
        if step.written is None and len(self.cfg.edges_from(block)) > 1:
            dependence = self.uniform.branch_dependence(instr)
            taken = machine.guard_holds(instr, step.registers)
            self.ledger.check(("branch", instr.index, *key), dependence, thread, taken)

    def check_results(self, step: Any, key: Key, thread: Any) -> None:
        """What an instruction writes, and what its registers hold then."""
        if step.written is None:
            return
        instr, ssa = step.instr, self.ssa
        results = zip(ssa.def_values[instr.index], instr.defs, step.written, strict=True)
        for final, register, written in results:
            raw = ssa.written(final)
            dependence = self.uniform.dependence(raw)
            self.ledger.check(("raw", raw, *key), dependence, thread, written)
            if ssa.kind[final] == MERGE:
                holds = machine.guard_holds(instr, step.registers)
                value = written if holds else step.registers[register]
                dependence = self.uniform.dependence(final)
                self.ledger.check(("merge", final, *key), dependence, thread, value)


class ByIteration(Checker):
    """Threads that run alone, compared where they have gone round the loops equally often."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        for thread in machine.all_threads():
            runner = machine.Runner(self.cfg, thread)
            instances = Instances(self.facts.get(LoopsAnalysis))
            counts: dict[int, int] = {}
            for _ in range(FUEL):
                block = runner.next
                if block is None or block == EXIT:
                    break
                counts[block] = counts.get(block, 0) + 1
                steps = runner.steps(block, counts[block])
                self.check_block(steps, block, instances.enter(block), runner)


class Group:
    """Threads that go on together until they come to the block `meeting`."""

    def __init__(self, block: int, meeting: int, threads: set[Any]) -> None:
        self.block = block
        self.meeting = meeting
        self.threads = threads


class InLockstep(Checker):
    """Threads that run as one, part at branches and meet at the nearest post-dominator.

    That is how a reconvergence stack works; here one stack is for all threads of the grid.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.meetings = self.facts.get(AbortFreePostDominatorsAnalysis).idom
        self.runners = {t: machine.Runner(self.cfg, t) for t in machine.all_threads()}
        self.stack = [Group(self.cfg.entry, EXIT, set(self.runners))]
        for time in range(2 * FUEL):
            while self.stack and not self.is_running(self.stack[-1]):
                self.stack.pop()
            if not self.stack:
                break
            self.advance(self.stack[-1], time)

    def is_running(self, group: Group) -> bool:
        """False for a group that has come to where others wait, or that is empty."""
        return bool(group.threads) and group.block not in (group.meeting, EXIT)

    def advance(self, group: Group, time: int) -> None:
        """Execute one block in all threads of a group."""
        block = group.block
        self.check_together(block, group.threads)
        following: dict[int, set[Any]] = {}
        for thread in sorted(group.threads):
            runner = self.runners[thread]
            self.check_block(runner.steps(block, time), block, (block, time), runner)
            if runner.next is None or runner.next == EXIT:
                for other in self.stack:
                    other.threads.discard(thread)
                del self.runners[thread]
            else:
                following.setdefault(runner.next, set()).add(thread)
        if len(following) == 1:
            (group.block,) = following
            return
        group.block = self.meetings[block]
        for target, threads in following.items():
            if target != group.block:
                self.stack.append(Group(target, group.block, threads))

    def check_together(self, block: int, threads: set[Any]) -> None:
        """A set of threads that is said to reach the block as a whole does so."""
        divergence = self.uniform.block_divergence(block)
        whole = max(divergence.level, divergence.exit_level)
        for thread in threads:
            for other in self.runners.keys() - threads:
                together = level_between(thread, other) >= whole
                assert not together, (block, divergence, thread, other)


def level_between(one: Any, other: Any) -> Level:
    """The smallest set that holds both threads, as the highest level at which they agree."""
    if one.cta != other.cta:
        return Level.GRID
    return Level.WARP if one.tid >> 5 == other.tid >> 5 else Level.CTA


@pytest.mark.parametrize("checker", [ByIteration, InLockstep])
@settings(SETTINGS, max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_random_control_flow(checker: type[Checker], random: Random) -> None:
    checker(machine.Generator(random).kernel(blocks=random.randrange(1, 7), statements=5))


@pytest.mark.parametrize("checker", [ByIteration, InLockstep])
@settings(SETTINGS, max_examples=60)
@given(random=st.randoms(use_true_random=False))
def test_random_structured_code(checker: type[Checker], random: Random) -> None:
    checker(machine.Generator(random).structured(2))


@settings(SETTINGS, max_examples=100)
@given(st.randoms(use_true_random=False))
def test_rounds_of_a_loop_that_meet_inside(random: Random) -> None:
    InLockstep(machine.Generator(random).rounds())


@settings(SETTINGS, max_examples=100)
@given(st.randoms(use_true_random=False))
def test_random_integer_code(random: Random) -> None:
    InLockstep(machine.Generator(random).integers(8))


@pytest.mark.parametrize("checker", [ByIteration, InLockstep])
def test_the_claims_are_not_empty(checker: type[Checker]) -> None:
    texts = [machine.Generator(Random(seed)).structured(2) for seed in range(10)]
    assert sum(checker(text).ledger.uniform for text in texts) > 1000
