"""What is blank: told where it decides or gets out, wherever it comes from, and nowhere else."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.run import Emulator, Outcome
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import emulated  # noqa: E402

Kernel = Callable[..., str]
Run = Callable[..., Outcome]
WATCHED = Sanitize(uninitialised=True)

MEMORY = """.shared .align 16 .b8 tile[1024];
.shared .align 8 .b8 gate[8];
"""
START = """
  .local .align 16 .b8 own[64];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mad.lo.s32 %r2, %r0, 4, %r1;
  ld.param.u64 %rd0, [k_param_0];
  mad.wide.u32 %rd1, %r0, 4, %rd0;
  setp.lt.u32 %p1, %r0, 16;
  setp.lt.u32 %p2, %r0, 32;
"""
SOURCES = {
    "register": ("", "%r10, which nothing was written to"),
    "masked lane": ("@%p1 ld.global.b32 %r10, [%rd1];", "%r10, which nothing was written to"),
    "shared": ("ld.shared.b32 %r10, [%r2];", "4 bytes at 0x0 of shared memory"),
    "shared in part": (
        "@%p1 st.shared.b32 [%r2], 7;\n ld.shared.b32 %r10, [%r2];",
        "4 bytes at 0x40 of shared memory",
    ),
    "local": ("ld.local.b32 %r10, [own];", "4 bytes at 0x0 of local memory"),
    "generic": (
        "mov.u64 %rd9, own; cvta.local.u64 %rd9, %rd9; ld.b32 %r10, [%rd9];", "of local memory",
    ),
    "another lane": (
        "@%p1 mov.u32 %r9, 5;\n shfl.sync.down.b32 %r10, %r9, 1, 31, -1;",
        "%r9, which nothing was written to",
    ),
    "through shared": (
        "st.shared.b32 [%r2], %r9;\n ld.shared.b32 %r10, [%r2];",
        "%r9, which nothing was written to",
    ),
    "packed": (
        "mov.b32 %r9, {%rs1, %rs2};\n mov.b64 %rd9, {%r0, %r9}; mov.b64 {%r8, %r10}, %rd9;",
        "which nothing was written to",
    ),
    "atomic in shared": ("atom.shared.add.u32 %r10, [%r2], 1;", "of shared memory"),
    "matrix": (
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];", "of shared memory" [3:],
    ),
}  # fmt: skip
SINKS = {
    "store": ("st.global.b32 [%rd1], %r10;", "stores %r10"),
    "computed": ("add.s32 %r11, %r10, 1; st.global.b32 [%rd1], %r11;", "stores %r11"),
    "atomic": ("red.global.add.u32 [%rd0], %r10;", "updates memory by %r10"),
    "branch": ("setp.eq.s32 %p3, %r10, 3; @%p3 bra over; mov.u32 %r12, 1;\nover:", "branches by"),
    "guard": ("setp.gt.s32 %p3, %r10, 3; @%p3 st.global.b32 [%rd1], 7;", "is guarded by %p3"),
    "address": (
        "and.b32 %r11, %r10, 63; mad.wide.u32 %rd8, %r11, 4, %rd0; ld.global.b32 %r12, [%rd8];",
        "accesses memory by %rd8",
    ),
    "shared address": (
        "and.b32 %r11, %r10, 60; add.s32 %r11, %r11, %r1; st.shared.b32 [%r11], 7;",
        "accesses memory by %r11",
    ),
    "vote": (
        "setp.gt.s32 %p3, %r10, 3; vote.sync.ballot.b32 %r11, %p3, -1;"
        " st.global.b32 [%rd1], %r11;",
        "stores %r11",
    ),
}  # fmt: skip


def blanks(run: Run, text: str, cells: int = 64, **how: Any) -> list[Fault]:
    """What is told of blank values in a run of kernel `k` on one array; nothing else may be."""
    found = run(text, [np.zeros(cells, dtype=np.uint32)], sanitize=WATCHED, **how)
    assert all(fault.kind in ("uninitialised", "blank") for fault in found.faults), found.faults
    assert found.is_complete
    return [fault for fault in found.faults if fault.kind == "uninitialised"]


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_blank_is_told_where_it_decides_or_gets_out(
    kernel: Kernel, outcome: Run, source: str, sink: str
) -> None:
    (before, origin), (behind, message) = SOURCES[source], SINKS[sink]
    (found,) = blanks(outcome, kernel(f"{START}{before}\n{behind}", 1, 32, MEMORY))
    assert message in found.message
    assert origin in found.message
    if "memory" in origin:
        assert found.origin is not None
        assert found.origin.opcode in ("ld", "atom", "ldmatrix")
    if source in ("masked lane", "shared in part") and sink in ("store", "guard", "atomic"):
        # The first lane beyond those that are written, and so many.
        assert found.tid == (16, 0, 0)
        assert found.lanes == 16


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_blank_may_lie_about_and_be_moved(
    kernel: Kernel, outcome: Run, source: str
) -> None:
    body = f"""{START}{SOURCES[source][0]}
  add.s32 %r11, %r10, 1;
  st.shared.b32 [%r2+512], %r11;
  selp.b32 %r12, %r0, %r11, %p2;
  and.b32 %r13, %r11, 0;
  add.s32 %r12, %r12, %r13;
  st.global.b32 [%rd1], %r12;
"""
    assert blanks(outcome, kernel(body, 1, 32, MEMORY)) == []


HARMLESS = [
    "@%p1 mov.u32 %r10, 1;\n @!%p1 mov.u32 %r10, 2;",
    "mov.u32 %r10, 0;\n @%p1 ld.global.b32 %r10, [%rd1];",
    "shl.b32 %r10, %r9, 32;",
    "and.b32 %r9, %r9, 255; shr.u32 %r10, %r9, 8;",
    "mul.lo.s32 %r10, %r9, 0;",
    "or.b32 %r10, %r9, -1;",
    "prmt.b32 %r10, %r0, %r9, 0x3210;",
    "bfe.u32 %r9, %r9, 4, 4; setp.lt.u32 %p3, %r9, 16; selp.u32 %r10, 1, 0, %p3;",
    "or.b32 %r9, %r9, 16; setp.eq.s32 %p3, %r9, 3; selp.u32 %r10, 1, 0, %p3;",
    "and.b32 %r9, %r9, 15; max.u32 %r10, %r9, 15;",
    "st.shared.b32 [%r2], %r9; st.shared.b32 [%r2], %r0; ld.shared.b32 %r10, [%r2];",
    "mov.b32 %r9, {%rs1, %rs2}; mov.b32 {%rs3, %rs4}, %r0; mov.b32 %r10, {%rs3, %rs4};",
    "setp.gt.s32 %p3, %r9, 3; and.pred %p3, %p3, %p1; @!%p1 mov.u32 %r10, 4;"
    " selp.u32 %r11, 1, 0, %p3; @%p1 mov.u32 %r10, 3;",
    "@%p2 ld.shared.b32 %r9, [%r2]; shfl.sync.idx.b32 %r11, %r9, 0, 31, -1; mov.u32 %r10, 1;",
    "setp.gt.s32 %p3, %r9, 3; or.pred %p3, %p3, %p2; vote.sync.all.pred %p4, %p3, -1;"
    " selp.u32 %r10, 1, 0, %p4;",
    "setp.eq.u32 %p4, %r0, 0; @!%p4 setp.gt.s32 %p4, %r9, 3; vote.sync.any.pred %p5, %p4, -1;"
    " selp.u32 %r10, 1, 0, %p5;",
]  # fmt: skip


@pytest.mark.parametrize("body", HARMLESS)
def test_what_cannot_bear_on_a_number_is_not_told(kernel: Kernel, outcome: Run, body: str) -> None:
    text = kernel(f"{START}{body}\n  st.global.b32 [%rd1], %r10;", 1, 32, MEMORY)
    assert blanks(outcome, text) == []


def test_a_read_of_blank_global_memory_is_told_and_where_it_goes(
    kernel: Kernel, outcome: Run
) -> None:
    from ptxlint.dynamic.emulator.run import run

    text = kernel(
        START + "ld.param.u64 %rd5, [k_param_1];\n ld.global.b32 %r10, [%rd5];\n"
        "st.global.b32 [%rd1], %r10;", 2, 32, MEMORY
    )  # fmt: skip
    module = parse(text, "snippet.ptx")
    emulator = Emulator(module, module.kernels()[0])
    arena = emulator.arena()
    out = arena.allocate("out", 128, np.zeros(32, dtype=np.uint32))
    scratch = arena.allocate("scratch", 64)
    values = {
        "k_param_0": out.start.to_bytes(8, "little"),
        "k_param_1": scratch.start.to_bytes(8, "little"),
    }
    found = emulator.run((1, 1, 1), (32, 1, 1), values, arena, sanitize=WATCHED).faults
    assert [fault.kind for fault in found] == ["blank", "uninitialised"]
    assert "4 bytes at" in found[1].message
    assert "of global memory" in found[1].message
    assert run is not None


def test_a_barrier_that_counts_votes_hands_on_what_is_not_known(
    kernel: Kernel, outcome: Run
) -> None:
    body = START + "{first}\nbar.red.popc.u32 %r10, 0, %p3;\nst.global.b32 [%rd1], %r10;"
    known = body.replace("{first}", "setp.gt.s32 %p3, %r0, 3;")
    assert blanks(outcome, kernel(known, 1, 64, MEMORY)) == []
    (found,) = blanks(outcome, kernel(body.replace("{first}", ""), 1, 64, MEMORY))
    assert "%p3, which nothing was written to" in found.message


def test_a_lane_that_takes_no_part_in_a_shuffle_offers_nothing_known(
    kernel: Kernel, outcome: Run
) -> None:
    body = (
        START
        + """
  mov.u32 %r9, %r0;
  @!%p1 bra over;
  shfl.sync.idx.b32 %r10, %r9, LANE, 31, 0xffff;
  st.global.b32 [%rd1], %r10;
over:
"""
    )
    assert blanks(outcome, kernel(body.replace("LANE", "15"), 1, 32, MEMORY)) == []
    (found,) = blanks(outcome, kernel(body.replace("LANE", "20"), 1, 32, MEMORY))
    assert "stores %r10" in found.message
    assert "a lane that takes no part in `shfl.sync.idx.b32`" in found.message
    assert found.lanes == 16


def test_what_an_mbarrier_says_is_known(kernel: Kernel, outcome: Run) -> None:
    body = (
        START
        + """
  setp.eq.u32 %p4, %r0, 0;
  @%p4 mbarrier.init.shared::cta.b64 [gate], 1;
  bar.sync 0;
  @%p4 mbarrier.arrive.shared::cta.b64 _, [gate];
again:
  mbarrier.try_wait.parity.shared::cta.b64 %p5, [gate], 0;
  @!%p5 bra again;
  st.global.b32 [%rd1], %r0;
"""
    )
    assert blanks(outcome, kernel(body, 1, 32, MEMORY)) == []


@pytest.mark.parametrize("size", [16, 256])
def test_a_bulk_copy_out_of_shared_memory_tells_what_is_blank(
    kernel: Kernel, outcome: Run, size: int
) -> None:
    body = (
        START
        + f"""
  st.shared.b32 [%r2], %r0;
  bar.sync 0;
  setp.eq.u32 %p4, %r0, 0;
  @%p4 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], {size};
"""
    )
    found = blanks(outcome, kernel(body, 1, 32, MEMORY))
    assert len(found) == (size > 128)
    if found:
        assert "copies what is blank to global memory" in found[0].message


def test_an_address_of_a_matrix_counts_in_lanes_that_give_one(kernel: Kernel, outcome: Run) -> None:
    body = (
        START
        + """
  st.shared.b32 [%r2], %r0;
  mad.lo.s32 %r3, %r0, 16, %r1;
  setp.lt.u32 %p4, %r0, {count};
  @%p4 mov.u32 %r9, %r3;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r9];
  st.global.b32 [%rd1], %r10;
"""
    )
    text = body.replace("{count}", "8")
    assert blanks(outcome, kernel(text, 1, 32, MEMORY)) == []
    (found,) = blanks(outcome, kernel(body.replace("{count}", "7"), 1, 32, MEMORY))
    assert "accesses memory by %r9" in found.message
    assert found.tid == (7, 0, 0)


MMA = """
  mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, 0;
  mov.u32 %r24, 0; mov.u32 %r25, 0;
  setp.lt.u32 %p4, %r0, 4;
  @%p4 mov.u32 {factor}, %r90;
  mov.u32 %r30, 0; mov.u32 %r31, 0; mov.u32 %r32, 0; mov.u32 %r33, 0;
  mma.sync.aligned.m16n8k16.row.col.{types} {%r40, %r41, %r42, %r43},
    {%r20, %r21, %r22, %r23}, {%r24, %r25}, {%r30, %r31, %r32, %r33};
  st.global.b32 [%rd1], %r40;
  st.global.b32 [%rd1], %r42;
"""


@pytest.mark.parametrize("types", ["f32.f16.f16.f32", "f32.bf16.bf16.f32"])
def test_a_product_hands_on_a_row_of_a_and_a_column_of_b(
    kernel: Kernel, outcome: Run, types: str
) -> None:
    text = START + MMA.replace("{types}", types)
    # %r20 in lanes 0 to 3 is row 0 of A: the lanes that hold row 0 of D, in %r40 alone.
    (found,) = blanks(outcome, kernel(text.replace("{factor}", "%r20"), 1, 32, MEMORY))
    assert "stores %r40" in found.message
    assert (found.tid[0], found.lanes) == (0, 4)
    # %r24 in lanes 0 to 3 is column 0 of B: every fourth lane, in both of its rows.
    both = blanks(outcome, kernel(text.replace("{factor}", "%r24"), 1, 32, MEMORY))
    assert [fault.lanes for fault in both] == [8, 8]
    # What is added bears on itself alone.
    (found,) = blanks(outcome, kernel(
        text.replace("@%p4 mov.u32 {factor}, %r90;", "").replace("mov.u32 %r30, 0;", ""),
        1, 32, MEMORY,
    ))  # fmt: skip
    assert found.lanes == 32


def test_a_result_that_is_dropped_moves_no_label(kernel: Kernel, outcome: Run) -> None:
    text = START + MMA.replace("{types}", "f32.f16.f16.f32").replace("%r40, %r41,", "_, %r41,")
    text = text.replace("%r30, 0;", "%r40, 0;").replace("@%p4 mov.u32 {factor}, %r90;", "")
    # What is added to %r42 is known, what is added to the one that is dropped is not.
    assert not blanks(outcome, kernel(text, 1, 32, MEMORY))
    text = text.replace("mov.u32 %r32, 0;", "mov.u32 %r30, 0;")
    (found,) = blanks(outcome, kernel(text, 1, 32, MEMORY))
    assert "stores %r42" in found.message


def test_whole_numbers_are_multiplied_likewise(kernel: Kernel, outcome: Run) -> None:
    text = START + MMA.replace("{types}", "s32.s8.s8.s32").replace("k16", "k32")
    (found,) = blanks(outcome, kernel(text.replace("{factor}", "%r20"), 1, 32, MEMORY))
    assert (found.tid[0], found.lanes) == (0, 4)


def test_what_a_function_is_handed_keeps_its_labels(kernel: Kernel, outcome: Run) -> None:
    declared = (
        MEMORY
        + """
.func (.param .b32 back) twice(.param .b32 given)
{
  .reg .b32 %q<3>;
  ld.param.b32 %q1, [given];
  add.s32 %q2, %q1, %q1;
  st.param.b32 [back], %q2;
  ret;
}
"""
    )
    body = (
        START
        + """
  {
  .param .b32 in;
  .param .b32 out;
  st.param.b32 [in], {what};
  call.uni (out), twice, (in);
  ld.param.b32 %r10, [out];
  }
  st.global.b32 [%rd1], %r10;
"""
    )
    assert blanks(outcome, kernel(body.replace("{what}", "%r0"), 1, 32, declared)) == []
    (found,) = blanks(outcome, kernel(body.replace("{what}", "%r9"), 1, 32, declared))
    assert "%r9, which nothing was written to" in found.message


# Fixtures -------------------------------------------------------------------------------------
QUICK = ("softmax", "matmul_dot_fp16", "argmax", "cumsum", "histogram", "attention")
RIGHT = [
    pytest.param(arch, name, marks=[] if name in QUICK else [pytest.mark.slow])
    for arch in ("sm_80", "sm_90")
    for name in emulated.names(arch)
    if "_buggy" not in name
]


@pytest.mark.parametrize(("arch", "name"), RIGHT)
def test_right_kernels_use_nothing_blank(arch: str, name: str) -> None:
    build = emulated.build(name, arch)
    sizes = next(iter(build.reference.sizes(build.constants)))
    held = emulated.hold(build, sizes, sanitize=WATCHED)
    assert held.faults == []
    assert held.is_right


@pytest.mark.parametrize(
    ("arch", "name", "line"),
    [
        ("sm_80", "softmax", "st.shared.b32"),
        ("sm_80", "matmul_dot_fp16", "st.shared.v4.b32"),
        ("sm_90", "matmul_dot_fp16", "st.shared.v4.b32"),
        ("sm_80", "cumsum", "@%p10 st.shared"),
        ("sm_80", "layer_norm_fwd", "st.shared.b32"),
    ],
)
def test_a_store_taken_out_is_missed(arch: str, name: str, line: str) -> None:
    build = emulated.build(name, arch)
    text = build.path.read_text()
    (start, end) = next(re.finditer(rf"^\s*{re.escape(line)}[^\n]*\n", text, re.M)).span()
    module = parse(text[:start] + "\n" + text[end:], "changed.ptx")
    changed = Emulator(module, module.kernels()[0])
    sizes = next(iter(build.reference.sizes(build.constants)))
    held = emulated.hold(build, sizes, sanitize=WATCHED, changed=changed)
    found = [fault for fault in held.faults if fault.kind == "uninitialised"]
    assert found
    assert all("to global memory" in fault.message for fault in found)
    assert all(fault.origin is not None for fault in found)
