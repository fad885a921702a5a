"""Polynomials and guards against a machine that runs random kernels on concrete threads.

The claim is local: where the polynomials of all operands are right, that of the result is right, or
an obligation noted at the instruction is broken. Guards: a predicate that holds makes every one of
its conjuncts true, one that does not makes those of its negation true.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptxlint.cfg.graph import EXIT
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.guards import Conjunct, GuardsAnalysis
from ptxlint.dataflow.polynomial import Atom, Polynomial
from ptxlint.dataflow.ssa import ENTRY, SsaAnalysis
from ptxlint.dataflow.symbolic import SymbolicAnalysis, Wrap
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


def load(name: str) -> ModuleType:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"symbolic_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load("ptx_machine")
execution = load("test_ssa_execution")
SETTINGS = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


class Run:
    """One thread's run, with the values and iteration numbers at hand."""

    def __init__(self, facts: Facts, thread: Any) -> None:
        self.ssa = facts.get(SsaAnalysis)
        self.loops = facts.get(LoopsAnalysis)
        self.symbolic = facts.get(SymbolicAnalysis)
        self.guards = facts.get(GuardsAnalysis)
        self.follow = execution.SsaMachine(self.ssa, thread)
        self.thread = thread
        self.iteration: dict[int, int] = {}
        self.checked = 0
        self.conjuncts = 0

    def enter(self, block: int) -> None:
        loop = self.loops.with_header(block)
        if loop is not None:
            came = self.follow.block
            inside = came != ENTRY and self.loops.contains(loop, came)
            self.iteration[block] = self.iteration.get(block, -1) + 1 if inside else 0
        self.follow.enter(block)

    def value(self, value: int) -> int:
        kind = self.ssa.register[value].type
        return int(machine.signed(self.follow.values[value], 64 if kind.endswith("64") else 32))

    def atom(self, atom: Atom) -> int:
        kind, data = atom.kind, atom.data
        if kind == "bit":
            return self.thread.special(f"%tid.{data[0]}") >> data[1] & 1
        if kind in ("ctaid", "nctaid", "ntid"):
            return int(self.thread.special(f"%{kind}.{data[0]}"))
        if kind == "index":
            return self.iteration[data[0]]
        if kind in ("load", "opaque"):
            return self.value(data[0])
        if kind == "fdiv":
            return self.eval(data[0]) // int(data[1])
        if kind == "div":
            a, b = self.eval(data[0]), self.eval(data[1])
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        if kind in ("min", "max"):
            return (min if kind == "min" else max)(self.eval(data[0]), self.eval(data[1]))
        if kind == "select":
            return self.eval(data[1] if self.follow.values[data[0]] else data[2])
        raise KeyError(kind)

    def eval(self, poly: Polynomial) -> int:
        total = 0
        for monomial, coefficient in poly.terms.items():
            for number in monomial:
                coefficient *= self.atom(poly.table.atoms[number])
            total += coefficient
        return total

    def is_right(self, value: int) -> bool:
        try:
            return self.eval(self.symbolic.of(value)) == self.value(value)
        except (KeyError, ZeroDivisionError):
            return False

    def is_broken(self, wrap: Wrap) -> bool:
        found = self.eval(wrap.polynomial)
        if wrap.signed:
            return not -(1 << (wrap.bits - 1)) <= found < 1 << (wrap.bits - 1)
        return not 0 <= found < 1 << wrap.bits

    def check(self, index: int) -> None:
        ssa = self.ssa
        for value in ssa.def_values[index]:
            kind = ssa.register[value].type
            if kind == "pred":
                self.check_predicate(value)
                continue
            poly = self.symbolic.of(value)
            low, high = poly.range()
            operands = [v for v in ssa.use_values[index] if ssa.register[v].type != "pred"]
            if not all(map(self.is_right, operands)):
                continue
            if any(self.is_broken(w) for w in self.symbolic.wraps.get(index, ())):
                continue
            try:
                found = self.eval(poly)
            except (KeyError, ZeroDivisionError):
                continue
            assert found == self.value(value), (index, poly)
            assert low <= found <= high, (index, poly)
            self.checked += 1

    def check_predicate(self, value: int) -> None:
        holds = bool(self.follow.values[value])
        known = self.guards.of_predicate(value, holds)
        if not self.slice_is_right(value):
            return
        assert known is not None, f"predicate {value} was called constant"
        for conjunct in known:
            if conjunct.polynomial is not None and self.can_evaluate(conjunct):
                assert self.eval(conjunct.polynomial) >= 0, (value, conjunct)
                self.conjuncts += 1

    def can_evaluate(self, conjunct: Conjunct) -> bool:
        try:
            assert conjunct.polynomial is not None
            self.eval(conjunct.polynomial)
        except (KeyError, ZeroDivisionError):
            return False
        return True

    def slice_is_right(self, value: int) -> bool:
        """True if every integer that the predicate is made of has a right polynomial."""
        seen, work = set(), [value]
        while work:
            current = work.pop()
            if current in seen:
                continue
            seen.add(current)
            if current not in self.follow.values:
                return False
            if self.ssa.register[current].type != "pred" and not self.is_right(current):
                return False
            if self.ssa.register[current].type == "pred":
                work += self.ssa.operands[current]
        return True


def run(text: str, fuel: int = 200) -> tuple[int, int]:
    """Run all threads; the numbers of values and of conjuncts that were checked."""
    module = parse(text, "random.ptx")
    assert not module.problems
    facts = Facts(module, module.kernels()[0])
    values = conjuncts = 0
    for thread in machine.all_threads():
        one = Run(facts, thread)
        for step in machine.run(one.ssa.cfg, thread, fuel):
            if isinstance(step, int):
                if step == EXIT:
                    break
                one.enter(step)
                continue
            one.follow.step(step)
            if step.written is not None:
                one.check(step.instr.index)
        values += one.checked
        conjuncts += one.conjuncts
    return values, conjuncts


@settings(SETTINGS, max_examples=150)
@given(st.integers(0, 2**32))
def test_random_kernels(seed: int) -> None:
    run(machine.Generator(Random(seed)).structured(3))


INDEXING = (
    machine.HEAD
    + """
	mov.u32 %r0, %tid.x;
	and.b32 %r1, %r0, 31;
	shr.u32 %r2, %r0, 2;
	or.b32 %r3, %r1, 64;
	xor.b32 %r4, %r3, 24;
	shl.b32 %r5, %r0, 3;
	and.b32 %r6, %r5, 120;
	or.b32 %r7, %r6, 4;
	bfe.u32 %r8, %r0, 1, 3;
	mad.lo.s32 %r9, %r8, 12, %r7;
	setp.lt.s32 %p0, %r9, 77;
	setp.ge.s32 %p1, %r1, 9;
	and.pred %p2, %p0, %p1;
	@%p2 mov.u32 %r3, 0;
	ret;
}
"""
)


def test_index_arithmetic_is_followed_exactly() -> None:
    values, conjuncts = run(INDEXING)
    threads = len(machine.all_threads())
    assert values >= 10 * threads
    assert conjuncts >= 2 * threads
