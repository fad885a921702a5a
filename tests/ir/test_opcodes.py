"""The opcode table: what each statement defines, uses and touches, held against ptxas."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.opcode_rows import ROWS
from ptxlint.ir.opcodes import (
    MemoryEffect,
    carry_of,
    converges,
    effectful,
    lookup,
    memory_of,
    space_of,
    types_of,
)

Table = Callable[[str], list[tuple[str, ...]]]
Kernels = Callable[..., Module]
CATEGORIES = frozenset(
    (
        "int float half compare logic move convert memory atomic async tensor texture surface "
        "control barrier warp video misc"
    ).split()
)
VERSIONS = {"sm_60": "6.0", "sm_90a": "9.4", "sm_100a": "9.4", "sm_103a": "9.4", "sm_120a": "9.4"}


def measured(module: Module) -> list[Instr]:
    """The last instruction of each kernel's inner block: the one in question."""
    return [f.instrs[-2] for f in module.functions if not f.is_declaration]


@pytest.mark.parametrize("target", VERSIONS)
def test_definitions_and_uses(target: str, table: Table, kernels: Kernels) -> None:
    wanted = [row for row in table("statements.tsv") if row[0] == target]
    module = kernels([row[1] for row in wanted], target, VERSIONS[target])
    assert module.problems == []
    for row, instr in zip(wanted, measured(module), strict=True):
        found = (" ".join(map(repr, instr.defs)), " ".join(map(repr, instr.uses)))
        assert found == row[2:], row[1]
        assert instr.shape.form is not None, row[1]
        assert len(instr.shape.roles) == len(instr.shape.patterns), row[1]


def test_there_are_statements_of_every_opcode(table: Table, kernels: Kernels) -> None:
    seen = set()
    for target in VERSIONS:
        statements = [row[1] for row in table("statements.tsv") if row[0] == target]
        module = kernels(statements, target, VERSIONS[target])
        seen |= {i.opcode for f in module.functions for i in f.instrs}
    assert set(ROWS) - seen == set()


@pytest.mark.parametrize("target", VERSIONS)
def test_ptxas_takes_the_statements(
    target: str,
    table: Table,
    kernel_text: Callable[..., str],
    assemblers: list[Any],
    tmp_path: Path,
) -> None:
    version = VERSIONS[target]
    fit = [
        a
        for a in assemblers
        if target in a.targets
        and tuple(map(int, a.version.split("."))) >= tuple(map(int, version.split(".")))
    ]
    if not fit:
        pytest.skip(f"no ptxas at hand knows {target} and PTX {version}")
    statements = [row[1] for row in table("statements.tsv") if row[0] == target]
    text = kernel_text(statements, target, version)
    lines = text.split("\n")
    assert [(lines[n - 1], m) for n, m in fit[0].errors(text, target, tmp_path)] == []


@pytest.mark.parametrize("name", sorted(ROWS))
def test_rows_are_well_formed(name: str) -> None:
    row = lookup(name)
    assert row.known
    assert row.name == name
    assert row.category in CATEGORIES
    assert row.forms
    assert row.terminator in ("", "branch", "indirect", "return", "exit", "trap")
    whens = [form.when for form in row.forms]
    # Forms of one `when` stand together, else the later ones are never reached.
    runs = [w for at, w in enumerate(whens) if at == 0 or whens[at - 1] != w]
    assert len(runs) == len(set(runs))
    for form in row.forms:
        for spec in form.operands:
            assert spec.memory in ("", "r", "w", "rw")


@pytest.mark.parametrize(
    ("name", "modifiers", "count", "roles"),
    [
        ("add", ("s32",), 3, ("def", "use", "use")),
        ("ld", ("global", "v4", "b32"), 2, ("def", "address")),
        ("ld", ("global", "L2::cache_hint", "b32"), 3, ("def", "address", "use")),
        ("bar", ("red", "popc", "u32"), 3, ("def", "use", "use")),
        ("bar", ("red", "popc", "u32"), 4, ("def", "use", "use", "use")),
        ("wgmma", ("mma_async", "sync"), 8, ("update",) + ("use",) * 7),
        ("bra", (), 1, ("label",)),
        ("brx", ("idx",), 2, ("use", "list")),
        ("call", (), 1, ("function",)),
        ("call", (), 4, ("def", "function", "callargs", "list")),
        ("st", ("global", "b32"), 2, ("address", "use")),
    ],
)
def test_roles(name: str, modifiers: tuple[str, ...], count: int, roles: tuple[str, ...]) -> None:
    form = lookup(name).form(modifiers, count)
    assert form is not None
    assert form.roles == roles


@pytest.mark.parametrize(
    ("name", "modifiers", "count"),
    [
        ("add", ("s32",), 2),
        ("add", ("s32",), 4),
        ("ld", ("global", "b32"), 3),
        ("ld", ("global", "L2::cache_hint", "b32"), 2),
        ("ret", (), 1),
        ("bar", ("arrive",), 1),
        ("mma", ("sync", "aligned"), 3),
        ("setp", ("lt", "s32"), 4),
        ("setp", ("lt", "and", "s32"), 3),
        ("max", ("s32",), 4),
    ],
)
def test_a_count_that_fits_no_form(name: str, modifiers: tuple[str, ...], count: int) -> None:
    assert lookup(name).form(modifiers, count) is None


def test_patterns_tell_the_calls_apart() -> None:
    group, plain = ("(", ("s", 1)), ("s", 0)
    call = lookup("call")
    direct = call.form((), 3, (group, plain, group))
    indirect = call.form((), 3, (plain, group, plain))
    assert direct is not None
    assert indirect is not None
    assert direct.roles == ("def", "function", "callargs")
    assert indirect.roles == ("function", "callargs", "list")


def test_an_unknown_opcode_is_taken_for_the_worst() -> None:
    row = lookup("frobnicate")
    assert not row.known
    assert row.convergent
    assert row.has_effect
    form = row.form((), 3, (("s", 0), ("a", ("s", 1)), ("s", 2)))
    assert form is not None
    assert form.roles == ("update", "address", "use")


def test_an_unknown_operation_of_a_family_is_not_wrong() -> None:
    form = lookup("tcgen05").form(("frobnicate",), 2)
    assert form is not None
    assert form.roles == ("update", "use")


MEMORY = [
    ("ld.global.b32 %r1,[%rd1];", ("global",), ()),
    ("ld.param.u64 %rd1,[pa];", ("param",), ()),
    ("ld.b32 %r1,[%rd1];", ("",), ()),
    ("ld.shared::cluster.u32 %r1,[%r2];", ("shared",), ()),
    ("ld.shared.u32 %r1,sm[4];", ("shared",), ()),
    ("st.shared.b32 [sm],%r1;", (), ("shared",)),
    ("st.local.b32 [lo],%r1;", (), ("local",)),
    ("atom.global.add.u32 %r1,[%rd1],%r2;", ("global",), ("global",)),
    ("atom.add.u32 %r1,[%rd1],%r2;", ("",), ("",)),
    ("red.shared.add.u32 [sm],%r2;", ("shared",), ("shared",)),
    ("cp.async.cg.shared.global [%r1],[%rd1],16;", ("global",), ("shared",)),
    ("cp.async.commit_group;", (), ()),
    (
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%r1],[%rd2,{%r2}],[%r4];",
        ("global", "shared"),
        ("shared",),
    ),
    (
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1,{%r2}],[%r1];",
        ("shared",),
        ("global",),
    ),
    (
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        " [%r1],[%r2],%r3,[%r4];",
        ("shared",),
        ("shared",),
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1],[%r2],%r3;",
        ("global", "shared"),
        ("global",),
    ),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1},[%r2];", ("shared",), ()),
    ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1],{%r1};", (), ("shared",)),
    ("mbarrier.init.shared.b64 [mb],1;", ("shared",), ("shared",)),
    ("mbarrier.try_wait.parity.shared.b64 %p1,[mb],%r1;", ("shared",), ()),
    ("prefetch.global.L2 [%rd1];", (), ()),
    ("bar.sync 0;", (), ()),
    ("add.s32 %r1,%r2,%r3;", (), ()),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1},[%r3];", ("tmem",), ()),
    ("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3],{%r1};", (), ("tmem",)),
    ("tcgen05.mma.cta_group::1.kind::f16 [%r1],[%r3],%rd2,%r2,%p1;", ("tmem",), ("tmem",)),
    ("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4},[tx,{%r1}];", ("tex",), ()),
    ("sust.b.1d.b32.trap [su,{%r2}],%r1;", (), ("surf",)),
    ("frobnicate.b32 %r1,[%rd1];", ("",), ("",)),
]


def test_memory(kernels: Kernels) -> None:
    module = kernels([row[0] for row in MEMORY])
    assert module.problems == []
    for (text, reads, writes), instr in zip(MEMORY, measured(module), strict=True):
        assert memory_of(instr.shape) == MemoryEffect(reads, writes), text


def test_wgmma_reads_shared_memory_through_its_descriptors(kernels: Kernels) -> None:
    text = (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4},%rd1,%rd2,%p1,1,1,0,0;"
    )
    (instr,) = measured(kernels([text], "sm_90a"))
    assert memory_of(instr.shape) == MemoryEffect(("shared",), ())
    assert instr.defs == instr.uses[:4]


@pytest.mark.parametrize(
    ("text", "together", "stays"),
    [
        ("bar.sync 0;", True, True),
        ("shfl.sync.bfly.b32 %r1,%r2,16,31,-1;", True, False),
        ("tcgen05.wait::ld.sync.aligned;", True, True),
        ("tcgen05.mma.cta_group::1.kind::f16 [%r1],%rd1,%rd2,%r2,%p1;", False, True),
        ("barrier.cluster.arrive.aligned;", True, True),
        ("mbarrier.arrive.shared.b64 _,[mb];", False, True),
        ("ld.global.b32 %r1,[%rd1];", False, False),
        ("ld.volatile.global.b32 %r1,[%rd1];", False, True),
        ("ld.acquire.gpu.global.b32 %r1,[%rd1];", False, True),
        ("st.global.b32 [%rd1],%r1;", False, True),
        ("add.s32 %r1,%r2,%r3;", False, False),
        ("add.cc.u32 %r1,%r2,%r3;", False, True),
    ],
)
def test_convergence_and_effects(text: str, together: bool, stays: bool, kernels: Kernels) -> None:
    (instr,) = measured(kernels([text]))
    assert (converges(instr.shape), effectful(instr.shape)) == (together, stays)


@pytest.mark.parametrize(
    ("text", "carry"),
    [
        ("add.cc.u32 %r1,%r2,%r3;", (False, True)),
        ("addc.u32 %r1,%r2,%r3;", (True, False)),
        ("addc.cc.u32 %r1,%r2,%r3;", (True, True)),
        ("mad.lo.cc.u32 %r1,%r2,%r3,%r4;", (False, True)),
        ("madc.hi.u32 %r1,%r2,%r3,%r4;", (True, False)),
        ("subc.cc.u32 %r1,%r2,%r3;", (True, True)),
        ("add.u32 %r1,%r2,%r3;", (False, False)),
    ],
)
def test_the_carry_flag(text: str, carry: tuple[bool, bool], kernels: Kernels) -> None:
    (instr,) = measured(kernels([text]))
    assert carry_of(instr.shape) == carry


def test_types_and_spaces() -> None:
    assert types_of(("rn", "f32", "s32")) == ("f32", "s32")
    assert types_of(("sync", "aligned", "m16n8k16", "f32", "bf16", "bf16", "f32")) == (
        "f32",
        "bf16",
        "bf16",
        "f32",
    )
    assert space_of("ld", ("shared::cta", "u32")) == "shared"
    assert space_of("ld", ("param::entry", "u32")) == "param"
    assert space_of("ld", ("u32",)) == ""
    assert space_of("cp", ("async", "ca", "shared", "global")) == "shared"
    assert space_of("cvta", ("to", "global", "u64")) == "global"


def test_importing_the_table_parses_no_row() -> None:
    code = "import ptxlint.ir.opcodes as o; assert not o._rows; o.lookup('ld'); print(len(o._rows))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "1"
