"""Random kernels on all threads of a small grid: what is called uniform must be equal."""

from __future__ import annotations

import importlib.util
from collections.abc import Hashable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import EXIT
from ptxlint.cfg.loops import LoopForest, LoopsAnalysis
from ptxlint.dataflow.lane_bits import CTA_BIT, INDEX_BITS, MEMORY, WARP_BITS
from ptxlint.dataflow.ssa import MERGE, SsaAnalysis
from ptxlint.dataflow.uniformity import Level, UniformityAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


def load(name: str) -> ModuleType:
    """A helper module beside this file; tests are no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"dataflow_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load("ptx_machine")
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
    """Runs all threads of a kernel and checks every claim about values, uses and branches."""

    def __init__(self, text: str) -> None:
        facts = facts_of(text)
        self.cfg, self.ssa = facts.get(CfgAnalysis), facts.get(SsaAnalysis)
        self.uniform, self.loops = facts.get(UniformityAnalysis), facts.get(LoopsAnalysis)
        self.ledger = Ledger()
        self.reached: dict[Key, set[Any]] = {}
        self.ended: set[Any] = set()
        for thread in machine.all_threads():
            self.follow(thread)
        self.check_blocks()

    def follow(self, thread: Any) -> None:
        """Run one thread."""
        instances = Instances(self.loops)
        key: Key = ()
        phis: list[int] = []
        for event in machine.run(self.cfg, thread):
            if event == EXIT:
                self.ended.add(thread)
            elif isinstance(event, int):
                key = instances.enter(event)
                self.reached.setdefault(key, set()).add(thread)
                phis = self.ssa.phis.get(event, [])
            else:
                self.check_phis(phis, key, thread, event.registers)
                self.check_uses(event, key, thread)
                self.check_results(event, key, thread)
                phis = []

    def check_phis(self, phis: list[int], key: Key, thread: Any, registers: Any) -> None:
        """What the phis of a block hold at its top."""
        for phi in phis:
            found = registers[self.ssa.register[phi]]
            self.ledger.check(("phi", phi, *key), self.uniform.dependence(phi), thread, found)

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
        """What an instruction writes, and what its register holds then."""
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

    def check_blocks(self) -> None:
        """A block that is reached as a whole or not at all by a set of threads is reached so."""
        for key, threads in self.reached.items():
            divergence = self.uniform.block_divergence(key[0])
            whole = max(divergence.level, divergence.exit_level)
            for thread in threads:
                for other in self.ended - threads:
                    together = level_between(thread, other) >= whole
                    assert not together, (key, divergence, thread, other)


def level_between(one: Any, other: Any) -> Level:
    """The smallest set that holds both threads, as the highest level at which they agree."""
    if one.cta != other.cta:
        return Level.GRID
    return Level.WARP if one.tid >> 5 == other.tid >> 5 else Level.CTA


@settings(SETTINGS, max_examples=120)
@given(st.randoms(use_true_random=False))
def test_random_control_flow(random: Random) -> None:
    generator = machine.Generator(random)
    Checker(generator.kernel(blocks=random.randrange(1, 7), statements=5))


@settings(SETTINGS, max_examples=120)
@given(st.randoms(use_true_random=False))
def test_random_structured_code(random: Random) -> None:
    Checker(machine.Generator(random).structured(3))


def test_the_claims_are_not_empty() -> None:
    assert (
        sum(Checker(machine.Generator(Random(s)).structured(3)).ledger.uniform for s in range(10))
        > 99
    )
