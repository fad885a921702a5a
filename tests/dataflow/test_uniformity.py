"""Text cases of uniformity and block divergence; explanations; the fixtures."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Block
from ptxlint.dataflow.lane_bits import MEMORY
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.uniformity import BlockDivergence, Level, Uniformity, UniformityAnalysis
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr

HERE = Path(__file__).parent
FIXTURES = HERE.parent.parent / "fixtures"


def load(name: str) -> ModuleType:
    """A module beside this file; tests are no package."""
    spec = importlib.util.spec_from_file_location(f"dataflow_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


harness = load("test_cases")


def shown(level: Level) -> str:
    """A level in small letters."""
    return level.name.lower()


def parted(divergence: BlockDivergence) -> str:
    """How threads reach a block."""
    parts = []
    if divergence.branch is not None:
        parts.append(f"parted at {divergence.branch.index} ({shown(divergence.level)})")
    if divergence.exit_branch is not None:
        level = shown(divergence.exit_level)
        parts.append(f"some exited at {divergence.exit_branch.index} ({level})")
    return "; ".join(parts) or "together"


def print_uniformity(facts: Facts) -> Iterator[str]:
    """The level of every value where it is made, and of every branch."""
    ssa, uniform = facts.get(SsaAnalysis), facts.get(UniformityAnalysis)

    def values(found: Iterator[int]) -> str:
        return ", ".join(f"{ssa.register[v]} {show(uniform, v)}" for v in found)

    def side(instr: Instr) -> str:
        parts = [values(iter(ssa.def_values[instr.index]))]
        for use, register in enumerate(instr.uses):
            level = uniform.use_uniformity(instr, use)
            value = ssa.use_values[instr.index][use]
            if level is not uniform.value_uniformity(value):
                parts.append(f"reads {register} as {shown(level)}")
        if instr.shape.row.terminator:
            parts.append(f"branch {shown(uniform.branch_uniformity(instr))}")
        return ", ".join(filter(None, parts))

    def head(block: Block) -> str:
        return values(iter(ssa.phis.get(block.index, ())))

    yield from harness.listing(facts, head, side)
    for assumption in uniform.assumes:
        yield f"assumes {assumption}"


def show(uniform: Uniformity, value: int) -> str:
    """A value's level, with the thread index bits if it does not depend on all that it might."""
    dependence = uniform.dependence(value)
    words = [str(k) for k in range(10) if dependence >> k & 1]
    words = [f"bits {' '.join(words)}"] if len(words) not in (0, 5, 10) else []
    if dependence & MEMORY:
        words.append("memory")
    level = shown(uniform.value_uniformity(value))
    return f"{level} ({', '.join(words)})" if words else level


def print_divergence(facts: Facts) -> Iterator[str]:
    """How threads reach each block."""
    uniform = facts.get(UniformityAnalysis)

    def head(block: Block) -> str:
        strict = parted(uniform.block_divergence(block.index))
        stable = parted(uniform.block_divergence(block.index, stable_memory=True))
        return strict if strict == stable else f"{strict}, if memory is stable {stable}"

    def side(instr: Instr) -> str:
        return shown(uniform.branch_uniformity(instr)) if instr.shape.row.terminator else ""

    yield from harness.listing(facts, head, side)


PRINTERS: dict[str, Callable[[Facts], Iterator[str]]] = {
    "uniformity": print_uniformity,
    "divergence": print_divergence,
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


def facts_of(code: str, metadata: KernelMetadata | None = None) -> Facts:
    """The facts of a kernel body or module."""
    module = harness.module_of(code)
    return Facts(module, module.functions[-1], metadata=metadata)


def level_at(facts: Facts, index: int) -> Level:
    """The level of the first result of an instruction."""
    value = facts.get(SsaAnalysis).def_values[index][0]
    return facts.get(UniformityAnalysis).value_uniformity(value)


WARP_OF_THREAD = "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, %tid.y;"


def test_metadata_of_triton_makes_the_block_one_dimensional() -> None:
    plain = facts_of(WARP_OF_THREAD)
    known = facts_of(WARP_OF_THREAD, KernelMetadata(num_warps=4))
    assert [level_at(plain, i) for i in range(3)] == [Level.THREAD] * 3
    assert [level_at(known, i) for i in range(3)] == [Level.THREAD, Level.WARP, Level.GRID]
    assert known.get(UniformityAnalysis).assumes == ()


@pytest.mark.parametrize(
    ("directive", "warp", "row"),
    [
        (".reqntid 128", Level.WARP, Level.GRID),
        (".reqntid 128, 1, 1", Level.WARP, Level.GRID),
        (".reqntid 16, 16", Level.GRID, Level.THREAD),
        (".reqntid 32, 8", Level.GRID, Level.WARP),
        (".reqntid 24, 8", Level.GRID, Level.THREAD),
        (".reqntid 96, 2", Level.THREAD, Level.THREAD),
        (".reqntid 96", Level.WARP, Level.GRID),
        (".maxntid 128, 1, 1", Level.THREAD, Level.THREAD),
        ("", Level.THREAD, Level.THREAD),
    ],
)
def test_extents_of_the_block(directive: str, warp: Level, row: Level) -> None:
    body = ".reg .b32 %r<4>; " + WARP_OF_THREAD
    facts = facts_of(f".entry k() {directive} {{ {body} }}")
    assert [level_at(facts, 1), level_at(facts, 2)] == [warp, row]


def test_a_block_that_reads_only_x_is_assumed_to_be_flat() -> None:
    facts = facts_of("mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; mov.u32 %r3, %ntid.x;")
    assert level_at(facts, 1) is Level.WARP
    (assumption,) = facts.get(UniformityAnalysis).assumes
    assert "one-dimensional" in assumption


def test_a_callee_might_read_the_other_extents() -> None:
    code = """
    .func f { ret; }
    .entry k { .reg .b32 %r<4>; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; call f; }
    """
    assert level_at(facts_of(code), 1) is Level.THREAD


def test_a_function_knows_nothing_of_its_callers() -> None:
    code = """
    .func f (.param .b32 a) {
        .reg .b32 %r<4>;
        ld.param.b32 %r1, [a];
        mov.u32 %r2, %tid.x;
        shr.u32 %r2, %r2, 5;
        ret;
    }
    """
    facts = facts_of(code)
    assert [level_at(facts, 0), level_at(facts, 2)] == [Level.THREAD, Level.THREAD]


def test_explanations_lead_back_to_a_source() -> None:
    facts = facts_of(
        """
        mov.u32 %r1, %tid.x;
        ld.param.u32 %r2, [n];
        mul.lo.s32 %r3, %r2, %r1;
        setp.lt.s32 %p1, %r3, %r2;
        mov.u32 %r4, 1;
        @%p1 bra L;
        mov.u32 %r4, 2;
        L:
        add.s32 %r5, %r4, %r2;
        """
    )
    uniform, ssa = facts.get(UniformityAnalysis), facts.get(SsaAnalysis)
    path = uniform.explain(ssa.def_values[-1][0])
    assert [instr.index for instr in path] == [7, 3, 2, 0]
    assert [i.index for i in uniform.explain(ssa.def_values[-1][0], limit=2)] == [7, 3]
    assert uniform.explain(ssa.def_values[1][0]) == []


def test_explanations_lead_out_of_loops() -> None:
    facts = facts_of(
        """
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, 0;
        L:
        add.s32 %r2, %r2, 1;
        setp.lt.s32 %p1, %r2, %r1;
        @%p1 bra L;
        add.s32 %r3, %r2, 5;
        """
    )
    uniform, ssa = facts.get(UniformityAnalysis), facts.get(SsaAnalysis)
    path = uniform.explain(ssa.def_values[-1][0])
    assert [instr.index for instr in path] == [5, 3, 0]


def test_guards() -> None:
    facts = facts_of(
        """
        mov.u32 %r1, %ctaid.x;
        setp.eq.s32 %p1, %r1, 0;
        @%p1 mov.u32 %r2, 1;
        mov.u32 %r3, 1;
        """
    )
    uniform, instrs = facts.get(UniformityAnalysis), facts.function.instrs
    assert uniform.guard_uniformity(instrs[2]) is Level.CTA
    assert uniform.guard_uniformity(instrs[3]) is Level.GRID
    assert uniform.branch_uniformity(instrs[2]) is Level.GRID


def test_reductions_of_triton_end_uniform() -> None:
    path = FIXTURES / "ptx" / "sm_90" / "softmax.ptx"
    module = parse(path.read_text(), str(path))
    facts = Facts(module, module.kernels()[0])
    stores = [i for i in facts.function.instrs if i.opcode == "st" and i.shape.space == "shared"]
    uniform = facts.get(UniformityAnalysis)
    # What each warp hands to the others is one number for all its lanes, at one address.
    assert stores
    for store in stores:
        assert [uniform.use_uniformity(store, use) for use in range(2)] == [Level.WARP] * 2


@pytest.mark.parametrize(
    ("third", "exchanged", "wanted"),
    [("%r9", "%r1", Level.WARP), ("%r8", "%r1", Level.THREAD), ("%r9", "%r8", Level.THREAD)],
)
def test_a_maximum_of_three(third: str, exchanged: str, wanted: Level) -> None:
    lines = ["mov.u32 %r1, %tid.x;", "mov.u32 %r8, %tid.x;", "mov.u32 %r9, %ctaid.x;"]
    for lane in (16, 8, 4, 2, 1):
        lines.append(f"shfl.sync.bfly.b32 %r2, {exchanged}, {lane}, 31, -1;")
        lines.append(f"max.f32 %r1, {third}, %r2, %r1;")
    facts = facts_of("\n".join(lines))
    assert level_at(facts, len(facts.function.instrs) - 1) is wanted


def test_barriers_of_triton_are_reached_together() -> None:
    """Every `bar.sync` of correct kernels: all threads of the CTA, or the kernel says who."""
    seen = 0
    for path in sorted((FIXTURES / "ptx").rglob("*.ptx")):
        module = parse(path.read_text(), str(path))
        for fn in module.kernels():
            facts = Facts(module, fn)
            uniform, cfg = facts.get(UniformityAnalysis), facts.get(CfgAnalysis)
            for instr in fn.instrs:
                if instr.opcode == "bar" and len(instr.operands) == 1:
                    block = cfg.block_of[instr.index]
                    divergence = uniform.block_divergence(block, stable_memory=True)
                    assert divergence.level <= Level.CTA, (path, instr.index, divergence)
                    seen += 1
    assert seen > 500
