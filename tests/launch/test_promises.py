"""What is promised of numbers in memory, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes
from ptxlint.launch.binding import bind
from ptxlint.launch.questions import ABOVE, carried
from ptxlint.launches import DTYPE_BYTES, Argument, Autotuned, Launch, Scalar, Tensor

HEAD = """.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 smem[];
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u64 .ptr .global .align 16 ids,
    .param .u64 .ptr .global .align 16 out, .param .u32 n)
    .reqntid 128
{
.reg .pred %p<6>;
.reg .b32 %r<24>;
.reg .b64 %rd<24>;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [ids];
ld.param.u64 %rd3, [out];
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r2, 128, %r3;
"""


def outcomes(body: str, **launch: Any) -> LaunchOutcomes:
    """A kernel under a launch.

    `x` and `out` have so many elements; `values` or `contents` are of `ids`, which has 8 unless
    there is more to tell.
    """
    module = parse(HEAD + body + "\nret;\n}\n", "k.ptx")
    assert not module.problems, module.problems
    kernel = module.kernels()[0]
    contents = launch.get("contents")
    values = launch.get("values", contents and (min(contents), max(contents)))
    size = launch.get("ids", len(contents or range(8)))
    arguments: dict[str, Argument] = {
        "x": _tensor(launch.get("x", 640), 0),
        "ids": _tensor(size, launch.get("storage", 1), launch.get("dtype", "int32"))._replace(
            values=values, contents=contents
        ),
        "out": _tensor(launch.get("out", 640), 2),
        "n": Scalar("u32", launch.get("n", 640)),
    }
    facts = Facts(module, kernel)
    grid = (launch.get("grid", 5), 1, 1)
    made = Launch(grid, (128, 1, 1), arguments, shared=4096, autotuned=launch.get("autotuned"))
    bound = bind(kernel, made, {})
    facts.launches = (bound.launch,)
    (found,) = facts.get(LaunchAnalysis)
    return found


def statuses(body: str, **launch: Any) -> dict[int, str]:
    """By the place of each global access in the kernel: proved, refuted or open."""
    found = outcomes(body, **launch)
    out = {}
    for judged, witness, shown in found.outcomes:
        is_wrong = witness is not None or shown
        status = "refuted" if is_wrong else "proved" if judged.is_inside else "open"
        out[len(out)] = status
    return out


def _tensor(elements: int, storage: int, dtype: str = "int32") -> Tensor:
    return Tensor(dtype, (elements,), (1,), storage, DTYPE_BYTES[dtype] * elements)


ONE_BY_ONE = """mul.wide.s32 %rd4, %r3, 4;
add.s64 %rd5, %rd2, %rd4;
setp.lt.s32 %p1, %r3, 8;
mov.u32 %r5, 0;
@%p1 ld.global.b32 %r5, [%rd5];
mul.wide.s32 %rd6, %r5, 4;
add.s64 %rd7, %rd1, %rd6;
ld.global.b32 %r6, [%rd7];
"""
FOUR_AT_ONCE = """and.b32 %r5, %r3, 1;
mul.wide.s32 %rd4, %r5, 16;
add.s64 %rd5, %rd2, %rd4;
ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd5];
mul.wide.s32 %rd6, %r9, 4;
add.s64 %rd7, %rd1, %rd6;
ld.global.b32 %r10, [%rd7];
"""


@pytest.mark.parametrize("body", [ONE_BY_ONE, FOUR_AT_ONCE], ids=["one", "four"])
@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"values": (0, 639)}, "proved"),
        ({"values": (0, 640)}, "open"),
        ({"values": (-1, 639)}, "open"),
        ({}, "open"),
        ({"contents": (639, 1, 2, 3, 4, 5, 6, 0)}, "proved"),
        ({"contents": (0, 1, 2, 3, 4, 5, 6, 640)}, "refuted"),
        ({"contents": (0, 1, 2, -1, 4, 5, 6, 7)}, "refuted"),
    ],
)
def test_a_gather(body: str, told: dict[str, Any], status: str) -> None:
    assert statuses(body, **told)[1] == status


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64"])
def test_several_numbers_in_one_word_are_not_one(dtype: str) -> None:
    """Four bytes that are 1 are the index 16,843,009."""
    one = dict.fromkeys(("values",), (0, 1))
    assert statuses(ONE_BY_ONE, dtype=dtype, ids=64, **one)[1] == "open"
    assert statuses(FOUR_AT_ONCE, dtype=dtype, ids=64, **one)[1] == "open"
    assert statuses(ONE_BY_ONE, dtype=dtype, contents=(1,) * 64)[1] == (
        "proved" if dtype == "int64" else "refuted"
    )


def test_what_the_kernel_writes_over_is_not_promised() -> None:
    """By the same tensor, or by another one in the same memory."""
    store = ONE_BY_ONE + "mul.wide.s32 %rd8, %r4, 4;\nadd.s64 %rd9, %rd3, %rd8;\n"
    assert statuses(store + "st.global.b32 [%rd9], %r6;", values=(0, 639))[1] == "proved"
    assert statuses(store + "st.global.b32 [%rd5], %r6;", values=(0, 639))[1] == "open"
    aliased = statuses(store + "st.global.b32 [%rd9], %r6;", values=(0, 639), storage=2, out=8)
    assert aliased[1] == "open"


APPEND = """setp.lt.s32 %p1, %r4, %r1;
mov.u32 %r5, 0;
@%p1 atom.global.gpu.relaxed.add.u32 %r5, [%rd2], {added};
mul.wide.s32 %rd4, %r5, 4;
add.s64 %rd5, %rd3, %rd4;
@%p1 st.global.b32 [%rd5], %r4;
"""


@pytest.mark.parametrize(
    ("added", "launch", "status"),
    [
        # 640 threads find 0 to 639.
        ("1", {"values": (0, 0)}, "proved"),
        ("1", {"values": (0, 0), "out": 639}, "open"),
        ("1", {"values": (0, 1)}, "open"),
        ("1", {"values": (0, 1), "out": 641}, "proved"),
        ("1", {"values": (-1, 0)}, "open"),
        ("1", {}, "open"),
        ("1", {"values": (0, 0), "grid": 6}, "open"),
        ("1", {"values": (0, 0), "autotuned": Autotuned(4)}, "open"),
        ("2", {"values": (0, 0)}, "open"),
        ("2", {"values": (0, 0), "out": 1279}, "proved"),
        ("-1", {"values": (0, 0), "out": 100_000}, "open"),
        ("%r4", {"values": (0, 0), "out": 640 * 640}, "open"),
        ("%r1", {"values": (0, 2**31 - 1), "out": 2**31}, "open"),
    ],
)
def test_what_atomic_additions_find(added: str, launch: dict[str, Any], status: str) -> None:
    assert statuses(APPEND.replace("{added}", added), **launch)[1] == status


def test_how_often_something_is_added_is_so_for_one_grid() -> None:
    """Tokens that are bounded are so in launches of any size; counts are not."""
    store = "mul.wide.s32 %rd4, %r4, 4;\nadd.s64 %rd5, %rd3, %rd4;\nsetp.lt.s32 %p1, %r4, %r1;\n"
    assert list(carried(outcomes(store + "@%p1 st.global.b32 [%rd5], %r4;"), ABOVE))
    assert not list(carried(outcomes(APPEND.replace("{added}", "1"), values=(0, 0)), ABOVE))


def test_additions_in_a_loop_are_not_counted() -> None:
    body = "mov.u32 %r9, 0;\n$again:\n" + APPEND.replace("{added}", "1")
    body += "add.s32 %r9, %r9, 1;\nsetp.lt.s32 %p2, %r9, 3;\n@%p2 bra $again;"
    assert statuses(body, values=(0, 0), out=100_000)[1] == "open"


def test_other_stores_to_the_counter_end_the_promise() -> None:
    body = APPEND.replace("{added}", "1") + "st.global.b32 [%rd2], %r4;"
    assert statuses(body, values=(0, 0))[1] == "open"


COPIED = """mul.wide.s32 %rd4, %r3, 4;
add.s64 %rd5, %rd2, %rd4;
mov.u32 %r5, smem;
shl.b32 %r6, %r3, 2;
add.s32 %r7, %r5, %r6;
setp.lt.s32 %p1, %r3, 8;
selp.b32 %r8, {size}, 0, %p1;
cp.async.ca.shared.global [%r7], [%rd5], 4, %r8;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
ld.shared.b32 %r9, [%r7];
mul.wide.s32 %rd6, %r9, 4;
add.s64 %rd7, %rd1, %rd6;
ld.global.b32 %r10, [%rd7];
"""


@pytest.mark.parametrize(
    ("size", "values", "status"),
    [
        ("4", (0, 639), "proved"),
        ("4", (0, 640), "open"),
        # Where nothing is copied there are zeros.
        ("4", (5, 639), "proved"),
        ("4", (-1, 639), "open"),
        # Half a number is another one.
        ("2", (0, 639), "open"),
        ("4", None, "open"),
    ],
)
def test_numbers_that_are_copied_to_shared_memory(size: str, values: Any, status: str) -> None:
    assert statuses(COPIED.replace("{size}", size), values=values)[1] == status


BROADCAST = """setp.eq.s32 %p1, %r3, {first};
mov.u32 %r5, 0;
@%p1 atom.global.gpu.relaxed.add.u32 %r5, [%rd2], 1;
mov.u32 %r6, smem;
@%p1 st.shared.b32 [%r6], %r5;
bar.sync 0;
ld.shared.b32 %r7, [smem];
mul.wide.s32 %rd4, %r7, 4;
add.s64 %rd5, %rd3, %rd4;
st.global.b32 [%rd5], %r4;
"""


@pytest.mark.parametrize(
    ("first", "launch", "status"),
    [
        # Five programs find 0 to 4, which is not more than 640 threads might.
        ("0", {"values": (0, 0)}, "proved"),
        ("0", {"values": (0, 1)}, "open"),
        ("0", {}, "open"),
        # Nobody stores: the word is of before.
        ("200", {"values": (0, 0)}, "open"),
    ],
)
def test_what_one_thread_finds_for_all(first: str, launch: dict[str, Any], status: str) -> None:
    found = outcomes(BROADCAST.replace("{first}", first), **launch)
    assert statuses(BROADCAST.replace("{first}", first), **launch)[1] == status
    assert found.premises == (("ids holds 0 … 0",) if status == "proved" else found.premises)


def test_shared_memory_that_others_write_is_not_promised() -> None:
    body = COPIED.replace("{size}", "4").replace(
        "bar.sync 0;", "bar.sync 0;\nst.shared.b32 [%r7], %r4;\nbar.sync 0;"
    )
    assert statuses(body, values=(0, 639), grid=50)[1] == "open"
