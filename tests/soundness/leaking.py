"""Padding of a build's loads, followed through the launches of its reference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from ptxlint.dynamic.emulator.inputs import GivenInputs, RandomInputs
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.judge.masks import leaks, said
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import launches as LAUNCHES  # noqa: E402, N812


class Followed(NamedTuple):
    """One launch, by its dimensions, and whether padding leaves it."""

    sizes: dict[str, int]
    leaks: bool


def followed(build: Any, status: str, first: int | None = None, text: str = "") -> list[Followed]:
    """Where padding gets of the loads of a build that have a verdict: in the launches that its
    reference lists, or `first` so many; empty without such loads. `text` stands for the build's."""
    module = parse(text or build.path.read_text(), str(build.path))
    emulator = Emulator(module, module.kernels()[0])
    beside = LAUNCHES.metadata(build)
    sites = getattr(said(emulator, beside), status)
    if not sites:
        return []
    out = []
    for case in list(LAUNCHES.cases(build, 0))[:first]:
        inputs = GivenInputs(case.contents, RandomInputs(1), build.name)
        found = leaks(emulator, case.launch, beside, inputs, sites)
        out.append(Followed(dict(case.sizes), bool(found)))
    return out
