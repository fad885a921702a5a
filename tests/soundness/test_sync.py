"""What is said of barriers and warp operations, held to who comes to them."""

from __future__ import annotations

from typing import Any

import numpy as np
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
from ptxlint.launches import Argument, Launch, Scalar, Tensor


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


def launches(emulator: Emulator, random: np.random.Generator) -> list[Launch]:
    """A few CTAs of several sizes, with numbers around them."""
    out = []
    for _ in range(12):
        arguments: dict[str, Argument] = {}
        for number, variable in enumerate(emulator.kernel.params):
            if variable.type.endswith("64"):
                tensor = Tensor("int32", (1024,), (1,), number, 4096, values=(0, 3))
                arguments[variable.name] = tensor
            else:
                arguments[variable.name] = Scalar("", int(random.integers(0, 200)))
        threads = int(random.choice([32, 64, 128, 96]))
        fixed = emulator.kernel.directives.get("reqntid")
        block = (0, 0, 0) if fixed else (threads, 1, 1)
        out.append(Launch((int(random.integers(1, 4)), 1, 1), block, arguments))
    return out


@pytest.mark.parametrize("sample", emulators())
def test_what_is_proved_of_a_sample_is_kept(sample: Any) -> None:
    emulator = emulated(sample)
    judge, random = Judge(emulator, None), np.random.default_rng(1)
    for seed, launch in enumerate(launches(emulator, random)):
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
