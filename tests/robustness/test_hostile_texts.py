"""Texts made to break a parser: an answer in bounded time, a place and words, never a crash.

Each case is a function of a size. Long ones run at 40,000 characters by default and at 400,000
with `--run-slow`; the plainest ones are always run whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import pytest

from ptxlint import SourceText, check
from ptxlint.frontends.ptx import memo, parse
from ptxlint.ir.structure import module_key
from ptxlint.reporters import FORMATS, render

SHORT, LONG = 40_000, 400_000
SECONDS = 20
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
Deadline = Callable[[int], AbstractContextManager[None]]


def kernel(body: str) -> str:
    """A kernel whose body starts at line 8."""
    return (
        f"{HEAD}.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n"
        f"{body}\nret;\n}}\n"
    )


def move(operand: str) -> str:
    return kernel(f"mov.b32 %r1, {operand};")


class Case(NamedTuple):
    """`words` and the place of the first fault; `words` empty: nothing is wrong with the text."""

    text: Callable[[int], str]
    words: str = ""
    line: int = 0
    column: int = 0
    always_long: bool = False


DEEP = "operands nest more than 100 deep"
CASES: dict[str, Case] = {
    # Nesting.
    "braces-in-body": Case(lambda n: kernel("{" * 10_000 + "}" * 10_000)),
    "braces-open": Case(lambda n: kernel("{" * n), "the body of `k` is not closed", 10, 2, True),
    "braces-close": Case(lambda n: kernel("}" * n), "`}` closes nothing", 8, 2),
    "braces-at-top": Case(lambda n: HEAD + "{" * n, "`{` opens a block outside any", 4, 1),
    "braces-in-operand": Case(
        lambda n: move("{" * 10_000 + "%r2" + "}" * 10_000), "the statement ends too early", 8, 13
    ),
    "braces-in-initialiser": Case(
        lambda n: f"{HEAD}.global .u8 a[1] = {'{' * 10_000}1{'}' * 10_000};\n",
        "the statement ends too early", 4, 19,
    ),
    "parentheses": Case(lambda n: move("(" * (n // 2) + "1" + ")" * (n // 2)), DEEP, 8, 1, True),
    "brackets": Case(lambda n: move("[" * (n // 2) + "1" + "]" * (n // 2)), DEEP, 8, 1),
    "minus-signs": Case(lambda n: move("-" * n + "1"), DEEP, 8, 1),
    "negations": Case(lambda n: move("!" * n + "%p1"), DEEP, 8, 1),
    "sum": Case(lambda n: move("1+" * (n // 2) + "1"), DEEP, 8, 1),
    "shifts": Case(lambda n: move("1<<" * (n // 3) + "1"), DEEP, 8, 1),
    "conditions": Case(lambda n: move("1?" * (n // 4) + "1" + ":1" * (n // 4)), DEEP, 8, 1),
    "conditions-right": Case(lambda n: move("1?2:" * (n // 4) + "1"), DEEP, 8, 1),
    "casts": Case(lambda n: move("(.s64)" * (n // 6) + "1"), DEEP, 8, 1),
    "subscripts": Case(lambda n: move("a[" * (n // 4) + "1" + "]" * (n // 4)), DEEP, 8, 1),
    "applications": Case(lambda n: move("a(" * (n // 4) + "1" + ")" * (n // 4)), DEEP, 8, 1),
    "sum-in-initialiser": Case(
        lambda n: f"{HEAD}.global .u8 a[1] = {'1+' * (n // 2)}1;\n", DEEP, 4, 13
    ),
    "scopes-with-ranges": Case(
        lambda n: kernel(
            "".join("{.reg .b32 %q<2>; mov.b32 %q0, 1;" for _ in range(10_000)) + "}" * 10_000
        )
    ),
    "scopes-with-lost-names": Case(
        lambda n: kernel(
            "".join(f"{{mov.b32 %x{at}, 1;" for at in range(10_000)) + "}" * 10_000
        ),
        "`%x0` is not declared", 8, 10,
    ),
    "lost-labels-deep-inside": Case(
        lambda n: kernel(
            "{" * 10_000 + "".join(f"bra M{at};" for at in range(10_000)) + "}" * 10_000
        ),
        "label `M0` is not defined in `k`", 8, 10_005,
    ),
    "many-inner-ranges": Case(
        lambda n: kernel(
            ".reg .b32 %s<20000>;"
            + "".join(f"mov.b32 %s{at}, 1;" for at in range(20_000))
            + "{.reg .b32 t<2>; mov.b32 t0, 1;}" * 5_000
        )
    ),
    # One long line.
    "line-of-statements": Case(
        lambda n: kernel("mov.u32 %r1, 5; " * (n // 16)), always_long=True
    ),
    "line-of-garbage": Case(lambda n: kernel("?" * n), "unexpected `?`", 8, 1, True),
    "line-of-words": Case(lambda n: kernel("foo " * (n // 4)), "unexpected `foo`", 8, 9, True),
    "one-word": Case(lambda n: kernel("f" * n), "is no instruction", 8, 1, True),
    "one-vector": Case(
        lambda n: kernel("mov.b32 %r1, {" + "%r1," * (n // 4) + "%r2};"),
        "elements make up", 8, 1, True,
    ),
    "one-call": Case(
        lambda n: kernel("mov.b32 %r1" + ", %r2" * (n // 5) + ";"), "takes 2 operands", 8, 1, True
    ),
    "one-initialiser": Case(
        lambda n: f"{HEAD}.global .u8 a[] = {{{'1,' * (n // 2)}1}};\n", always_long=True
    ),
    "one-subscripted-name": Case(lambda n: f"{HEAD}.global .u8 a{'[1]' * (n // 3)};\n"),
    "one-opcode": Case(
        lambda n: kernel("mov" + ".b32" * (n // 4) + " %r1, %r2;"), "`mov.b32.b32", 8, 1
    ),
    "parameters": Case(
        lambda n: (
            f"{HEAD}.entry k({', '.join(f'.param .u64 p{at}' for at in range(n // 18))}) {{ ret; }}"
        )
    ),
    "parameters-left-out": Case(
        lambda n: f"{HEAD}.entry k({',' * n}) {{ ret; }}", "the statement ends too early", 4, 10
    ),
    "labels": Case(lambda n: kernel("".join(f"L{at}:" for at in range(n // 8)))),
    "same-label": Case(lambda n: kernel("L:" * (n // 2)), "`L` is defined twice", 8, 3),
    "branch-targets": Case(
        lambda n: kernel(f"t: .branchtargets {', '.join(f'L{at}' for at in range(n // 8))};"),
        "`L0` is not declared", 8, 19,
    ),
    # Names and numbers.
    "lost-label": Case(lambda n: kernel("bra NOWHERE;"), "label `NOWHERE` is not defined", 8, 5),
    "lost-labels": Case(
        lambda n: kernel("".join(f"bra N{at};\n" for at in range(n // 10))),
        "label `N0` is not defined", 8, 5,
    ),
    "same-register": Case(
        lambda n: kernel(".reg .b32 %x;\n.reg .b32 %x;"), "register `%x` is declared twice", 9, 11
    ),
    "same-range": Case(
        lambda n: kernel(".reg .b32 %r<9>;" * (n // 16)), "register `%r` is declared twice", 8, 11
    ),
    "two-thousand-million-registers": Case(
        lambda n: kernel(".reg .b32 %q<2000000000>;\nmov.b32 %q1999999999, 1;")
    ),
    "digits": Case(lambda n: move("1" * n)),
    "hexadecimal-digits": Case(lambda n: move("0x" + "1" * n)),
    "binary-digits": Case(lambda n: move("0b" + "1" * n)),
    "octal-digits": Case(lambda n: move("0" + "7" * n)),
    "decimals": Case(lambda n: kernel(f".reg .f32 x; mov.f32 x, 1.{'1' * n};")),
    "exponent": Case(lambda n: kernel(f".reg .f32 x; mov.f32 x, 1e{'9' * n};")),
    "digits-at-top": Case(lambda n: HEAD + "1" * n, "unexpected `111", 4, 1),
    "version-digits": Case(lambda n: f".version {'9' * n}.{'9' * n}\n", "is no PTX version", 1, 10),
    "line-number-digits": Case(lambda n: kernel(f".loc {'9' * n} 1 1\n")),
    "file-number-digits": Case(lambda n: f'{HEAD}.file {"9" * n} "x"\n'),
    "range-digits": Case(lambda n: kernel(f".reg .b32 %q<{'9' * n}>; mov.b32 %q5, 1;")),
    "register-digits": Case(
        lambda n: kernel(f".reg .b32 %q<5>; mov.b32 %q{'9' * n}, 1;"), "is not declared", 8, 26
    ),
    "alignment-digits": Case(
        lambda n: f"{HEAD}.global .align {'9' * n} .u8 x;\n", "is no power of two", 4, 16
    ),
    "extent-digits": Case(lambda n: f"{HEAD}.global .u8 x[{'9' * n}];\n"),
    "extent-product": Case(
        lambda n: f"{HEAD}.global .u8 x[{'*'.join(['0xffffffffffffffff'] * 90)}];\n"
    ),
    "directive-digits": Case(lambda n: f"{HEAD}.entry k() .maxntid {'9' * n} {{ ret; }}\n"),
    # Comments, strings, white space, punctuation.
    "comment-open": Case(lambda n: kernel("/*" + "x" * n), "this comment is not closed", 8, 1),
    "comment-of-stars": Case(lambda n: kernel("/*" + "*" * n), "this comment is not closed", 8, 1),
    "comment-of-slashes": Case(lambda n: kernel("/" * n)),
    "comments-opened-again": Case(lambda n: kernel("/*" * (n // 2)), "unexpected `*`", 8, 6),
    "lone-slashes": Case(lambda n: kernel("/ " * (n // 2)), "unexpected `/`", 8, 1),
    "comments-in-a-statement": Case(lambda n: move("/**/" * (n // 4) + "1")),
    "comments-before-no-end": Case(
        lambda n: kernel("mov.b32 %r1," + "/**/" * (n // 4) + "1"), "unexpected `ret`", 9, 1
    ),
    "string-open": Case(
        lambda n: kernel('.pragma "' + "x" * n), "this string is not closed", 8, 9
    ),
    "string-open-over-lines": Case(
        lambda n: kernel('.pragma "' + "x\n" * (n // 2)), "this string is not closed", 8, 9
    ),
    "string-of-backslashes": Case(
        lambda n: f'{HEAD}.file 1 "' + "\\" * n, "the statement ends too early", 4, 8
    ),
    "string-of-quotes": Case(
        lambda n: kernel('.pragma "' + '\\"' * (n // 2)), "this string is not closed", 8, 9
    ),
    "string-of-quotes-and-a-slash": Case(
        lambda n: kernel('.pragma "/' + '\\"' * (n // 2)), "this string is not closed", 8, 9
    ),
    "suppressions": Case(lambda n: kernel("// ptxlint: ignore[RES110] why\n" * (n // 31))),
    "suppressions-at-the-end": Case(
        lambda n: kernel("") + "// ptxlint: ignore[RES110] why\n" * (n // 31)
    ),
    "quotes": Case(lambda n: kernel('"' * (n + 1)), 'unexpected `""`', 8, 1),
    "at-signs": Case(lambda n: kernel("@" * n), "unexpected `@@", 8, 2),
    "at-signs-apart": Case(lambda n: kernel("@ " * (n // 2)), "unexpected `@`", 8, 3),
    "guards": Case(lambda n: kernel("@p " * (n // 3)), "unexpected `@`", 8, 4),
    "negated-guards": Case(lambda n: kernel("@!" * (n // 2)), "unexpected `@`", 8, 3),
    "space-after-at": Case(lambda n: kernel("@" + " " * n), "unexpected `;`", 9, 4),
    "space": Case(lambda n: kernel(" " * n)),
    "space-in-a-statement": Case(
        lambda n: kernel("mov.b32 %r1," + " " * n + "1"), "unexpected `ret`", 9, 1
    ),
    "space-before-a-colon": Case(lambda n: kernel("L" + " " * n + ":")),
    "dots": Case(lambda n: kernel("." * n), "unexpected `....", 8, 1),
    "colons": Case(lambda n: kernel("mov" + "::a" * (n // 3)), "unexpected `:`", 8, 5),
    "semicolons": Case(lambda n: kernel(";" * n), "unexpected `;`", 8, 1),
    "commas": Case(lambda n: kernel("mov.b32 " + "," * n + ";"), "unexpected `,`", 8, 9),
    "percent-signs": Case(lambda n: kernel("%" * n), "unexpected `%`", 8, 1),
    "hash-lines": Case(lambda n: HEAD + "#\n" * (n // 2)),
    # Headers, sections, directives.
    "attributes-open": Case(
        lambda n: HEAD + ".attribute(" * (n // 11), "unexpected `.attrib", 4, 23
    ),
    "linkage": Case(
        lambda n: f"{HEAD}{'.visible ' * (n // 9)}.entry k() {{ ret; }}", "cannot stand beside", 4
    ),
    "parameter-lists-open": Case(
        lambda n: HEAD + ".entry k(" * (n // 9), "this parameter list is not closed", 4, 9
    ),
    "parameter-list-of-parentheses": Case(
        lambda n: f"{HEAD}.entry k({'(a' * (n // 2)}", "this parameter list is not closed", 4, 9
    ),
    "parameter-list-of-comments": Case(
        lambda n: f"{HEAD}.entry k({'/*' * (n // 2)}", "this parameter list is not closed", 4, 9
    ),
    "entries": Case(lambda n: HEAD + ".entry " * (n // 7), "expected the function's name", 4, 8),
    "function-directives": Case(
        lambda n: f"{HEAD}.entry k() {'.maxntid 1 ' * (n // 11)}{{ ret; }}"
    ),
    "pragmas": Case(lambda n: HEAD + ".entry k() " + '.pragma "a";' * (n // 12) + "{ ret; }"),
    "section-open": Case(
        lambda n: HEAD + ".section .debug {" + ".b8 1\n" * (n // 6), "is not closed", 4, 1
    ),
    "sections-open": Case(lambda n: HEAD + ".section .d {" * (n // 13), "is not closed", 4, 1),
    "section-headers": Case(lambda n: HEAD + ".section " * (n // 9), "is not closed", 4, 1),
    "section-values": Case(lambda n: f"{HEAD}.section .debug {{.b8 {'1,' * (n // 2)}1}}"),
    "section-labels": Case(
        lambda n: f"{HEAD}.section .debug {{{'a:' * (n // 2)}?}}", "unexpected `?`", 4
    ),
    "targets": Case(lambda n: ".version 8.0\n.target " + "sm_80, " * (n // 7), "", 2),
    "lines": Case(lambda n: kernel(".loc 1 1 1\n" * (n // 11))),
    "line-commas": Case(lambda n: kernel(".loc 1 1 1" + "," * n), "unexpected `,`", 8, 12),
    "prototype": Case(lambda n: kernel(f"x: .callprototype {'(' * n};"), "unexpected `(`", 8, 20),
    # Bytes.
    "nul": Case(lambda n: kernel("mov.b32 %r1\0, 1;"), "U+0000", 8, 12),
    "nul-only": Case(lambda n: "\0" * n, "U+0000", 1, 1),
    "latin-1": Case(lambda n: move("\xe9"), "unexpected character U+00E9", 8, 14),
    "lone-surrogate": Case(lambda n: kernel("\ud800 ret;"), "unexpected character U+D800", 8, 1),
    "byte-order-mark": Case(lambda n: "\ufeff" + kernel(""), "unexpected character U+FEFF", 1, 1),
    "carriage-returns": Case(lambda n: move("1").replace("\n", "\r")),
    "line-separator": Case(lambda n: move("\u2028 1"), "unexpected character U+2028", 8, 14),
    "form-feeds": Case(lambda n: kernel("mov.b32\v%r1,\f1;")),
    "module-in-a-body": Case(lambda n: kernel(kernel("")), "", 8, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_parsers_agree(name: str, run_slow: bool, deadline: Deadline) -> None:
    text = CASES[name].text(LONG if run_slow else SHORT)
    memo.reset_memo()
    with deadline(SECONDS):
        module = parse(text, name)
    with deadline(SECONDS):
        reference = parse(text, name, parser="lark")
    assert module.problems == reference.problems
    assert module_key(module) == module_key(reference)
    assert all(0 <= problem.offset <= len(text) for problem in module.problems)


@pytest.mark.parametrize("name", CASES)
def test_check_answers(name: str, run_slow: bool, deadline: Deadline, good: SourceText) -> None:
    case = CASES[name]
    text = case.text(LONG if run_slow or case.always_long else SHORT)
    with deadline(SECONDS):
        report = check([SourceText(text, "hostile.ptx"), good])
    assert [f for f in report.findings if f.rule == "INTERNAL"] == []
    faults = [f for f in report.findings if f.rule == "PARSE" and f.severity == "error"]
    if case.words or case.line:
        assert report.exit_code == 2
        matching = [f for f in faults if case.words in f.message] or faults[:1]
        assert case.words in matching[0].message.replace("NUL byte", "U+0000")
        assert matching[0].place.line == case.line
        assert case.column in (0, matching[0].place.column)
    else:
        assert faults == []
        assert report.exit_code in (0, 1)
    assert [(f.rule, f.place.line) for f in report.findings if f.place.path == "good.ptx"] == [
        ("NUM407", 11)
    ]
    assert all(len(f.message) < 1_100 for f in report.findings)
    for format in FORMATS:
        with deadline(SECONDS):
            rendered = render(report, format)
        assert len(rendered) < 1_000_000 + 1_000 * len(report.findings)
    assert json.loads(render(report, "json"))["version"] == 1
