"""What is counted of accesses whose numbers can be worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ptxlint.dynamic.emulator import emulate
from ptxlint.dynamic.emulator.counters import Count
from ptxlint.dynamic.emulator.heat import counts_to_dict, heat_svg, heat_text
from ptxlint.dynamic.emulator.session import Emulation
from ptxlint.dynamic.emulator.session import emulate as run_launches
from ptxlint.frontends.discovery import Input
from ptxlint.launches import Launch, Tensor

Kernel = Callable[..., str]
START = """
  .shared .align 128 .b8 tile[16384];
  mov.u32 %r100, %tid.x;
  mov.u32 %r101, tile;
  ld.param.u64 %rd20, [k_param_0];
"""


def counts(kernel: Kernel, body: str, opcode: str, threads: int = 32, grid: int = 1) -> Count:
    """The counts of all lines with an instruction of a body on 16 KiB of memory."""
    text = kernel(START + body, 1, threads)
    found = emulate(text, grid, [np.zeros(1 << 14, np.uint8)])
    assert found.findings == (), found.findings
    places = [at for at, row in enumerate(text.splitlines(), 1) if opcode in row]
    total = Count()
    for line in found.counters:
        if line.line in places:
            total.add(line.count)
    return total


def shared(step: int, kind: str = "b32", guard: str = "") -> str:
    """A load of each lane at its number times so many bytes."""
    values = {"b32": "%r1", "b64": "%rd1", "v2.b32": "{%r1, %r2}", "v4.b32": "{%r1, %r2, %r3, %r4}"}
    values["b8"] = "%rs1"
    return f"""
  mad.lo.u32 %r102, %r100, {step}, %r101;
  setp.lt.u32 %p1, %r100, 8;
  {guard} ld.shared.{kind} {values[kind]}, [%r102];
"""


@pytest.mark.parametrize(
    ("step", "kind", "turns", "conflicts"),
    [
        (4, "b32", 1, 0),  # a word a bank
        (8, "b32", 2, 1),  # every second bank, twice
        (16, "b32", 4, 3),
        (128, "b32", 32, 31),  # all in one bank
        (132, "b32", 1, 0),  # rows of 33 words: the usual padding
        (0, "b32", 1, 0),  # one word for all
        (1, "b8", 1, 0),  # four lanes a word
        (8, "b64", 2, 0),  # halves of the warp, each all banks
        (16, "b64", 4, 2),  # stride 2 of 8 bytes
        (8, "v2.b32", 2, 0),
        (16, "v4.b32", 4, 0),  # quarters of the warp
        (32, "v4.b32", 8, 4),
        (0, "v4.b32", 4, 0),
        (144, "v4.b32", 4, 0),  # rows of 36 words, 4 apart
        (128, "v4.b32", 32, 28),  # 8 lanes of a quarter in the same four banks
    ],
)
def test_banks_of_shared_memory(
    kernel: Kernel, step: int, kind: str, turns: int, conflicts: int
) -> None:
    found = counts(kernel, shared(step, kind), "ld.shared")
    assert (found.shared_accesses, found.turns, found.conflicts) == (1, turns, conflicts)
    width = {"b8": 1, "b32": 4, "b64": 8, "v2.b32": 8, "v4.b32": 16}[kind]
    assert found.bytes == 32 * width
    assert (found.accesses, found.sectors) == (0, 0)


def test_lanes_that_are_there_alone_count(kernel: Kernel) -> None:
    found = counts(kernel, shared(128, guard="@%p1"), "ld.shared")
    assert (found.turns, found.conflicts, found.bytes) == (8, 7, 32)
    # Lanes 0 to 7 are one quarter of the warp, and 16 bytes of each fill all banks once.
    found = counts(kernel, shared(16, "v4.b32", guard="@%p1"), "ld.shared")
    assert (found.turns, found.conflicts) == (1, 0)
    # Lanes 0 and 16 are in two halves, whoever is between them.
    body = """
  mad.lo.u32 %r102, %r100, 128, %r101;
  and.b32 %r103, %r100, 15;
  setp.eq.u32 %p1, %r103, 0;
  @%p1 ld.shared.b64 %rd1, [%r102];
"""
    found = counts(kernel, body, "ld.shared")
    assert (found.turns, found.conflicts) == (2, 0)


def test_warps_and_programs_add_up(kernel: Kernel) -> None:
    found = counts(kernel, shared(8), "ld.shared", threads=80, grid=3)
    # Two whole warps and one of 16 lanes, whose words are 32 banks apart at most once.
    assert found.shared_accesses == 9
    assert (found.turns, found.conflicts) == (3 * (2 + 2 + 1), 3 * 2)
    assert (found.warps, found.lanes) == (9, 240)
    assert found.bytes == 240 * 4


@pytest.mark.parametrize(
    ("step", "kind", "offset", "sectors"),
    [
        (4, "b32", 0, 4),  # 128 bytes
        (4, "b32", 16, 5),  # the same, half a sector further
        (8, "b32", 0, 8),
        (32, "b32", 0, 32),
        (128, "b32", 0, 32),
        (0, "b32", 0, 1),
        (16, "v4.b32", 0, 16),
        (1, "b8", 0, 1),
        (8, "b64", 0, 8),
    ],
)
def test_sectors_of_global_memory(
    kernel: Kernel, step: int, kind: str, offset: int, sectors: int
) -> None:
    values = {"b32": "%r1", "b64": "%rd1", "v4.b32": "{%r1, %r2, %r3, %r4}", "b8": "%rs1"}
    body = f"""
  mad.wide.u32 %rd21, %r100, {step}, %rd20;
  ld.global.{kind} {values[kind]}, [%rd21+{offset}];
"""
    found = counts(kernel, body, "ld.global")
    assert (found.accesses, found.sectors) == (1, sectors)
    assert (found.shared_accesses, found.turns, found.conflicts) == (0, 0, 0)
    both = counts(kernel, body, "ld.global", threads=64, grid=2)
    if step * 32 % 32 == 0 and step:
        assert (both.accesses, both.sectors) == (4, 4 * sectors)


def test_branches_that_part_a_warp(kernel: Kernel) -> None:
    body = """
  setp.lt.u32 %p1, %r100, 40;
  @%p1 bra $less;
  mov.u32 %r1, 1;
$less:
"""
    # Of three warps, the middle one parts.
    found = counts(kernel, body, "bra", threads=96, grid=2)
    assert (found.warps, found.divergent) == (6, 2)
    assert counts(kernel, body, "mov.u32 %r1, 1", threads=96, grid=2).lanes == 2 * 56


def test_parameters_are_not_moved(kernel: Kernel) -> None:
    assert counts(kernel, "", "ld.param").bytes == 0


def counted(kernel: Kernel, tmp_path: Path) -> Emulation:
    body = (
        shared(8)
        + """
  mad.wide.u32 %rd21, %r100, 128, %rd20;
  ld.global.b32 %r1, [%rd21];
  setp.lt.u32 %p1, %r100, 5;
  @%p1 bra $end;
  mov.u32 %r1, 0;
$end:
"""
    )
    path = tmp_path / "k<1>.ptx"
    path.write_text(kernel(START + body, 1, 32))
    memory = Tensor("uint8", (1 << 14,), (1,), 0, 1 << 14)
    launch = Launch((1, 1, 1), (32, 1, 1), {"k_param_0": memory})
    return run_launches([Input(str(path), launches=(launch,))], counts=True).runs[0]


def test_the_heat_map_has_all_counts(kernel: Kernel, tmp_path: Path) -> None:
    run = counted(kernel, tmp_path)
    text = heat_text(run)
    header = text.splitlines()[1].split()
    assert header == [
        "warp", "instrs", "parted", "bytes", "sectors", "each", "conflicts", "line"
    ]  # fmt: skip
    assert re.search(r"1 +\. +128 +\. +\. +1 +\d+ .*ld\.shared", text)
    assert re.search(r"1 +\. +128 +32 +32\.0 +\. +\d+ .*ld\.global", text)
    assert re.search(r"1 +1 +\. +\. +\. +\. +\d+ .*bra \$end", text)
    picture = ElementTree.fromstring(heat_svg(run))
    said = [node.text or "" for node in picture.iter() if node.tag.endswith("text")]
    assert "1 instr, 128 B, 32.0 sectors each" in said
    assert "1 instr, 128 B, 1 conflict" in said
    assert "1 instr, 1 parted" in said
    (line,) = [x for x in counts_to_dict(run) if x["sectors"]]
    assert {k: line[k] for k in ("accesses", "bytes", "sectors", "turns")} == {
        "accesses": 1, "bytes": 128, "sectors": 32, "turns": 0,
    }  # fmt: skip
