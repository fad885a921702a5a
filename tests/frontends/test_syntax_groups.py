"""What the groups of syntax mean: not only that they parse, but as what."""

from __future__ import annotations

from pathlib import Path

from ptxlint.frontends.ptx import parse
from ptxlint.ir.function import Function, Prototype, ScopeClose, ScopeOpen
from ptxlint.ir.module import Module, Section
from ptxlint.ir.operand import (
    Address,
    Expr,
    Group,
    Immediate,
    Indexed,
    Label,
    Negated,
    Pair,
    Register,
    Selected,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.ir.pattern import fold

SYNTAX = Path(__file__).resolve().parents[2] / "fixtures" / "syntax"


def load(stem: str) -> Module:
    with (SYNTAX / f"{stem}.ptx").open(encoding="utf-8", newline="") as file:
        module = parse(file.read(), stem)
    assert module.problems == []
    return module


def kernel(stem: str) -> Function:
    return load(stem).kernels()[0]


def body(
    code: str, registers: str = ".reg .b32 %r<9>; .reg .pred %p<4>; .reg .b64 %rd<4>;"
) -> Function:
    module = parse(
        f".version 8.0\n.target sm_90\n.entry k(.param .u64 out)\n{{\n{registers}\n{code}\n}}\n"
    )
    assert module.problems == []
    return module.functions[0]


def test_g01_a_name_in_two_scopes_is_two_registers_and_two_labels() -> None:
    function = kernel("g01_inline_asm_scopes")
    completes = {r for r in function.registers if r.name == "complete"}
    assert len(completes) == 2
    assert len({r.scope for r in completes}) == 2
    loops = [label for label in function.labels if label.name == "waitLoop"]
    assert len(loops) == 2
    branches = [i for i in function.instrs if i.opcode == "bra" and i.shape.has("uni")]
    targets = [i.operands[0] for i in branches[:2]]
    for branch, target in zip(branches, targets, strict=False):
        assert isinstance(target, Label)
        assert function.instrs[target.target].opcode == "mbarrier"
        assert target.target < branch.index
    opens = sum(isinstance(i, ScopeOpen) for i in function.items)
    assert opens == sum(isinstance(i, ScopeClose) for i in function.items) >= 3


def test_g01_an_inner_register_hides_the_outer_one_until_the_block_ends() -> None:
    function = body("mov.b32 %r1, 1; { .reg .b32 %r1; mov.b32 %r1, 2; } mov.b32 %r1, 3; ret;")
    first, inner, last = (i.defs[0] for i in function.instrs[:3])
    assert first is last
    assert inner is not first


def test_g01_an_inner_range_hides_names_met_before() -> None:
    function = body("mov.b32 %r1, 1; { .reg .b64 %r<4>; mov.b64 %r1, 2; } mov.b32 %r1, 3; ret;")
    assert [i.defs[0].type for i in function.instrs[:3]] == ["b32", "b64", "b32"]


def test_g02_loc_chain() -> None:
    module = load("g02_loc_in_scopes")
    second = module.functions[0].instrs[1]
    assert second.loc is not None
    assert [(f.path, f.line, f.column) for f in module.frames(second.loc)] == [
        ("library/inner.py", 69, 5),
        ("kernel.py", 228, 25),
    ]
    third = module.functions[0].instrs[2]
    assert third.loc is not None
    assert third.loc.function_offset == 12


def test_g03_sections_and_files() -> None:
    module = load("g03_sections")
    assert module.files[1].timestamp == 1595524614
    assert module.files[1].size == 5649
    assert module.files[2].timestamp is None
    names = [i.name for i in module.items if isinstance(i, Section)]
    assert names[:3] == [".debug_abbrev", ".debug_info", ".debug_macinfo"]


def test_g04_tables_prototypes_and_calls() -> None:
    function = load("g04_branch_tables_and_calls").kernels()[0]
    assert function.targets["JTI0_0"].targets == ("LBB0_1", "LBB0_2", "LBB0_3", "LBB0_1")
    assert any(isinstance(i, Prototype) and i.name == "fproto" for i in function.items)
    brx = next(i for i in function.instrs if i.opcode == "brx")
    assert brx.operands[1] == Symbol("JTI0_0", "targets")
    calls = [i for i in function.instrs if i.opcode == "call"]
    indirect = next(i for i in calls if len(i.operands) == 4)
    assert indirect.operands[0] == Group((Symbol("r", "param"),))
    assert isinstance(indirect.operands[1], Register)
    assert indirect.operands[3] == Symbol("fproto", "prototype")
    unused = next(i for i in calls if i.operands[0] == Group((Sink(),)))
    assert unused.operands[1] == Symbol("same", "function")


def test_g05_guards_pairs_sinks_and_selectors() -> None:
    function = kernel("g05_guards_and_sinks")
    by_text = {repr(i): i for i in function.instrs}
    guards = [i.shape.guard for i in function.instrs if i.opcode == "add" and i.guard]
    assert guards[:4] == ["@", "@!", "@", "@!"]
    sink = by_text["setp.lt.and.s32 _|%p5, %r1, 5, !%p1;"]
    assert isinstance(sink.operands[0], Pair)
    assert [r.name for r in sink.defs] == ["%p5"]
    assert isinstance(sink.operands[3], Negated)
    assert [r.name for r in sink.uses] == ["%r1", "%p1"]
    video = by_text["vadd.s32.u32.s32 %r32, %r1.b0, %r2.h1;"]
    assert isinstance(video.operands[1], Selected)
    part = next(i for i in function.instrs if repr(i).startswith("vset.u32.u32.lt %r36.b2"))
    assert part.may_define


def test_g06_vectors() -> None:
    function = kernel("g06_vectors")
    gaps = next(i for i in function.instrs if "_, %r3" in repr(i))
    assert [r.name for r in gaps.defs] == ["%r1", "%r3"]
    assert [r.name for r in gaps.uses] == ["%rd1"]
    wide = next(i for i in function.instrs if i.opcode == "wgmma" and len(i.operands) > 3)
    assert isinstance(wide.operands[0], Vector)
    assert len(wide.operands[0].elements) == 128
    partial = next(i for i in function.instrs if repr(i) == "mov.u32 quad.y, %r8;")
    assert partial.may_define
    assert partial.defs[0].vector == 4


def test_g07_addresses() -> None:
    function = body(
        "ld.global.u32 %r1, [%rd1+-4]; ld.global.u32 %r1, [ %rd1 + 4*2 ];"
        "ld.global.u32 %r1, [%rd1+(1+2)*4]; ld.local.u32 %r1, [16]; ld.param.u64 %rd2, [out]; ret;"
    )
    addresses = [i.operands[1] for i in function.instrs[:5]]
    assert all(isinstance(a, Address) for a in addresses)
    assert [a.offset for a in addresses[:3] if isinstance(a, Address)] == [-4, 8, 12]
    assert isinstance(addresses[3], Address)
    assert isinstance(addresses[3].base, Immediate)
    assert addresses[4] == Address(Symbol("out", "param"), 0)
    unified = [i for i in kernel("g07_addresses").instrs if "unified" in repr(i)]
    assert [i.opcode for i in unified] == ["ld", "ld", "atom"]
    assert all(any(isinstance(o, Address) and o.unified for o in i.operands) for i in unified)
    assert repr(unified[1]) == "ld.global.v2.u32 {%r7, %r8}, [%rd4+8].unified;"
    assert not any(isinstance(a, Address) and a.unified for a in addresses)
    tensor = next(i for i in kernel("g07_addresses").instrs if i.shape.has("tensor"))
    source = tensor.operands[1]
    assert isinstance(source, Address)
    assert isinstance(source.rest[0], Vector)
    indexed = next(i for i in kernel("g07_addresses").instrs if "sym[2]" in repr(i))
    assert isinstance(indexed.operands[1], Indexed)


def test_g08_modifiers() -> None:
    function = kernel("g08_modifiers")
    add = function.instrs[1]
    assert (add.opcode, add.shape.modifiers, add.shape.type) == ("add", ("u32",), "u32")
    hinted = next(i for i in function.instrs if i.shape.has("L1::no_allocate"))
    assert hinted.shape.space == "global"
    wait = next(i for i in function.instrs if "wait::ld" in i.shape.mnemonic)
    assert wait.opcode == "tcgen05"
    assert "wait::ld" in wait.shape.modifiers


def test_g09_numbers() -> None:
    module = load("g09_numbers")
    table = module.variables["table"].initializer
    assert isinstance(table, Vector)
    values = [fold(e) for e in table.elements]
    assert values == [
        0o777, 5, 0x2A, 3, 0xFF, 42, 12, ~5, 2, 3, 16, 1, 0, 1, 0, 2, 7, 3, 5,
    ]  # fmt: skip
    wide = module.variables["wide"].initializer
    assert isinstance(wide, Vector)
    assert [fold(e) for e in wide.elements] == [2, 0xFFFFFFFFFFFFFFFF]
    reals = module.variables["reals"].initializer
    assert isinstance(reals, Vector)
    floats = [e.as_float() for e in reals.elements if isinstance(e, Immediate)]
    assert floats[:6] == [1.0, 1.0, 0.5, 1e5, 1.5e-3, -2.0]
    assert floats[7] == float("inf")


def test_g10_initialisers_and_linkage() -> None:
    module = load("g10_initialisers")
    pointers = module.variables["pointers"].initializer
    assert isinstance(pointers, Vector)
    assert pointers.elements[0] == Expr(
        "f", (Symbol("generic", "unknown"), Symbol("$str", "variable"))
    )
    assert module.variables["managed_counter"].attributes == ("attribute:managed",)
    assert module.variables["common_counter"].linkage == ("common",)
    assert module.variables["dyn"].dims == (None,)
    assert module.variables["dyn"].size is None
    assert module.variables["quads"].size == 64
    assert module.variables["zeros"].initializer == Vector(())
    rows = module.variables["rows"].initializer
    assert isinstance(rows, Vector)
    assert rows.elements[0] == Vector(())


def test_g11_directives() -> None:
    module = load("g11_directives")
    functions = {f.name: f for f in module.functions}
    assert functions["k"].directives["maxntid"] == (128, 1, 1)
    assert functions["k"].pragmas == ("nounroll",)
    assert functions["fixed_block"].max_threads() == 64
    assert functions["cluster_fixed"].directives["reqnctapercluster"] == (2,)
    assert functions["stops"].directives["noreturn"] == ()
    pointer = functions["k"].params[0]
    assert (pointer.space, pointer.type, pointer.align) == ("param", "u64", 1)
    assert pointer.attributes == ("ptr", "global")
    assert functions["k"].params[4].size == 24


def test_g12_what_a_name_is_comes_from_the_declarations() -> None:
    function = kernel("g12_registers")
    names = {r.name: r for r in function.registers}
    assert {"add", "tid", "mov", "entry", "%1a", "global", "f32"} <= set(names)
    first = next(i for i in function.instrs if i.opcode == "mov")
    assert first.operands == (names["tid"], SpecialRegister("%tid.x"))
    jump = next(i for i in function.instrs if i.opcode == "bra")
    assert jump.guard is names["bra"]
    assert isinstance(jump.operands[0], Label)
    assert jump.operands[0].name == "ret"


def test_g13_labels() -> None:
    function = kernel("g13_labels")
    names = [label.name for label in function.labels]
    assert names[:6] == ["start", "start2", "spaced", "a", "b", "c"]
    targets = {label.name: label.target for label in function.labels}
    assert targets["a"] == targets["b"] == targets["c"]
    assert targets["last"] == len(function.instrs)


def test_g13_carriage_returns_and_one_line() -> None:
    assert [i.opcode for i in kernel("g13_crlf").instrs] == ["ld", "st", "ret"]
    assert kernel("g13_one_line").instrs[0].shape.mnemonic == "ld.param.u64"
