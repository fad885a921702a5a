"""Constants that machine code reads from memory: what they are counts, not where they lie."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import ptxlint.comparison.constant_memory as module
from ptxlint.comparison.changes import constants
from ptxlint.comparison.constant_memory import with_memory
from ptxlint.comparison.difference import Difference
from ptxlint.comparison.records import KernelRecord, load
from ptxlint.comparison.report import compare
from ptxlint.frontends.cubin import code_of, constant_memory
from ptxlint.frontends.toolkit import ToolError, assemble, disassemble, find_assembler, find_tool
from ptxlint.structure.alignment import Redeclared, align
from tests.comparison.machine_builds import listing

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<4>;
    .reg .f64 %fd<9>;
    ld.param.u64 %rd1, [p];
    ld.global.f64 %fd1, [%rd1];
    BODY
    st.global.f64 [%rd1], %fd3;
    ret;
}
"""
PI, E = "0d400921FB54442D18", "0d4005BF0A8B145769"


@cache
def built(*factors: str) -> bytes:
    """A cubin that adds up multiples by some doubles, which sm_80 keeps in bank 2."""
    body = ["mov.f64 %fd3, 0d0000000000000000;"]
    body += [f"fma.rn.f64 %fd3, %fd1, {factor}, %fd3;" for factor in factors]
    text = PTX.replace("BODY", "\n    ".join(body))
    try:
        find_tool("nvdisasm")
        return assemble(text, "sm_80", find_assembler((8, 0))).cubin
    except ToolError as error:
        pytest.skip(str(error))


def diff(folder: Path, old: bytes, new: bytes) -> Difference:
    paths = [folder / "old.cubin", folder / "new.cubin"]
    for path, data in zip(paths, (old, new), strict=True):
        path.write_bytes(data)
    report = compare([str(paths[0])], [str(paths[1])], ptxas=None)
    (found,) = report.differences
    return found


def test_another_value_in_memory_is_another_constant(tmp_path: Path) -> None:
    old, new = built(PI), built(E)
    # The code itself is the same.
    assert disassemble(old, "-c") == disassemble(new, "-c")
    assert constant_memory(old, "k") == {2: bytes.fromhex(PI[2:])[::-1]}
    found = diff(tmp_path, old, new)
    assert found.kind == "constants"
    (told,) = constants(found.code)
    assert (told.old, told.new) == ("3.141592653589793", "2.718281828459045")
    assert told.mnemonic == "DFMA"
    assert diff(tmp_path, old, old).kind == "identical"
    assert code_of(old, "k") != code_of(new, "k")


def test_values_are_told_in_the_order_of_the_code(tmp_path: Path) -> None:
    found = diff(tmp_path, built(PI, E), built(E, PI))
    assert [(c.old, c.new) for c in constants(found.code)] == [
        ("3.141592653589793", "2.718281828459045"), ("2.718281828459045", "3.141592653589793"),
    ]  # fmt: skip


def record(folder: Path, name: str, *instructions: str) -> KernelRecord:
    """A kernel of a listing that is said to be of a cubin called the same."""
    path = folder / f"{name}.sass"
    path.write_text(listing(*instructions, "EXIT"))
    (kernel,) = load([str(path)]).kernels
    kernel.cubin = name.encode()
    return kernel


def test_the_same_value_in_another_place_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pi = bytes.fromhex(PI[2:])[::-1]
    banks = {b"old": {2: bytes(8) + pi}, b"new": {2: bytes(16) + pi}, b"none": {}}
    monkeypatch.setattr(module, "constant_memory", lambda data, _: banks[data])
    old = record(tmp_path, "old", "7: DMUL R4, R4, -c[0x2][0x8]")
    new = record(tmp_path, "new", "7: DMUL R4, R4, -c[0x2][0x10]")
    first = align(old.placed, new.placed)
    assert first.kind == "constants"
    assert with_memory(first, old, new, []).kind == "renamed"
    assert with_memory(first, old, new, []).changed == ()
    # Where the file holds no such bytes, the place is all that is known.
    none = record(tmp_path, "none", "7: DMUL R4, R4, -c[0x2][0x10]")
    (told,) = with_memory(align(old.placed, none.placed), old, none, []).changed
    assert (told.old_constant.value, told.new_constant.value) == (8, 16)


def test_banks_of_other_code_are_told_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    banks = {b"old": {2: bytes(4)}, b"new": {2: b"\1\2\3\4"}}
    monkeypatch.setattr(module, "constant_memory", lambda data, _: banks[data])
    old = record(tmp_path, "old", "7: FMUL R4, R4, c[0x2][0x0]")
    new = record(tmp_path, "new", "7: FADD R4, R4, c[0x2][0x0]")
    found = with_memory(align(old.placed, new.placed), old, new, [])
    assert found.kind == "structural"
    assert found.declared == (Redeclared("constant bank 2", "00000000", "01020304"),)


def test_parameters_are_no_constants(tmp_path: Path) -> None:
    old = record(tmp_path, "old", "7: MOV R4, c[0x0][0x160]")
    new = record(tmp_path, "new", "7: MOV R4, c[0x0][0x168]")
    found = align(old.placed, new.placed)
    assert with_memory(found, old, new, []) is found


def test_a_listing_says_that_it_does_not_show_them(tmp_path: Path) -> None:
    data = built(PI)
    (tmp_path / "k.cubin").write_bytes(data)
    (tmp_path / "k.sass").write_text(disassemble(data, "-c", "-g"))
    report = compare([str(tmp_path / "k.cubin")], [str(tmp_path / "k.sass")], ptxas=None)
    (found,) = report.differences
    assert found.kind == "identical"
    note = f"constants in memory are not compared: {tmp_path / 'k.sass'} does not show them"
    assert note in found.notes
