"""Whatever the syntax fixtures hold, assembled for every target from sm_75 to sm_121: jump tables,
calls, textures, matrix products, asynchronous copies and the rest of the instruction set.

A line that a target does not take is left out, and the rest is assembled again.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import pytest

from ptxlint.cfg.build import build
from ptxlint.frontends.cubin import read_cubin
from ptxlint.frontends.sass import parse
from ptxlint.frontends.toolkit import (
    Assembled,
    ToolError,
    assemble,
    disassemble,
    find_assembler,
    find_tool,
)
from ptxlint.ir.module import Module
from tests.frontends.sass import constructs
from tests.frontends.sass.conftest import ROOT, read_first

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "exactness"))

from drawing import difference, drawn

TARGETS = (
    "sm_75", "sm_80", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a",
    "sm_121a",
)  # fmt: skip
SYNTAX = ("g04_branch_tables_and_calls", *(p.stem for p in (ROOT / "syntax").glob("isa_*.ptx")))
QUICK = (("sm_75", "isa_control"), ("sm_103a", "isa_release_9"), ("sm_121a", "isa_barriers"))
NOT_READ = {("isa_release_9", target) for target in ("sm_75", "sm_80", "sm_87", "sm_89")}
"""A directive with braces, which cannot be left out by its line."""
LOST = re.compile(r"line (\d+); error")


def cases() -> list[object]:
    """All files for all targets; a few always, the others slowly."""
    return [
        pytest.param(
            target, name, marks=[] if (target, name) in QUICK else [pytest.mark.slow],
            id=f"{target}-{name}",
        )
        for name in sorted(SYNTAX)
        for target in TARGETS
        if (name, target) not in NOT_READ
    ]  # fmt: skip


@cache
def assembled(target: str, name: str) -> Assembled:
    """A syntax fixture for a target, without the lines that it does not take."""
    try:
        assembler = find_assembler((9, 4))
        find_tool("nvdisasm")
    except ToolError as error:
        pytest.skip(str(error))
    text = (ROOT / "syntax" / f"{name}.ptx").read_text()
    text = re.sub(r"^(\s*\.target\s+)sm_\w+", rf"\g<1>{target}", text, flags=re.MULTILINE)
    text = re.sub(r"^(\s*\.version\s+)\S+", r"\g<1>9.0", text, flags=re.MULTILINE)
    lines = text.split("\n")
    while True:
        try:
            return assemble("\n".join(lines), target, assembler, seconds=60.0)
        except ToolError as error:
            wrong = [int(number) for number in LOST.findall(str(error))]
            if not wrong:
                raise
            for number in wrong:
                lines[number - 1] = ""


def listed(target: str, name: str) -> Module:
    return parse(disassemble(assembled(target, name).cubin, "-c", "-g"))


@pytest.mark.parametrize(("target", "name"), cases())
def test_every_instruction_is_known_and_the_graph_is_that_of_nvdisasm(
    target: str, name: str
) -> None:
    module = listed(target, name)
    assert module.problems == []
    assert {i.opcode for f in module.functions for i in f.instrs if not i.shape.row.known} == set()
    drawings = drawn(disassemble(assembled(target, name).cubin, "-bbcfg"))
    parted = {f.name: difference(f, drawings[f.name]) for f in module.functions}
    assert parted == dict.fromkeys(parted, "")
    assert parted


QUICK_CONSTRUCTS = ("sm_75", "sm_90a")


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=[] if target in QUICK_CONSTRUCTS else [pytest.mark.slow])
        for target in constructs.ALL
    ],
)
def test_each_construct_is_read(target: str) -> None:
    try:
        assembler = find_assembler((9, 4))
        find_tool("nvdisasm")
    except ToolError as error:
        pytest.skip(str(error))
    done = assemble(constructs.module(target), target, assembler)
    module = parse(disassemble(done.cubin, "-c", "-g"))
    assert module.problems == []
    drawings = drawn(disassemble(done.cubin, "-bbcfg"))
    kernels = {fn.name: fn for fn in module.kernels()}
    cubin = read_cubin(done.cubin).kernels
    assert set(cubin) == set(kernels) == set(done.resources)
    for construct in constructs.CONSTRUCTS:
        if target not in construct.targets:
            continue
        fn, logged = kernels[construct.name], done.resources[construct.name]
        opcodes = {i.opcode for i in fn.instrs}
        assert set(construct.opcodes) <= opcodes, construct.name
        assert {i.opcode for i in fn.instrs if not i.shape.row.known} == set()
        assert read_first(fn, build(fn)) == set(), construct.name
        assert difference(fn, drawings[fn.name]) == "", construct.name
        read = cubin[construct.name]
        for part in ("registers", "stack", "shared", "barriers"):
            assert getattr(read, part).value == getattr(logged, part).value, (construct.name, part)
        numbers = [int(r.name[1:]) for r in fn.registers if re.fullmatch(r"R\d+", r.name)]
        assert max(numbers) < logged.registers.value  # type: ignore[union-attr]
