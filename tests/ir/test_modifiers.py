"""Modifiers and types by opcode: what is reported is what ptxas rejects, measured again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ptxlint.ir.instruction import Instr
from ptxlint.ir.modifier_check import modifier_fault
from ptxlint.ir.modifier_rows import ELSEWHERE, GROUPS, MODIFIERS, TYPES
from ptxlint.ir.module import Module
from ptxlint.ir.opcode_rows import ROWS
from ptxlint.ir.verifier import verify

Table = Callable[[str], list[tuple[str, ...]]]
Kernels = Callable[..., Module]
TARGET, VERSION = "sm_100a", "9.4"
TYPE_NAMES = "pred b8 u8 b16 u16 s16 f16 bf16 b32 u32 s32 f32 f16x2 b64 u64 s64 f64 b128".split()


def words() -> list[str]:
    """All modifiers that the rows name."""
    found = set(ELSEWHERE.split()).union(*(g.split() for g in GROUPS.values()))
    for line in MODIFIERS.strip().replace("\n  ", " ").split("\n"):
        found.update(w for w in line.partition(":")[2].split() if w not in GROUPS)
    return sorted(found)


def last(module: Module) -> list[Instr]:
    """The last instruction of each kernel's inner block: the one in question."""
    return [f.instrs[-2] for f in module.functions if not f.is_declaration]


def changed(rows: list[tuple[str, ...]], count: int, seed: int) -> list[str]:
    """Measured statements with a modifier too many or another type."""
    rng, vocabulary, out = Random(seed), [*words(), "frob", "GLOBAL", "b3"], []
    plain = [row[1] for row in rows if row[0] == TARGET and re.match(r"[a-z]\w*\.", row[1])]
    while len(out) < count:
        name, _, rest = rng.choice(plain).partition(" ")
        parts = name.rstrip(";").split(".")
        if rng.random() < 0.5:
            parts.insert(rng.randrange(1, len(parts) + 1), rng.choice(vocabulary))
        else:
            at = [i for i, part in enumerate(parts) if part in TYPE_NAMES]
            if not at:
                continue
            place = rng.choice(at)
            parts[place : place + 1] = rng.choice([[rng.choice(TYPE_NAMES)], [parts[place]] * 2])
        out.append(".".join(parts) + (f" {rest}" if rest else ";"))
    return out


def test_rows_name_opcodes_and_groups() -> None:
    for text in (MODIFIERS, TYPES):
        for line in text.strip().replace("\n  ", " ").split("\n"):
            names, _, rest = line.partition(":")
            assert set(names.split()) <= set(ROWS), line
            assert all(w in GROUPS or not (w.isupper() and w.isalpha()) for w in rest.split()), line


def test_no_measured_statement_is_reported(table: Table, kernels: Kernels) -> None:
    for target, version in (("sm_60", "6.0"), ("sm_90a", "9.4"), (TARGET, VERSION)):
        statements = [row[1] for row in table("statements.tsv") if row[0] == target]
        for text, instr in zip(statements, last(kernels(statements, target, version)), strict=True):
            assert modifier_fault(instr.shape) == "", text


@pytest.mark.parametrize("count", [400, pytest.param(6000, marks=pytest.mark.slow)])
def test_ptxas_rejects_what_is_reported(
    table: Table,
    kernels: Kernels,
    kernel_text: Callable[..., str],
    assemblers: list[Any],
    tmp_path: Path,
    count: int,
) -> None:
    fit = [a for a in assemblers if TARGET in a.targets and a.version >= VERSION]
    if not fit:
        pytest.skip(f"no ptxas at hand knows PTX {VERSION}")
    statements = changed(table("statements.tsv"), count, 5)
    found = [modifier_fault(i.shape) for i in last(kernels(statements, TARGET, VERSION))]
    wrong = [(s, f) for s, f in zip(statements, found, strict=True) if f]
    assert len(wrong) > len(statements) // 4
    while wrong:
        text = kernel_text([s for s, _ in wrong], TARGET, VERSION)
        errors = fit[0].errors(text, TARGET, tmp_path)
        lines = text.split("\n")
        rejected = {lines[line - 1] for line, _ in errors}
        left = [w for w in wrong if f"{{ {w[0]} }}" not in rejected]
        # A syntax error hides what comes after it: only a pass without progress proves us wrong.
        assert len(left) < len(wrong), left
        wrong = left


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("or.b64.b64 %rd1,%rd2,%rd3;", "takes one type, not 2"),
        ("ret.u32;", "takes no type"),
        ("mul.lo.f64 %fd1,%fd2,%fd3;", "`mul.lo` has no type `.f64`"),
        ("cvt.b64.u32 %rd1,%r1;", "has no type `.b64.u32`"),
        ("ld.gllobal.u32 %r1,[%rd1];", "no modifier `.gllobal`"),
        ("multimem.ld_reduce.weak.global.MIN.s64 %rd2,[%rd1];", "no modifier `.MIN`"),
        ("or.b64.L2::128B %rd1,%rd2,%rd3;", "no modifier `.L2::128B`"),
        ("setp.lt.b32 %p1,%r1,%r2;", "`.lt` does not compare `.b32`"),
        ("setp.ne.lt.s32 %p1,%r1,%r2;", "cannot stand together"),
        ("cvt.rn.rz.f32.f64 %f1,%fd1;", "cannot stand together"),
        ("st.global.global.b32 [%rd1],%r1;", "cannot stand together"),
        ("add.ftz.ftz.f32 %f1,%f2,%f3;", "stands twice"),
        ("ld.acquire.global.b32 %r1,[%rd1];", "needs a scope"),
        ("ld.cta.global.b32 %r1,[%rd1];", "needs a memory order"),
    ],
)
def test_messages(statement: str, message: str, kernels: Kernels) -> None:
    (instr,) = last(kernels([statement], TARGET, VERSION))
    assert message in modifier_fault(instr.shape)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("cvt.u64.u32 %rd1,%r1,%r2;", "takes 2 operands, not 3"),
        ("cvt.rn.f16x2.f32 %r1,%f1;", "takes 3 operands, not 2"),
        ("call (%r1), retarg, (%r2, %r3);", "1 arguments, the call has 2"),
        (
            "fp: .callprototype (.param .b32 _) _ (.param .b32 _);"
            " { .param .b32 a; .param .b32 r; call (r), %rd1, (a, a), fp; }",
            "`fp` has 1 arguments, the call has 2",
        ),
        (
            "fp: .callprototype (.param .b32 _) _ (.param .b8 _[]);"
            " { .param .b32 a; call %rd1, (a, a), fp; }",
            "`fp` has 1 results, the call has 0",
        ),
        ("add.f32 %f1|%p1,%f2,%f3;", "two operands stand where one is needed"),
        ("and.b32 %r1,%r2|%r3,%r4;", "two operands stand where one is needed"),
        ("ld.global.b32 %r1,[{%rd1}];", "an address starts with"),
        ("ld.global.b32 %r1,[%rd1+1.0];", "only an integer constant"),
        ("st.global.b32 [%rd1],_;", "it cannot be read"),
        ("ld.b32 %r1,[cv];", "does not reach .const"),
        ("ld.b64 %rd1,[pa];", "does not reach .param"),
    ],
)
def test_operands(statement: str, message: str, kernels: Kernels) -> None:
    problems = verify(kernels([statement], TARGET, VERSION))
    assert any(message in p.message for p in problems), problems


def test_what_ptxas_takes_and_the_isa_does_not_describe(kernels: Kernels) -> None:
    statements = [
        "cp.async.bulk.wait_group0;",
        "add.f32.pred %f1,%f2,%f3;",
        "add.sat.sat.s32 %r1,%r2,%r3;",
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1,{%r2,%r3}],%r1;",
        "mov.b32 %r1,1|2;",
        "fp: .callprototype (.param .b32 _) _ (.param .b8 _[]);"
        " { .param .b32 a; .param .b32 r; call (r), %rd1, (a, a), fp; }",
    ]
    module = kernels(statements, TARGET, VERSION)
    assert [p for p in (*module.problems, *verify(module)) if not p.note] == []
