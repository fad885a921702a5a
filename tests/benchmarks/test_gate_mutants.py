"""Mutants for the gate: the samples stay what they were, specs speak of right kernels, and the
pages say what was measured.

Each kernel goes through the gate with `--run-slow`, and so does a mutant.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

GATE = Path(__file__).resolve().parents[2] / "benchmarks" / "gate"
sys.path.insert(0, str(GATE))
mutants: Any = pytest.importorskip("mutants", reason="needs the benchmarks of a checkout")
sys.path.remove(str(GATE))
PAGES = ("cuda", "emulator")
DIGESTS = ("adc388b8b75b", "3988157a1447", "6d90eaee7914")


@pytest.fixture(scope="module")
def population() -> list[Any]:
    found: list[Any] = mutants.population(mutants.cases())
    return found


def test_samples_stay_what_they_were_and_share_nothing(population: list[Any]) -> None:
    samples = [mutants.sample(population, number) for number in range(mutants.SAMPLES)]
    names = [[mutant.name for mutant in drawn] for drawn in samples]
    assert len({name for drawn in names for name in drawn}) == sum(map(len, names))
    for drawn, digest in zip(samples, DIGESTS, strict=True):
        assert len(drawn) >= 40
        assert {m.mutation.operator for m in drawn} == set(mutants.OPERATORS)
        told = "\n".join(m.name for m in drawn)
        assert hashlib.sha256(told.encode()).hexdigest()[:12] == digest


def test_every_mutant_that_is_listed_can_be_made(population: list[Any]) -> None:
    listed = json.loads(mutants.CHANGED.read_text(encoding="utf-8"))
    assert len(population) == len(listed) == len({tuple(one) for one in listed})


def test_no_kernel_has_a_spec_among_those_that_the_gate_was_written_with() -> None:
    specs = GATE.parents[1] / "fixtures" / "specs"
    text = "\n".join(path.read_text(encoding="utf-8") for path in specs.glob("*.py"))
    known = mutants.specs()
    assert len(known) >= 12
    assert not [name for name in known if f'"{name}"' in text or f"\n{name} = " in text]
    assert set(known) == {case.kernel for case in mutants.cases()}


@pytest.mark.parametrize("runner", PAGES)
def test_pages_say_what_was_measured(runner: str) -> None:
    found = sorted(GATE.glob(f"mutants-{runner}-*.json"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    reasons = json.loads(mutants.REASONS.read_text(encoding="utf-8"))
    page = (GATE / f"mutants-{runner}.md").read_text(encoding="utf-8")
    assert page == mutants.page(runner, results, reasons)
    for result in results:
        alarms = {r["kernel"] for r in result["right"] if r["verdict"] != "pass"}
        assert alarms <= (set() if runner == "emulator" else set(reasons))
        failed = sum(r["verdict"] == "fail" for r in result["mutants"])
        assert failed >= 0.9 * len(result["mutants"])


def test_the_page_on_libraries_says_what_was_measured() -> None:
    result = json.loads((GATE / "mutants-libraries.json").read_text(encoding="utf-8"))
    reasons = json.loads(mutants.REASONS.read_text(encoding="utf-8"))
    page = (GATE / "mutants-libraries.md").read_text(encoding="utf-8")
    assert page.endswith("\n".join(mutants.tables(result, reasons)) + "\n")
    assert {r["verdict"] for r in result["right"]} == {"pass"}


@pytest.mark.parametrize("runner", PAGES)
def test_what_was_measured_are_the_samples(runner: str, population: list[Any]) -> None:
    for path in GATE.glob(f"mutants-{runner}-*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        drawn = mutants.sample(population, result["sample"])
        wanted = [(m.case.name, m.mutation.operator, m.mutation.change) for m in drawn]
        assert [(r["kernel"], r["operator"], r["change"]) for r in result["mutants"]] == wanted


@pytest.mark.slow
def test_a_right_kernel_passes_and_its_mutant_fails(population: list[Any]) -> None:
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    pytest.importorskip("torch", reason="needs torch: install ptxlint[dev]")
    (drawn,) = [
        m for m in population
        if m.case.kernel == "kl_divergence" and m.mutation.operator == "overwrite"
    ]  # fmt: skip
    settings = mutants.Settings(mutants.Options("emulator", reducing=0), jobs=2)
    (mutated,), (right,) = mutants.judged([drawn], [drawn.case], settings)
    assert (mutated.verdict, right.verdict) == ("fail", "pass")
    assert mutated.kernel == right.kernel == "held_out.kl_divergence"


@pytest.mark.slow
def test_every_right_kernel_passes() -> None:
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    pytest.importorskip("torch", reason="needs torch: install ptxlint[dev]")
    settings = mutants.Settings(mutants.Options("emulator", reducing=0), jobs=2)
    _, right = mutants.judged([], mutants.cases(), settings)
    assert len(right) == len(mutants.specs())
    assert {row.kernel for row in right if row.verdict != "pass"} == set()
