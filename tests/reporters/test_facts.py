"""`show facts` on whole files: every instruction is there, and nothing makes it fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxlint.dataflow.floats import BF16, F32, anything, exactly, finite
from ptxlint.dataflow.integer_words import Span
from ptxlint.dataflow.padding_values import DATA, UNKNOWN, Number, Word
from ptxlint.engine.registry import default_registry
from ptxlint.engine.said import rules_on
from ptxlint.facts import Analysis, Facts
from ptxlint.frontends.ptx import parse
from ptxlint.reporters import facts_view
from ptxlint.reporters.facts_json import render_facts_json
from ptxlint.reporters.facts_text import render_facts
from ptxlint.reporters.facts_view import FactsView, word_text

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PATHS = [
    *sorted(FIXTURES.glob("ptx/sm_90/*.ptx"))[::12],
    *sorted(FIXTURES.glob("ptx-nvcc/sm_90/*.ptx"))[:2],
    *sorted(FIXTURES.glob("ptx-llvm/*.ptx"))[:1],
    *sorted(FIXTURES.glob("syntax/*.ptx"))[::9],
]


def views(path: Path) -> list[FactsView]:
    """The facts of all functions of a file."""
    module = parse(path.read_text(encoding="utf-8", errors="replace"), str(path))
    functions = [f for f in module.functions if not f.is_declaration]
    facts = [Facts(module, function) for function in functions]
    return [FactsView(f, rules_on(f, default_registry())) for f in facts]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_instruction_is_there_once(path: Path) -> None:
    found = views(path)
    data = json.loads(render_facts_json(found, lambda instr: True))
    for view, function in zip(found, data["functions"], strict=True):
        instrs = view.facts.function.instrs
        assert [i["text"] for i in function["instructions"]] == [repr(i) for i in instrs]
        lines = render_facts(view, lambda instr: True).splitlines()
        assert sum(line[:6].strip().isdigit() for line in lines) == len(instrs)
        texts = {f["text"] for i in function["instructions"] for f in i["facts"]}
        assert all(any(text in line for line in lines) for text in texts)


def test_a_spent_budget_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    path = FIXTURES / "ptx" / "sm_90" / "softmax_buggy.ptx"
    whole = render_facts(views(path)[0], lambda instr: True)
    monkeypatch.setattr(facts_view, "_STEPS", 0)
    cut = render_facts(views(path)[0], lambda instr: True)
    assert "%r1 = 0 without m1" in whole
    assert "%r1 = 0 without m1" not in cut
    assert "%r1 = anything without m1" in cut
    assert "4*tid.x < n_cols" not in cut  # no source is at hand here
    assert "4*tid.x < softmax_kernel_param_4" in cut


def test_a_rule_that_crashes_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Analysis[int]):
        """Never gets done."""

        name = "broken"

        def run(self, facts: Facts) -> int:
            """Crash."""
            raise ZeroDivisionError("oh")

    registry = default_registry()
    rule = registry.rules["MSK201"]
    monkeypatch.setattr(rule, "check", lambda self, fn, facts: iter([facts.get(Broken)]))
    path = FIXTURES / "ptx" / "sm_90" / "softmax_buggy.ptx"
    module = parse(path.read_text(), str(path))
    said = rules_on(Facts(module, module.functions[0]), registry)
    text = render_facts(FactsView(Facts(module, module.functions[0]), said), lambda instr: False)
    assert "open[MSK201] the rule crashed: ZeroDivisionError('oh')" in text
    assert "proved[SYN501]" in text


@pytest.mark.parametrize(
    ("word", "width", "expected"),
    [
        (0, 32, "0"),
        (0xFF800000, 32, "0xff800000 (-inf as f32)"),
        (0xFC00, 16, "0xfc00 (-inf as f16)"),
        (1 << 40, 64, str(1 << 40)),
        (DATA, 32, "finite data"),
        (UNKNOWN, 32, "anything"),
        (Span(0, 7), 32, "0..7"),
        (Number(F32, exactly(0.5)), 32, "0.5"),
        (Number(F32, exactly(float("-inf"))), 32, "-inf"),
        (Number(F32, finite(F32)), 32, "finite"),
        (Number(BF16, finite(BF16, 0.0)), 16, "0..max"),
        (Number(F32, finite(F32, -2.0, 3.0)), 32, "-2..3"),
        (Number(F32, anything(F32)), 32, "anything"),
        ((0, Number(BF16, exactly(1.0))), 32, "{0, 1}"),
    ],
)
def test_words_in_words(word: Word, width: int, expected: str) -> None:
    assert word_text(word, width) == expected
