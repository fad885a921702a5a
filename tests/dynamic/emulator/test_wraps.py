"""Integers that wrapped: told where an address is not what was computed, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.labels.wraps import exact
from ptxlint.dynamic.emulator.labels.wraps.exact import Excess, Number
from ptxlint.dynamic.emulator.run import Outcome
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import emulated  # noqa: E402

Kernel = Callable[..., str]
Run = Callable[..., Outcome]
WATCHED = Sanitize(overflow=True)

START = """
  .shared .align 16 .b8 tile[1024];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  ld.param.u64 %rd0, [k_param_0];
  ld.global.u32 %r2, [%rd0];
  ld.global.u32 %r3, [%rd0+4];
  ld.global.u32 %r4, [%rd0+8];
  ld.global.u64 %rd2, [%rd0+16];
  ld.global.u64 %rd3, [%rd0+24];
"""
GIVEN = np.array([524_288, 4096, 0xFFFFFFFC, 0, 0, 1 << 30, 0, 1 << 31], dtype=np.uint32)
"""%r2, %r3 (their product is 2^31), %r4 (-4), %rd2 (2^62) and %rd3 (2^63, or -2^63)."""
SIGNED = "\n  mul.wide.s32 %rd8, %r10, 4; add.s64 %rd9, %rd0, %rd8; ld.global.b32 %r20, [%rd9];"
UNSIGNED = "\n  mul.wide.u32 %rd8, %r10, 4; add.s64 %rd9, %rd0, %rd8; ld.global.b32 %r20, [%rd9];"
WIDE = "\n  add.s64 %rd9, %rd0, %rd10; ld.global.b32 %r20, [%rd9];"
SHARED = "\n  st.shared.b32 [%r10], %r0;"


def told(run: Run, text: str) -> list[Fault]:
    """What is told of wraps in a run of kernel `k`; where else it goes does not matter."""
    found = run(text, [GIVEN.copy()], sanitize=WATCHED)
    assert found.is_complete
    return [fault for fault in found.faults if fault.kind == "wrapped"]


WRONG = {
    "product": ("mul.lo.s32 %r10, %r2, %r3;" + SIGNED, 2**31),
    "product and sum": ("mad.lo.s32 %r10, %r2, %r3, 7;" + SIGNED, 2**31 + 7),
    "sum": ("add.s32 %r10, %r2, 2147483647;" + SIGNED, 2**31 + 524_287),
    "difference": (
        "mov.u32 %r9, -2147483648; sub.s32 %r10, %r9, %r2;" + SIGNED, -(2**31) - 524_288,
    ),
    "shift": ("shl.b32 %r10, %r2, 12;" + SIGNED, 2**31),
    "negative": ("mov.u32 %r9, -2147483648; neg.s32 %r10, %r9;" + SIGNED, 2**31),
    "unsigned product": ("shl.b32 %r9, %r2, 1; mul.lo.u32 %r10, %r9, %r3;" + UNSIGNED, 2**32),
    "unsigned difference": ("sub.u32 %r10, %r3, %r2;" + UNSIGNED, 4096 - 524_288),
    "sum by or": ("shl.b32 %r9, %r2, 12; or.b32 %r10, %r9, 5;" + SIGNED, 2**31 + 5),
    "other width": (
        "mul.lo.s32 %r9, %r2, %r3; cvt.s64.s32 %rd7, %r9; shl.b64 %rd10, %rd7, 2;" + WIDE, 2**33,
    ),
    "half": ("mul.lo.s32 %r9, %r2, %r3; shr.s32 %r10, %r9, 1;" + SIGNED, 2**30),
    "quotient": ("mul.lo.s32 %r9, %r2, %r3; div.s32 %r10, %r9, %r3;" + SIGNED, 524_288),
    "quotient by a power of two": (
        "mul.lo.s32 %r9, %r2, %r3; shr.s32 %r8, %r9, 31; shr.u32 %r8, %r8, 20;"
        "add.s32 %r8, %r9, %r8; shr.s32 %r10, %r8, 12;" + SIGNED, 524_288,
    ),
    "minimum": ("mul.lo.s32 %r9, %r2, %r3; min.s32 %r10, %r9, 100;" + SIGNED, 100),
    "chosen": (
        "mul.lo.s32 %r9, %r2, %r3; setp.eq.u32 %p1, %r3, 4096; selp.b32 %r10, %r9, 0, %p1;"
        + SIGNED, 2**31,
    ),
    "another lane's": (
        "mul.lo.s32 %r9, %r2, %r3; shfl.sync.idx.b32 %r10, %r9, 3, 31, -1;" + SIGNED, 2**31,
    ),
    "under a guard": (
        "mov.u32 %r10, 0; setp.gt.u32 %p1, %r0, 4; @%p1 mul.lo.s32 %r10, %r2, %r3;" + SIGNED, 2**31,
    ),
    "product and sum in 64": (
        "mul.lo.s32 %r9, %r2, %r3; mad.wide.s32 %rd10, %r9, 4, %rd2;" + WIDE, 2**33 + 2**62,
    ),
    "sum of 64": ("add.s64 %rd10, %rd3, %rd3;" + WIDE, -(2**64)),
    "difference of 64": ("sub.s64 %rd10, %rd3, %rd2;" + WIDE, -(2**62) - 2**63),
    "product of 64": ("mul.lo.s64 %rd10, %rd2, 8;" + WIDE, 2**65),
    "product and sum of 64": ("mad.lo.s64 %rd10, %rd2, 5, 1;" + WIDE, 5 * 2**62 + 1),
    "shift of 64": ("shl.b64 %rd10, %rd2, 3;" + WIDE, 2**65),
    "shortened": (
        "mul.wide.u32 %rd7, %r2, 65536; add.s64 %rd7, %rd7, 4; cvt.u32.u64 %r10, %rd7;" + UNSIGNED,
        2**35 + 4,
    ),
    "shared address": (
        "mul.lo.u32 %r9, %r3, 1048577; mad.lo.u32 %r10, %r0, 4, %r9; add.u32 %r10, %r10, %r1;"
        + SHARED, 4096 * 1048577,
    ),
}  # fmt: skip
"""What wraps, and what the index comes to in the first lane that is told, times its scale."""


@pytest.mark.parametrize("case", WRONG)
def test_an_address_that_was_computed_otherwise_is_told(
    kernel: Kernel, outcome: Run, case: str
) -> None:
    body, number = WRONG[case]
    (found,) = told(outcome, kernel(START + body, 1, 32))
    base = 0
    if body.endswith(WIDE):
        base = found.values["exact"] - number
    elif not body.endswith(SHARED):
        base = found.values["exact"] - 4 * number
    if body.endswith(SHARED):
        # The tile lies at the start of shared memory.
        assert found.values["exact"] == number
    else:
        # What is left is the address of the array.
        assert 2**32 <= base < 2**33, hex(base)
    assert found.values["exact"] != found.values["value"]
    assert found.tid == ((5, 0, 0) if case == "under a guard" else (0, 0, 0))
    assert f"would be {found.values['exact']:,} if nothing had wrapped" in found.message
    assert found.origin is not None
    assert f"`{found.origin.shape.mnemonic}` of " in found.message


def test_the_numbers_that_wrapped_are_told(kernel: Kernel, outcome: Run) -> None:
    (found,) = told(outcome, kernel(START + WRONG["product"][0], 1, 32))
    assert (
        "`mul.lo.s32` of 524,288 and 4,096 comes to 2,147,483,648, which a signed 32-bit "
        "word does not hold (program (0, 0, 0), thread 0)"
    ) in found.message
    assert found.lanes == 32


HARMLESS = {
    "out and back": "mad.lo.s32 %r9, %r2, %r3, 7; sub.s32 %r10, %r9, 2147483647;" + SIGNED,
    "as it just fits": "mad.lo.s32 %r10, %r2, %r3, -1;" + SIGNED,
    "a mask": "mul.lo.s32 %r9, %r2, -1640531535; and.b32 %r10, %r9, 7;" + SIGNED,
    "a remainder": "mul.lo.s32 %r9, %r2, -1640531535; rem.u32 %r10, %r9, 7;" + SIGNED,
    "an upper half": "mul.lo.s32 %r9, %r2, -1640531535; mul.hi.u32 %r10, %r9, 7;" + SIGNED,
    "upper bits": "mul.lo.s32 %r9, %r2, -1640531535; shr.u32 %r10, %r9, 29;" + SIGNED,
    "a hash": (
        "mul.lo.s32 %r9, %r2, -1640531535; shr.u32 %r8, %r9, 15; xor.b32 %r9, %r9, %r8;"
        "and.b32 %r10, %r9, 7;" + SIGNED
    ),
    "a remainder by products": (
        "mul.lo.s32 %r9, %r2, -1640531535; mul.hi.u32 %r8, %r9, 613566757; sub.s32 %r7, %r9, %r8;"
        "shr.u32 %r7, %r7, 1; add.s32 %r7, %r7, %r8; shr.u32 %r7, %r7, 2; mul.lo.s32 %r7, %r7, 7;"
        "sub.s32 %r10, %r9, %r7;" + SIGNED
    ),
    "a remainder by a quotient": (
        "mul.lo.s32 %r9, %r2, -1640531535; div.u32 %r8, %r9, 7; mad.lo.s32 %r10, %r8, -7, %r9;"
        + UNSIGNED
    ),
    "a remainder by a mask": (
        "mul.lo.s32 %r9, %r2, -1640531535; shr.s32 %r8, %r9, 31; shr.u32 %r8, %r8, 29;"
        "add.s32 %r8, %r9, %r8; and.b32 %r8, %r8, -8; sub.s32 %r10, %r9, %r8;" + SIGNED
    ),
    "a remainder by shifts": (
        "mul.lo.s32 %r9, %r2, -1640531535; shr.u32 %r8, %r9, 3; shl.b32 %r8, %r8, 3;"
        "sub.s32 %r10, %r9, %r8;" + SIGNED
    ),
    "a comparison": (
        "sub.u32 %r9, %r3, %r2; setp.lt.u32 %p1, %r9, 100; selp.b32 %r10, 4, 8, %p1;" + SIGNED
    ),
    "a negative offset": "add.s32 %r10, %r3, %r4; sub.s32 %r10, %r10, 4092;" + SIGNED,
    "a negative index": "mov.u32 %r10, %r4;" + SIGNED,
    "a negative index, read as what it is": "add.s32 %r10, %r3, %r4;" + UNSIGNED,
    "a large index": "mul.lo.s32 %r9, %r2, %r3; add.s32 %r10, %r9, 5;" + UNSIGNED,
    "a large index and a literal": "add.s32 %r10, %r4, -4;" + UNSIGNED,
    "the ones' complement": "sub.s32 %r9, -1, %r3; add.s32 %r10, %r9, 4097;" + SIGNED,
    "under a guard that does not hold": (
        "mul.lo.s32 %r10, %r2, %r3; mul.wide.s32 %rd8, %r10, 4; add.s64 %rd9, %rd0, %rd8;"
        "setp.gt.u32 %p1, %r0, 99; @%p1 ld.global.b32 %r20, [%rd9];"
    ),
    "what is stored": "mul.lo.s32 %r10, %r2, %r3; st.global.b32 [%rd0], %r10;",
    "written anew": "mul.lo.s32 %r10, %r2, %r3; mov.u32 %r10, 3;" + SIGNED,
    "written anew in its lanes": (
        "setp.gt.u32 %p1, %r0, 4; @%p1 mul.lo.s32 %r10, %r2, %r3; @%p1 mov.u32 %r10, 3;"
        "@!%p1 mov.u32 %r10, 4;" + SIGNED
    ),
    "clamped by itself": (
        "mul.lo.s32 %r9, %r2, %r3; max.s32 %r10, %r9, 5; min.s32 %r10, %r4, 7;" + SIGNED
    ),
    "two words in one": (
        "cvt.u64.u32 %rd7, %r2; shl.b64 %rd7, %rd7, 32; or.b64 %rd7, %rd7, 12;"
        "cvt.u32.u64 %r10, %rd7;" + SIGNED
    ),
    "two words apart": "mov.b64 {%r10, %r11}, %rd3;" + SIGNED,
    "a loaded word, shortened": "cvt.u32.u64 %r10, %rd2;" + SIGNED,
    "an address beyond the signed numbers": "neg.s64 %rd10, %rd3;" + WIDE,
    "a wide product and a literal": "mad.wide.u32 %rd10, %r3, 4, -4294967296;" + WIDE,
    "64 bits that fit": "sub.s64 %rd7, %rd2, 1; add.s64 %rd10, %rd7, %rd2;" + WIDE,
    "a shared address and a negative step": (
        "mad.lo.s32 %r10, %r0, 4, %r1; add.s32 %r10, %r10, %r4;"
        "\n  st.shared.b32 [%r10+4], %r0;"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HARMLESS)
def test_what_is_meant_is_not_told(kernel: Kernel, outcome: Run, case: str) -> None:
    assert told(outcome, kernel(START + HARMLESS[case], 1, 32)) == []


def test_what_wraps_there_and_back_in_64_bits_is_exact(kernel: Kernel, outcome: Run) -> None:
    there = "shl.b64 %rd7, %rd2, 2; add.s64 %rd10, %rd7, 8;"
    back = "sub.s64 %rd10, %rd10, %rd2;"
    assert len(told(outcome, kernel(START + there + back * 3 + WIDE, 1, 32))) == 0
    # 2^63 and the array's address are an address still, and 2^64 is none.
    assert len(told(outcome, kernel(START + there + back * 2 + WIDE, 1, 32))) == 0
    assert len(told(outcome, kernel(START + there + WIDE, 1, 32))) == 1


def test_a_number_that_came_back_in_some_lanes_is_told_in_the_others(
    kernel: Kernel, outcome: Run
) -> None:
    body = "mul.lo.s32 %r9, %r2, %r3; sub.s32 %r10, %r9, %r0;" + SIGNED
    (found,) = told(outcome, kernel(START + body, 1, 32))
    # 2^31 - 1 fits.
    assert (found.tid, found.lanes) == ((0, 0, 0), 1)


# What operations come to ----------------------------------------------------------------------
def numbers(random: np.random.Generator, width: int) -> tuple[Number, list[int]]:
    """Numbers at the ends of words, with what they lack, and what they are exactly."""
    ends = [0, 1, (1 << (width - 1)) - 1, 1 << (width - 1), (1 << width) - 1]
    words = [(int(random.choice([0, 1, 2, 3, 4])), int(random.integers(-9, 10))) for _ in range(64)]
    held = np.array([[(ends[at] + more) % (1 << width) for at, more in words]], dtype=np.uint64)
    word = held.astype(np.dtype(f"u{width // 8}"))
    signed = word.view(np.dtype(f"i{width // 8}"))[0]
    if width == 32:
        lack = random.integers(-5, 6, (2, 1, 64)) << 32
        excess = Excess(lack[0], lack[1])
        return Number(word, excess), [
            int(a) + int(b) for a, b in zip(signed, lack[0, 0], strict=True)
        ]
    lack = random.integers(-5, 6, (2, 1, 64))
    excess = Excess(lack[0] << 32, lack[1])
    return Number(word, excess), [
        int(a) + (int(b) << 32) + (int(c) << 64)
        for a, b, c in zip(signed, lack[0, 0], lack[1, 0], strict=True)
    ]


@pytest.mark.parametrize(
    ("made", "meant"),
    [
        (exact.total, lambda a, b: a + b),
        (exact.difference, lambda a, b: a - b),
        (exact.product, lambda a, b: a * b),
    ],
)
def test_what_64_bits_lack_is_exact(made: Any, meant: Any) -> None:
    random = np.random.default_rng(0)
    (a, x), (b, y) = numbers(random, 64), numbers(random, 64)
    if made is exact.product:
        # Of products of what is lacking the upper bits are not kept.
        a, b = a._replace(excess=None), b._replace(excess=None)
        x, y = a.held[0].tolist(), b.held[0].tolist()
    with np.errstate(all="ignore"):
        found, held = made(a, b), meant(a.held, b.held)
    assert found is not None
    first, second = (np.broadcast_to(part, (1, 64))[0] for part in found)
    for at in range(64):
        got = int(held[0, at]) + int(first[at]) + (int(second[at]) << 64)
        assert got == meant(x[at], y[at])


@pytest.mark.parametrize("compute", [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b])
def test_what_32_bits_lack_is_exact(compute: Any) -> None:
    random = np.random.default_rng(1)
    (a, x), (b, y) = numbers(random, 32), numbers(random, 32)
    with np.errstate(all="ignore"):
        result = compute(a.word, b.word)
        found = exact.narrow(compute, [a, b], result)
    assert found is not None
    for at in range(64):
        want = compute(x[at], y[at])
        got = int(result.view(np.int32)[0, at]) + int(found.first[0, at])
        assert (got - want) % (1 << 64) == 0


# Fixtures -------------------------------------------------------------------------------------
QUICK = ("softmax", "matmul_dot_fp16", "cross_entropy_fwd", "wrapped_matmul", "rope", "flash_fwd")
RIGHT = [
    pytest.param(arch, name, marks=[] if name in QUICK else [pytest.mark.slow])
    for arch in ("sm_80", "sm_90")
    for name in emulated.names(arch)
]


@pytest.mark.parametrize(("arch", "name"), RIGHT)
def test_no_index_of_a_small_launch_wraps(arch: str, name: str) -> None:
    build = emulated.build(name, arch)
    sizes = next(iter(build.reference.sizes(build.constants)))
    assert emulated.hold(build, sizes, sanitize=WATCHED).faults == []
