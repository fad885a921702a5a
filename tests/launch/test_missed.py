"""Whether all elements are written: what is said against all threads of small grids."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.launch.analysis import LaunchOutcomes
from ptxlint.launch.coverage.complete import Found, completeness
from ptxlint.launch.coverage.conditions import Conditions
from ptxlint.launch.coverage.missed import Looking, Missed
from ptxlint.launch.coverage.runs import Runs
from ptxlint.launch.coverage.views import steps_of
from ptxlint.launch.coverage.writes import writes_of
from ptxlint.launch.under import UnderLaunch
from ptxlint.launches import Tensor


def load(name: str) -> ModuleType:
    """A module beside this file; tests are no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"missed_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


apart = load("test_apart")
STORAGE = 1 << 22


def tensor(shape: tuple[int, ...], strides: tuple[int, ...], fresh: str = "") -> Tensor:
    return Tensor("float32", shape, strides, 0, 4 * STORAGE, fresh=fresh)


def said(found: UnderLaunch, view: Tensor) -> Found:
    """What digits tell of a view of the only output."""
    (output,) = writes_of(LaunchOutcomes(found)).outputs
    region = output.regions[0]._replace(tensor=view)
    return completeness(found, region, output.stores, Conditions(found))


def elements(view: Tensor) -> list[int]:
    """The places of all elements, in elements."""
    out = [0]
    for extent, stride in zip(view.shape, view.strides, strict=True):
        out = [base + at * stride for base in out for at in range(extent)]
    return out


@st.composite
def views(draw: st.DrawFn) -> Tensor:
    """A row, or rows that lie some way apart."""
    columns = draw(st.integers(1, 200))
    if draw(st.booleans()):
        return tensor((columns,), (1,))
    gap = draw(st.sampled_from([0, 0, 1, 7]))
    return tensor((draw(st.integers(1, 6)), columns), (columns + gap, 1))


def hold(shape: Any, view: Tensor) -> str:
    """What is said of a view, once it is held to all threads."""
    found = said(apart.under(shape.text(), shape.grid, shape.below, STORAGE), view)
    written = set().union(*shape.indices().values())
    if found.is_complete:
        assert written.issuperset(elements(view)), shape
        return "complete"
    if found.missing is not None:
        at, left = divmod(found.missing.offset, 4)
        assert not left
        assert at in elements(view)
        assert at not in written, (shape, found)
        return "missing"
    return ""


@settings(max_examples=500, deadline=None, derandomize=True)
@given(apart.shapes(), views())
def test_what_digits_tell_holds_in_all_threads(shape: Any, view: Tensor) -> None:
    hold(shape, view)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(apart.shapes(), st.integers(-40, 40), st.sampled_from([0, 1, 2, 3]))
def test_lines_about_as_long_as_what_is_written(shape: Any, more: int, rows: int) -> None:
    """Where most answers lie: the tensor ends near where the digits do."""
    count = max(map(max, (cells or {0} for cells in shape.indices().values()))) + 1
    length = max(1, count + more)
    view = tensor((length,), (1,))
    if rows and length > rows:
        view = tensor((rows, length // rows), (length // rows, 1))
    hold(shape, view)


@pytest.mark.parametrize("order", [(4, 3, 1, 0, 2, 5), (5, 4, 3, 2, 1, 0), (3, 4, 5, 2, 1, 0)])
def test_plain_digits_are_decided(order: tuple[int, ...]) -> None:
    """One element more than is written, and one less."""
    extents = [2, 3, 4, 8, 4, 3]
    factors = [0] * 6
    step = 1
    for at in order:
        factors[at] = step
        step *= extents[at]
    shape = apart.Shape((6, 4), 3, 3, tuple(factors), (), 1 << 30, 0)
    assert hold(shape, tensor((step,), (1,))) == "complete"
    assert hold(shape, tensor((step + 1,), (1,))) in ("missing", "")


MASKED = """
shl.b32 %r5, %r2, 5;
add.s32 %r6, %r5, %r4;
setp.lt.s32 %p1, %r6, %r1;
mul.wide.s32 %rd2, %r6, 4;
add.s64 %rd3, %rd1, %rd2;
@%p1 st.global.b32 [%rd3], %r2;
ret;
}
"""


def word(
    grid: int, n: int, view: Tensor, body: str = MASKED, storage: int = STORAGE
) -> Missed | None:
    """The word on the only tensor of a kernel."""
    found = apart.under(apart.HEAD + body, (grid,), n, storage)
    outcomes = LaunchOutcomes(found)
    writes = writes_of(outcomes)
    (output,) = writes.outputs
    region = output.regions[0]._replace(tensor=view)
    stores = tuple(store._replace(region=region) for store in output.stores)
    found.bound.regions["x"] = region
    writes = writes._replace(outputs=(output._replace(regions=(region,), stores=stores),))
    alone = apart.alone(apart.HEAD + body)
    runs = Runs(found)
    words = list(Looking(found, writes, alone.get(AccessAnalysis), lambda: runs).missed())
    return words[0] if words else None


@pytest.mark.parametrize("fresh", ["", "uninitialised", "zeroed"])
@pytest.mark.parametrize(
    ("grid", "n", "length", "why"),
    [
        (32, 1000, 1000, "written"),
        (31, 1000, 1000, "mask"),
        (1, 1000, 1000, "mask"),
        (31, 992, 992, "written"),
        (31, 992, 1000, ""),
        (30_000_000, 960_000_000, 960_000_000, "written"),
        (30_000_000, 960_000_001, 960_000_001, "mask"),
    ],
)
def test_a_mask_shows_what_was_meant(grid: int, n: int, length: int, why: str, fresh: str) -> None:
    found = word(grid, n, tensor((length,), (1,), fresh), storage=max(STORAGE, length))
    if why == "written":
        assert found is not None
        assert found.status == "proved"
    elif why:
        assert found is not None
        assert (found.status, found.why) == ("refuted", why)
        assert found.missing is not None
        assert found.missing.offset == 4 * 32 * grid
    else:
        status = None if found is None else found.status
        assert status == ("open" if fresh == "uninitialised" else None)


@pytest.mark.parametrize(
    ("grid", "length", "fresh", "status"),
    [
        (31, 1000, "uninitialised", "refuted"),
        (30, 1000, "uninitialised", "open"),
        (31, 1000, "", None),
        (1, 40, "uninitialised", "refuted"),
        (1, 70, "uninitialised", "open"),
        (32, 1000, "uninitialised", "proved"),
    ],
)
def test_a_part_of_a_tile_is_left(grid: int, length: int, fresh: str, status: str | None) -> None:
    bare = MASKED.replace("@%p1 ", "")
    found = word(grid, 0, tensor((length,), (1,), fresh), bare)
    assert (None if found is None else found.status) == status
    if found is not None and status == "refuted":
        assert found.why == "tail"


def test_a_byte_a_program() -> None:
    """A place that has no digit of lanes at all."""
    body = """
cvt.u64.u32 %rd2, %r2;
add.s64 %rd3, %rd1, %rd2;
setp.eq.s32 %p1, %r4, 31;
@%p1 st.global.b8 [%rd3], %r2;
ret;
}
"""
    view = Tensor("int8", (16,), (1,), 0, 4 * STORAGE, fresh="uninitialised")
    found = word(16, 0, view, body)
    assert found is not None
    assert found.status == "proved"


def test_lanes_that_store_in_another_program_are_not_missed() -> None:
    """Even lanes in one program, odd ones in the other."""
    body = """
and.b32 %r5, %r4, 1;
setp.eq.s32 %p1, %r5, %r3;
mul.wide.s32 %rd2, %r4, 4;
add.s64 %rd3, %rd1, %rd2;
@%p1 st.global.b32 [%rd3], %r2;
ret;
}
"""
    found = apart.under(apart.HEAD + body, (1, 2), 0)
    assert said(found, tensor((32,), (1,))).missing is None


def test_a_branch_on_data_proves_nothing() -> None:
    """Every lane may store, and none has to."""
    data = MASKED.replace("setp.lt.s32 %p1, %r6, %r1;", "ld.shared.u32 %r7, [%r4];\n"
                          "setp.lt.s32 %p1, %r7, %r1;")  # fmt: skip
    found = word(32, 1000, tensor((1000,), (1,), "uninitialised"), data)
    assert found is not None
    assert found.status == "open"


def test_a_predicate_from_two_ways_proves_nothing() -> None:
    """The guard of a phi that is false on one way says what holds on the other."""
    two = MASKED.replace(
        "@%p1 st",
        "mov.pred %p2, 0;\nld.shared.u32 %r7, [%r4];\nsetp.eq.s32 %p3, %r7, 0;\n@%p3 bra $join;\n"
        "mov.pred %p2, %p1;\n$join:\n@%p2 st",
    )
    found = word(32, 1000, tensor((1000,), (1,), "uninitialised"), two)
    assert found is not None
    assert found.status == "open"


@pytest.mark.parametrize(
    ("shape", "strides", "steps"),
    [
        ((1000,), (1,), [(1, 4000)]),
        ((10, 100), (100, 1), [(1, 4000)]),
        ((10, 100), (128, 1), [(512, 10), (1, 400)]),
        ((100, 10), (1, 100), [(1, 4000)]),
        ((2, 3, 5), (30, 10, 2), [(8, 30), (1, 4)]),
        ((1, 7), (999, 1), [(1, 28)]),
        ((3, 4), (0, 1), None),
        ((3, 4), (2, 1), None),
        ((0, 4), (4, 1), None),
    ],
)
def test_steps(
    shape: tuple[int, ...], strides: tuple[int, ...], steps: list[tuple[int, int]] | None
) -> None:
    assert steps_of(tensor(shape, strides)) == steps
