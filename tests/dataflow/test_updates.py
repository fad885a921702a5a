"""What becomes of a loaded number on its way to a store, should the kernel run again."""

from __future__ import annotations

import pytest

from ptxlint.dataflow.updates import MOVED, SETTLED, SHIFTED, UNCLEAR, effects
from ptxlint.dataflow.value_flow import ValueFlowAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .f32 s)
{
.shared .align 16 .b8 tile[256];
.reg .pred %p<4>;
.reg .b16 %h<4>;
.reg .b32 %r<20>;
.reg .f32 %f<20>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [x];
ld.param.f32 %f9, [s];
mov.f32 %f8, 0f00000000;
setp.lt.f32 %p2, %f9, 0f00000000;
"""
STORE = "st.global.f32 [%rd1], %f2;\n"


def changes(body: str) -> list[int]:
    """How what the first load brings enters each effect."""
    module = parse(HEAD + body + "ret;\n}\n", "k.ptx")
    assert not module.problems
    (kernel,) = module.kernels()
    facts = Facts(module, kernel)
    load = next(i for i in kernel.instrs if i.opcode == "ld" and i.shape.space == "global")
    found = effects(facts.get(ValueFlowAnalysis), load)
    assert found is not None
    return [effect.change for effect in found]


@pytest.mark.parametrize(
    ("body", "change"),
    [
        pytest.param("mov.f32 %f2, %f1;", SETTLED, id="a copy"),
        pytest.param("max.f32 %f2, %f1, %f8;", SETTLED, id="a maximum"),
        pytest.param("selp.f32 %f2, %f1, %f8, %p2;", SETTLED, id="a choice"),
        pytest.param("mul.f32 %f2, %f1, %f9;", SHIFTED, id="a product"),
        pytest.param("fma.rn.f32 %f2, %f9, %f9, %f1;", SHIFTED, id="a sum of products"),
        pytest.param("neg.f32 %f2, %f1;", SHIFTED, id="negated"),
        pytest.param("max.f32 %f3, %f1, %f8;\nadd.f32 %f2, %f3, %f9;", SHIFTED, id="both"),
        pytest.param("mul.f32 %f2, %f1, %f1;", UNCLEAR, id="a square"),
        pytest.param("abs.f32 %f3, %f1;\ndiv.rn.f32 %f2, %f1, %f3;", UNCLEAR, id="its sign"),
        pytest.param("setp.lt.f32 %p1, %f1, %f8;\nselp.f32 %f2, %f8, %f1, %p1;", UNCLEAR,
                     id="a choice by itself"),
        pytest.param("ex2.approx.f32 %f2, %f1;", UNCLEAR, id="a power"),
        pytest.param("shfl.sync.bfly.b32 %f2, %f1, 1, 31, -1;", UNCLEAR, id="of another lane"),
        pytest.param("mov.b32 {%h1, %h2}, %f1;\nmov.b32 %f2, {%h2, %h1};", MOVED, id="swapped"),
        pytest.param("""
            shfl.sync.bfly.b32 %f3, %f1, 1, 31, -1;
            add.f32 %f3, %f3, %f1;
            sub.f32 %f2, %f1, %f3;
            """, UNCLEAR, id="less its mean"),
        pytest.param("""
            mov.f32 %f2, %f1;
            $l:
            add.f32 %f2, %f2, %f9;
            setp.lt.f32 %p1, %f9, %f8;
            @%p1 bra $l;
            """, SHIFTED, id="summed in a loop"),
    ],
)  # fmt: skip
def test_a_change(body: str, change: int) -> None:
    assert changes(f"ld.global.f32 %f1, [%rd1];\n{body}\n{STORE}") == [change]


def test_what_comes_back_from_shared_memory_may_depend_on_it() -> None:
    body = """
        ld.global.f32 %f1, [%rd1];
        st.shared.f32 [tile], %f1;
        bar.sync 0;
        ld.shared.f32 %f3, [tile+4];
        sub.f32 %f2, %f1, %f3;
        """
    assert changes(body + STORE) == [UNCLEAR, UNCLEAR]


def test_elements_of_a_vector_keep_their_places() -> None:
    load = "ld.global.v2.f32 {%f1, %f2}, [%rd1];\n"
    assert changes(load + "st.global.v2.f32 [%rd1], {%f1, %f2};\n") == [SETTLED]
    assert changes(load + "st.global.v2.f32 [%rd1], {%f2, %f1};\n") == [MOVED]


def test_an_address_is_no_number_that_is_stored() -> None:
    body = """
        ld.global.b64 %rd2, [%rd1];
        st.global.b64 [%rd2], %rd1;
        """
    assert changes(body) == [UNCLEAR]
