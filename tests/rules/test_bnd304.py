"""BND304: each limit on both sides, and no word without a launch or a table."""

from __future__ import annotations

from typing import Any

import pytest

from ptxlint.arch import ARCHS
from ptxlint.engine.options import Options
from ptxlint.engine.report import Report
from ptxlint.engine.run import run
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.launch_layout import read_launch
from ptxlint.frontends.launch_nodes import Node


def check(
    launch: dict[str, Any] | None,
    target: str = "sm_80",
    header: str = "",
    shared: int | None = None,
    version: str = "9.0",
) -> Report:
    text = f"""
        .version {version}
        .target {target}
        .address_size 64
        .visible .entry k() {header} {{
            .reg .b32 %r<3>;
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %ctaid.z;
            ret;
        }}
        """
    full = {"grid": 1, "block": 32, "arguments": {}, **(launch or {})}
    launches = (read_launch(Node(full), ""),) if launch is not None else ()
    metadata = None if shared is None else KernelMetadata(shared=shared)
    report = run([Input("k.ptx", text, metadata, launches)], Options(select=("BND304",)))
    assert report.exit_code != 2, report.findings
    return report


def messages(report: Report) -> list[str]:
    return [f.message for f in report.findings]


def statuses(report: Report) -> list[str]:
    return [o.status for o in report.obligations if o.rule == "BND304"]


@pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda arch: arch.name)
@pytest.mark.parametrize("axis", range(3))
def test_the_limit_of_each_axis_is_exact(arch, axis: int) -> None:  # type: ignore[no-untyped-def]
    grid = [1, 1, 1]
    grid[axis] = arch.grid_limit[axis]
    assert statuses(check({"grid": grid}, arch.name)) == ["proved"]
    grid[axis] += 1
    report = check({"grid": grid}, arch.name)
    assert statuses(report) == ["refuted"]
    name = "xyz"[axis]
    assert messages(report) == [
        f"the grid has {grid[axis]} CTAs along {name}, the limit is {grid[axis] - 1}: the launch "
        "fails"
    ]
    assert report.findings[0].place.line == (8 if name == "z" else 5)


@pytest.mark.parametrize("batch", [10_922, 10_923])
def test_six_heads_of_a_batch_along_z(batch: int) -> None:
    expected = "refuted" if batch > 10_922 else "proved"
    assert statuses(check({"grid": [1, 1, 6 * batch]})) == [expected]


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ([1024, 1, 1], ""),
        ([1025, 1, 1], "1025 threads along x, the limit is 1024"),
        ([1, 1024, 1], ""),
        ([1, 1025, 1], "1025 threads along y, the limit is 1024"),
        ([1, 1, 64], ""),
        ([1, 1, 65], "65 threads along z, the limit is 64"),
        ([32, 32, 1], ""),
        ([32, 33, 1], "1056 threads, the limit is 1024"),
    ],
)
def test_the_limits_of_a_block_are_exact(block: list[int], says: str) -> None:
    found = messages(check({"block": block}))
    assert found == ([f"the block has {says}: the launch fails"] if says else [])


def test_the_kernels_own_limit_of_threads() -> None:
    assert messages(check({"block": 256}, header=".maxntid 256")) == []
    assert messages(check({"block": 257}, header=".maxntid 256")) == [
        "the block has 257 threads, the limit is 256 by .maxntid: the launch fails"
    ]


@pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda arch: arch.name)
def test_the_limit_of_dynamic_shared_memory_is_exact(arch) -> None:  # type: ignore[no-untyped-def]
    limit = arch.shared_optin_limit
    assert messages(check({"shared": limit}, arch.name)) == []
    assert len(messages(check({"shared": limit + 1}, arch.name))) == 1
    # RES104 says it already.
    assert messages(check({"shared": limit + 1}, arch.name, shared=limit + 1)) == []


def test_nothing_is_said_without_a_launch_or_a_table() -> None:
    assert statuses(check(None)) == []
    assert statuses(check({"grid": [1, 70_000]}, "sm_52")) == []
