"""Measured statements and the kernel around them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.module import Module

DECLARATIONS = """\
.reg .pred %p<8>;
.reg .b8 %c<8>;
.reg .b16 %h<16>; .reg .u16 %uh<8>; .reg .s16 %sh<8>; .reg .f16 %hf<8>;
.reg .b32 %r<140>; .reg .u32 %u<16>; .reg .s32 %s<16>; .reg .f32 %f<140>; .reg .f16x2 %x<8>;
.reg .b64 %rd<40>; .reg .u64 %ud<8>; .reg .s64 %sd<8>; .reg .f64 %fd<16>;
.reg .b128 %q<4>;
.reg .v4 .f32 %v<4>;
.shared .align 16 .b8 sm[1024];
.shared .align 8 .b64 mb[4];
.local .align 16 .b8 lo[256];
"""
GLOBALS = """\
.global .align 16 .b8 gv[1024];
.const .align 16 .b8 cv[256];
.global .texref tx;
.global .surfref su;
.extern .func noargs;
.extern .func onearg (.param .b32 a);
.extern .func (.param .b32 r) retarg (.param .b32 a);
"""


def module_text(statements: list[str], target: str, version: str = "9.4") -> str:
    """A module with a kernel for each statement; each statement is a line of its own."""
    declared = DECLARATIONS
    if tuple(map(int, version.split("."))) < (8, 3):
        declared = re.sub(r".*\.b128.*\n|\.reg \.f16x2 %x<8>;", "", declared)
    lines = [f".version {version}\n.target {target}\n.address_size 64\n{GLOBALS}"]
    for number, statement in enumerate(statements):
        lines.append(
            f".visible .entry k{number}(.param .align 64 .b8 par[128], .param .b64 pa)\n"
            f"{{\n{declared}{{ {statement} }}\nret;\n}}\n"
        )
    return "".join(lines)


def rows(name: str) -> list[tuple[str, ...]]:
    """The rows of a table beside this file, its header left out."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [tuple(line.split("\t")) for line in text.splitlines()[1:]]


@pytest.fixture(scope="session")
def table() -> Callable[[str], list[tuple[str, ...]]]:
    """Read a table of measured facts."""
    return rows


@pytest.fixture(scope="session")
def kernel_text() -> Callable[..., str]:
    """Make the text of a module around statements."""
    return module_text


@pytest.fixture(scope="session")
def kernels() -> Callable[..., Module]:
    """Parse statements, each in a kernel of its own."""

    def make(statements: list[str], target: str = "sm_100a", version: str = "9.4") -> Module:
        return parse(module_text(statements, target, version))

    return make
