"""Declarations that ptxas rejects are reported, their neighbours are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.verifier import verify

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
BODY = ".visible .entry k(.param .u64 p)\n{\n\tret;\n}\n"

WRONG = [
    (".entry e(.u64 p) { ret; }", "must be in `.param`"),
    (".entry e(.reg .u64 p) { ret; }", "must be in `.param`"),
    (".func f(.u64 p) { ret; }", "`.param` or `.reg`"),
    (".func f(.shared .u32 p) { ret; }", "`.param` or `.reg`"),
    (".entry e(.param .pred p) { ret; }", "cannot be `.pred`"),
    (".func f(.param .f16x2 p) { ret; }", "cannot be `.f16x2`"),
    (".entry e(.param .align 3 .u64 p) { ret; }", "no power of two"),
    (".entry e(.param .u64 .ptr .align 3 p) { ret; }", "no power of two"),
    (".entry e(.param .u64 .global .align 1 p) { ret; }", "without `.ptr`"),
    (".entry e(.param .u64 .ptr .global .shared p) { ret; }", "after `.ptr`"),
    (".func f(.param .u64 .ptr .global p) { ret; }", "kernel parameters only"),
    (".entry e(.param .u32 p[0]) { ret; }", "no size"),
    (".entry e(.parm .u64 p) { ret; }", "no type"),
    (".global .u32 g[0];", "no size"),
    (".global .u32 g[];", "no size"),
    (".weak .global .u32 g[];", "no size"),
    (".global .u32 g[-1];", "negative"),
    (".global .bf16 g;", "no type"),
    (".global .v8 .u32 g;", "8 elements"),
    (".shared .pred s;", "register only"),
    (".xextern .shared .b8 s[4];", "no type"),
    (".global .shared .u32 g;", "cannot stand"),
    (".weak .visible .func f { ret; }", "cannot stand beside"),
    (".visible .weak .global .u32 g;", "cannot stand beside"),
    (".entry e() .reqntid 0 { ret; }", "positive"),
    (".entry e() .reqntid { ret; }", "one to 3"),
    (".entry e() .maxntid 1, 1, 1, 1 { ret; }", "one to 3"),
    (".entry e() .maxnreg 0 { ret; }", "positive"),
    (".entry e() .maxntid 32 .minnctapersm 2, 2 { ret; }", "one number"),
    (".func f .maxntid 32 { ret; }", "kernels only"),
    (".entry e() .noreturn { ret; }", "functions only"),
    (".entry e()\n.entry d() { ret; }", "neither a body"),
    ('.file 1 "a.cu"\n.file 1 "b.cu"', "given twice"),
]
RIGHT = [
    ".entry e(.param .align 8 .b64 .ptr .global p) { ret; }",
    ".entry e(.param .u64 .ptr p) { ret; }",
    ".entry e(.param .u32 .ptr .shared .align 16 p) { ret; }",
    ".func f(.reg .f16x2 p) { ret; }",
    ".func f(.param .u32 p[0]) { ret; }",
    ".func f(.param .b8 p[]) { ret; }",
    ".global .f16x2 g;",
    ".global .v4 .f32 g;",
    ".global .u8 g[WARP_SZ];",
    ".global .u32 g[] = {1, 2};",
    ".extern .shared .align 16 .b8 s[];",
    ".entry e() .reqntid 99999 { ret; }",
    ".entry e() .reqntid 0x20, 2 .minnctapersm 2 { ret; }",
    ".entry e() .reqntid 32 .reqntid 32 { ret; }",
    ".func f .noreturn { trap; }",
    ".func f\n.func f { ret; }",
    '.file 1 "a.cu"\n.file 2 "a.cu"',
]


def reported(text: str) -> list[str]:
    module = parse(HEAD + text + "\n" + BODY)
    return [p.message for p in (*module.problems, *verify(module)) if not p.note]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[w[0] for w in WRONG])
def test_wrong_declarations(text: str, words: str) -> None:
    messages = reported(text)
    assert any(words in message for message in messages), messages


@pytest.mark.parametrize("text", RIGHT)
def test_right_declarations(text: str) -> None:
    assert reported(text) == []


@pytest.mark.parametrize("text", [*(w[0] for w in WRONG), *RIGHT])
def test_ptxas_says_the_same(text: str, assemblers: list[Any], tmp_path: Path) -> None:
    fit = [a for a in assemblers if "sm_100a" in a.targets]
    if not fit:
        pytest.skip("no ptxas at hand knows sm_100a")
    accepted = [not a.errors(HEAD + text + "\n" + BODY, "sm_100a", tmp_path) for a in fit]
    assert any(accepted) == (text in RIGHT)


@pytest.mark.parametrize(
    ("head", "fine"),
    [
        (".version 8.0\n.target sm_90\n.target sm_90\n", True),
        (".version 8.0\n.target sm_90\n.target sm_80\n.address_size 64\n", True),
        (".version 8.0\n.target sm_90\n.address_size 64\n.target sm_90\n", False),
        (".version 8.0\n.target sm_90\n.version 8.0\n", False),
    ],
)
def test_targets_may_stand_in_a_row(
    head: str, fine: bool, assemblers: list[Any], tmp_path: Path
) -> None:
    module = parse(head + BODY)
    assert (not module.problems and not verify(module)) == fine
    assert all(bool(a.errors(head + BODY, "sm_90", tmp_path)) != fine for a in assemblers)


def test_an_empty_module_may_name_a_target_newer_than_its_version(
    assemblers: list[Any], tmp_path: Path
) -> None:
    head = ".version 4.3\n.target sm_90\n.address_size 64\n"
    for text, fine in ((head, True), (head + BODY, False)):
        module = parse(text)
        assert (not module.problems and not verify(module)) == fine
        assert all(bool(a.errors(text, "sm_90", tmp_path)) != fine for a in assemblers)
