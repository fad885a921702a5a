"""Kernels under launches on both sides of each threshold: refuted there, proved here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.frontends.discovery import Input

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parents[1] / "fixtures"
I32 = (1 << 31) - 1
RULES = (
    "BND301", "BND302", "BND303", "BND304", "BND305", "BND306", "BND307",
    "HAZ601", "HAZ603", "HAZ604",
)  # fmt: skip


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


BUILDS = _module(FIXTURES / "twin_builds.py")
LAUNCHES = _module(HERE / "launch_twins.py")
MODULES = ("twins/coverage", "twins/launches", "twins/reruns", "twins/views")
LAUNCHED = {case.kernel for case in LAUNCHES.CASES}
TWINS = {
    twin.kernel: twin
    for twin in BUILDS.twins()
    if twin.module in MODULES or twin.kernel in LAUNCHED
}


@pytest.fixture(scope="module", autouse=True)
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    BUILDS.prepare(str(tmp_path_factory.mktemp("cache")))
    return pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")


@cache
def compiled(kernel: str, number: int, capability: int) -> tuple[str, tuple[str, ...]]:
    """The PTX of a build, and the names of the kernel's parameters."""
    twin = TWINS[kernel]
    names = getattr(BUILDS.load(twin.path), kernel).arg_names
    return BUILDS.compiled(twin, twin.builds[number], capability), tuple(names)


def checked(case: Any, number: int, capability: int, **changed: Any) -> Any:
    twin = TWINS[case.kernel]
    build: Mapping[str, Any] = twin.builds[number]
    text, names = compiled(case.kernel, number, capability)
    given = case.given(build) | changed
    launch = LAUNCHES.launch(list(names), twin.types, build, given)
    item = Input("twin.ptx", text, None, (launch,))
    return run([item], Options(select=RULES))


def cases() -> list[Any]:
    return [
        pytest.param(
            case, number, capability, id=f"{case.kernel}-{case.name}-{number}-{capability}"
        )
        for case in LAUNCHES.CASES
        for number in range(len(TWINS[case.kernel].builds))
        for capability in (80, 90)
        if capability == 90 or number == 0
    ]


@pytest.mark.parametrize(("case", "number", "capability"), cases())
def test_a_launch(case: Any, number: int, capability: int) -> None:
    report = checked(case, number, capability)
    assert {f.rule for f in report.findings} == case.found
    statuses = {o.status for o in report.obligations if o.rule in RULES}
    if (case.kernel, case.name) in LAUNCHES.OPEN:
        assert "open" in statuses
    else:
        assert ("refuted" in statuses) == bool(case.found)
        assert statuses <= {"proved", "refuted"}


@pytest.mark.parametrize(
    "case", [c for c in LAUNCHES.CASES if c.found], ids=lambda c: f"{c.kernel}-{c.name}"
)
def test_the_witness_is_a_thread_of_the_launch(case: Any) -> None:
    for finding in checked(case, 0, 90).findings:
        if finding.rule == "BND304":
            # Nothing runs.
            assert finding.witness is None
            continue
        if finding.rule == "BND307":
            # No thread does it.
            assert finding.witness["element"] is not None
            continue
        witness, launch = finding.witness, finding.launch
        for place, extent in (("ctaid", "grid"), ("tid", "block")):
            assert all(
                0 <= at < size for at, size in zip(witness[place], launch[extent], strict=True)
            )


def test_every_twin_is_launched() -> None:
    assert {case.kernel for case in LAUNCHES.CASES} == set(TWINS)


def test_a_grid_of_any_size_costs_the_same() -> None:
    """A thousand CTAs and a billion: the difference is noise."""

    def seconds(n: int) -> float:
        case = LAUNCHES.Case("fill_wide", str(n), frozenset(), LAUNCHES._line(n))
        best = 1e9
        for _ in range(5):
            start = process_time()
            report = checked(case, 1, 90)
            best = min(best, process_time() - start)
            assert {o.status for o in report.obligations if o.rule in RULES} == {"proved"}
        return best

    few, many = seconds(256 * 1_000), seconds(256 * 1_000_000_000)
    assert many < 1.5 * few + 0.005


@pytest.mark.parametrize(
    ("name", "status"),
    [("whole tiles", "proved"), ("one more", "refuted"), ("one less", "refuted")],
)
def test_an_exact_tile_is_decided(name: str, status: str) -> None:
    (case,) = [c for c in LAUNCHES.CASES if (c.kernel, c.name) == ("scale_line", name)]
    text, names = compiled(case.kernel, 0, 90)
    twin = TWINS[case.kernel]
    build = twin.builds[0]
    launch = LAUNCHES.launch(list(names), twin.types, build, case.given(build))
    report = run([Input("twin.ptx", text, None, (launch,))], Options(select=("MSK203",)))
    assert {o.status for o in report.obligations if o.rule == "MSK203"} == {status}
    assert not report.findings


@pytest.mark.parametrize(
    ("evidence", "times"), [pytest.param(False, 2, id="verdicts"), pytest.param(True, 4, id="all")]
)
def test_a_launch_costs_no_more_than_the_check(evidence: bool, times: int) -> None:
    """What a launch adds to all rules is no more than twice what they take without one; with what
    verdicts rest on and how far they carry, which has a budget of its own, four times."""

    def seconds(*, launched: bool) -> float:
        best = 1e9
        for _ in range(3):
            spent = 0.0
            for kernel in ("copy_rows", "copy_tiles", "fill_wide", "shift_line", "gather"):
                case = next(c for c in LAUNCHES.CASES if c.kernel == kernel)
                text, names = compiled(kernel, 0, 90)
                twin = TWINS[kernel]
                build = twin.builds[0]
                launch = LAUNCHES.launch(list(names), twin.types, build, case.given(build))
                item = Input("twin.ptx", text, None, (launch,) if launched else ())
                start = process_time()
                run([item], Options(evidence=evidence))
                spent += process_time() - start
            best = min(best, spent)
        return best

    without = seconds(launched=False)
    assert seconds(launched=True) - without < times * without


@pytest.mark.parametrize(
    ("kernel", "name", "programs"),
    [("copy_rows", "524289", 524_288), ("fill", "3270000000", 2**31 // 1024)],
)
def test_the_finding_says_from_which_grid_on(kernel: str, name: str, programs: int) -> None:
    (case,) = [c for c in LAUNCHES.CASES if (c.kernel, c.name) == (kernel, name)]
    (finding,) = checked(case, 0, 90).findings
    assert f"more than {programs:,} programs along x" in finding.breaks_when


@pytest.mark.parametrize(
    ("kernel", "name", "rule", "size", "span", "only", "fails_at"),
    [
        ("copy_rows", "524288", "BND301", "n", (1, 524_288, 1), False, 524_289),
        ("copy_rows", "524289", "BND301", "n", (1, 524_288, 1), False, 524_289),
        ("copy_tiles", "16743", "BND302", "M", (1, 16_743, 1), False, 16_744),
        ("copy_tiles", "16744", "BND301", "M", (1, 16_743, 1), False, 16_744),
        ("fill", "2147483648", "BND301", "n", (1, 1 << 31, 1), False, (1 << 31) + 1),
        ("fill", "3270000000", "BND301", "n", (1, 1 << 31, 1), False, (1 << 31) + 1),
        ("copy_heads", "10922", "BND304", "n", (1, 65_535, 1), False, 65_536),
        ("scale_line", "whole tiles", "MSK203", "n", (1024, 1 << 31, 1024), True, None),
        ("map_bare_load", "whole tiles", "MSK202", "n", (128, I32 // 128 * 128, 128), True, None),
        ("map_masked", "5", "BND302", "n", (1, (1 << 31) - 1, 1), False, None),
        ("gather", "indices inside", "BND302", "n", (5000, (1 << 31) - 1, 1), False, None),
    ],
)
def test_how_far_the_verdict_carries(
    kernel: str,
    name: str,
    rule: str,
    size: str,
    span: tuple[int, int, int],
    only: bool,
    fails_at: int | None,
) -> None:
    (case,) = [c for c in LAUNCHES.CASES if (c.kernel, c.name) == (kernel, name)]
    twin = TWINS[kernel]
    text, names = compiled(kernel, 0, 90)
    launch = LAUNCHES.launch(list(names), twin.types, twin.builds[0], case.given(twin.builds[0]))
    report = run([Input("twin.ptx", text, None, (launch,))], Options(select=(rule,)))
    parts = [part for o in report.obligations for part in o.generalises if part.name == size]
    assert (parts[0].low, parts[0].high, parts[0].step) == span
    assert parts[0].only == only
    if fails_at is not None:
        assert parts[0].fails_at == fails_at


@pytest.mark.parametrize(
    ("kernel", "name", "program"),
    [("copy_rows", "524289", 524_288), ("fill", "3270000000", 2**31 // 1024)],
)
def test_a_witness_is_the_first_program(kernel: str, name: str, program: int) -> None:
    (case,) = [c for c in LAUNCHES.CASES if (c.kernel, c.name) == (kernel, name)]
    (finding,) = checked(case, 0, 90).findings
    assert finding.witness["ctaid"] == [program, 0, 0]
    assert finding.witness["value"] == 2**31


def test_a_tile_whose_index_wraps_is_one_finding() -> None:
    (case,) = [c for c in LAUNCHES.CASES if (c.kernel, c.name) == ("copy_tiles", "40960")]
    assert len(checked(case, 0, 90).findings) == 1
