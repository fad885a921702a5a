"""Rebuilds that mean something else are never called the same, and those that mean the same never
anything else.

`--run-slow` takes all fixtures, the default a few; both say with `-rP` how many rebuilds were held
against their kernels.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.module import Module
from ptxlint.structure.alignment import Alignment, align
from ptxlint.structure.canonical import Kernel

sys.path.insert(0, str(Path(__file__).parent))
from kernel_mutants import MATTERS, Mutant, mutants, rebuilds

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LARGEST = 60_000
"""Bytes of the largest text that is mutated: many small ones try more than few large ones."""
SAMPLE = ("ptx/sm_80/softmax", "ptx/sm_90/argmax", "ptx-nvcc/sm_75/control_flow")
SAME = {"identical", "renamed"}


def kernels(module: Module) -> list[Kernel]:
    return [Kernel(function, module) for function in module.kernels()]


def aligned(old: Module, new: Mutant) -> list[Alignment] | None:
    """All kernels side by side; None if the rebuild is no PTX."""
    module = parse(new.text)
    if any(not problem.note for problem in module.problems):
        return None
    pairs = zip(kernels(old), kernels(module), strict=True)
    return [align(a, b) for a, b in pairs]


def hold(paths: list[Path], each: int) -> Counter[str]:
    """Hold rebuilds of these files against them; how many there were, by what was done."""
    met: Counter[str] = Counter()
    for path in paths:
        text = path.read_text()
        old, random = parse(text), Random(path.name)
        if old.problems or not old.kernels():
            continue
        for mutant in mutants(text, random, each):
            found = aligned(old, mutant)
            if found is None:
                continue
            met[mutant.name] += 1
            others = [a for a in found if a.kind not in SAME]
            assert others, f"{path}: {mutant.name} is called {found[0].kind}"
            # What is another one is named.
            for a in others:
                told = (*a.changed, *a.removed, *a.added, *a.rewired, *a.declared)
                assert told, f"{path}: {mutant.name} is {a.kind}, and nothing is named"
        for mutant in rebuilds(text, random):
            found = aligned(old, mutant)
            if found is None:
                continue
            met[f"same: {mutant.name}"] += 1
            kinds = {a.kind for a in found}
            assert kinds <= SAME, f"{path}: {mutant.name} is called {kinds}"
    print(f"{met.total():,} rebuilds: {dict(sorted(met.items()))}")
    return met


def test_a_sample_of_rebuilds() -> None:
    met = hold([FIXTURES / f"{name}.ptx" for name in SAMPLE], each=1)
    assert met.total() > 100


@pytest.mark.slow
def test_rebuilds_of_all_fixtures() -> None:
    paths = [p for p in sorted(FIXTURES.glob("ptx*/*/*.ptx")) if p.stat().st_size < LARGEST]
    met = hold(paths, each=2)
    assert set(MATTERS) <= set(met)
    assert met.total() > 30_000
