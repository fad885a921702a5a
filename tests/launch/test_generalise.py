"""How far verdicts on launches carry: exact thresholds, and statements that are true.

What is stated of hand-written kernels is held against launches that are made anew on both sides.
What is stated of random launches of the fixtures is held against threads that are run with the
machine's words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxlint.engine.analyse import find_arch
from ptxlint.engine.merge import merge_obligations
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.facts import Facts
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.launch_file import parse_launches
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_cache import load_metadata
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchOutcomes
from ptxlint.launch.binding import bind
from ptxlint.launch.generalise import family as families
from ptxlint.launch.generalise.reach import Reach
from ptxlint.launch.generalise.span import has
from ptxlint.launch.questions import ABOVE, BELOW, OVERFLOW
from ptxlint.launch.under import UnderLaunch
from ptxlint.launch.walk import Thread, Walk
from ptxlint.launches import AS_COMPILED, Argument, Launch, Scalar, Tensor

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx" / "sm_90"
MOST_INSTRUCTIONS = 700
STEPS = 4_000
KINDS = (OVERFLOW, ABOVE, BELOW)
RULES = ("BND301", "BND302", "BND303", "BND304", "BND305", "MSK203")

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u64 .ptr .global .align 16 y,
    .param .u32 n, .param .u32 stride)
    .reqntid 128
{
.reg .pred %p<4>;
.reg .b32 %r<12>;
.reg .b64 %rd<12>;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [y];
ld.param.b32 %r1, [n];
ld.param.b32 %r2, [stride];
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %tid.x;
"""
COPY = """
mul.wide.s32 %rd3, %r5, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
{guard} ld.global.b32 %r6, [%rd4];
{guard} st.global.b32 [%rd5], %r6;
ret;
}}
"""
# A tile of 128 elements.
TILE = HEAD + "shl.b32 %r5, %r3, 7;\nadd.s32 %r5, %r5, %r4;\nsetp.lt.s32 %p1, %r5, %r1;\n"
# One program a row, the start of which is worked out in 32 bits.
ROWS = HEAD + "mul.lo.s32 %r5, %r3, %r2;\nadd.s32 %r5, %r5, %r4;\nsetp.lt.s32 %p1, %r4, %r1;\n"
# The same in 64 bits.
WIDE = """
mul.wide.s32 %rd3, %r3, %r2;
cvt.u64.u32 %rd4, %r4;
add.s64 %rd3, %rd3, %rd4;
shl.b64 %rd3, %rd3, 2;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
setp.lt.s32 %p1, %r4, %r1;
@%p1 ld.global.b32 %r6, [%rd4];
@%p1 st.global.b32 [%rd5], %r6;
ret;
}
"""
# Four elements at once, of which only the first one is compared.
VECTOR = """
shl.b32 %r5, %r3, 4;
and.b32 %r6, %r4, 3;
shl.b32 %r6, %r6, 2;
add.s32 %r5, %r5, %r6;
setp.lt.s32 %p1, %r5, %r1;
mul.wide.s32 %rd3, %r5, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
@%p1 ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%rd4];
@%p1 st.global.v4.b32 [%rd5], {%r6, %r7, %r8, %r9};
ret;
}
"""
# A program for each head of each batch; rows of 128.
HEADS = """
mul.wide.s32 %rd3, %r3, 512;
mul.wide.u32 %rd6, %r4, 4;
add.s64 %rd3, %rd3, %rd6;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
ld.global.b32 %r6, [%rd4];
st.global.b32 [%rd5], %r6;
ret;
}
"""
# An index from memory, times n.
SCALED = """
mul.wide.u32 %rd3, %r4, 4;
add.s64 %rd3, %rd2, %rd3;
ld.global.b32 %r5, [%rd3];
mul.lo.s32 %r5, %r5, %r1;
mul.wide.s32 %rd3, %r5, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.b32 %r6, [%rd4];
ret;
}
"""
KERNELS = {
    "scaled": HEAD + SCALED,
    "heads": HEAD + HEADS,
    "vector": HEAD + VECTOR,
    "guarded": TILE + COPY.format(guard="@%p1"),
    "exact": TILE + COPY.format(guard=""),
    "rows": ROWS + COPY.format(guard="@%p1"),
    "wide": HEAD + WIDE,
}


def _line(n: int, x: int | None = None, y: int | None = None) -> dict[str, Any]:
    shapes = {"x": f"float32[{n if x is None else x}]", "y": f"float32[{n if y is None else y}]"}
    return {"grid": -(-n // 128), "arguments": {**shapes, "n": n, "stride": 7}}


def _rows(rows: int, columns: int) -> dict[str, Any]:
    shape = f"float32[{rows}, {columns}]"
    arguments = {"x": shape, "y": shape, "n": 100, "stride": columns}
    return {"grid": rows, "arguments": arguments}


def _scaled(n: int) -> dict[str, Any]:
    ids = {"kind": "tensor", "dtype": "int32", "shape": [128], "values": [0, 100]}
    return {"grid": 1, "arguments": {"x": "float32[4096]", "y": ids, "n": n, "stride": 7}}


def launched(kernel: str, launch: dict[str, Any]) -> Any:
    text = json.dumps({"launches": [launch]})
    found = tuple(parse_launches(text, "launches.json"))
    return run([Input("k.ptx", KERNELS[kernel], None, found)], Options(select=RULES))


def stated(kernel: str, launch: dict[str, Any], rule: str) -> list[Any]:
    report = launched(kernel, launch)
    return [part for o in report.obligations if o.rule == rule for part in o.generalises]


def statuses(kernel: str, launch: dict[str, Any], rule: str) -> set[str]:
    return {o.status for o in launched(kernel, launch).obligations if o.rule == rule}


I32 = (1 << 31) - 1


@pytest.mark.parametrize(
    ("kernel", "launch", "rule", "expected"),
    [
        # Guarded by its size: right for all of them.
        ("guarded", _line(1000), "BND302", ("n", 1, I32, 1, False, None)),
        ("guarded", _line(1000), "BND301", ("n", 1, I32, 1, False, None)),
        ("guarded", _line(1024), "BND305", ("n", 1, I32, 1, False, None)),
        # Whole tiles: right for these alone.
        ("exact", _line(1024), "BND302", ("n", 128, I32 // 128 * 128, 128, True, None)),
        ("exact", _line(1024), "MSK203", ("n", 128, I32 // 128 * 128, 128, True, None)),
        # Rows that fit 31 bits, and one more.
        ("rows", _rows(1000, 4096), "BND301", ("N", 1, 524_288, 1, False, 524_289)),
        ("rows", _rows(524_288, 4096), "BND302", ("N", 1, 524_288, 1, False, 524_289)),
        ("rows", _rows(524_289, 4096), "BND301", ("N", 1, 524_288, 1, False, 524_289)),
        ("rows", _rows(600_000, 4096), "BND301", ("N", 1, 524_288, 1, False, 524_289)),
        # Vectors, for which sizes are multiples of 16: others may be right, too.
        (
            "vector",
            _line(1024) | {"grid": 64},
            "BND302",
            ("n", 16, I32 // 16 * 16, 16, False, None),
        ),
        # A tensor that is too short, and how far it goes.
        ("guarded", _line(1024, x=1000), "BND302", ("n", 1, 1000, 1, False, 1001)),
    ],
)
def test_how_far_it_carries(
    kernel: str, launch: dict[str, Any], rule: str, expected: tuple[Any, ...]
) -> None:
    first, *_ = stated(kernel, launch, rule)
    assert (first.name, first.low, first.high, first.step, first.only, first.fails_at) == expected


def test_the_threshold_is_that_of_launches_made_anew() -> None:
    assert statuses("rows", _rows(524_288, 4096), "BND301") == {"proved"}
    assert statuses("rows", _rows(524_289, 4096), "BND301") == {"refuted"}
    assert statuses("guarded", _line(1000, x=1000, y=1024), "BND302") == {"proved"}
    assert "refuted" in statuses("guarded", _line(1001, x=1000, y=1024), "BND302")


@pytest.mark.parametrize("rest", [1, 2, 64, 127])
def test_what_is_no_multiple_of_the_tile_is_refuted(rest: int) -> None:
    assert statuses("exact", _line(1024 + rest), "MSK203") == {"refuted"}
    assert "refuted" in statuses("exact", _line(rest), "BND302")


def test_what_is_open_may_be_shown_for_smaller_sizes() -> None:
    assert statuses("scaled", _scaled(50), "BND302") == {"open", "proved"}
    first, *_ = stated("scaled", _scaled(50), "BND302")
    assert (first.name, first.low, first.high, first.fails_at) == ("n", 1, 40, None)
    assert statuses("scaled", _scaled(40), "BND302") == {"proved"}
    assert statuses("scaled", _scaled(41), "BND302") == {"open", "proved"}


def test_premises_name_what_goes_with_the_size() -> None:
    first, *_ = stated("guarded", _line(1000), "BND302")
    assert first.premises == ("x [n]", "y [n]", "grid x = cdiv(n, 128)")
    assert first.text == (
        "for every n from 1 to 2,147,483,647, with x [n], y [n], grid x = cdiv(n, 128)"
    )
    first, *_ = stated("exact", _line(1024), "BND302")
    assert first.text.startswith("only for n % 128 == 0, from 128 to 2,147,483,520, with x [n]")


def test_a_stride_goes_with_the_extents_that_it_follows_from() -> None:
    (first,) = [s for s in stated("wide", _rows(300, 4096), "BND302") if s.name == "stride"]
    # 100 columns are read: no row may be shorter.
    assert (first.low, first.fails_at) == (100, None)
    assert first.premises == ("x [300, stride]", "y [300, stride]")


def test_a_grid_may_be_a_product_of_extents() -> None:
    arguments = {"x": "float32[24, 6, 128]", "y": "float32[24, 6, 128]", "n": 7, "stride": 9}
    statements = stated("heads", {"grid": 144, "arguments": arguments}, "BND302")
    assert [s.premises for s in statements] == [
        ("x [N, 6, 128]", "y [N, 6, 128]", "grid x = 6 * N"),
        ("x [24, N, 128]", "y [24, N, 128]", "grid x = 24 * N"),
    ]
    assert [(s.low, s.here) for s in statements] == [(1, 24), (1, 6)]


def test_nothing_is_stated_of_what_running_has_settled() -> None:
    """A thread that was run says nothing of other sizes, and an open verdict nothing at all."""
    report = launched("guarded", _line(1024, x=1000))
    for item in report.obligations:
        assert all(part.high < 1024 for part in item.generalises if item.status != "proved")


def test_statements_are_left_out_where_nobody_reads_them() -> None:
    text = json.dumps({"launches": [_line(1000)]})
    found = tuple(parse_launches(text, "launches.json"))
    item = Input("k.ptx", KERNELS["guarded"], None, found)
    report = run([item], Options(select=RULES, evidence=False))
    assert not any(o.generalises for o in report.obligations)


def test_a_budget_that_is_spent_is_told() -> None:
    text = json.dumps({"launches": [_line(1000)]})
    found = tuple(parse_launches(text, "launches.json"))
    item = Input("k.ptx", KERNELS["guarded"], None, found)
    report = run([item], Options(select=("BND302",), budget=0.02))
    assert report.to_dict()["kernels"][0]["spent"] == ["generalise"]
    assert not any(o.generalises for o in report.obligations)
    report = run([item], Options(select=("BND302",)))
    assert report.to_dict()["kernels"][0]["spent"] == []


def test_builds_that_are_one_verdict_share_what_is_stated() -> None:
    """One build overflows from 2^24 programs on, the other one nowhere."""
    found = tuple(parse_launches(json.dumps({"launches": [_rows(1000, 4096)]}), "l.json"))
    texts = (KERNELS["rows"], KERNELS["wide"].replace("sm_80", "sm_90"), KERNELS["rows"])

    def sizes(*chosen: str) -> list[set[tuple[str, int]]]:
        items = [Input(f"{at}.ptx", text, None, found) for at, text in enumerate(chosen)]
        report = run(items, Options(select=("BND305",)))
        # Builds of one kernel have one place in Python.
        every = [o._replace(place=None) for o in report.obligations if o.rule]
        return [{(p.name, p.high) for p in o.generalises} for o in merge_obligations(every)]

    rows, wide, again = texts
    assert ("N", 524_288) in sizes(rows)[0]
    assert ("N", 524_288) in sizes(rows, again)[0]
    assert ("N", 524_288) not in sizes(rows, wide)[0]


def test_a_finding_says_from_which_size_on() -> None:
    (finding,) = launched("guarded", _line(1024, x=1000)).findings
    assert finding.breaks_when.startswith("n is more than 1,000 (here 1,024), with y [n]")


# Random launches of the fixtures ----------------------------------------------------------------
def small_kernels() -> list[str]:
    return [
        path.stem
        for path in sorted(FIXTURES.glob("*.ptx"))
        if (text := path.read_text(encoding="utf-8")).count(";") < MOST_INSTRUCTIONS
        # Descriptors are no numbers.
        and ".param .align 64" not in text
    ]


def related_launch(kernel: Function, source: random.Random) -> Launch:
    """A launch whose numbers have to do with each other, as those of real ones have."""
    size, other = source.choice((64, 100, 128, 256, 1000, 1024, 4096)), source.choice((3, 8, 48))
    arguments: dict[str, Argument] = {}
    for number, parameter in enumerate(kernel.params):
        if "ptr" in parameter.attributes:
            shape = source.choice(((size,), (other, size), (size, other), (size * other,)))
            dtype, width = source.choice((("float32", 4), ("float16", 2)))
            strides = (shape[1], 1) if len(shape) == 2 else (1,)
            count = shape[0] * strides[0]
            arguments[parameter.name] = Tensor(dtype, shape, strides, number, count * width)
        else:
            bits = 8 * parameter.size
            chosen = source.choice((size, size, other, size * other, 1))
            kind = f"i{bits}" if bits in (8, 16, 32, 64) else "i32"
            arguments[parameter.name] = Scalar(kind, chosen % 100 if bits < 32 else chosen)
    tile = source.choice((64, 128, 256, 1024))
    extents = (1, other, size, -(-size // tile), -(-size * other // tile))
    grid = (source.choice(extents), source.choice((1, 1, other)), 1)
    return Launch(grid, AS_COMPILED, arguments, shared=0)


def sizes_of(part: Any, source: random.Random, count: int) -> Iterator[int]:
    """Sizes that a statement names, those at its ends among them."""
    low, high = part.low // part.step, part.high // part.step
    near = max(low, min(high, part.here // part.step))
    for _ in range(count):
        chosen = source.choice((low, high, near, source.randint(low, high), min(high, 2 * near)))
        yield chosen * part.step


def thread_of(under: UnderLaunch, source: random.Random) -> Thread:
    def one(extents: tuple[int, int, int]) -> tuple[int, int, int]:
        x, y, z = (source.choice((0, size - 1, source.randrange(size))) for size in extents)
        return x, y, z

    return Thread(one(under.bound.grid), one(under.bound.block))


def wrong_statements(name: str, seed: int, sizes: int, threads: int) -> tuple[list[str], int]:
    """What threads do that a statement rules out, and how many statements there were."""
    path = FIXTURES / f"{name}.ptx"
    module = parse(path.read_text(encoding="utf-8"), str(path))
    source = random.Random(f"{name} {seed}")
    out: list[str] = []
    count = 0
    for kernel in module.kernels():
        facts = Facts(module, kernel, find_arch(module.arch), load_metadata(str(path)))
        launch = related_launch(kernel, source)
        under = UnderLaunch(facts, bind(kernel, launch, {}, facts.metadata))
        reach = Reach(under)
        for kind in KINDS:
            instrs = {
                j.access.instr.index for j in under.judged if has(j, kind) and j.region is not None
            }
            instrs -= {j.access.instr.index for j in under.judged if not has(j, kind)}
            for part in reach.proved(kind, instrs):
                count += 1
                (family,) = [
                    f for f in reach.families if (f.name, f.value) == (part.name, part.here)
                ]
                if part.fails_at is not None and not _goes_wrong(facts, family, part.fails_at):
                    out.append(f"{part} does not fail")
                for size in sizes_of(part, source, sizes):
                    other = UnderLaunch(facts, family.at(size))
                    out += _violations(other, kind, instrs, source, threads, f"{part} at {size}")
        reach.release()
    return out, count


def _goes_wrong(facts: Facts, family: families.Family, size: int) -> bool:
    found = LaunchOutcomes(UnderLaunch(facts, family.at(size)))
    return any(outcome.witness is not None for outcome in found.outcomes)


def _violations(
    under: UnderLaunch,
    kind: str,
    instrs: set[int],
    source: random.Random,
    threads: int,
    where: str,
) -> list[str]:
    walk = Walk(under.ssa, under.bound)
    located = [j for j in under.judged if j.access.instr.index in instrs and j.region is not None]
    out = []
    for _ in range(threads if located else 0):
        thread, judged = thread_of(under, source), source.choice(located)
        region, access = judged.region, judged.access
        assert region is not None
        for met in walk.meetings(thread, access.instr, STEPS):
            offset = met.address - region.address
            width = access.width if met.size < 0 else met.size
            beyond = offset + width > region.high
            before = offset < region.low
            if (kind == ABOVE and beyond) or (kind == BELOW and before):
                out.append(f"{access.instr}: byte {offset} of {region.high} in {thread}; {where}")
    return out


@pytest.mark.parametrize("name", small_kernels())
def test_statements_hold_in_threads(name: str) -> None:
    assert wrong_statements(name, 0, 3, 8)[0] == []


def test_there_are_statements_to_hold() -> None:
    names = ("softmax", "matmul", "relu", "rope", "layer_norm_fwd")
    assert sum(wrong_statements(name, 0, 0, 0)[1] for name in names) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", small_kernels())
def test_statements_hold_under_many_launches(name: str) -> None:
    assert [f for seed in range(1, 20) for f in wrong_statements(name, seed, 4, 10)[0]] == []


# Forms ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("form", "text"),
    [
        ((0, 1), "n"),
        ((0, 4096), "4096 * n"),
        ((3, 1), "n + 3"),
        ((-1, 0, 2), "2 * n^2 - 1"),
        ((7,), "7"),
        ((0, -1), "-n"),
        ((0,), "0"),
    ],
)
def test_forms_are_spelled(form: tuple[int, ...], text: str) -> None:
    assert families.spelled(form, "n") == text


def test_forms_are_polynomials() -> None:
    a, b = (1, 2), (0, 0, 3)
    for n in (0, 1, 5, 100):
        at = families.value
        assert at(families.plus(a, b), n) == at(a, n) + at(b, n)
        assert at(families.times(a, b), n) == at(a, n) * at(b, n)
        assert at(families.stretched(b, 16), n) == at(b, 16 * n)
