"""The verifier: never wrong on what ptxas takes, and what it finds of what ptxas rejects."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.module import Module
from ptxlint.ir.verifier import verify
from ptxlint.source import Problem

Table = Callable[[str], list[tuple[str, ...]]]
Text = Callable[..., str]

ROOT = Path(__file__).resolve().parents[2]
TYPES = (
    "pred b8 u8 s8 b16 u16 s16 f16 b32 u32 s32 f32 f16x2 b64 u64 s64 f64 b128"
).split()  # fmt: skip
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def errors(module: Module) -> list[Problem]:
    return [p for p in [*module.problems, *verify(module)] if not p.note]


def faulty_lines(text: str) -> set[str]:
    """The lines of a text that carry an error."""
    module = parse(text)
    lines = text.split("\n")
    return {lines[module.source.position(p.offset).line - 1] for p in errors(module)}


def body(statements: str, head: str = HEAD) -> str:
    return f"{head}.visible .entry k(.param .u64 p)\n{{\n{statements}\n\tret;\n}}\n"


def messages(statements: str, head: str = HEAD) -> list[str]:
    return [p.message for p in errors(parse(body(statements, head)))]


# Against what was measured --------------------------------------------------------------------
@pytest.mark.parametrize("target", ["sm_60", "sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_no_statement_that_ptxas_takes_is_rejected(
    target: str, table: Table, kernel_text: Text
) -> None:
    statements = [row[1] for row in table("statements.tsv") if row[0] == target]
    version = "6.0" if target == "sm_60" else "9.4"
    assert faulty_lines(kernel_text(statements, target, version)) == set()


def test_what_ptxas_rejects(table: Table, kernel_text: Text) -> None:
    """`rejected.tsv` says which of the rejected statements are reported here, and which not."""
    wrong = []
    for statement, reported in table("rejected.tsv"):
        found = bool(errors(parse(kernel_text([statement], "sm_100a"))))
        if found != (reported == "yes"):
            wrong.append((statement, found))
    assert wrong == []


def test_every_register_type_in_every_place(table: Table) -> None:
    """`matrix.tsv`: the register types that ptxas takes where `@` stands."""
    declared = "".join(f".reg .{t} %{t}_<8>;\n" for t in TYPES)
    declared += ".shared .align 16 .b8 sm[64];\n"
    rejected = missed = 0
    for template, accepted in table("matrix.tsv"):
        takes = accepted.split()
        lines = [template.replace("@", f"%{t}_1") for t in TYPES]
        head = ".version 9.4\n.target sm_100a\n.address_size 64\n"
        text = body(declared + "\n".join(lines), head)
        faulty = faulty_lines(text)
        assert faulty.isdisjoint(template.replace("@", f"%{t}_1") for t in takes), template
        rejected += len(TYPES) - len(takes)
        missed += len(TYPES) - len(takes) - len(faulty)
    # A few per cent are let pass on purpose: packed registers, coordinates of tensors.
    assert rejected > 3000
    assert missed / rejected < 0.04


def test_the_valid_fixtures_have_no_fault() -> None:
    paths = sorted((ROOT / "fixtures" / "syntax").glob("*.ptx"))
    assert len(paths) > 20
    for path in paths:
        with path.open(encoding="utf-8", newline="", errors="surrogateescape") as file:
            module = parse(file.read(), path.name)
        assert errors(module) == [], path.name


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_tritons_output_has_no_fault(arch: str) -> None:
    paths = sorted((ROOT / "fixtures" / "ptx" / arch).glob("*.ptx"))
    assert paths
    for path in paths:
        module = parse(path.read_text(encoding="utf-8"), path.name)
        assert errors(module) == [], path.name


# Messages -------------------------------------------------------------------------------------
REGISTERS = (
    "\t.reg .pred %p<4>;\n\t.reg .b16 %h<4>;\n\t.reg .b32 %r<9>;\n\t.reg .f32 %f<4>;\n"
    "\t.reg .s32 %s<4>;\n\t.reg .b64 %rd<4>;\n\t.reg .f64 %fd<4>;\n"
)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("add.s32 %s1, %s2, %f1;", "a .f32 register stands where .s32 is needed (`%f1`)"),
        ("add.s32 %r1, %r2, %rd1;", "a .b64 register stands where .s32 is needed (`%rd1`)"),
        ("ld.global.u32 %h1, [%rd1];", "a .b16 register stands where at least .u32 is needed"),
        ("add.s32 %r1, %r2;", "takes 3 operands, not 2"),
        ("mov.f32 %f1, 1;", "an integer literal stands where .f32 is needed (`1`)"),
        ("add.s32 4, %r1, %r2;", "a literal cannot be written (`4`)"),
        ("add.s32 _, %r1, %r2;", "cannot throw its result away"),
        ("add.u32 %r1, %tid.x, 1;", "cannot read the special register %tid.x here"),
        ("ld.global.v4.u32 {%r1, %r2}, [%rd1];", "a vector of 2 elements stands where 4"),
        ("ld.global.u32 %r1, [%fd1];", "a .f64 register cannot hold an address"),
        ("ld.shared.u32 %r1, [16];", "a constant address is for .local memory only"),
        ("ld.global.u32 %r1, [%rd1-4];", "`-` cannot stand in an address"),
        ("cvt.s32.f32 %r1, %f1;", "a rounding, such as `.rn`, is missing"),
        ("mul.s32 %r1, %r2, %r3;", "`.lo`, `.hi` or `.wide` is missing"),
        ("add %r1, %r2, %r3;", "a type is missing"),
        ("and.s32 %r1, %r2, %r3;", "`and` has no type `.s32`"),
        ("and.wide.b32 %r1, %r2, %r3;", "`and` has no modifier `.wide`"),
        ("elect.sync %r1|%p1, -1;", "`elect` needs sm_90 or later; the target is sm_80"),
        ("shfl.up.b32 %r1, %r2, 1, 0;", "`shfl` without `.sync` ended with PTX 6.4 for sm_70"),
        ("wgmma.fence.sync.aligned;", "`wgmma` needs the target sm_90a; the target is sm_80"),
        ("selp.b32 %r1, %r2, %r3, %r4;", "a .b32 register stands where .pred is needed"),
        ("bra %r1;", "a .b32 register stands where a label is needed"),
        ("call %rd1;", "a call through a register needs a `.callprototype`"),
        ("mov.b32 %r1, 0789;", "8 and 9 are no octal digits"),
        ("@%r1 exit;", "the guard is a .b32 register, not a .pred one"),
        ("addd.s32 %r1, %r2, %r3;", "`addd` is no instruction of PTX ISA 9.4"),
    ],
)
def test_messages(statement: str, message: str) -> None:
    (found,) = messages(REGISTERS + statement)
    assert message in found


def test_a_problem_says_where_and_what_to_do() -> None:
    module = parse(body(REGISTERS + "\tmov.b32 %r1, 1;\n\tadd.u32 %r1, %tid.x, 1;"))
    (problem,) = verify(module)
    position = module.source.position(problem.offset)
    assert module.source.line(position.line).strip() == "add.u32 %r1, %tid.x, 1;"
    assert position.column == 2
    assert problem.hint == "read it with `mov` into a register first"
    assert problem.code == "operand"


def test_all_faults_of_a_module_are_found() -> None:
    found = messages(REGISTERS + "\tadd.s32 %r1, %r2, %f1;\n" * 3 + "\tmov.f32 %f1, 1;")
    assert len(found) == 4


def test_faults_are_in_text_order() -> None:
    module = parse(body(REGISTERS + "\tmov.f32 %f1, 1;\n\taddd.s32 %r1, %r2, %r3;\n\tbra %r1;"))
    offsets = [p.offset for p in verify(module)]
    assert offsets == sorted(offsets)
    assert len(offsets) == 3


def test_a_module_of_faults_is_given_up() -> None:
    found = messages(REGISTERS + "\tmov.f32 %f1, 1;\n" * 1000)
    assert len(found) == 200


# Opcodes that the table lacks -----------------------------------------------------------------
def test_an_unknown_opcode_is_named_once_with_a_suggestion() -> None:
    module = parse(body(REGISTERS + "\tfma_.rn.f32 %f1, %f2, %f3, %f1;\n" * 3))
    (problem,) = verify(module)
    assert problem.code == "unknown-opcode"
    assert problem.hint == "did you mean `fma`?"
    assert not problem.note


@pytest.mark.parametrize(
    ("head", "opcode"),
    [
        (".version 99.0\n.target sm_80\n", "frobnicate.b32"),
        (HEAD, "_warpgroup.arrive"),
        (HEAD, "p2r.b32"),
    ],
)
def test_an_opcode_beyond_the_table_is_a_note(head: str, opcode: str) -> None:
    module = parse(body(f"\t.reg .b32 %r<4>;\n\t{opcode} %r1, %r2;", head))
    (problem,) = [p for p in verify(module) if p.code == "unknown-opcode"]
    assert problem.note


# Version and target ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("version", "target", "statement", "fits"),
    [
        ("7.0", "sm_80", "cp.async.wait_all;", True),
        ("6.5", "sm_75", "cp.async.wait_all;", False),
        ("7.0", "sm_75", "cp.async.wait_all;", False),
        ("8.0", "sm_90", "elect.sync %r1|%p1, -1;", True),
        ("7.8", "sm_90", "elect.sync %r1|%p1, -1;", False),
        ("8.0", "sm_90a", "wgmma.fence.sync.aligned;", True),
        ("8.0", "sm_90", "wgmma.fence.sync.aligned;", False),
        ("8.6", "sm_100a", "wgmma.fence.sync.aligned;", False),
        ("8.6", "sm_100a", "tcgen05.wait::ld.sync.aligned;", True),
        ("8.8", "sm_100f", "tcgen05.wait::ld.sync.aligned;", True),
        ("8.8", "sm_103a", "tcgen05.wait::ld.sync.aligned;", True),
        ("8.6", "sm_100", "tcgen05.wait::ld.sync.aligned;", False),
        ("8.7", "sm_120a", "tcgen05.wait::ld.sync.aligned;", False),
        ("8.0", "sm_90a", "setmaxnreg.dec.sync.aligned.u32 40;", True),
        ("8.7", "sm_120a", "setmaxnreg.dec.sync.aligned.u32 40;", True),
        ("8.0", "sm_90", "setmaxnreg.dec.sync.aligned.u32 40;", False),
        ("6.3", "sm_70", "shfl.bfly.b32 %r1, %r2, 1, 31;", True),
        ("6.4", "sm_60", "shfl.bfly.b32 %r1, %r2, 1, 31;", True),
        ("6.4", "sm_70", "shfl.bfly.b32 %r1, %r2, 1, 31;", False),
        ("7.4", "sm_80", "ld.global.L2::cache_hint.b32 %r1, [%rd1], %rd2;", True),
        ("7.3", "sm_80", "ld.global.L2::cache_hint.b32 %r1, [%rd1], %rd2;", False),
        ("7.4", "sm_75", "ld.global.L2::cache_hint.b32 %r1, [%rd1], %rd2;", False),
        ("8.8", "sm_100", "max.f32 %f1, %f2, %f3, %f1;", True),
        ("8.7", "sm_100", "max.f32 %f1, %f2, %f3, %f1;", False),
        ("8.7", "sm_90", "max.f32 %f1, %f2, %f3, %f1;", False),
        ("1.0", "sm_10", "vote.all.pred %p1, %p2;", True),
    ],
)
def test_version_and_target(version: str, target: str, statement: str, fits: bool) -> None:
    head = f".version {version}\n.target {target}\n.address_size 64\n"
    assert (messages(REGISTERS + statement, head) == []) == fits


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (".target sm_80\n", "`.version` is missing"),
        (".version 8.0\n.address_size 64\n", "`.target` is missing"),
        (".version 7.55\n.target sm_80\n", "there is no PTX ISA 7.55"),
        (".version 8.0\n.target sm_81\n", "`sm_81` is no architecture that PTX ISA 8.0 knows"),
        (".version 7.0\n.target sm_90\n", "`sm_90` needs PTX ISA 7.8; the module says 7.0"),
        (".version 7.0\n.target hopper\n", "`hopper` is no architecture"),
    ],
)
def test_headers(head: str, message: str) -> None:
    assert messages("", head) == [message]


@pytest.mark.parametrize(
    "head",
    [
        "// .version 1.0\n/* .target x */ .version 8.0 .target sm_80 .address_size 64\n",
        "\n\n.version 8.0\n.target sm_80, debug\n",
        ".version 8.0\n.target compute_80\n",
        ".version 1.4\n.target sm_10, map_f64_to_f32\n",
        ".version 99.0\n.target sm_999z\n".replace("z", ""),
        '# 1 "k.cu"\n.version 8.0\n.target sm_80\n',
    ],
)
def test_headers_without_fault(head: str) -> None:
    assert messages("", head) == []


def test_a_late_directive_is_found_but_not_in_a_comment() -> None:
    late = body("") + ".version 8.0\n"
    assert [p.message for p in errors(parse(late))] == ["`.version` stands after other statements"]
    assert errors(parse(body("") + "/*\n.version 8.0\n*/\n")) == []


# Calls, declarations --------------------------------------------------------------------------
FUNCTION = ".func (.param .b32 r) f(.param .b32 a, .param .b32 b) { ret; }\n"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("call (%r1), f, (%r2, %r3);", ""),
        ("call (_), f, (%r2, %r3);", ""),
        ("call (%r1), f, (%r2);", "`f` has 2 arguments, the call has 1"),
        ("call f, (%r2, %r3);", "`f` has 1 results, the call has 0"),
        ("call k2;", "`k2` is a kernel and cannot be called"),
        ("call v, (%r1);", ""),
    ],
)
def test_calls(call: str, message: str) -> None:
    head = HEAD + FUNCTION + ".entry k2() { ret; }\n.extern .func v(.param .b8 x[]);\n"
    assert messages(REGISTERS + call, head) == ([message] if message else [])


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        (".global .align 3 .b8 g[4];", "an alignment of 3 is no power of two"),
        (".global .f32 g = 1;", "`1` is no float value for a .f32 variable"),
        (".global .f32 g = 1.0;", ""),
        (".global .u32 g = 1.0;", "`1.0` is no integer value for a .u32 variable"),
        (".global .u32 g[2] = {1, 2, 3};", "3 values for 2 elements"),
        (".global .u32 g[4] = {1, 2, 3};", ""),
        (".global .u32 g[2][2] = {{1, 2, 3}, {3}};", "3 values for 2 elements"),
        (".global .u32 g[2][2] = {{1, 2}, {3}};", ""),
        (".global .v2 .f32 g[2] = {{1.0, 2.0}, {3.0, 4.0}};", ""),
        (".global .u32 g[3] = 1;", "an array is initialised with `{…}`"),
        (".global .u32 g = {1};", "`{…}` stands where a single value is needed"),
        (".global .b32 g[2] = {1.0, 0f3F800000};", ""),
        (".global .b64 g = 0d3FF0000000000000;", ""),
        (".global .f16 g = 1;", "a .f16 variable takes no initial value"),
        (".const .f32 g[2] = {-1.5, 1.0+2.0};", ""),
        (".global .u64 g[2] = {generic(h), 1};", ""),
        (".shared .u32 g = 1;", "a .shared variable cannot be initialised"),
        (".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }", "`f` is declared with other"),
        (".func f(.param .b32 a);\n.func f(.param .b32 b) { ret; }", ""),
    ],
)
def test_declarations(declaration: str, message: str) -> None:
    found = [p.message for p in errors(parse(HEAD + ".global .u32 h;\n" + declaration + "\n"))]
    assert [m[: len(message)] for m in found] == ([message] if message else [])


def test_spaces_of_variables() -> None:
    head = HEAD + ".global .u32 g;\n.const .u32 c;\n"
    inner = REGISTERS + "\t.shared .u32 s;\n"
    fine = (
        "ld.global.u32 %r1, [g];\nld.shared.u32 %r1, [s];\nld.u32 %r1, [g];\nld.param.u32 %r1, [p];"
    )
    assert messages(inner + fine, head) == []
    for statement in (
        "ld.shared.u32 %r1, [g];",
        "ld.global.u32 %r1, [s+4];",
        "ld.global.u32 %r1, [p];",
        "ld.const.u32 %r1, [g];",
        "st.param.b32 [p], 1;",
        "ld.global.u32 %r1, s[1];",
    ):
        assert len(messages(inner + statement, head)) == 1, statement


def test_parameters_and_results_of_functions() -> None:
    inner = "{ .reg .b32 r; %s }\n"
    head = HEAD + ".func (.param .b32 q) f(.param .b32 a) "
    for statement, count in (
        ("st.param.b32 [q], r;", 0),
        ("ld.param.b32 r, [a];", 0),
        ("st.param.b32 [a], r;", 1),
        ("ld.param.b32 r, [q];", 1),
    ):
        assert len(errors(parse(head + inner % statement))) == count, statement


def test_a_name_of_several_spaces_is_left_alone() -> None:
    blocks = (
        "{ .shared .u32 v; ld.shared.u32 %r1, [v]; }\n{ .local .u32 v; ld.local.u32 %r1, [v]; }"
    )
    assert messages(REGISTERS + blocks) == []


def test_old_modules_have_default_roundings() -> None:
    statement = "div.f32 %f1, %f2, %f3;"
    assert messages(REGISTERS + statement, ".version 1.3\n.target sm_10\n") == []
    assert len(messages(REGISTERS + statement)) == 1


def test_verdicts_are_not_mixed_between_modules() -> None:
    """The same shape is a fault under one target and none under another, in either order."""
    old = body("\tcp.async.wait_all;", ".version 7.0\n.target sm_75\n")
    new = body("\tcp.async.wait_all;", ".version 7.0\n.target sm_80\n")
    for text, count in ((old, 1), (new, 0), (old, 1), (new, 0)):
        assert len(errors(parse(text))) == count


def test_codes_are_those_of_problems(table: Table, kernel_text: Text) -> None:
    doc = Problem.__doc__ or ""
    known = set(re.findall(r"`([a-z-]+)`", doc)) - {"note"}
    for statement, reported in table("rejected.tsv"):
        if reported == "yes":
            module = parse(kernel_text([statement], "sm_100a"))
            assert {p.code for p in errors(module)} <= known, statement
