"""Registers that are packed into a wider one and taken out again."""

from __future__ import annotations

from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.symbolic import SymbolicAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
"""


def facts(body: str) -> Facts:
    module = parse(HEAD + body + "\nret;\n}\n", "k.ptx")
    return Facts(module, module.kernels()[0])


def value(known: Facts, register: str) -> int:
    ssa = known.get(SsaAnalysis)
    return next(v for v in range(len(ssa)) if ssa.register[v].name == register)


def test_halves_of_an_unknown_register_are_two_numbers() -> None:
    known = facts("ld.global.b64 %rd2, [%rd1];\nmov.b64 {%r2, %r3}, %rd2;")
    symbolic = known.get(SymbolicAnalysis)
    assert symbolic.of(value(known, "%r2")) != symbolic.of(value(known, "%r3"))


def test_what_was_packed_is_taken_out_in_its_place() -> None:
    known = facts("mov.u32 %r2, %tid.x;\nmov.b64 %rd2, {%r1, %r2};\nmov.b64 {%r3, %r4}, %rd2;")
    ssa = known.get(SsaAnalysis)
    assert ssa.resolve(value(known, "%r3")) == ssa.resolve(value(known, "%r1"))
    assert ssa.resolve(value(known, "%r4")) == ssa.resolve(value(known, "%r2"))
    symbolic = known.get(SymbolicAnalysis)
    assert symbolic.of(value(known, "%r3")) == symbolic.of(value(known, "%r1"))


def test_one_register_packed_twice() -> None:
    known = facts("mov.b64 %rd2, {%r1, %r1};\nmov.b64 {%r3, %r4}, %rd2;")
    ssa = known.get(SsaAnalysis)
    assert ssa.resolve(value(known, "%r3")) == ssa.resolve(value(known, "%r4"))


def test_a_pack_with_a_constant_is_left_alone() -> None:
    known = facts("mov.b64 %rd2, {%r1, 0};\nmov.b64 {%r3, %r4}, %rd2;")
    ssa = known.get(SsaAnalysis)
    assert ssa.resolve(value(known, "%r4")) == value(known, "%r4")
