"""Faults of the input: found, placed, and nothing else lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.module import Module
from ptxlint.ir.verifier import verify

INVALID = sorted(
    (Path(__file__).resolve().parents[2] / "fixtures" / "syntax" / "invalid").glob("*")
)
HEAD = ".version 8.0\n.target sm_80\n.entry k(.param .u64 p)\n{\n\t.reg .b32 %r<9>;\n"


def lines(module: Module) -> list[int]:
    return [module.source.position(p.offset).line for p in module.problems]


@pytest.mark.parametrize("path", INVALID, ids=lambda p: p.stem)
def test_each_marked_line_and_no_other(path: Path) -> None:
    with path.open(encoding="utf-8", newline="", errors="surrogateescape") as file:
        text = file.read()
    module = parse(text, path.name)
    found = {
        module.source.position(p.offset).line
        for p in [*module.problems, *verify(module)]
        if not p.note
    }
    marked = {n for n, line in enumerate(text.split("\n"), 1) if "//~ ERROR" in line}
    assert found == marked


def test_a_fault_loses_only_its_own_statement() -> None:
    module = parse(
        HEAD + "\tmov.b32 %r1, 1;\n\tmov.b32 %r2 %r1;\n\tmov.b32 %r3, 3;\n\tret;\n}\n"
        ".entry other() { ret; }\n"
    )
    assert lines(module) == [7]
    assert module.source.position(module.problems[0].offset).column == 14
    assert [i.index for i in module.functions[0].instrs] == [0, 1, 2]
    assert module.functions[1].name == "other"


def test_a_missing_semicolon_does_not_eat_the_next_line() -> None:
    module = parse(HEAD + "\tmov.b32 %r1, 1\n\tmov.b32 %r2, 2;\n\tret;\n}\n")
    assert lines(module) == [7]
    assert [repr(i) for i in module.functions[0].instrs] == ["mov.b32 %r2, 2;", "ret;"]


def test_an_undeclared_register_is_named_where_it_stands() -> None:
    module = parse(HEAD + "\tadd.u32 %r1, %r2, %x;\n\tret;\n}\n")
    (problem,) = module.problems
    assert problem.code == "undeclared"
    assert "`%x`" in problem.message
    assert tuple(module.source.position(problem.offset)) == (6, 20)


def test_a_register_past_its_range_is_undeclared() -> None:
    module = parse(HEAD + "\tmov.b32 %r9, %r8;\n\tret;\n}\n")
    assert [p.message for p in module.problems] == ["`%r9` is not declared"]


def test_an_undefined_label() -> None:
    module = parse(HEAD + "\tbra nowhere;\n\tret;\n}\n")
    (problem,) = module.problems
    assert problem.code == "label"
    assert "nowhere" in problem.message


def test_duplicates() -> None:
    module = parse(HEAD + "\t.reg .b32 %r3;\nL:\nL:\n\tret;\n}\n")
    assert [p.code for p in module.problems] == ["duplicate", "duplicate"]
    assert lines(module) == [6, 8]


def test_an_open_body_is_reported_once() -> None:
    module = parse(HEAD + "\tmov.b32 %r1, 1;\n")
    assert [p.code for p in module.problems] == ["structure"]
    assert len(module.functions[0].instrs) == 1


def test_a_closing_brace_too_many() -> None:
    module = parse(HEAD + "\tret;\n}\n}\n.entry other() { ret; }\n")
    assert lines(module) == [8]
    assert len(module.functions) == 2


def test_unknown_parser_name() -> None:
    with pytest.raises(ValueError, match="memo"):
        parse("", parser="fast")


def test_text_that_is_no_ptx_is_given_up() -> None:
    module = parse("this is prose\n" * 5000)
    assert len(module.problems) == 201
    assert module.problems[-1].message == "more than 200 faults; the rest of the text was not read"


@pytest.mark.parametrize("word", [".viible", ".align 8", ".sm_80", ".visible .common2"])
def test_a_misspelt_linkage_leaves_the_function_standing(word: str) -> None:
    for parser in ("memo", "lark"):
        module = parse(f".version 8.0\n.target sm_80\n{word} .entry k() {{ ret; }}\n", "", parser)
        assert ["is no linkage" in p.message for p in module.problems] == [True]
        assert lines(module) == [3]
        assert [len(f.instrs) for f in module.functions] == [1]


def test_a_line_number_is_an_integer() -> None:
    for number in ("1.5", "0f3F800000", "1e5"):
        module = parse(HEAD + f"\t.loc 1 {number} 3\n\tret;\n}}\n")
        assert [p.message for p in module.problems] == [f"`{number}` stands where an integer must"]
