"""What the memo parser rests on: shipped data, equal terminals, honest keys."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptxlint.frontends import grammars
from ptxlint.frontends.ptx import memo, parse, prebuild, reference, template
from ptxlint.ir.operand import Immediate, SpecialRegister

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def one_kernel(body: str) -> str:
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n"
        f"{body}\nret;\n}}\n"
    )


@pytest.fixture(autouse=True)
def _fresh_memo() -> object:
    memo.reset_memo()
    yield
    memo.reset_memo()


def terminal(name: str) -> str:
    found = re.search(rf"^{name}(?:\.\d)?: /(.*)/s?$", reference.grammar_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_terminals_are_those_of_the_grammar() -> None:
    assert terminal("WORD") == template.WORD
    assert terminal("NUMBER") == template.NUMBER
    assert terminal("STRING") == template.STRING


def test_slot_pattern_finds_what_the_terminals_say() -> None:
    plain = re.compile(
        rf"((?<![A-Za-z0-9_$.%:])(?:{template.NAME}|{template.NUMBER})|{template.STRING})",
        re.DOTALL,
    )
    for path in sorted(FIXTURES.rglob("*.ptx"))[::9]:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert template.SLOT.split(text) == plain.split(text)


def test_shipped_data_is_up_to_date() -> None:
    """Red after a change of the grammar or of the fixtures: run `make tables`."""
    assert prebuild.main(["--check"]) == 0


def test_fixtures_need_no_lark() -> None:
    paths = sorted((FIXTURES / "ptx").glob("sm_*/*.ptx"))[::40]
    code = (
        "import sys\nfrom ptxlint.frontends.ptx import parse\n"
        "for p in sys.argv[1:]:\n    m = parse(open(p, newline='').read(), p)\n"
        "    assert m.functions and not m.problems\n"
        "assert 'lark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True, timeout=60)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\x80\x04pickle",
        b"[]",
        b'{"stamp": "old", "templates": {"ret": ["label", []]}}',
        b'{"stamp": 5}',
    ],
)
def test_damaged_or_stale_data_is_ignored(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    genuine = grammars.read

    def read(name: str) -> bytes:
        return content if name.endswith(".json") else genuine(name)

    monkeypatch.setattr(grammars, "read", read)
    monkeypatch.setattr(reference, "_parser", None)
    memo.reset_memo()
    module = parse(one_kernel("add.u32 %r1, %r2, 5;"))
    assert not module.problems
    assert [i.opcode for i in module.functions[0].instrs] == ["add", "ret"]


def test_stamp_changes_with_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    before = memo.grammar_stamp()
    genuine = grammars.read
    monkeypatch.setattr(grammars, "read", lambda name: genuine(name) + b"// changed\n")
    assert memo.grammar_stamp() != before


def test_nothing_is_unpickled() -> None:
    stored = json.loads(grammars.read("ptx.templates.json"))
    assert stored["stamp"] == memo.grammar_stamp()
    assert len(stored["templates"]) > 500


def test_component_is_part_of_the_key() -> None:
    """Two statements that differ in a component only must not share a template."""
    memo.reset_memo(shipped=False)
    body = "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ctaid.y;\nmov.u32 %r3, %ctaid.z;"
    instrs = parse(one_kernel(body)).functions[0].instrs
    names = [i.operands[1] for i in instrs[:3]]
    assert names == [SpecialRegister(f"%ctaid.{c}") for c in "xyz"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("add.u32 %r1, %r2, 5;", "sub.u32 %r1, %r2, 5;"),
        ("@%p1 mov.u32 %r1, 1;", "@!%p1 mov.u32 %r1, 1;"),
        ("mov.u32 %r1, -1;", "mov.u32 %r1, 1;"),
        ("mov.u32 %r1, ~1;", "mov.u32 %r1, -1;"),
        ("setp.eq.u32 %p1|%p2, %r1, 1;", "setp.eq.u32 %p1, %r1, 1;"),
        ("ld.shared.u32 %r1, [%r2+4];", "ld.shared.u32 %r1, [%r2];"),
        ("mov.u32 %r1, 7 % 4;", "mov.u32 %r1, 7 * 4;"),
        ("mov.u32 %r1, 1?2:3;", "mov.u32 %r1, 0?2:3;"),
        ("vadd.s32.u32.s32 %r1, %r2.b0, %r3.h1;", "vadd.s32.u32.s32 %r1, %r2.b1, %r3.h1;"),
        ("st.shared.v2.u32 [%r1], {%r2, 0};", "st.shared.v2.u32 [%r1], {%r2, _};"),
    ],
)
def test_what_a_template_holds_is_in_its_key(first: str, second: str) -> None:
    """Whichever comes first, the second is read as if it stood alone."""
    for one, two in ((first, second), (second, first)):
        memo.reset_memo(shipped=False)
        together = parse(one_kernel(f"{one}\n{two}")).functions[0].instrs[1]
        alone = parse(one_kernel(two), parser="lark").functions[0].instrs[0]
        assert repr(together) == repr(alone)
        assert [r.name for r in together.uses] == [r.name for r in alone.uses]


def test_numbers_keep_their_own_value_under_one_template() -> None:
    instrs = parse(
        one_kernel("mov.b32 %r1, 0fFF800000;\nmov.b32 %r2, -8388608;\nmov.b32 %r3, 0x10;")
    )
    values = [i.operands[1] for i in instrs.functions[0].instrs[:3]]
    assert values == [
        Immediate("0fFF800000", "f32", 0xFF800000),
        Immediate("-8388608", "int", -8388608),
        Immediate("0x10", "int", 16),
    ]


WRONG_KINDS = [
    ".reg .b32 %q<{}>;", ".reg .b32 {};", ".pragma {};", ".shared .b32 {};", ".shared .b32 x[{}];",
    ".shared .align {} .b32 x;", ".file 1 {}\n", '.file {} "x"\n', ".loc {} 2 3\n", ".loc 1 {} 3\n",
    ".loc 1 2 3, function_name {}, inlined_at 1 2 3\n", "t: .branchtargets {};",
]  # fmt: skip


@pytest.mark.parametrize("form", WRONG_KINDS)
def test_a_name_is_no_number_and_no_string(form: str) -> None:
    """Whatever filled the slot before, each filling is judged as if it stood alone."""
    fillings = ["7", "q", '"s"', "1.5", "a.b", ".a", "0x10", "%x", "_"]
    alone = {f: parse(one_kernel(form.format(f)), parser="lark").problems for f in fillings}
    for first in fillings:
        memo.reset_memo(shipped=False)
        for filling in (first, *fillings):
            problems = parse(one_kernel(form.format(filling))).problems
            assert problems == alone[filling], (first, filling)


def test_a_template_keeps_no_part_of_a_name() -> None:
    memo.reset_memo(shipped=False)
    for name in ("sm_80", "sm_90.x", "sm_100.y"):
        assert parse(f".version 8.0\n.target {name}\n").targets == (name,)


@pytest.mark.parametrize("blank", ["\x1c", "\x85", "\xa0", "\u2028"])
def test_only_blanks_of_ptx_are_blanks(blank: str) -> None:
    memo.reset_memo(shipped=False)
    assert not parse(one_kernel(".shared .b32 x;")).problems
    assert parse(one_kernel(f".shared{blank}.b32 x;")).problems
