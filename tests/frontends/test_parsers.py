"""The memo parser and plain Lark must agree on everything that is committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.frontends.ptx import memo, parse
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Immediate, Vector
from ptxlint.ir.printer import print_module
from ptxlint.ir.structure import module_key

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ALL = sorted(FIXTURES.rglob("*.ptx"))
VALID = [p for p in ALL if "invalid" not in p.parts]
SAMPLE = [p for p in VALID if "sm_" not in p.parent.name] + sorted(
    (FIXTURES / "ptx" / "sm_90").glob("*.ptx")
)[::5]


def name(path: Path) -> str:
    return str(path.relative_to(FIXTURES))


def read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="", errors="surrogateescape") as file:
        return file.read()


def offsets(module: Module) -> list[object]:
    """Where every part stands: what `module_key` leaves out."""
    out: list[object] = [item.offset for item in module.items]
    for function in module.functions:
        out += [(type(item).__name__, item.offset) for item in function.items]
        out += [(r.name, r.index) for r in function.registers]
        out += [([r.name for r in i.defs], [r.name for r in i.uses]) for i in function.instrs]
    return out


def assert_equal(path: Path) -> None:
    text = read(path)
    reference = parse(text, path.name, parser="lark")
    memo.reset_memo(shipped=False)
    cold = parse(text, path.name)
    warm = parse(text, path.name)
    memo.reset_memo()
    shipped = parse(text, path.name)
    for other in (cold, warm, shipped):
        assert module_key(other) == module_key(reference)
        assert offsets(other) == offsets(reference)
        assert other.problems == reference.problems


@pytest.mark.parametrize("path", SAMPLE, ids=name)
def test_memo_equals_lark(path: Path) -> None:
    assert_equal(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in VALID if p not in SAMPLE], ids=name)
def test_memo_equals_lark_on_the_rest(path: Path) -> None:
    assert_equal(path)


@pytest.mark.parametrize("path", [p for p in ALL if "invalid" in p.parts], ids=name)
def test_memo_equals_lark_on_faulty_text(path: Path) -> None:
    assert_equal(path)


@pytest.mark.parametrize("path", VALID, ids=name)
def test_every_valid_fixture_parses_and_round_trips(path: Path) -> None:
    module = parse(read(path), path.name)
    assert module.problems == []
    assert all(isinstance(f, Function) for f in module.functions)
    again = parse(print_module(module), path.name)
    assert again.problems == []
    assert module_key(again) == module_key(module)


def test_module_key_sees_a_changed_constant() -> None:
    text = ".version 8.0\n.target sm_80\n.entry k() { .reg .b32 %r<2>; mov.b32 %r1, 7; ret; }\n"
    assert module_key(parse(text)) != module_key(parse(text.replace("7", "8")))
    assert module_key(parse(text)) == module_key(parse(text.replace("; ", ";\n// a comment\n")))


@pytest.mark.parametrize("count", [2, 23, 24, 25, 5000])
@pytest.mark.parametrize("number", ["7", "0x1F", "0f3F800000", "1.5"])
def test_long_tables_are_read_alike_and_whole(count: int, number: str) -> None:
    numbers = ", ".join([number] * (count - 1) + ["9"])
    text = f".version 8.0\n.target sm_80\n.global .align 4 .b8 a, t[{count}] = {{{numbers}}};\n"
    reference = parse(text, parser="lark")
    memo.reset_memo(shipped=False)
    for module in (parse(text), parse(text)):
        assert module.problems == []
        assert module_key(module) == module_key(reference)
        value = module.variables["t"].initializer
        assert isinstance(value, Vector)
        assert len(value.elements) == count
        assert value.elements[-1] == Immediate("9", "int", 9)
    memo.reset_memo()


def test_a_bad_number_deep_in_a_long_table_is_found() -> None:
    text = ".version 8.0\n.target sm_80\n.global .b8 t[3000] = {" + "1, " * 2999 + "1u};\n"
    for parser in ("memo", "lark"):
        (problem,) = parse(text, parser=parser).problems
        assert text[problem.offset :].startswith("1u}")
