"""Carried paths, and regions of tensor memory, by known answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ptxlint.dataflow.accumulators import Accumulators, AccumulatorsAnalysis
from ptxlint.dataflow.tensor_memory import TensorMemory, TensorMemoryAnalysis
from ptxlint.dataflow.value_flow import COPY, EXTREME, FACTOR, TERM, ValueFlowAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

PTX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
ARCHS = ("sm_80", "sm_90", "sm_100")


def facts(text: str) -> Facts:
    module = parse(text, "k.ptx")
    (function,) = [f for f in module.functions if not f.is_declaration]
    return Facts(module, function)


def fixture(arch: str, name: str) -> Facts:
    return facts((PTX / arch / f"{name}.ptx").read_text())


def kinds(found: Accumulators) -> Counter[tuple[frozenset[int], bool]]:
    return Counter((a.roles, bool(a.factors)) for a in found.all)


SUM = frozenset({TERM}), False
SCALED = frozenset({TERM, FACTOR}), True
FUSED = frozenset({FACTOR}), True
MAXIMUM = frozenset({COPY, EXTREME}), False
KNOWN = [
    ("sm_80", "matmul_dot_fp16", {SUM: 32}),
    ("sm_90", "matmul_dot_fp16", {SUM: 32}),
    ("sm_100", "matmul_dot_fp16", {}),
    ("sm_80", "matmul_dot_buggy", {}),
    ("sm_90", "matmul_dot_buggy", {}),
    ("sm_80", "flash_fwd", {SCALED: 32, FUSED: 2, MAXIMUM: 2}),
    ("sm_90", "flash_fwd", {SCALED: 32, FUSED: 2, MAXIMUM: 2}),
    ("sm_90", "flash_fwd_buggy", {SUM: 32, FUSED: 2, MAXIMUM: 2}),
    ("sm_100", "flash_fwd", {FUSED: 1, MAXIMUM: 1}),
    ("sm_90", "softmax", {}),
]


@pytest.mark.parametrize(("arch", "name", "wanted"), KNOWN, ids=[f"{a}-{n}" for a, n, _ in KNOWN])
def test_the_accumulators_of_a_fixture(arch: str, name: str, wanted: dict[object, int]) -> None:
    found = fixture(arch, name).get(AccumulatorsAnalysis)
    assert kinds(found) == wanted
    assert found.given_up == []


LOOP = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u32 n)
{{
.reg .pred %p<9>;
.reg .b32 %r<9>;
.reg .f32 %f<20>;
.reg .b64 %d<9>;
ld.param.u64 %d1, [a];
ld.param.u32 %r1, [n];
mov.b32 %r2, 0;
mov.f32 %f1, 0f00000000;
loop:
ld.global.f32 %f2, [%d1];
ld.global.f32 %f3, [%d1+512];
{body}
add.s64 %d1, %d1, 4;
add.s32 %r2, %r2, 1;
setp.lt.s32 %p1, %r2, %r1;
@%p1 bra loop;
st.global.f32 [%d1], %f1;
ret;
}}
"""


@pytest.mark.parametrize(
    ("body", "roles", "factors", "terms", "bypass"),
    [
        ("add.f32 %f1, %f1, %f2;", {TERM}, 0, 1, True),
        ("fma.rn.f32 %f1, %f2, %f3, %f1;", {TERM}, 0, 2, True),
        ("fma.rn.f32 %f1, %f1, %f3, %f2;", {FACTOR}, 1, 1, False),
        ("mul.f32 %f4, %f1, %f3; add.f32 %f1, %f4, %f2;", {FACTOR, TERM}, 1, 1, False),
        ("@%p2 mul.f32 %f1, %f1, %f3; add.f32 %f1, %f1, %f2;", {FACTOR, TERM, COPY}, 1, 1, True),
        ("div.rn.f32 %f1, %f1, %f3;", {FACTOR}, 1, 0, False),
        ("max.f32 %f1, %f1, %f2;", {EXTREME}, 0, 0, True),
        ("selp.f32 %f4, %f2, 0f00000000, %p2; sub.f32 %f1, %f1, %f4;", {TERM}, 0, 1, True),
    ],
)
def test_one_round(body: str, roles: set[int], factors: int, terms: int, bypass: bool) -> None:
    (found,) = facts(LOOP.format(body=body)).get(AccumulatorsAnalysis).all
    assert found.roles == roles
    assert (len(found.factors), len(found.terms), found.bypass) == (factors, terms, bypass)
    assert str(found.instrs[-1].defs[0]) == "%f1"


@pytest.mark.parametrize(
    "body",
    ["mul.f32 %f1, %f2, %f3;", "ex2.approx.f32 %f1, %f1;", "mov.f32 %f1, %f2;"],
    ids=["overwritten", "no sum or product", "copied anew"],
)
def test_no_accumulator(body: str) -> None:
    assert facts(LOOP.format(body=body)).get(AccumulatorsAnalysis).all == []


def test_every_register_read_belongs_to_an_operand() -> None:
    for path in sorted((PTX / "sm_100").glob("*.ptx"))[::5]:
        found = facts(path.read_text())
        flow = found.get(ValueFlowAnalysis)
        for instr in found.function.instrs:
            values = [v for group in flow.operand_values(instr) for v in group]
            guard = [flow.ssa.use_values[instr.index][0]] if instr.guard is not None else []
            assert tuple(guard + values) == flow.ssa.use_values[instr.index]


def regions(memory: TensorMemory) -> Counter[tuple[int | None, bool | None]]:
    return Counter((p.region, p.adds) for p in memory.products)


@pytest.mark.parametrize(
    ("name", "products", "reads", "rewritten"),
    [
        # One round of K before the loop, one in it: two products each.
        ("matmul_dot_fp16", {(0, False): 1, (0, True): 3}, {0: 1}, 1),
        ("matmul_dot_buggy", {(0, False): 2, (0, True): 2}, {0: 1}, 1),
        ("flash_fwd", {(5, False): 3, (5, True): 9, (0, True): 8}, {0: 3, 5: 2}, 3),
        ("flash_fwd_buggy", {(5, False): 3, (5, True): 9, (0, False): 1, (0, True): 7},
         {0: 1, 5: 2}, 1),
    ],
)  # fmt: skip
def test_regions_of_tensor_memory(
    name: str,
    products: dict[tuple[int, bool], int],
    reads: dict[int, int],
    rewritten: int,
) -> None:
    memory = fixture("sm_100", name).get(TensorMemoryAnalysis)
    assert regions(memory) == products
    loads = Counter(r.region for r in memory.reads if r.instr.shape.modifiers[0] == "ld")
    assert loads == reads
    assert len(memory.writes_of(0)) == rewritten


def test_a_kernel_without_tensor_memory_costs_nothing() -> None:
    found = fixture("sm_90", "flash_fwd")
    memory = found.get(TensorMemoryAnalysis)
    assert (memory.products, memory.reads, memory.writes) == ([], [], [])
    assert "symbolic" not in found.seconds
