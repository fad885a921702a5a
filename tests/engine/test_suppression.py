"""Suppression comments: when they hold, and what is said about them when they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptxlint
from ptxlint.diagnostics import Finding

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """\
.visible .entry {name}(.param .u64 out)
{{
    .reg .b64 %rd<4>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [out];
    mov.f32 %f0, 0f3F800000;
{before}
    cvt.f64.f32 %rd2, %f0;
{above}
    mul.f64 %rd3, %rd2, %rd2;{same}
    cvt.rn.f32.f64 %f1, %rd3;
    st.global.f32 [%rd1], %f1;
    ret;
}}
"""


def _ptx(same: str = "", above: str = "", before: str = "", tail: str = "", name: str = "k") -> str:
    body = KERNEL.format(same=same, above=above, before=before, name=name)
    return HEAD + body + tail


def _check(text: str, **settings: str) -> list[Finding]:
    return list(ptxlint.check(ptxlint.SourceText(text, "k.ptx"), **settings).findings)


def _rules(findings: list[Finding]) -> list[str]:
    return sorted(f.rule for f in findings if f.severity != "note")


def test_without_a_comment_there_is_a_finding() -> None:
    assert _rules(_check(_ptx())) == ["NUM407"]


@pytest.mark.parametrize(
    "comment",
    [
        "// ptxlint: ignore[NUM407] checked by hand",
        "//ptxlint:ignore[NUM407] checked",
        "// ptxlint: ignore[num407] - checked",
        "// ptxlint: ignore[stray-f64]: checked",
        "// ptxlint: ignore[ NUM407 ] é",
    ],
)
def test_a_ptx_comment_holds_on_its_line_and_above(comment: str) -> None:
    assert _rules(_check(_ptx(same=" " + comment))) == []
    assert _rules(_check(_ptx(above="    " + comment))) == []
    assert _rules(_check(_ptx(above="    " + comment + "\n\n    // more"))) == []


def test_what_is_suppressed_is_counted() -> None:
    text = _ptx(same=" // ptxlint: ignore[NUM407] checked")
    report = ptxlint.check(ptxlint.SourceText(text, "k.ptx"))
    assert report.summary.suppressed == 1
    assert report.exit_code == 0


def test_a_comment_elsewhere_does_not_hold_and_is_unused() -> None:
    findings = _check(_ptx(before="    // ptxlint: ignore[NUM407] checked"))
    assert _rules(findings) == ["NUM407", "SUP001"]
    unused = next(f for f in findings if f.rule == "SUP001")
    assert (unused.place.line, unused.place.column) == (10, 5)


def test_only_the_idle_part_of_a_comment_is_reported() -> None:
    findings = _check(_ptx(same=" // ptxlint: ignore[NUM407, RES103] checked"))
    assert [f.message for f in findings] == ["this suppression of RES103 holds back nothing"]


def test_a_rule_that_did_not_run_is_not_called_idle() -> None:
    text = _ptx(same=" // ptxlint: ignore[RES103] checked")
    assert _rules(_check(text, ignore="RES103,NUM407")) == []


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("ignore[NUM407]", "gives no reason"),
        ("ignore[NUM407]   ", "gives no reason"),
        ("ignore[NUM407] -", "gives no reason"),
        ("ignore[] why", "names no rule"),
        ("ignore NUM407 why", "is not understood"),
        ("ignroe[NUM407] why", "is not understood"),
        ("ignore[NUM470] why", "did you mean NUM410"),
        ("ignore[PARSE] why", "PARSE cannot be suppressed"),
    ],
)
def test_a_faulty_comment_does_not_hold(comment: str, words: str) -> None:
    findings = _check(_ptx(same=f" // ptxlint: {comment}"))
    assert _rules(findings) == ["NUM407", "SUP002"]
    assert words in next(f.message for f in findings if f.rule == "SUP002")


def test_the_words_outside_a_comment_are_no_suppression() -> None:
    text = _ptx(tail='.pragma "ptxlint: ignore[NUM407] why";\n')
    assert _rules(_check(text)) == ["NUM407"]


PYTHON = """\
import triton


def helper(x):
    return x.to(float64)


def kernel(x_ptr):
    x = load(
        x_ptr,
        mask=1,
    ){end}
    y = "# ptxlint: ignore[NUM407] in a string"
    store(x_ptr, helper(x)){call}
"""
LOCS = '\n.file 1 "{path}"\n'


def _with_python(folder: Path, line: int, inlined: int = 0, **comments: str) -> list[Finding]:
    """Check a kernel whose f64 operation comes from a Python line."""
    filled = {"end": "", "call": "", **comments}
    (folder / "kernel.py").write_text(PYTHON.format(**filled))
    at = f", function_name $L__name, inlined_at 1 {inlined} 5" if inlined else ""
    names = "$L__name:\n" if inlined else ""
    loc = f"    .loc 1 {line} 5{at}"
    every = "\n".join(f"    .loc 1 {n} 1\n    mov.f32 %f0, 0f3F800000;" for n in (9, 13, 14))
    text = _ptx(before=every, above=loc, tail=LOCS.format(path="kernel.py"))
    if names:
        text += f".section .debug_str\n{{\n{names}.b8 107\n.b8 0\n}}\n"
    path = folder / "k.ptx"
    path.write_text(text)
    return list(ptxlint.check(path).findings)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_place_is_known(folder: Path) -> None:
    finding = next(f for f in _with_python(folder, 9) if f.rule == "NUM407")
    assert finding.place.source is not None
    assert finding.place.source[:3] == ("kernel.py", 9, 5)


def test_a_python_comment_holds_for_its_whole_statement(folder: Path) -> None:
    comment = "  # ptxlint: ignore[NUM407] checked"
    assert _rules(_with_python(folder, 9, end=comment)) == []
    assert _rules(_with_python(folder, 14, end=comment)) == ["NUM407", "SUP001"]


def test_a_python_comment_holds_at_the_call_it_was_inlined_at(folder: Path) -> None:
    comment = "  # ptxlint: ignore[NUM407] checked"
    assert _rules(_with_python(folder, 5, inlined=14, call=comment)) == []
    assert _rules(_with_python(folder, 5, inlined=9, call=comment)) == ["NUM407", "SUP001"]


def test_a_comment_in_a_string_is_none(folder: Path) -> None:
    assert _rules(_with_python(folder, 13)) == ["NUM407"]


def test_a_comment_on_code_that_was_not_checked_is_not_judged(folder: Path) -> None:
    extra = "\n\ndef other():\n    pass  # ptxlint: ignore[NUM407] elsewhere"
    assert _rules(_with_python(folder, 9, call=extra)) == ["NUM407"]


def test_python_that_does_not_parse_is_read_by_line(folder: Path) -> None:
    broken = "  # ptxlint: ignore[NUM407] checked\n    x = (((\n  y"
    assert _rules(_with_python(folder, 14, call=broken)) == []


def test_python_is_never_run(folder: Path) -> None:
    evil = "\n\nopen('ran', 'w')  # ptxlint: ignore[NUM407] no\nraise SystemExit"
    _with_python(folder, 9, call=evil)
    assert not (folder / "ran").exists()


def test_a_comment_used_on_one_architecture_is_used(folder: Path) -> None:
    text = _ptx(above="    .loc 1 14 5", tail=LOCS.format(path="kernel.py"))
    comment = "  # ptxlint: ignore[NUM407] checked"
    (folder / "kernel.py").write_text(PYTHON.format(end="", call=comment))
    (folder / "a.ptx").write_text(text)
    clean = text.replace("mul.f64 %rd3, %rd2, %rd2;", "mov.b64 %rd3, %rd2;")
    (folder / "b.ptx").write_text(clean.replace("sm_80", "sm_90"))
    assert _rules(list(ptxlint.check(["a.ptx", "b.ptx"]).findings)) == []
    assert _rules(list(ptxlint.check("b.ptx").findings)) == ["SUP001"]
