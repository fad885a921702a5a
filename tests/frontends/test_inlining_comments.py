"""The chain of inlined calls, where only the comment behind `.loc` has it."""

from __future__ import annotations

import pytest

from ptxlint.frontends.ptx import parse

HEAD = """.version 8.7
.target sm_90
.address_size 64
.file 1 "src/kernel.py"
.file 2 "x/triton/language/standard.py"
"""
KERNEL = ".visible .entry k()\n{\n\t.loc\t%s\n\tret;\n}\n"


def chain(loc: str, head: str = HEAD) -> list[tuple[str, int, int]]:
    module = parse(head + KERNEL % loc)
    return [(f.path, f.line, f.column) for f in module.frames(module.functions[0].instrs[0].loc)]


@pytest.mark.parametrize(
    ("loc", "expected"),
    [
        (
            "2 263 15                        "
            "// standard.py:263:15 @[ standard.py:293:36 @[ kernel.py:158:22 ] ]",
            [
                ("x/triton/language/standard.py", 263, 15),
                ("x/triton/language/standard.py", 293, 36),
                ("src/kernel.py", 158, 22),
            ],
        ),
        ("1 158 22 // kernel.py:158:22", [("src/kernel.py", 158, 22)]),
        ("1 158 22", [("src/kernel.py", 158, 22)]),
        ("2 1 1 // standard.py:1:1 @[ kernel.py:7 ]", [
            ("x/triton/language/standard.py", 1, 1), ("src/kernel.py", 7, 0)
        ]),
        # A file that is in no table ends the chain: what stands behind it may be of another one.
        ("2 1 1 // standard.py:1:1 @[ other.py:7:1 @[ kernel.py:9:2 ] ]", [
            ("x/triton/language/standard.py", 1, 1)
        ]),
    ],
)  # fmt: skip
def test_chain(loc: str, expected: list[tuple[str, int, int]]) -> None:
    assert chain(loc) == expected


def test_two_files_of_one_name_are_told_apart_by_neither() -> None:
    head = HEAD + '.file 3 "other/kernel.py"\n'
    loc = "2 263 15 // standard.py:263:15 @[ kernel.py:158:22 ]"
    assert chain(loc, head) == [("x/triton/language/standard.py", 263, 15)]


def test_a_chain_that_the_directive_has_is_kept() -> None:
    loc = "2 5 1, function_name $L__i, inlined_at 1 9 3 // standard.py:5:1 @[ kernel.py:1:1 ]"
    assert chain(loc)[1:] == [("src/kernel.py", 9, 3)]


def test_the_python_line_is_the_callers() -> None:
    module = parse(HEAD + KERNEL % "2 263 15 // standard.py:263:15 @[ kernel.py:158:22 ]")
    frame = module.python_frame(module.functions[0].instrs[0].loc)
    assert frame is not None
    assert (frame.path, frame.line) == ("src/kernel.py", 158)
