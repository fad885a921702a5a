"""Accesses that are settled by running the threads of CTAs that matter."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any

import pytest

from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_cache import load_metadata
from ptxlint.launch.binding import bind
from ptxlint.launch.exact import Settled, earliest, settle
from ptxlint.launch.under import UnderLaunch
from ptxlint.launch.walk import Thread, Walk
from ptxlint.launches import Argument, Launch, Scalar, Tensor


def load(name: str) -> ModuleType:
    """A module beside this file; tests are no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"exact_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


threads = load("test_against_threads")

STEPS = 100_000
"""Instructions that one thread is followed for."""
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u32 n, .param .u32 m)
    .reqntid 128
{
.reg .pred %p<6>;
.reg .b16 %rs<6>;
.reg .b32 %r<20>;
.reg .b64 %rd<12>;
ld.param.u64 %rd1, [x];
ld.param.u32 %r1, [n];
ld.param.u32 %r2, [m];
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %tid.x;
shl.b32 %r5, %r3, 7;
add.s32 %r6, %r5, %r4;
"""
STORE = """mul.wide.s32 %rd2, %r7, 4;
add.s64 %rd3, %rd1, %rd2;
"""


def under(
    body: str, elements: int, grid: int = 4, n: int = 0, m: int = 0, alignment: int = 16
) -> UnderLaunch:
    """A kernel on a tensor of so many 32-bit elements."""
    text = HEAD + body + "\nret;\n}\n"
    module = parse(text, "k.ptx")
    assert not module.problems, module.problems
    kernel = module.kernels()[0]
    arguments: dict[str, Argument] = {
        "x": Tensor("float32", (elements,), (1,), 0, 4 * elements, alignment=alignment),
        "n": Scalar("u32", n),
        "m": Scalar("u32", m),
    }
    launch = Launch((grid, 1, 1), (128, 1, 1), arguments)
    return UnderLaunch(Facts(module, kernel), bind(kernel, launch, {}))


def settled(body: str, elements: int, **launch: int) -> Settled:
    """What becomes of the only access, as if nothing was proved of it."""
    found = under(body, elements, **launch)
    (judged,) = found.judged
    judged = judged._replace(below=False, above=False, aligned=False, never="", reason="open")
    return settle(found, [judged])[0]


def shown(body: str, elements: int, **launch: int) -> tuple[str, Any, Any, int]:
    """The witness: what it shows, CTA, thread and offset in bytes."""
    found = settled(body, elements, **launch)
    assert found.witness is not None
    kind, (ctaid, tid), offset, *_ = found.witness
    return kind, ctaid, tid, offset


def is_proved(found: Settled) -> bool:
    """True if nothing is left open."""
    return found.witness is None and found.judged.is_inside and not found.judged.reason


PLAIN = "mov.u32 %r7, %r6;\n" + STORE + "st.global.b32 [%rd3], %r4;"
GUARDED = (
    "setp.lt.s32 %p1, %r6, %r1;\nmov.u32 %r7, %r6;\n" + STORE + "@%p1 st.global.b32 [%rd3], %r4;"
)


def test_whole_grids_are_proved_or_refuted() -> None:
    assert is_proved(settled(PLAIN, 512))
    assert shown(PLAIN, 511) == ("above", (3, 0, 0), (127, 0, 0), 4 * 511)
    assert is_proved(settled(GUARDED, 300, n=300))
    assert shown(GUARDED, 300, n=301) == ("above", (2, 0, 0), (44, 0, 0), 4 * 300)


def test_an_access_in_no_thread_is_dead() -> None:
    found = settled(GUARDED, 0, n=0)
    assert is_proved(found)
    assert found.judged.never == "launch"


def test_large_grids_are_searched_and_never_proved() -> None:
    """The first CTA that is wrong is in the middle of a large grid."""
    elements = 128 * 500_000 + 5
    grid = 10_000_000
    found = settled(GUARDED, elements, grid=grid, n=elements)
    assert found.witness is None
    assert not is_proved(found)
    kind, ctaid, tid, offset = shown(GUARDED, elements, grid=grid, n=elements + 1)
    assert (kind, ctaid, tid, offset) == ("above", (500_000, 0, 0), (5, 0, 0), 4 * elements)


def test_a_witness_is_taken_where_it_begins() -> None:
    """Given the last CTA of a billion, the first one that is wrong."""
    for elements, first in ((128 * 77_777 + 5, 77_777), (0, 0), (128 * 3, 3)):
        found = under(PLAIN, elements, grid=16_000_000)
        judged = found.judged[0]._replace(below=False, above=False)
        (_, witness) = settle(found, [judged])[0]
        assert witness is not None
        last = witness._replace(thread=Thread((15_999_999, 0, 0), (0, 0, 0)))
        moved = earliest(found, judged, last)
        assert moved.kind == "above"
        assert moved.thread.ctaid == (first, 0, 0)
        assert moved.thread.tid == (elements - 128 * first, 0, 0)
        assert moved.offset == 4 * elements


def test_the_cost_does_not_depend_on_the_grid() -> None:
    def seconds(grid: int) -> float:
        found = under(GUARDED, 5000, grid=grid, n=5000)
        judged = found.judged[0]._replace(above=False, reason="open")
        best = 1e9
        for _ in range(5):
            start = process_time()
            settle(found, [judged])
            best = min(best, process_time() - start)
        return best

    few, many = seconds(10_000), seconds(1_000_000_000)
    assert many < 4 * few + 0.01


def test_what_comes_from_memory_shows_nothing() -> None:
    loaded = "ld.shared.u32 %r7, [%r4];\n" + STORE + "st.global.b32 [%rd3], %r4;"
    found = settled(loaded, 1)
    assert found.witness is None
    assert not is_proved(found)


def test_a_masked_load_is_known_where_it_is_not_loaded() -> None:
    """Only lanes whose index is not loaded take part in the store."""
    body = (
        "setp.lt.s32 %p1, %r4, 64;\nmov.u32 %r7, 1000;\n@%p1 ld.shared.u32 %r7, [%r4];\n"
        + STORE
        + "@!%p1 st.global.b32 [%rd3], %r4;"
    )
    assert is_proved(settled(body, 1001))
    assert shown(body, 1000) == ("above", (0, 0, 0), (64, 0, 0), 4000)


def test_a_branch_that_memory_decides_is_passed_if_it_matters_not() -> None:
    body = """ld.shared.u32 %r8, [%r4];
setp.eq.u32 %p2, %r8, 0;
@%p2 bra SKIP;
add.s32 %r9, %r8, 1;
SKIP:
"""
    assert is_proved(settled(body + PLAIN, 512))
    assert shown(body + PLAIN, 511)[1:3] == ((3, 0, 0), (127, 0, 0))
    behind = body.replace("SKIP:\n", "") + PLAIN + "\nSKIP:"
    found = settled(behind, 511)
    assert found.witness is None
    assert not is_proved(found)


LOOP = """mov.u32 %r7, %r4;
mov.u32 %r8, 0;
LOOP:
mul.wide.s32 %rd2, %r7, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.b32 [%rd3], %r4;
add.s32 %r7, %r7, 128;
add.s32 %r8, %r8, 1;
setp.lt.s32 %p1, %r8, %r1;
@%p1 bra LOOP;"""


def test_loops_run_for_as_many_rounds_as_they_have() -> None:
    assert is_proved(settled(LOOP, 128 * 9, n=9))
    assert shown(LOOP, 128 * 9, n=10) == ("above", (0, 0, 0), (0, 0, 0), 4 * 128 * 9)


def test_loops_of_different_rounds_by_thread() -> None:
    """Each thread goes round as often as its number says."""
    body = LOOP.replace("%r8, %r1;", "%r8, %r4;")
    last = 127 + 128 * 126
    assert is_proved(settled(body, last + 1))
    assert shown(body, last) == ("above", (0, 0, 0), (127, 0, 0), 4 * last)


def test_an_endless_loop_ends() -> None:
    """There are as many rounds as the budget allows; then the answer is open."""
    body = LOOP.replace("add.s32 %r7, %r7, 128;\n", "").replace("setp.lt.s32", "setp.ge.s32")
    found = settled(body, 128, n=0)
    assert found.witness is None
    assert not is_proved(found)


def test_words_wrap() -> None:
    """4 * 2^30 is 0 in 32 bits: the address is inside, the number does not fit."""
    body = "mul.lo.s32 %r7, %r6, %r1;\n" + STORE + "st.global.b32 [%rd3], %r4;"
    found = settled(body, 1 << 31, n=1 << 24, grid=2)
    assert found.witness is not None
    assert found.witness.kind == "overflow"
    assert found.witness.value == 128 << 24


def test_a_wrap_that_no_lane_makes_is_proved_away() -> None:
    """Only threads below 4 take the product further."""
    body = (
        "setp.lt.s32 %p1, %r4, 4;\nand.b32 %r10, %r4, 3;\nmul.lo.s32 %r8, %r10, %r1;\n"
        "mov.u32 %r7, %r8;\n" + STORE + "@%p1 st.global.b32 [%rd3], %r4;"
    )
    assert is_proved(settled(body, 3 * (1 << 20) + 1, n=1 << 20))


@pytest.mark.parametrize("name", threads.small_kernels())
def test_polynomials_lanes_and_threads_agree(name: str) -> None:
    """Under random launches: what is proved by polynomials no lane denies, and what lanes show or
    prove holds in threads that are run one by one."""
    hold_to_threads(name, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", threads.small_kernels())
def test_they_agree_under_many_launches(name: str) -> None:
    for seed in range(1, 30):
        hold_to_threads(name, seed)


def hold_to_threads(name: str, seed: int) -> None:
    """Three ways to look at all accesses of a kernel under a random launch."""
    path = threads.FIXTURES / f"{name}.ptx"
    module = parse(path.read_text(encoding="utf-8"), str(path))
    source = random.Random(f"{name} exact {seed}")
    for kernel in module.kernels():
        facts = Facts(module, kernel, None, load_metadata(str(path)))
        launch = threads.random_launch(kernel, source)
        found = UnderLaunch(facts, bind(kernel, launch, {}, facts.metadata))
        before = [j for j in found.judged if j.never != "compiled"]
        blank = [
            j._replace(below=False, above=False, aligned=False, never="", reason="?")
            for j in before
        ]
        anew = settle(found, blank)
        walk = Walk(found.ssa, found.bound)
        for judged, (_, witness) in zip(before, anew, strict=True):
            if witness is not None:
                assert judged.reason or judged.wraps, (judged, witness)
                check_witness(walk, judged, witness)
        # What is proved now is held to threads as what was proved before is.
        found.judged = [judged for judged, witness in anew if witness is None]
        assert threads.violations(found, source, 12) == []


def check_witness(walk: Walk, judged: Any, witness: Any) -> None:
    """The thread of a witness accesses that byte, if it can be followed that far."""
    met = list(walk.meetings(witness.thread, judged.access.instr, STEPS))
    base = judged.region.address
    offsets = [(m.address - base + (1 << 63)) % (1 << 64) - (1 << 63) for m in met]
    assert witness.offset in offsets or not met
