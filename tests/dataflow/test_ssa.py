"""Text cases of SSA form and of descriptions, and the verifier on what must not pass."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ptxlint.cfg.dominance import DominatorsAnalysis
from ptxlint.cfg.graph import Block
from ptxlint.dataflow.describe import describe
from ptxlint.dataflow.ssa import (
    ARGUMENT,
    ENTRY,
    INSERT,
    MERGE,
    PHI,
    RESULT,
    UNDEFINED,
    Ssa,
    SsaAnalysis,
)
from ptxlint.dataflow.ssa_verifier import verify
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr

HERE = Path(__file__).parent


def load(name: str) -> ModuleType:
    """A module beside this file; tests are no package."""
    spec = importlib.util.spec_from_file_location(f"dataflow_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


harness = load("test_cases")


class Namer:
    """Names values by register and version, in the order in which they were made."""

    def __init__(self, ssa: Ssa) -> None:
        counts: dict[str, int] = {}
        self.names = []
        for register in ssa.register:
            version = counts[register.name] = counts.get(register.name, -1) + 1
            self.names.append(f"{register.name}.{version}")

    def __call__(self, value: int) -> str:
        return self.names[value]


def definition(ssa: Ssa, name: Namer, value: int) -> str:
    """A value with what it is made of."""
    operands = [name(v) for v in ssa.operands[value]]
    kind = ssa.kind[value]
    if kind == MERGE:
        inner = ssa.written(value)
        new = f" [{definition(ssa, name, inner)}]" if inner == value - 1 else ""
        return f"{name(value)} = {operands[0]} ? {operands[1]} : {operands[2]}{new}"
    if kind == INSERT:
        return f"{name(value)} = {operands[0]} into {operands[1]}"
    return name(value)


def print_ssa(facts: Facts) -> Iterator[str]:
    """The values that are read and made at every point, and what each equals."""
    ssa = facts.get(SsaAnalysis)
    name = Namer(ssa)

    def head(block: Block) -> str:
        parts = []
        for phi in ssa.phis.get(block.index, ()):
            sources = ssa.phi_sources(block.index)
            ways = ", ".join(
                f"{'entry' if source == ENTRY else f'B{source}'} {name(value)}"
                for source, value in zip(sources, ssa.operands[phi], strict=True)
            )
            parts.append(f"{name(phi)} = phi({ways})")
        return "; ".join(parts)

    def side(instr: Instr) -> str:
        made = [definition(ssa, name, v) for v in ssa.def_values[instr.index]]
        read = [name(v) for v in ssa.use_values[instr.index]]
        return " ".join(filter(None, [", ".join(made), "<-" if read else "", " ".join(read)]))

    yield from harness.listing(facts, head, side)
    for kind, word in ((UNDEFINED, "undefined"), (ARGUMENT, "argument")):
        found = [name(v) for v in ssa.at_entry if ssa.kind[v] == kind]
        if found:
            yield f"{word} {' '.join(found)}"
    same = [f"{name(v)} is {name(ssa.resolve(v))}" for v in range(len(ssa)) if ssa.resolve(v) != v]
    if same:
        yield ", ".join(same)
    assert verify(ssa, facts.get(DominatorsAnalysis)) == []


def print_describe(facts: Facts) -> Iterator[str]:
    """What every register is set to, as an expression."""
    ssa = facts.get(SsaAnalysis)

    def side(instr: Instr) -> str:
        return "; ".join(describe(ssa, v) for v in ssa.def_values[instr.index])

    yield from harness.listing(facts, lambda block: "", side)


PRINTERS: dict[str, Callable[[Facts], Iterator[str]]] = {
    "ssa": print_ssa,
    "describe": print_describe,
}
harness.PRINTERS.update(PRINTERS)
CASES = [case for stem in PRINTERS for case in harness.read_cases(HERE / "cases" / f"{stem}.test")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.path.stem}:{c.name}")
def test_case(case: Any, request: pytest.FixtureRequest) -> None:
    actual = harness.render(case)
    if request.config.getoption("--update-cases", default=False):
        harness.rewrite(case, actual)
        return
    assert actual == case.expected


LOOP = """
    mov.u32 %r1, 0;
L:
    add.s32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 9;
    @%p1 add.s32 %r2, %r1, %r1;
    @%p1 bra L;
    add.s32 %r3, %r1, %r2;
"""


def ssa_of(code: str) -> tuple[Ssa, Facts]:
    """The SSA form of a kernel body."""
    module = harness.module_of(code)
    facts = Facts(module, module.functions[0])
    return facts.get(SsaAnalysis), facts


def set_operand(ssa: Ssa, kind: int, at: int, new: int) -> None:
    """Replace an operand of the first value of a kind."""
    value = ssa.kind.index(kind)
    operands = list(ssa.operands[value])
    operands[at] = new
    ssa.operands[value] = tuple(operands)


def break_phi_order(ssa: Ssa) -> None:
    phi = ssa.kind.index(PHI)
    ssa.operands[phi] = ssa.operands[phi][::-1]


def break_phi_size(ssa: Ssa) -> None:
    phi = ssa.kind.index(PHI)
    ssa.operands[phi] = ssa.operands[phi][:1]


def break_use(ssa: Ssa) -> None:
    last = ssa.def_values[-1][0]
    register = ssa.cfg.function.instrs[1].uses[0]
    ssa.register[last] = register
    ssa.use_values[1] = (last,)


def break_register(ssa: Ssa) -> None:
    ssa.use_values[1] = (ssa.def_values[2][0],)


def break_definition(ssa: Ssa) -> None:
    ssa.def_values[1] = ssa.def_values[0]


def break_merge(ssa: Ssa) -> None:
    set_operand(ssa, MERGE, 1, ssa.def_values[-1][0])


def break_result(ssa: Ssa) -> None:
    value = ssa.def_values[1][0]
    ssa.operands[value] = ()


def break_length(ssa: Ssa) -> None:
    ssa.result.append(0)


def break_operand(ssa: Ssa) -> None:
    set_operand(ssa, MERGE, 0, 10_000)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (break_phi_order, "does not reach the end"),
        (break_phi_size, "operands for 2 ways"),
        (break_use, "does not dominate"),
        (break_register, "another register"),
        (break_definition, "two definitions"),
        (break_merge, "does not dominate"),
        (break_result, "does not read what its instruction reads"),
        (break_length, "list result has"),
        (break_operand, "does not exist"),
    ],
)
def test_the_verifier_sees_damage(damage: Callable[[Ssa], None], complaint: str) -> None:
    ssa, facts = ssa_of(LOOP)
    tree = facts.get(DominatorsAnalysis)
    assert verify(ssa, tree) == []
    damage(ssa)
    assert any(complaint in line for line in verify(ssa, tree)), verify(ssa, tree)


def test_queries_of_a_masked_load() -> None:
    ssa, facts = ssa_of("mov.b32 %r1, 7;\n@!%p1 ld.global.b32 {%r1}, [%rd1];\nmov.b32 %r2, %r1;")
    instrs = facts.function.instrs
    fill, loaded = ssa.def_values[0][0], ssa.def_values[1][0]
    assert ssa.kind[loaded] == MERGE
    assert ssa.old(loaded) == fill
    assert ssa.kind[ssa.written(loaded)] == RESULT
    assert ssa.guard_value(instrs[1]) == ssa.operands[loaded][0]
    assert ssa.guard_value(instrs[0]) is None
    assert ssa.instr_users(loaded) == [instrs[2]]
    assert ssa.value_users(fill) == [loaded]
    assert ssa.resolve(ssa.def_values[2][0]) == loaded


def test_values_under_a_predicate() -> None:
    ssa, _ = ssa_of(
        """
        mov.b32 %r1, 7;
        @%p1 ld.global.b32 {%r1}, [%rd1];
        not.pred %p2, %p1;
        @%p2 add.s32 %r2, %r1, 1;
        @!%p2 add.s32 %r3, %r1, 1;
        @%p3 add.s32 %r4, %r1, 1;
        """
    )
    merged = ssa.def_values[1][0]
    guards = [ssa.use_values[at][0] for at in (3, 4, 5)]
    assert ssa.assuming(merged, guards[0], True) == ssa.old(merged)
    assert ssa.assuming(merged, guards[1], False) == ssa.written(merged)
    assert ssa.assuming(merged, guards[2], True) == merged


ROUNDS = """
    {outside}
    $round:
    {inside}
    {guard} ld.shared.b32 %r1, [%r9];
    add.s32 %r2, %r2, %r1;
    setp.lt.s32 %p4, %r2, %r3;
    @%p4 bra $round;
    """
COMPARED = "setp.lt.s32 %p1, %r4, %r2;"


@pytest.mark.parametrize(
    ("outside", "inside", "guard", "only"),
    [
        (COMPARED, "", "@%p1", True),
        (COMPARED, "", "@!%p1", True),
        (COMPARED, "not.pred %p2, %p1;", "@%p2", True),
        ("", COMPARED, "@%p1", False),
        (f"{COMPARED} mov.b32 %r1, 0;", "", "@%p1", False),
        (COMPARED, "@%p3 mov.b32 %r1, 0;", "@%p1", False),
        ("", "mov.b32 %r1, 0;", "@%p1", False),
    ],
)
def test_a_guard_that_rounds_share_leaves_a_register_unwritten(
    outside: str, inside: str, guard: str, only: bool
) -> None:
    ssa, facts = ssa_of(ROUNDS.format(outside=outside, inside=inside, guard=guard))
    load = next(i for i in facts.function.instrs if i.opcode == "ld")
    assert ssa.is_only_write(ssa.def_values[load.index][0]) is only


def test_roots_of_predicates() -> None:
    ssa, _ = ssa_of(
        """
        setp.lt.s32 %p1|%p2, %r1, %r2;
        not.pred %p3, %p2;
        mov.pred %p4, %p3;
        not.pred %p5, %p4;
        setp.lt.and.s32 %p6|%p7, %r1, %r2, %p5;
        setp.lt.s32 _|%p8, %r1, %r2;
        """
    )
    first = ssa.def_values[0][0]
    assert [ssa.root(ssa.def_values[at][0]) for at in range(4)] == [
        (first, True),
        (first, True),
        (first, True),
        (first, False),
    ]
    assert ssa.root(ssa.def_values[0][1]) == (first, False)
    # With a third operand both results may be false; with a sink there is no first result.
    for value in (ssa.def_values[4][1], ssa.def_values[5][0]):
        assert ssa.root(value) == (value, True)


def test_deep_chains_need_no_deep_stack() -> None:
    lines = [
        f"@%p{at % 3 + 1} mov.u32 %r{at % 2 + 1}, %r{(at + 1) % 2 + 1};" for at in range(20_000)
    ]
    ssa, facts = ssa_of("\n".join(["mov.u32 %r1, 0;", *lines, "mov.u32 %r3, %r2;"]))
    assert verify(ssa, facts.get(DominatorsAnalysis)) == []
    assert describe(ssa, ssa.def_values[-1][0], 5).count("?") <= 32


def all_fixtures() -> list[Path]:
    """Every PTX file of the fixtures."""
    return sorted((HERE.parent.parent / "fixtures").rglob("*.ptx"))


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "syntax"])
def test_fixtures_verify(arch: str) -> None:
    paths = [path for path in all_fixtures() if path.parent.name == arch]
    assert paths
    for path in paths:
        module = parse(path.read_text(encoding="latin-1"), str(path))
        for fn in module.functions:
            facts = Facts(module, fn)
            ssa = facts.get(SsaAnalysis)
            assert verify(ssa, facts.get(DominatorsAnalysis)) == [], path
            for value in range(len(ssa)):
                assert ssa.register[ssa.resolve(value)].type, path


def test_masked_loads_of_fixtures_are_one_value_each() -> None:
    path = HERE.parent.parent / "fixtures" / "ptx" / "sm_90" / "softmax.ptx"
    module = parse(path.read_text(), str(path))
    facts = Facts(module, module.kernels()[0])
    ssa = facts.get(SsaAnalysis)
    loads = [i for i in facts.function.instrs if i.opcode == "ld" and i.guard is not None]
    assert loads
    for load in loads:
        (value,) = ssa.def_values[load.index]
        assert ssa.kind[value] == MERGE
        assert describe(ssa, value).endswith(" : 0xff800000")
