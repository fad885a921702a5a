"""Data of asynchronous operations that is touched too early: found wherever a wait or a fence is
taken out of a fixture or waits for less, and nowhere in what is right."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.run import Emulator, run
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import emulated  # noqa: E402

Kernel = Callable[..., str]
COPIES = Sanitize(copies=True)


# Fixtures -------------------------------------------------------------------------------------
LARGER = {
    "matmul_tma": {"M": 65, "N": 72, "K": 320},
    "matmul_tma_persistent": {"M": 80, "N": 80, "K": 320},
    "matmul_dot_tf32": {"M": 65, "N": 72, "K": 163},
}
"""Enough rounds of the loop for each stage to be used again."""


def asynchronous() -> list[tuple[str, str]]:
    """Right builds that copy or multiply asynchronously."""
    return [
        (arch, name)
        for arch in ("sm_80", "sm_90")
        for name in emulated.names(arch)
        if "_buggy" not in name
        and re.search(r"cp\.async|wgmma", emulated.build(name, arch).path.read_text())
    ]


def found(arch: str, name: str, text: str | None = None, races: bool = False) -> list[Fault]:
    """What is found in a build, or in another text in its place."""
    build = emulated.build(name, arch)
    sizes = LARGER.get(name) or build.reference.sizes(build.constants)[0]
    changed = None
    if text is not None:
        module = parse(text, "changed.ptx")
        changed = Emulator(module, module.kernels()[0])
    how = Sanitize(races=races, copies=True)
    return emulated.hold(build, sizes, sanitize=how, changed=changed).faults


@pytest.mark.parametrize(("arch", "name"), asynchronous())
def test_right_kernels_wait_for_all_that_they_touch(arch: str, name: str) -> None:
    assert found(arch, name, races=True) == []


PROXY = "in the async proxy what `"
MUTANTS = [
    # Copies by threads: a group that is not waited for, or not ended.
    ("sm_80", "wrapped_matmul", r"cp\.async\.wait_group\s+0", "", "has not brought yet"),
    ("sm_80", "int4_gemm", r"cp\.async\.wait_group\s+0", "+1", "has not brought yet"),
    ("sm_80", "matmul_dot_tf32", r"cp\.async\.wait_group\s+2", "", "has not brought yet"),
    ("sm_80", "matmul_dot_tf32", r"cp\.async\.wait_group\s+2", "+1", "has not brought yet"),
    ("sm_80", "flash_fwd", r"cp\.async\.commit_group", "", "has not brought yet"),
    ("sm_90", "flash_fwd", r"cp\.async\.wait_group\s+0", "+1", "has not brought yet"),
    # What they brought was written in the generic proxy.
    ("sm_90", "matmul_dot_tf32", r"fence\.proxy\.async\.shared::cta", "", PROXY + "cp.async"),
    ("sm_90", "matmul_dot_fp16", r"fence\.proxy\.async\.shared::cta", "", PROXY + "st.shared"),
    ("sm_90", "matmul_tma", r"fence\.proxy\.async\.shared::cta", "", PROXY + "stmatrix"),
    ("sm_90", "matmul_tma_persistent", r"fence\.proxy\.async\.shared::cta(?=;\s*bar\.sync\s+0;"
     r"\s*elect\.sync\s+%r67)", "", "overwrites " + PROXY),
    # Tensor copies: a phase that nobody waits for, a store that nobody waits for.
    ("sm_90", "matmul_tma", r"mbarrier\.try_wait[^;]*;\s*@!complete bra\.uni waitLoop", "",
     "reads what `cp.async.bulk.tensor"),
    ("sm_90", "matmul_tma_persistent", r"cp\.async\.bulk\.wait_group\.read\s+0(?=;)", "",
     "overwrites what `cp.async.bulk.tensor"),
    ("sm_90", "matmul_tma_persistent", r"cp\.async\.bulk\.wait_group\.read\s+0(?=;)", "+1",
     "overwrites what `cp.async.bulk.tensor"),
    ("sm_90", "matmul_tma", r"cp\.async\.bulk\.wait_group\s+0", "", "leaves the kernel"),
    ("sm_90", "matmul_tma", r"cp\.async\.bulk\.commit_group", "", "leaves the kernel"),
    # Products: operands that are overwritten, results that are read, registers in no order.
    ("sm_90", "matmul_tma", r"wgmma\.wait_group\.sync\.aligned 1", "",
     "overwrites what `wgmma.mma_async"),
    ("sm_90", "matmul_tma", r"wgmma\.wait_group\.sync\.aligned 1", "+1",
     "overwrites what `wgmma.mma_async"),
    ("sm_90", "matmul_tma", r"wgmma\.wait_group\.sync\.aligned 0", "+1",
     "reads a register that `wgmma.mma_async"),
    ("sm_90", "flash_fwd", r"wgmma\.wait_group\.sync\.aligned 0", "+1",
     "reads a register that `wgmma.mma_async"),
    ("sm_90", "matmul_dot_fp16", r"wgmma\.commit_group\.sync\.aligned", "",
     "reads a register that `wgmma.mma_async"),
    ("sm_90", "flash_fwd", r"wgmma\.fence\.sync\.aligned", "", "no wgmma.fence is between"),
    ("sm_90", "matmul_tma", r"wgmma\.fence\.sync\.aligned", "", "no wgmma.fence is between"),
]  # fmt: skip
"""A build, what is changed everywhere in it (taken out, or its count raised), what is told."""


@pytest.mark.parametrize(("arch", "name", "pattern", "by", "says"), MUTANTS)
def test_a_wait_or_fence_that_is_missing_is_told(
    arch: str, name: str, pattern: str, by: str, says: str
) -> None:
    text = emulated.build(name, arch).path.read_text()

    def change(match: re.Match[str]) -> str:
        word = match[0]
        return f"{word[:-1]}{int(word[-1]) + 1}" if by else "mov.u32 %r1, %r1"

    changed, count = re.subn(pattern, change, text)
    assert count
    told = [fault for fault in found(arch, name, changed) if fault.kind == "arrival"]
    assert any(says in fault.message for fault in told), {fault.message for fault in told}


@pytest.mark.parametrize(
    ("between", "behind", "is_told"),
    [
        ("mov.b32 %moved, ACC;", "neg.f32 %moved, %moved;", False),
        ("mov.b32 %moved, ACC; mov.b32 %again, %moved;", "neg.f32 %again, %again;", False),
        ("mov.b32 %moved, ACC; mov.b32 %moved, 0; neg.f32 %moved, %moved;", "", False),
        ("mov.b32 %moved, ACC; neg.f32 %moved, %moved;", "", True),
        ("mov.b32 %moved, ACC; mov.b32 %again, %moved; neg.f32 %again, %again;", "", True),
        ("neg.f32 %moved, ACC;", "", True),
    ],
)
def test_what_is_moved_out_of_an_accumulator_is_used_behind_the_wait(
    between: str, behind: str, is_told: bool
) -> None:
    """As compilers unpack accumulators in front of the wait."""
    text = emulated.build("flash_fwd", "sm_90").path.read_text()
    body, place = text.find("{\n", text.find(".entry")) + 2, "wgmma.wait_group.sync.aligned 0;"
    product = text.rfind("wgmma.mma_async", 0, text.rfind(place))
    (accumulator,) = re.findall(r"[%]\w+", text[product:])[:1]
    at = text.find(place, product)
    around = f"{between} {place} {behind}".replace("ACC", accumulator)
    changed = text[:at] + around + text[at + len(place) :]
    changed = changed[:body] + ".reg .b32 %moved, %again;\n" + changed[body:]
    told = [fault for fault in found("sm_90", "flash_fwd", changed) if fault.kind == "arrival"]
    assert bool(told) == is_told


def test_a_barrier_behind_the_wait_is_needed_by_the_other_threads() -> None:
    text = emulated.build("flash_fwd", "sm_80").path.read_text()
    changed, count = re.subn(r"(cp\.async\.wait_group\s+0;\s*)bar\.sync\s+0;", r"\1", text, count=1)
    assert count
    told = found("sm_80", "flash_fwd", changed)
    assert any("has not brought yet" in fault.message for fault in told)


# Single steps ---------------------------------------------------------------------------------
SHARED = ".shared .align 128 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n"
START = """
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  shl.b32 %r2, %r0, 2;
  add.s32 %r3, %r1, %r2;
  xor.b32 %r4, %r2, 128;
  add.s32 %r4, %r1, %r4;
  ld.param.u64 %rd0, [k_param_0];
  mad.wide.u32 %rd1, %r0, 4, %rd0;
  setp.eq.u32 %p0, %r0, 0;
  mov.u32 %r9, bar;
"""
COPY = "  cp.async.ca.shared.global [%r3], [%rd1], 4;\n"
OWN, OTHERS = "  ld.shared.b32 %r8, [%r3];\n", "  ld.shared.b32 %r8, [%r4];\n"
COMMIT, BARRIER = "  cp.async.commit_group;\n", "  bar.sync 0;\n"


def told(kernel: Kernel, *body: str, threads: int = 64) -> list[str]:
    """The messages of what is found; nothing but data that is touched too early may be."""
    text = kernel(START + "".join(body), 1, threads, SHARED)
    module = parse(text, "snippet.ptx")
    array = np.zeros(4096, dtype=np.uint32)
    outcome = run(module, module.kernels()[0], (2, 1, 1), [array], sanitize=COPIES)
    assert {fault.kind for fault in outcome.faults} <= {"arrival"}, outcome.faults
    assert outcome.is_complete
    return [fault.message for fault in outcome.faults]


def wait(pending: int) -> str:
    return f"  cp.async.wait_group {pending};\n"


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ((COPY, OWN), 1),
        ((COPY, COMMIT, wait(0), OWN), 0),
        ((COPY, wait(0), OWN), 1),
        ((COPY, COMMIT, wait(1), OWN), 1),
        ((COPY, COMMIT, COMMIT, wait(1), OWN), 0),
        ((COPY, "  cp.async.wait_all;\n", OWN), 0),
        # Others need a barrier, behind the wait.
        ((COPY, COMMIT, wait(0), OTHERS), 1),
        ((COPY, COMMIT, wait(0), BARRIER, OTHERS), 0),
        ((COPY, COMMIT, BARRIER, wait(0), OTHERS), 1),
        # What was written meanwhile would be overwritten by the copy.
        ((COPY, "  st.shared.b32 [%r3], 1;\n"), 1),
        ((COPY, COMMIT, COPY), 1),
        ((COPY, COMMIT, wait(0), COPY, COMMIT, wait(0), OWN), 0),
        # A second copy of the same thread is waited for by its own group.
        ((COPY, COMMIT, wait(0), COPY, COMMIT, wait(1), OWN), 1),
    ],
)
def test_copies_by_threads(kernel: Kernel, steps: tuple[str, ...], count: int) -> None:
    assert len(told(kernel, *steps)) == count


MADE = "  @%p0 mbarrier.init.shared.b64 [%r9], 64;\n" + BARRIER
ARRIVED = "  cp.async.mbarrier.arrive.noinc.shared.b64 [%r9];\n"
WAITED = """
w{0}:
  mbarrier.try_wait.parity.shared.b64 %p1, [%r9], {0};
  @!%p1 bra w{0};
"""


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ((MADE, COPY, ARRIVED, WAITED.format(0), OTHERS), 0),
        ((MADE, COPY, ARRIVED, OTHERS), 1),
        # What is copied behind the arrival is not waited for by it.
        ((MADE, ARRIVED, COPY, WAITED.format(0), OWN), 1),
        ((MADE, COPY, ARRIVED, WAITED.format(0), BARRIER, COPY, OWN), 1),
        ((MADE, COPY, ARRIVED, WAITED.format(0), COPY, ARRIVED, WAITED.format(1), OTHERS), 0),
    ],
)
def test_copies_that_an_mbarrier_hears_of(
    kernel: Kernel, steps: tuple[str, ...], count: int
) -> None:
    # A warp may go on to its next copy while another one still reads: that is no matter of arrival.
    assert len(told(kernel, *steps)) == count


ONE = "  @%p0 mbarrier.init.shared.b64 [%r9], 1;\n" + BARRIER
EXPECTED = "  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r9], {};\n"
BULK = """
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 256, [%r9];
"""
FENCE = "  fence.proxy.async;\n"


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ((ONE, EXPECTED.format(256), BULK, WAITED.format(0), OWN), 0),
        ((ONE, EXPECTED.format(256), BULK, OWN), 1),
        ((ONE, EXPECTED.format(256), BULK, BARRIER, OWN), 1),
        # One who waited may tell the others.
        ((ONE, EXPECTED.format(256), BULK, "  @!%p0 bra past;\n", WAITED.format(0), "past:\n",
          BARRIER, OWN), 0),
        # What was there must not be on its way to the async proxy still.
        ((ONE, "  st.shared.b32 [%r3], 1;\n", BARRIER, EXPECTED.format(256), BULK,
          WAITED.format(0), OWN), 1),
        ((ONE, "  st.shared.b32 [%r3], 1;\n", FENCE, BARRIER, EXPECTED.format(256), BULK,
          WAITED.format(0), OWN), 0),
        # The fence may be the reader's, too; one before the write is none.
        ((ONE, "  st.shared.b32 [%r3], 1;\n", BARRIER, FENCE, EXPECTED.format(256), BULK,
          WAITED.format(0), OWN), 0),
        ((ONE, FENCE, "  st.shared.b32 [%r3], 1;\n", BARRIER, EXPECTED.format(256), BULK,
          WAITED.format(0), OWN), 1),
    ],
)  # fmt: skip
def test_bulk_copies_into_shared_memory(kernel: Kernel, steps: tuple[str, ...], count: int) -> None:
    assert len(told(kernel, *steps)) == count


FILLED = "  st.shared.b32 [%r3], 1;\n" + FENCE + BARRIER
STORE = "  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 256;\n"
STORED = "  cp.async.bulk.commit_group;\n"
AGAIN = "  st.shared.b32 [%r3], 2;\n"


def read_by(pending: int, read: str = ".read") -> str:
    return f"  cp.async.bulk.wait_group{read} {pending};\n"


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ((FILLED, STORE, STORED, read_by(0), BARRIER, AGAIN), 0),
        ((FILLED, STORE, STORED, read_by(0, ""), BARRIER, AGAIN), 0),
        ((FILLED, STORE, STORED, BARRIER, AGAIN, read_by(0)), 1),
        ((FILLED, STORE, STORED, read_by(1), BARRIER, AGAIN, read_by(0)), 1),
        ((FILLED, STORE, read_by(0), BARRIER, AGAIN, STORED, read_by(0)), 1),
        # Reading it does no harm.
        ((FILLED, STORE, STORED, BARRIER, OWN, read_by(0)), 0),
        # Who leaves gives the memory to the next one.
        ((FILLED, STORE, STORED), 1),
        (("  st.shared.b32 [%r3], 1;\n", BARRIER, STORE, STORED, read_by(0)), 1),
    ],
)
def test_bulk_copies_out_of_shared_memory(
    kernel: Kernel, steps: tuple[str, ...], count: int
) -> None:
    # Both programs of the launch store the same there.
    assert len(told(kernel, *steps)) == count


def test_phases_that_are_complete_tell_of_no_later_one(kernel: Kernel) -> None:
    # Half of the bytes are expected: the phase ends with the first copy.
    second = BULK.replace("[%r1], [%rd0]", "[%r5], [%rd0]")
    body = ("  add.s32 %r5, %r1, 256;\n", ONE, EXPECTED.format(256), BULK, second, WAITED.format(0))
    assert told(kernel, *body, OWN) == []
    far = "  add.s32 %r6, %r3, 256;\n  ld.shared.b32 %r8, [%r6];\n"
    (message,) = told(kernel, *body, far)
    assert message.startswith("reads what `cp.async.bulk.")


def test_what_got_in_the_way_is_named(kernel: Kernel) -> None:
    text = kernel(START + COPY + OWN, 1, 64, SHARED)
    module = parse(text, "snippet.ptx")
    array = np.zeros(64, dtype=np.uint32)
    (fault,) = run(module, module.kernels()[0], (1, 1, 1), [array], sanitize=COPIES).faults
    assert (fault.instr.opcode, fault.lanes) == ("ld", 64)
    assert fault.origin is not None
    assert fault.origin.shape.mnemonic == "cp.async.ca.shared.global"
    assert "`cp.async.ca.shared.global`" in fault.message
