"""MSK206: guards that are taken out of the PTX of real kernels before it is assembled."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from ptxlint.diagnostics import Finding
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.toolkit import ToolError, assemble, find_assembler, find_tool

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
GUARDED = re.compile(r"@!?%p\d+ (?=(?:ld|st|red|atom)\.global|cp\.async\.bulk)")


@cache
def found(name: str, number: int | None) -> tuple[Finding, ...]:
    """What is said of a kernel's machine code beside its PTX, after the guard of one access has
    been taken out, counted in the text."""
    built = text = (FIXTURES / f"{name}.ptx").read_text()
    if number is not None:
        guard = list(GUARDED.finditer(built))[number]
        built = built[: guard.start()] + " " * len(guard[0]) + built[guard.end() :]
    try:
        find_tool("nvdisasm")
        module = parse(built)
        cubin = assemble(built, module.arch, find_assembler(module.version)).cubin
    except ToolError as error:
        pytest.skip(str(error))
    item = Input("k.cubin", cubin=cubin, ptx=text)
    return tuple(f for f in run([item], Options(select=("MSK206",))).findings)


@pytest.mark.parametrize(
    ("name", "number", "line", "message"),
    [
        ("sm_90/softmax", 0, 15, "1 global load of this line depends"),
        ("sm_80/softmax", -1, 20, "1 global store of this line depends"),
        ("sm_120/layer_norm_fwd", -1, 31, "1 global store of this line depends"),
    ],
)
def test_a_guard_that_was_taken_out_is_missed(
    name: str, number: int, line: int, message: str
) -> None:
    assert found(name, None) == ()
    (finding,) = found(name, number)
    ends = "no longer on n_cols and the thread, which decide in the PTX"
    assert (finding.severity, finding.message) == ("error", f"{message} {ends}")
    assert finding.place.source is not None
    assert finding.place.source.line == line
