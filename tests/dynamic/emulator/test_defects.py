"""Defects made on purpose are found where they are, and what is right stays silent."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from defects.catalogue import DEFECTS  # noqa: E402
from defects.emulated import emulate  # noqa: E402
from defects.kit import Defect  # noqa: E402
from defects.packed import launch  # noqa: E402
from defects.right import CASES, QUICK, Right  # noqa: E402
from defects.run import reports  # noqa: E402
from defects.table import PAGE, by_tools, page  # noqa: E402

NAMES = [re.sub(r"\W+", "-", defect.name) for defect in DEFECTS]


def test_there_are_enough_and_each_has_a_name() -> None:
    assert len(set(NAMES)) == len(DEFECTS) >= 40
    assert {d.family for d in DEFECTS} == {
        "memcheck", "initcheck", "racecheck", "synccheck", "none",
    }  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS, ids=NAMES)
def test_a_defect_is_found_where_it_is(defect: Defect) -> None:
    """With its rule, at its line, by the first thread that does wrong; and nothing else is."""
    found = emulate(defect.wrong)
    assert sorted(one[:4] for one in found) == sorted(defect.marks), found
    assert bool(defect.unseen) == (not defect.marks), "is it found, or why not?"


@pytest.mark.parametrize("defect", DEFECTS, ids=NAMES)
def test_without_the_defect_nothing_is_found(defect: Defect) -> None:
    assert emulate(defect.right) == []


RIGHT = [
    pytest.param(case, id=case.name, marks=[] if case.build in QUICK else [pytest.mark.slow])
    for case in CASES
]


@pytest.mark.parametrize("case", RIGHT)
def test_right_kernels_stay_silent(case: Right) -> None:
    assert emulate(case.case()) == []


def test_the_page_says_what_is_found() -> None:
    """`python benchmarks/defects/table.py` writes it again."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_a_tool_counts_by_its_reports() -> None:
    text = """
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at k+0x110
========= Invalid __global__ read of size 4 bytes
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) on CUDA API call to cuCtxSynchronize.
========= Error: Race reported between Write access at k+0xf90
========= ERROR SUMMARY: 3 errors
"""
    assert reports(text) == {
        "Invalid __global__ read of size 4 bytes": 2,
        "Error: Race reported between Write access at k+0x…": 1,
    }
    assert by_tools({"memcheck": {"told": {"Illegal instruction": 1}}, "racecheck": {}}) == {
        "memcheck": True
    }


@pytest.mark.parametrize("defect", DEFECTS[:1], ids=NAMES[:1])
def test_a_packed_launch_holds_all_of_it(defect: Defect) -> None:
    found = launch(defect.wrong)
    assert found["kernel"] == "k"
    assert [memory["size"] for memory in found["memories"]] == [200, 200]
    assert [memory["state"] for memory in found["memories"]] == ["filled", "blank"]
    assert found["parameters"][:2] == [{"memory": 0, "first": 0}, {"memory": 1, "first": 0}]
    assert found["parameters"][2] == (50).to_bytes(4, "little").hex()
