"""No run disproves what is said of the masks of twins: padding of defects gets out, or what comes
out is not what the float64 reference has; that of mended ones stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import twin_launches as TWINS  # noqa: N812
from leaking import followed
from references import emulated

SAMPLE = (
    "softmax_fill_zero", "softmax_filled_behind", "maximum_fill_zero", "maximum_fill_infinity",
    "variance_in_chunks_of_all_lanes", "dot_fill_infinity", "rms_norm",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    TWINS.BUILDS.prepare(str(tmp_path_factory.mktemp("cache")))
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    return tmp_path_factory.mktemp("twins")


def empty_lanes(sizes: Mapping[str, int], constants: Mapping[str, Any]) -> int:
    """How many lanes along the axis that is summed up a launch leaves empty in the last tile."""
    if "K" in sizes:
        return -sizes["K"] % constants.get("BLOCK_K", 1)
    if "n_rows" in sizes:
        return -sizes["n_rows"] % int(constants["BLOCK_M"])
    return -(sizes["n_cols"] if "n_cols" in sizes else sizes["n"]) % int(constants["BLOCK"])


def judge(twin: Any, build: Any) -> Counter[str]:
    """Hold what is said of a build's masks to its launches: how many replays came to what."""
    name = build.path.stem
    counts: Counter[str] = Counter()
    proved = followed(build, "proved")
    assert not any(one.leaks for one in proved), name
    counts["proved, kept"] += len(proved)
    refuted = followed(build, "refuted")
    for one in refuted:
        empty = empty_lanes(one.sizes, build.constants)
        # What is chosen in place of padding, and the place of the greatest number, carry no label
        # themselves: then the numbers tell.
        is_wrong = not emulated.hold(build, one.sizes).is_right
        assert (one.leaks or is_wrong) == (empty > 0), (name, one)
        how = "leaks" if one.leaks else "is wrong" if is_wrong else "no tail"
        counts[f"refuted, {how}"] += 1
    if any(rule == "MSK201" for rule, _ in twin.marks):
        assert refuted, name
    return counts


@pytest.mark.parametrize("kernel", SAMPLE)
def test_a_twin(kernel: str) -> None:
    twin = TWINS.twin_of(kernel)
    counts = judge(twin, TWINS.older(twin, "sm_90"))
    assert counts.total() >= 4


@pytest.mark.slow
def test_all_twins_by_an_older_triton() -> None:
    counts: Counter[str] = Counter()
    for build in TWINS.all_older():
        counts += judge(TWINS.twin_of(build.kernel), build)
    print(dict(counts))
    assert counts["proved, kept"] > 200
    assert counts["refuted, leaks"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_all_twins(capability: int, folder: Path) -> None:
    counts: Counter[str] = Counter()
    for twin, settled in TWINS.builds(capability):
        counts += judge(twin, TWINS.built(twin, settled, capability, folder))
    print(f"sm_{capability}: {dict(counts)}")
    assert counts["proved, kept"] > 400
    assert counts["refuted, leaks"] > 80
