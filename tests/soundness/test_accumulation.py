"""No run disproves what is said of sums: the same sums in float64, over one tile and several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import twin_launches as TWINS  # noqa: N812
from sums import LAUNCHES, emulated, judged

from ptxlint.dynamic.judge.accumulation import SIZES, Size, hold

SAMPLE = (
    "matmul", "matmul_buggy", "matmul_dot_fp16", "matmul_dot_buggy", "flash_attention",
    "flash_attention_buggy", "flash_fwd_buggy", "cross_entropy_fwd", "decay_scan",
    "layer_norm_fwd",
)  # fmt: skip
TWIN_SAMPLE = (
    "column_sum_narrow", "column_sum_wide", "mean_of_tile", "norm_of_row", "logsumexp_rescaled",
    "lanes_not_rescaled",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    TWINS.BUILDS.prepare(str(tmp_path_factory.mktemp("cache")))
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    return tmp_path_factory.mktemp("twins")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_build(name: str) -> None:
    held = judged(emulated.build(name, "sm_80"))
    assert held is not None
    assert held.contradictions == []
    assert held.counts.total() >= 2
    assert any("refuted" in what for what, _ in held.counts) == name.endswith("_buggy")


@pytest.mark.parametrize("kernel", TWIN_SAMPLE)
def test_a_twin(kernel: str) -> None:
    twin = TWINS.twin_of(kernel)
    held = judged(TWINS.older(twin, "sm_90"))
    assert held is not None
    assert held.contradictions == []
    assert any("refuted" in what for what, _ in held.counts) == bool(twin.marks)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_all_builds(arch: str) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for build in LAUNCHES.builds((arch,)):
        held = judged(build)
        if held is not None:
            assert held.contradictions == [], build.name
            counts += held.counts
    print(f"{arch}: {dict(counts)}")
    assert counts["proved", "right"] > 180
    assert counts["NUM401 refuted", "off"] >= 9
    assert counts["NUM402 refuted", "off"] >= 12


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_all_twins(capability: int, folder: Path) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for twin, settled in TWINS.builds(capability):
        build = TWINS.built(twin, settled, capability, folder)
        held = judged(build)
        if held is not None:
            assert held.contradictions == [], build.path.stem
            counts += held.counts
    print(f"sm_{capability}: {dict(counts)}")
    assert counts["proved", "right"] > 400
    for rule in ("NUM401", "NUM402", "NUM403", "NUM409", "MSK201"):
        assert counts[f"{rule} refuted", "off"] >= 12, rule


@pytest.mark.slow
def test_all_twins_by_an_older_triton() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for build in TWINS.all_older():
        held = judged(build)
        if held is not None:
            assert held.contradictions == [], build.path.stem
            counts += held.counts
    print(dict(counts))
    assert counts["proved", "right"] > 100


# The judge itself -----------------------------------------------------------------------------
def runs(**misses: float) -> Callable[[Size], float | None]:
    """Errors by size: `w1` is one whole round, `r2` two of which the last has a rest."""
    by_size = {Size(int(name[1:]), name[0] == "w"): miss for name, miss in misses.items()}
    return by_size.get


@pytest.mark.parametrize(
    ("said", "misses", "wrong"),
    [
        ({"NUM401": "proved"}, {"w1": 0.5, "w2": 1.0, "r3": 0.9}, 0),
        ({"NUM401": "proved"}, {"w1": 0.5, "w2": 1.01}, 1),
        ({"NUM401": "refuted"}, {"w1": 0.5, "w2": 1e3, "w3": 1e3}, 0),
        ({"NUM401": "refuted"}, {"w1": 0.5, "w2": 0.5, "w3": 1e3}, 1),
        ({"NUM402": "refuted"}, {"w1": 1e3, "w2": 1e3}, 1),
        ({"NUM402": "refuted", "NUM401": "open"}, {"w1": 0.5, "w2": 2.0}, 1),
        ({"NUM409": "refuted"}, {"w1": 0.5, "r1": 1e3}, 0),
        ({"NUM409": "refuted"}, {"w1": 0.5, "r1": 0.5}, 1),
        ({"NUM403": "refuted"}, {"w1": 1.5, "w2": 0.5, "w5": 1.5}, 0),
        ({"NUM403": "refuted"}, {"w1": 1.5, "w5": 0.5}, 1),
        ({"NUM401": "proved", "MSK201": "open"}, {"w1": 0.5, "r1": 1e3}, 0),
        ({"NUM401": "proved", "MSK201": "open"}, {"w1": 2.0, "r1": 1e3}, 1),
        ({"NUM401": "proved", "NUM403": "open"}, {"w1": 2.0}, 0),
        ({"NUM401": "open"}, {"w1": 2.0}, 0),
        ({}, {"w1": 2.0}, 0),
        ({"NUM401": "proved"}, {"w1": float("nan"), "w2": float("inf")}, 2),
    ],
)
def test_what_contradicts_what(said: dict[str, str], misses: dict[str, float], wrong: int) -> None:
    assert len(hold(said, runs(**misses)).contradictions) == wrong
    assert {Size(1, True), Size(5, False)} <= set(SIZES)
