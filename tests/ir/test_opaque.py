"""Faulty instructions lose their meaning, and no analysis trips over them."""

from __future__ import annotations

import pytest

from ptxlint import SourceText, check
from ptxlint.frontends.ptx import parse
from ptxlint.ir.opaque import OPAQUE, set_aside

HEAD = (
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
    ".reg .b32 %r<9>;\n.reg .b64 %rd<3>;\n.reg .pred %p<3>;\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nsetp.lt.s32 %p1, %r1, 7;\n"
)
TAIL = "\nst.global.b32 [%rd1], %r2;\nret;\n}\n"
FAULTY = [
    "add.s32 %r2, %r1;", "add %r2, %r1, %r1;", "add.s32;", "setp %p2, %r1, 3;", "setp.lt.s32 %p2;",
    "mov.u32 %r2, %nothing;", "mov.u32 %nothing, %r1;", "@%nothing mov.u32 %r2, 1;",
    "@%nothing bra END;", "@%nothing ret;", "@p mov.u32 %r2, 1;", "@END mov.u32 %r2, 1;",
    "bra NOWHERE;", "bra;", "@%p1 bra NOWHERE;", "ld.global.b32 %r2;", "ld %r2, [%rd1];",
    "st.global.b32 [%rd1];", "shfl.sync.bfly.b32 %r2;", "shfl.sync.bfly.b32 %r2, %r1;",
    "selp.b32 %r2, %r1;", "cp.async.cg.shared.global [%r1];", "bar.sync;",
    "bar.sync 1, 2, 3;", "call foo;", "call (%r2), foo, (%nothing);", "tcgen05;",
    "wgmma.mma_async;", "atom.add %r2;",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r2}, {%r1}, {%r1};", "vote.sync.all.pred;",
    "redux.sync.add.s32 %r2;", "mbarrier.try_wait %p1;", "cvt.s64.s32 %r2;", "cvt %r2, %r1;",
    "fma.rn.f32 %r2, %r1, %r1;", "mad.lo.s32 %r2, %r1;", "prmt.b32 %r2;", "bfe.u32 %r2, %r1;",
]  # fmt: skip


@pytest.mark.parametrize("statement", FAULTY)
def test_a_fault_is_told_and_nothing_crashes(statement: str) -> None:
    report = check(SourceText(f"{HEAD}{statement}\nEND:{TAIL}", "k.ptx"))
    rules = [finding.rule for finding in report.findings]
    assert "INTERNAL" not in rules
    assert [f.place.line for f in report.findings if f.rule == "PARSE"][:1] == [12]


def test_what_an_opaque_instruction_does() -> None:
    module = parse(HEAD + "@%p1 add.s32 %r2, %r1;\nmov.u32 %r3, %r2;" + TAIL)
    faulty, sound = module.functions[0].instrs[3:5]
    set_aside(module, {faulty.offset})
    assert faulty.opcode == OPAQUE
    assert repr(faulty) == "@%p1 add.s32 %r2, %r1;"
    assert [r.name for r in faulty.defs] == ["%r2"]
    assert [r.name for r in faulty.uses] == ["%p1", "%r2", "%r1"]
    assert faulty.may_define
    assert sound.opcode == "mov"


def test_a_branch_with_a_lost_guard_stays_conditional() -> None:
    module = parse(HEAD + "@%q bra END;\nEND:" + TAIL)
    branch = module.functions[0].instrs[3]
    set_aside(module, ())
    assert branch.opcode == "bra"
    assert [r.type for r in branch.uses] == ["pred"]


def test_a_hopeless_module_is_not_analysed() -> None:
    text = HEAD + "add.s32 %r2, %r1;\n" * 300 + TAIL
    report = check(SourceText(text, "k.ptx"))
    assert {f.rule for f in report.findings} == {"PARSE"}
    assert any("no rule was run" in f.message for f in report.findings)
    assert report.exit_code == 2


def test_a_special_register_as_guard() -> None:
    text = HEAD + "@%is_explicit_cluster mov.u32 %r2, 1;" + TAIL
    assert "INTERNAL" not in [f.rule for f in check(SourceText(text, "k.ptx")).findings]


def test_what_is_no_register_is_no_guard() -> None:
    text = ".version 8.0\n.target sm_80\n.entry k()\n{\n.reg .b32 %r<3>;\nmark:\n"
    module = parse(text + "@mark add.s32 %r1, %r2, 1;\n@gone add.s32 %r1, %r2, 1;\nret;\n}\n")
    assert [i.guard for i in module.functions[0].instrs] == [None, None, None]
