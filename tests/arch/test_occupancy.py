"""Occupancy: hand-computed answers, the CUDA driver's, the CUDA header's, and laws."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.arch import (
    ARCHS,
    RegisterStep,
    get,
    max_threads_per_cta,
    next_register_step,
    occupancy,
    register_steps,
)

KIB = 1024


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared", "ctas", "limiters"),
    [
        # 128 * 32 = 4096 a warp; 16384 // 4096 = 4 warps a partition, 16 an SM, 4 a CTA.
        ("sm_80", 128, 128, 0, 4, ("registers",)),
        # 129 rounds to 136: 4352 a warp; 3 warps a partition, 12 an SM.
        ("sm_80", 129, 128, 0, 3, ("registers",)),
        # 32 registers: 64 warps, and 64 warps per SM, both 16 CTAs of 4 warps.
        ("sm_80", 32, 128, 0, 16, ("registers", "warps")),
        # 40 registers: 1280 a warp, 12 a partition, 48 an SM.
        ("sm_80", 40, 128, 0, 12, ("registers",)),
        # 32-thread CTAs: 32 CTAs before 64 warps.
        ("sm_80", 16, 32, 0, 32, ("ctas",)),
        # 33 threads are two warps: 64 // 2.
        ("sm_80", 16, 33, 0, 32, ("warps", "ctas")),
        # 1536 threads: 48 warps // 32 = 1 although 2 x 1024 would fit elsewhere.
        ("sm_86", 32, 1024, 0, 1, ("warps",)),
        ("sm_80", 32, 1024, 0, 2, ("registers", "warps")),
        ("sm_86", 32, 512, 0, 3, ("warps",)),
        ("sm_86", 32, 64, 0, 16, ("ctas",)),
        ("sm_89", 32, 64, 0, 24, ("warps", "ctas")),
        # 100 KiB: 2 x (49 KiB + 1 KiB); one byte more no longer fits twice.
        ("sm_89", 32, 128, 49 * KIB, 2, ("shared",)),
        ("sm_89", 32, 128, 49 * KIB + 1, 1, ("shared",)),
        ("sm_89", 32, 128, 99 * KIB, 1, ("shared",)),
        ("sm_89", 32, 128, 99 * KIB + 1, 0, ("shared",)),
        ("sm_90", 32, 128, 227 * KIB, 1, ("shared",)),
        ("sm_90", 32, 128, 227 * KIB + 1, 0, ("shared",)),
        # 228 // 3 = 76 KiB, of which 1 is reserved.
        ("sm_90", 64, 128, 75 * KIB, 3, ("shared",)),
        ("sm_120", 32, 128, 99 * KIB, 1, ("shared",)),
        ("sm_120", 32, 128, 99 * KIB + 1, 0, ("shared",)),
        # Turing reserves nothing and allocates 256 bytes at a time.
        ("sm_75", 32, 128, 64 * KIB, 1, ("shared",)),
        ("sm_75", 32, 128, 32 * KIB, 2, ("shared",)),
        ("sm_75", 32, 128, 32 * KIB + 1, 1, ("shared",)),
        # 9300 rounds to 9472 in units of 256 (to 9344 in units of 128, which would fit 7 times).
        ("sm_75", 32, 128, 9300, 6, ("shared",)),
        # 9300 + 1024 rounds to 10368: 102400 // 10368.
        ("sm_86", 32, 128, 9300, 9, ("shared",)),
        ("sm_75", 64, 256, 0, 4, ("registers", "warps")),
        # 255 rounds to 256: 8192 a warp; 9 warps count as 12 in the launch check.
        ("sm_80", 255, 256, 0, 1, ("registers",)),
        ("sm_80", 255, 288, 0, 0, ("registers",)),
        # 168 * 32 = 5376; 12 warps are 64512, 13 count as 16.
        ("sm_90", 168, 384, 0, 1, ("registers",)),
        ("sm_90", 168, 416, 0, 0, ("registers",)),
        ("sm_80", 256, 32, 0, 0, ("registers",)),
        ("sm_80", 32, 1025, 0, 0, ("warps",)),
    ],
)
def test_known_answers(
    arch: str, registers: int, threads: int, shared: int, ctas: int, limiters: tuple[str, ...]
) -> None:
    result = occupancy(get(arch), registers, threads, shared)
    warps = -(-threads // 32)
    assert result.ctas_per_sm == ctas
    assert result.limiters == limiters
    assert result.limiter == limiters[0]
    assert result.warps_per_sm == ctas * warps
    assert result.fraction == ctas * warps / get(arch).warps_per_sm


def test_barriers_limit_from_hopper_on() -> None:
    assert occupancy(get("sm_90"), 16, 32, 0, barriers=16).ctas_per_sm == 4
    assert occupancy(get("sm_90"), 16, 32, 0, barriers=16).limiter == "barriers"
    assert occupancy(get("sm_80"), 16, 32, 0, barriers=16).ctas_per_sm == 32


@pytest.mark.parametrize(
    "counts", [(32, 0, 0, 0), (-1, 32, 0, 0), (32, 32, -1, 0), (32, 32, 0, -1)]
)
def test_impossible_counts_are_errors(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|cannot be negative"):
        occupancy(get("sm_80"), *counts)


def test_register_steps_by_hand() -> None:
    # sm_80, 128 threads: 4 warps a CTA, so the partition's warps are the CTAs: 512 // (r / 8)
    # rounded down over 16384 // (32 * r), up to 16 CTAs of 64 warps.
    assert register_steps(get("sm_80"), 128, 0) == (
        (255, 2),
        (168, 3),
        (128, 4),
        (96, 5),
        (80, 6),
        (72, 7),
        (64, 8),
        (56, 9),
        (48, 10),
        (40, 12),
        (32, 16),
    )
    # 512 threads: 16 warps; 1 CTA needs 4 warps a partition.
    assert register_steps(get("sm_80"), 512, 0) == ((128, 1), (64, 2), (40, 3), (32, 4))


def test_next_register_step_by_hand() -> None:
    sm_80 = get("sm_80")
    assert next_register_step(sm_80, 128, 0, 130) == RegisterStep(128, 4)
    assert next_register_step(sm_80, 128, 0, 128) == RegisterStep(96, 5)
    assert next_register_step(sm_80, 512, 0, 255) == RegisterStep(128, 1)
    assert next_register_step(sm_80, 128, 0, 32) is None
    # Two CTAs by shared memory: fewer registers cannot help.
    assert next_register_step(sm_80, 128, 80 * KIB, 128) is None


def test_driver_attributes_of_sm_90() -> None:
    recorded = _recorded()["attributes"]
    arch = get("sm_90")
    assert arch.compute_capability == (recorded["cc_major"], recorded["cc_minor"])
    assert arch.cta_limit == (recorded["block_x"], recorded["block_y"], recorded["block_z"])
    assert arch.grid_limit == (recorded["grid_x"], recorded["grid_y"], recorded["grid_z"])
    same_name = set(recorded) & set(arch._fields)
    assert len(same_name) == 10
    assert {name: getattr(arch, name) for name in same_name} == {
        name: recorded[name] for name in same_name
    }


def test_driver_answers_of_sm_90() -> None:
    recorded = _recorded()
    arch = get("sm_90")
    compared = 0
    for kernel in recorded["kernels"]:
        assert max_threads_per_cta(arch, kernel["registers"]) == kernel["max_threads"]
        for threads, row in zip(recorded["threads"], kernel["ctas"], strict=True):
            for shared, expected in zip(recorded["shared"], row, strict=True):
                result = occupancy(
                    arch,
                    kernel["registers"],
                    threads,
                    kernel["static_shared"] + shared,
                    kernel["barriers"],
                )
                assert result.ctas_per_sm == expected, (kernel["registers"], threads, shared)
                compared += 1
    assert compared == 20832


_HARNESS = """
#include <stdio.h>
#include <string.h>
#include <stdint.h>
#include <limits.h>
#include "cuda_occupancy.h"
int main(void) {
    long major, minor, warps, regs_sm, regs_cta, shared_sm, optin, reserved;
    long registers, threads, shared, barriers;
    while (scanf("%ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld", &major, &minor, &warps,
                 &regs_sm, &regs_cta, &shared_sm, &optin, &reserved, &registers, &threads,
                 &shared, &barriers) == 12) {
        cudaOccDeviceProp device; cudaOccFuncAttributes kernel;
        cudaOccDeviceState state; cudaOccResult result;
        memset(&device, 0, sizeof device); memset(&kernel, 0, sizeof kernel);
        memset(&state, 0, sizeof state); memset(&result, 0, sizeof result);
        device.computeMajor = (int)major; device.computeMinor = (int)minor;
        device.maxThreadsPerBlock = 1024; device.warpSize = 32; device.numSms = 1;
        device.maxThreadsPerMultiprocessor = (int)warps * 32;
        device.regsPerBlock = (int)regs_cta; device.regsPerMultiprocessor = (int)regs_sm;
        device.sharedMemPerBlock = 49152; device.sharedMemPerBlockOptin = (size_t)optin;
        device.sharedMemPerMultiprocessor = (size_t)shared_sm;
        device.reservedSharedMemPerBlock = (size_t)reserved;
        kernel.maxThreadsPerBlock = 1024; kernel.numRegs = (int)registers;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = (size_t)optin;
        kernel.numBlockBarriers = (int)barriers;
        state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
        cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &kernel, &state, (int)threads, (size_t)shared);
        printf("%d\\n", error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1);
    }
    return 0;
}
"""


def test_header_of_the_cuda_toolkit_agrees(tmp_path: Path, cuda_include: Path) -> None:
    """Every architecture against the CUDA toolkit's own calculator, compiled."""
    harness = _compiled_harness(tmp_path, cuda_include)
    cases = [
        (arch, registers, threads, shared, barriers)
        for arch in ARCHS.values()
        for registers in (0, 1, 24, 32, 33, 40, 56, 64, 65, 80, 96, 128, 129, 168, 200, 255)
        for threads in (1, 32, 64, 96, 128, 160, 256, 288, 384, 512, 640, 1024, 1025)
        for shared in (0, 1, 1000, 8192, 9300, 24576, 32768, 49152, 50176, 66000, 101376, 101377)
        for barriers in (0, 1, 2, 16)
        # The header of CUDA 13.1 gives 10.3 twice the barriers that the one of 13.5 gives it.
        if not (barriers and arch.name == "sm_103")
    ]
    lines = [
        f"{a.compute_capability[0]} {a.compute_capability[1]} {a.warps_per_sm} "
        f"{a.registers_per_sm} {a.registers_per_cta} {a.shared_per_sm} {a.shared_optin_limit} "
        f"{a.shared_reserved_per_cta} {r} {t} {s} {b}"
        for a, r, t, s, b in cases
    ]
    done = subprocess.run([harness], input="\n".join(lines), capture_output=True, text=True)
    answers = list(map(int, done.stdout.split()))
    assert len(answers) == len(cases)
    differing = [
        (a.name, r, t, s, b, expected)
        for (a, r, t, s, b), expected in zip(cases, answers, strict=True)
        if occupancy(a, r, t, s, b).ctas_per_sm != expected
    ]
    assert not differing, differing[:5]


_archs = st.sampled_from(list(ARCHS.values()))
_registers = st.integers(1, 255)
_threads = st.integers(1, 1024)
_shared = st.integers(0, 240 * KIB)


@settings(derandomize=True)
@given(_archs, _registers, _registers, _threads, _shared)
def test_more_registers_never_fit_more(arch, one, other, threads, shared) -> None:  # type: ignore[no-untyped-def]
    fewer, more = sorted((one, other))
    assert (
        occupancy(arch, more, threads, shared).ctas_per_sm
        <= occupancy(arch, fewer, threads, shared).ctas_per_sm
    )


@settings(derandomize=True)
@given(_archs, _registers, _threads, _shared, _shared)
def test_more_shared_memory_never_fits_more(arch, registers, threads, one, other) -> None:  # type: ignore[no-untyped-def]
    fewer, more = sorted((one, other))
    assert (
        occupancy(arch, registers, threads, more).ctas_per_sm
        <= occupancy(arch, registers, threads, fewer).ctas_per_sm
    )


@settings(derandomize=True)
@given(_archs, _registers, _threads, _shared)
def test_resident_ctas_fit_the_sm(arch, registers, threads, shared) -> None:  # type: ignore[no-untyped-def]
    result = occupancy(arch, registers, threads, shared)
    resident = result.ctas_per_sm
    assert result.warps_per_sm <= arch.warps_per_sm
    assert result.warps_per_sm * 32 * registers <= arch.registers_per_sm
    assert resident * (shared + arch.shared_reserved_per_cta) <= arch.shared_per_sm
    assert 0.0 <= result.fraction <= 1.0
    assert all(getattr(result.limits, name) == resident for name in result.limiters)


@settings(derandomize=True)
@given(_archs, _registers, _threads, _shared)
def test_next_step_is_the_largest_that_helps(arch, registers, threads, shared) -> None:  # type: ignore[no-untyped-def]
    """Against a search over every register count."""
    current = occupancy(arch, registers, threads, shared).ctas_per_sm
    better = [
        count
        for count in range(1, registers)
        if occupancy(arch, count, threads, shared).ctas_per_sm > current
    ]
    step = next_register_step(arch, threads, shared, registers)
    if not better:
        assert step is None
    else:
        largest = max(better)
        assert step == (largest, occupancy(arch, largest, threads, shared).ctas_per_sm)


@settings(derandomize=True)
@given(_archs, _threads, _shared)
def test_steps_are_where_the_ctas_change(arch, threads, shared) -> None:  # type: ignore[no-untyped-def]
    """Against the largest count per number of CTAs, by search."""
    largest: dict[int, int] = {}
    for count in range(1, 256):
        largest[occupancy(arch, count, threads, shared).ctas_per_sm] = count
    largest.pop(0, None)
    expected = sorted(((count, ctas) for ctas, count in largest.items()), reverse=True)
    assert list(register_steps(arch, threads, shared)) == expected


def _recorded():  # type: ignore[no-untyped-def]
    return json.loads((Path(__file__).parent / "data" / "occupancy_sm_90.json").read_text())


def _compiled_harness(tmp_path: Path, include: Path) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, program = tmp_path / "harness.c", tmp_path / "harness"
    source.write_text(_HARNESS)
    subprocess.run(
        [compiler, "-I", str(include), str(source), "-o", str(program)],
        check=True,
        capture_output=True,
    )
    return str(program)
