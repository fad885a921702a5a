"""The machine code of all fixtures is read, and what is made of it holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ptxlint.cfg.build import build as build_cfg
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.cubin import read_cubin
from ptxlint.frontends.sass import memo, parse
from ptxlint.frontends.toolkit import ToolError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register

EXACTNESS = Path(__file__).resolve().parents[3] / "benchmarks" / "exactness"
sys.path.insert(0, str(EXACTNESS))

from drawing import difference, drawn  # noqa: E402

from tests.frontends.sass.conftest import read_first  # noqa: E402

Listing = Callable[..., str]


def test_every_line_and_opcode_is_known(build: Any, listing: Listing) -> None:
    module = parse(listing(build))
    assert module.problems == []
    assert module.arch.rstrip("af") == build.arch
    assert [f.name for f in module.kernels()]
    assert {i.opcode for f in module.functions for i in f.instrs if not i.shape.row.known} == set()
    for fn in module.functions:
        for instr in fn.instrs:
            assert all(isinstance(r, Register) for r in (*instr.defs, *instr.uses))
            assert len(instr.operands) == len(instr.shape.patterns)


def test_the_memo_says_what_lark_says(build: Any, listing: Listing) -> None:
    text = listing(build)
    seen = set()
    for fn in parse(text).functions:
        for instr in fn.instrs:
            line = text[instr.offset : text.index(";", instr.offset)].strip()
            key = memo.SLOT.sub("#", line)
            if key not in seen:
                seen.add(key)
                quick, slow = memo.parse(line), memo.parse(line, uses_memo=False)
                assert quick.slots == slow.slots
                assert quick.form.built.slots == slow.form.built.slots
                assert quick.form.built.shape.patterns == slow.form.built.shape.patterns
    assert seen


def test_no_kernel_reads_a_register_that_nothing_has_written(build: Any, listing: Listing) -> None:
    # Where a kernel of the fixtures does that itself it is no fault of the table.
    if build.name in ("matmul_buggy", "quantise_fp8"):
        pytest.skip("reads what it has not loaded")
    # A function that is called finds its arguments and its way back in registers.
    for fn in parse(listing(build)).kernels():
        assert read_first(fn, build_cfg(fn)) == set()


def test_the_graph_is_that_of_nvdisasm(build: Any, listing: Listing) -> None:
    try:
        drawings = drawn(listing(build, "-bbcfg"))
    except ToolError as error:
        pytest.skip(f"nvdisasm draws none: {error}")
    module = parse(listing(build))
    assert drawings
    assert {f.name: difference(f, drawings[f.name]) for f in module.functions} == {
        f.name: "" for f in module.functions
    }


def test_json_and_encodings_say_the_same(build: Any, listing: Listing) -> None:
    plain = parse(listing(build))
    for text in (listing(build, "-json"), listing(build, "-c", "-hex")):
        other = parse(text)
        assert other.problems == []
        for fn in other.functions:
            mine = {i.opcode: 0 for f in plain.functions for i in f.instrs}
            assert all(i.opcode in mine for i in fn.instrs)
            if len(other.functions) == len(plain.functions):
                (whole,) = (f for f in plain.functions if f.name == fn.name)
                if len(whole.instrs) == len(fn.instrs):
                    assert [_said(i) for i in fn.instrs] == [_said(i) for i in whole.instrs]
    for fn in parse(listing(build, "-c", "-hex")).functions:
        assert len(fn.controls) == len(fn.instrs)  # type: ignore[attr-defined]


def _said(instr: Instr) -> tuple[Any, ...]:
    names = [tuple(r.name for r in side) for side in (instr.defs, instr.uses)]
    return instr.shape.mnemonic, instr.shape.guard, *names


def test_the_cubin_says_what_the_log_says(build: Any, assembled: Callable[..., Any]) -> None:
    done = assembled(build)
    cubin = read_cubin(done.cubin)
    assert cubin.arch == build.arch
    assert set(cubin.kernels) == set(done.resources)
    for name, logged in done.resources.items():
        read = cubin.kernels[name]
        for part in ("registers", "stack", "shared", "barriers"):
            assert getattr(read, part).value == getattr(logged, part).value, part
        if logged.cumulative_stack is not None:
            assert read.cumulative_stack is not None
            assert read.cumulative_stack.value == logged.cumulative_stack.value


def test_no_more_registers_are_named_than_the_cubin_counts(
    build: Any, listing: Listing, assembled: Callable[..., Any]
) -> None:
    kernels = read_cubin(assembled(build).cubin).kernels
    for fn in parse(listing(build)).kernels():
        numbers = [int(r.name[1:]) for r in fn.registers if re.fullmatch(r"R\d+", r.name)]
        counted = kernels[fn.name].registers
        assert counted is not None
        assert max(numbers, default=-1) < counted.value


def test_no_more_registers_are_live_than_the_cubin_counts(
    build: Any, listing: Listing, assembled: Callable[..., Any]
) -> None:
    kernels = read_cubin(assembled(build).cubin).kernels
    module = parse(listing(build))
    for fn in module.kernels():
        pressure = Facts(module, fn).get(PressureAnalysis)
        counted, peak = kernels[fn.name].registers, pressure.peak_instr
        assert counted is not None
        # Registers that calls take are counted for the kernel, and live in what it calls.
        calls = any(i.shape.row.is_call for i in fn.instrs)
        assert peak is not None
        assert 0 < pressure.peak.words <= counted.value
        assert calls or counted.value < 40 or pressure.peak.words > counted.value / 2
        values = pressure.live_at(peak)
        assert sum(v.words for v in values) == pressure.peak.words
        assert all(v.register.name.startswith("R") for v in values if v.words)
