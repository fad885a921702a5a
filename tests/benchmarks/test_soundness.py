"""What was recorded on a GPU, and that the page and ptxlint of today agree with it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "soundness"
MODULES = ("seeds", "cases", "compare", "gpu_case", "run", "table")


@pytest.fixture(scope="module")
def room() -> Iterator[Any]:
    """Imports modules of the folder, which find each other there."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    data: dict[str, Any] = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = data["cases"]
    return found


def test_page_is_what_the_results_give(room: Any) -> None:
    table = room("table")
    assert table.PAGE.read_text(encoding="utf-8") == table.page()


def test_ptxlint_and_the_gpu_agree(room: Any, results: list[dict[str, Any]]) -> None:
    bad = room("compare").BAD
    assert [case for case in results if case.get("disagreements")] == []
    wrong = [case for case in results if case["gpu"] in bad]
    right = [case for case in results if case["gpu"] == "inside"]
    assert len(wrong) + len(right) == len(results)
    assert {case["said"] for case in wrong} == {"refuted", "open"}
    assert {case["said"] for case in right} == {"clean", "open"}
    assert len({case["kernel"] for case in wrong if case["said"] == "refuted"}) >= 30
    stopped = [case for case in wrong if case.get("checker") in ("fault", "refused")]
    assert len({case["kernel"] for case in stopped}) >= 30


def test_libraries_agree() -> None:
    for library in json.loads((FOLDER / "libraries.json").read_text(encoding="utf-8")):
        assert library["disagreements"] == []
        assert library["accesses"].get("proved, outside", 0) == 0
        assert library["accesses"].get("refuted above, inside", 0) == 0


VERDICT = {
    "rules": [],
    "statuses": ["proved"],
    "accesses": {
        4: ["proved", 16, [0, 64]],
        7: ["refuted above", 4, [0, 64]],
        9: ["never", 4, [0, 8]],
    },
}


@pytest.mark.parametrize(
    ("touched", "said"),
    [
        ({"4": [0, 48, 0], "7": [0, 64, 0]}, []),
        ({"4": [0, 49, 0], "7": [0, 64, 0]}, ["access 4: proved, and outside"]),
        ({"4": [-16, 48, 0], "7": [0, 64, 0]}, ["access 4: proved, and outside"]),
        ({"4": [8, 40, 8], "7": [0, 64, 0]}, ["access 4: proved, and misaligned"]),
        ({"4": [0, 48, 0], "7": [0, 60, 0]}, ["access 7: refuted above, and inside"]),
        ({"4": [0, 48, 0]}, ["access 7: refuted above, and not run"]),
        ({"7": [0, 64, 0], "9": [0, 4, 0]}, ["access 9: never, and it takes place"]),
    ],
)
def test_a_disagreement_is_seen(room: Any, touched: dict[str, Any], said: list[str]) -> None:
    record = room("compare").compared(VERDICT, {"ran": True, "touched": touched}, None)
    found = [d for d in record["disagreements"] if d.startswith("access")]
    assert found == said


@pytest.mark.parametrize(
    ("rules", "logged", "checked", "said"),
    [
        ([], {"fault": "CUDA_ERROR_ILLEGAL_ADDRESS"}, None, "clean, and fault"),
        ([], {"refused": "CUDA_ERROR_INVALID_VALUE"}, None, "clean, and refused"),
        (["BND302"], {"ran": True, "touched": {}}, None, "refuted, and nothing is wrong"),
        ([], {"ran": True, "touched": {}}, {"ran": True, "faults": ["x"]}, "the memory checker"),
        ([], {"fault": "CUDA_ERROR_ILLEGAL_INSTRUCTION"}, None, ""),
        (["BND302"], {"fault": "CUDA_ERROR_ILLEGAL_ADDRESS"}, {"fault": "x"}, ""),
    ],
)
def test_the_word_on_a_launch(
    room: Any, rules: list[str], logged: Any, checked: Any, said: str
) -> None:
    verdict = {"rules": rules, "statuses": ["proved"], "accesses": {}}
    found = room("compare").compared(verdict, logged, checked)["disagreements"]
    assert bool(found) == bool(said)
    assert said in "".join(found)


@pytest.mark.slow
def test_ptxlint_says_what_it_said(
    room: Any, results: list[dict[str, Any]], tmp_path: Path
) -> None:
    """With the Triton that is installed: what the GPU found wrong stays so but for alignment."""
    from ptxlint.dynamic.capture import capture

    done = capture([str(FOLDER / "kernels.py")], ["sm_90"], tmp_path / "bundle", gpu=False)
    assert done.complete, done
    run, cases, compare = room("run"), room("cases"), room("compare")
    truth = {}
    for case in results:
        if "askew" not in case["seed"]:
            kernel, number = case["kernel"], case["case"].split()[1]
            # Two builds of a kernel are two right ones, or are made wrong alike.
            truth.setdefault((kernel, number, case["seed"]), set()).add(case["gpu"] in compare.BAD)
    seen = 0
    for case in list(cases.cases(str(tmp_path / "bundle")))[::5]:
        known = truth.get((case.kernel, str(case.number), case.seed), set())
        if len(known) == 1:
            seen += 1
            word = compare.word_of(run.verdicts(case))
            assert word in (("refuted", "open") if known == {True} else ("clean", "open")), case
    assert seen > 100
