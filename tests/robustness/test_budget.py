"""Work budgets: hostile kernels are answered in counted work, and what was given up is open."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

import pytest

from ptxlint import SourceText, check
from ptxlint.obligations import Obligation

ROOT = Path(__file__).resolve().parents[2]
SPENT = "the work budget of"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hostile", ROOT / "benchmarks" / "hostile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOSTILE: dict[str, Callable[[int], str]] = _load().KERNELS
SOFTMAX = ROOT / "fixtures" / "ptx" / "sm_80" / "softmax.ptx"


def verdicts(source: object, budget: float) -> list[Obligation]:
    report = check(source, select="ALL", budget=budget)  # type: ignore[arg-type]
    assert [f.message for f in report.findings if f.rule == "INTERNAL"] == []
    return list(report.obligations)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_kernels_are_answered(
    name: str, deadline: Callable[[int], AbstractContextManager[None]]
) -> None:
    """A text of 3,000 instructions in seconds, whatever it is made of."""
    with deadline(30):
        report = check(SourceText(HOSTILE[name](3_000), "hostile.ptx"), select="ALL")
    assert [f.message for f in report.findings if f.rule in ("INTERNAL", "PARSE")] == []


def test_past_the_budget_nothing_is_proved() -> None:
    """Less work never decides otherwise: proofs become open, and say why."""
    whole = {(o.rule, o.place): o for o in verdicts(SOFTMAX, 1.0)}
    decided = [o for o in whole.values() if o.rule == "MSK201" and o.status == "proved"]
    assert decided
    seen: set[str] = set()
    for factor in (1e-6, 1e-4, 1e-3, 1e-2, 0.1):
        for found in verdicts(SOFTMAX, factor):
            full = whole.get((found.rule, found.place))
            if full is not None and found.status != full.status:
                assert found.status == "open"
                seen.add(found.reason)
    assert any(SPENT in reason for reason in seen)


def test_the_smallest_budget_proves_no_mask() -> None:
    found = [o for o in verdicts(SOFTMAX, 1e-6) if o.rule.startswith(("MSK", "BND"))]
    assert found
    assert "proved" not in {o.status for o in found}
    assert all(not o.assumes for o in found)


def _twice(factor: float) -> Iterator[list[Obligation]]:
    text = SourceText(HOSTILE["long_sum"](1_000), "hostile.ptx")
    for _ in range(2):
        yield verdicts(text, factor)


@pytest.mark.parametrize("factor", [0.001, 0.02, 0.3, 1.0])
def test_the_same_budget_gives_the_same_verdicts(factor: float) -> None:
    first, second = _twice(factor)
    assert first == second


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan")])
def test_a_budget_is_positive(factor: float) -> None:
    with pytest.raises(ValueError, match="give a factor"):
        check(SOFTMAX, budget=factor)
