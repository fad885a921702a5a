"""Cubins of the fixtures, assembled for the tests, with what nvdisasm says of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from ptxlint.cfg.graph import Cfg
from ptxlint.frontends.ptx import parse as parse_ptx
from ptxlint.frontends.toolkit import (
    Assembled,
    ToolError,
    assemble,
    disassemble,
    find_assembler,
    find_tool,
)
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register

ROOT = Path(__file__).resolve().parents[3] / "fixtures"
FIXTURES = ROOT / "ptx"
FOLDERS = ("ptx", "ptx-nvcc", "ptx-llvm")
QUICK = ("softmax", "matmul_dot_fp16", "barriers_debug")


class Build(NamedTuple):
    """A fixture for one architecture."""

    arch: str
    name: str
    folder: str = "ptx"

    def __str__(self) -> str:
        return f"{self.arch}-{self.name}"


def builds() -> list[object]:
    """All builds; those of a few kernels always, the others slowly."""
    out: list[object] = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.ptx")):
            marks = [] if path.stem in QUICK else [pytest.mark.slow]
            out.append(pytest.param(Build(path.parent.name, path.stem, folder), marks=marks))
    return out


def _text(build: Build) -> str:
    return (ROOT / build.folder / build.arch / f"{build.name}.ptx").read_text()


@pytest.fixture(scope="session")
def text_of() -> Callable[[Build], str]:
    """A build's PTX."""
    return _text


@cache
def _assembled(build: Build) -> Assembled:
    text = _text(build)
    module = parse_ptx(text)
    return assemble(text, module.arch, find_assembler((9, 4)), build.name)


@pytest.fixture(scope="session")
def assembled() -> Callable[[Build], Assembled]:
    """A build's cubin and log."""
    try:
        find_assembler((9, 4))
        find_tool("nvdisasm")
    except ToolError as error:
        pytest.skip(str(error))
    return _assembled


@cache
def _listing(build: Build, options: tuple[str, ...]) -> str:
    """What nvdisasm prints; most of the time of a call is its start."""
    return disassemble(_assembled(build).cubin, *options)


@pytest.fixture(scope="session")
def listing(assembled: Callable[[Build], Assembled]) -> Callable[..., str]:
    """What nvdisasm prints of a build."""
    return lambda build, *options: _listing(build, options or ("-c", "-g"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that take a `build` run on all of them."""
    if "build" in metafunc.fixturenames:
        metafunc.parametrize("build", builds(), ids=str)


def read_first(fn: Function, cfg: Cfg) -> set[str]:
    """Registers that are read before anything writes them, on some way. A register that an
    instruction only changes in part (`LOP3 R4, R4, …`) counts as written by it."""
    live: dict[int, set[Register]] = {block.index: set() for block in cfg.blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(cfg.blocks):
            now = set().union(*(live[at] for at in block.succs))
            for instr in reversed(fn.instrs[block.start : block.end]):
                now = _before(fn, instr, now)
            changed |= now != live[block.index]
            live[block.index] = now
    return {register.name for register in live[cfg.entry] if register.name[0] != "B"}


def _before(fn: Function, instr: Instr, live: set[Register]) -> set[Register]:
    if instr.shape.row.is_call:
        return set(instr.uses)
    return (live - set(instr.defs)) | (set(instr.uses) - set(instr.defs))
