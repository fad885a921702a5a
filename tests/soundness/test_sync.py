"""What is said of barriers and warp operations, held to who comes to them."""

from __future__ import annotations

from typing import Any

import corpus
import pytest

from ptxlint.dynamic.emulator.inputs import RandomInputs
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.judge import sync
from ptxlint.dynamic.judge.replay import Judge, said
from ptxlint.engine.registry import default_registry
from ptxlint.engine.samples import module_text
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


def emulators() -> list[Any]:
    """The samples of both rules."""
    rules = [default_registry().rules[rule] for rule in ("SYN501", "SYN502")]
    return [
        pytest.param(sample, id=f"{rule.id}-{sample.title}")
        for rule in rules
        for sample in (*rule.bad, *rule.good)
    ]


def emulated(sample: Any) -> Emulator:
    module = parse(module_text(sample), "sample.ptx")
    try:
        return Emulator(module, module.kernels()[0])
    except UnsupportedError:
        pytest.skip("not run by the emulator")


@pytest.mark.parametrize("sample", emulators())
def test_what_is_proved_of_a_sample_is_kept(sample: Any) -> None:
    emulator = emulated(sample)
    judge = Judge(emulator, None)
    for seed, launch in enumerate(corpus.made_up(module_text(sample), 12)):
        found = judge.replay(launch, RandomInputs(seed), (sync.judge,), seed)
        assert found.contradictions == []


@pytest.mark.parametrize("sample", emulators())
def test_what_is_refuted_of_a_sample_happens(sample: Any) -> None:
    emulator = emulated(sample)
    facts = Facts(emulator.module, emulator.kernel)
    judged = list(sync.witnessed(emulator, facts))
    verdicts = [v for rule in ("SYN501", "SYN502") for v in said(facts, rule)[0]]
    assert bool(judged) == any(verdict.status == "refuted" for verdict in verdicts)
    for judgement in judged:
        assert judgement.happened == "violated", judgement.what
