"""No run disproves what is said of infinities and NaN: of finite data none is stored, or just the
one that a finding tells of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import twin_launches as TWINS  # noqa: N812
from leaking import LAUNCHES
from references import emulated

from ptxlint.dynamic.judge.nonfinite import Held, hold

SAMPLE = ("softmax", "silu", "l2norm", "flash_attention", "cross_entropy_fwd")
TWIN_SAMPLE = {
    "window_softmax": "NUM404", "layer_norm_with_eps": "", "quantise_zero_block": "NUM406",
    "quantise_chosen_scale": "", "softmax_without_maximum": "NUM405", "activations": "",
    "sum_of_exponentials": "NUM410",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    TWINS.BUILDS.prepare(str(tmp_path_factory.mktemp("cache")))
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    return tmp_path_factory.mktemp("twins")


def judged(build: Any) -> Held:
    launches = [(case.launch, case.contents) for case in LAUNCHES.cases(build, 0)]
    return hold(emulated.emulator(build.path), launches, LAUNCHES.metadata(build))


@pytest.mark.parametrize("name", SAMPLE)
def test_a_build(name: str) -> None:
    held = judged(emulated.build(name, "sm_80"))
    assert held.contradictions == []
    assert held.counts["proved", "finite"] >= 30


@pytest.mark.parametrize("kernel", TWIN_SAMPLE)
def test_a_twin(kernel: str) -> None:
    twin, rule = TWINS.twin_of(kernel), TWIN_SAMPLE[kernel]
    held = judged(TWINS.older(twin, "sm_90"))
    assert held.contradictions == []
    assert {what for what, _ in held.counts} == {f"{rule} refuted" if rule else "proved"}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_all_builds(arch: str) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for build in LAUNCHES.builds((arch,)):
        held = judged(build)
        assert held.contradictions == [], build.name
        counts += held.counts
    print(f"{arch}: {dict(counts)}")
    assert counts["proved", "finite"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_all_twins(capability: int, folder: Path) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for twin, settled in TWINS.builds(capability):
        build = TWINS.built(twin, settled, capability, folder)
        held = judged(build)
        assert held.contradictions == [], build.path.stem
        counts += held.counts
    print(f"sm_{capability}: {dict(counts)}")
    assert counts["proved", "finite"] > 3000
    for rule, least in (("NUM404", 12), ("NUM405", 25), ("NUM406", 25), ("NUM410", 40)):
        assert counts[f"{rule} refuted", "met"] >= least, rule


@pytest.mark.slow
def test_all_twins_by_an_older_triton() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for build in TWINS.all_older():
        held = judged(build)
        assert held.contradictions == [], build.path.stem
        counts += held.counts
    print(dict(counts))
    assert counts["proved", "finite"] > 300
