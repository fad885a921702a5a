"""Which rules run."""

from __future__ import annotations

import pytest

from ptxlint.engine.registry import Registry
from ptxlint.engine.selection import SelectionError, enabled_rules
from ptxlint.rulekit import Rule, Sample


def make_rule(identifier: str, rule_name: str, *, trial: bool = False) -> type[Rule]:
    """A rule that says nothing."""
    sample = Sample("x", f"ret; //~ {identifier}")

    class Made(Rule):
        id = identifier
        name = rule_name
        severity = "warning"
        confidence = "high"
        category = "masking"
        family = "guard"
        summary = "s"
        why = "w"
        fix = "f"
        bad = (sample,)
        good = (sample,)
        preview = trial

    return Made


@pytest.fixture
def registry() -> Registry:
    out = Registry()
    for identifier, name, trial in (
        ("MSK201", "fill-not-neutral", False),
        ("MSK202", "guard-asymmetry", False),
        ("NUM407", "stray-f64", False),
        ("NUM410", "unbounded-exp", True),
    ):
        out.add(make_rule(identifier, name, trial=trial), "test")
    out.sort()
    return out


ALWAYS = {"PARSE", "INPUT", "INTERNAL"}
ASIDE = {"SUP001", "SUP002", "BAS901", "BAS902", "BAS903"}


@pytest.mark.parametrize(
    ("select", "ignore", "on"),
    [
        ([], [], {"MSK201", "MSK202", "NUM407"} | ASIDE),
        (["MSK"], [], {"MSK201", "MSK202"}),
        (["MSK2"], ["MSK201"], {"MSK202"}),
        (["msk201"], [], {"MSK201"}),
        (["stray-f64"], [], {"NUM407"}),
        (["NUM"], [], {"NUM407"}),
        (["NUM410"], [], {"NUM410"}),
        (["unbounded-exp"], [], {"NUM410"}),
        (["ALL"], ["MSK"], {"NUM407"} | ASIDE),
        ([], ["MSK", "SUP", "BAS"], {"NUM407"}),
        (["MSK201"], ["MSK"], {"MSK201"}),
        (["MSK201"], ["MSK201"], set()),
        (["PARSE"], [], set()),
    ],
)
def test_selection(registry: Registry, select: list[str], ignore: list[str], on: set[str]) -> None:
    assert enabled_rules(registry, select, ignore) == on | ALWAYS


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("MKS201", "did you mean MSK201"),
        ("MSK204", "did you mean MSK20"),
        ("stray-f46", "did you mean stray-f64 (NUM407)"),
        ("QQQ", "`ptxlint rules` lists them all"),
        ("", "lists them all"),
    ],
)
def test_an_unknown_selector_is_refused_with_advice(
    registry: Registry, word: str, advice: str
) -> None:
    with pytest.raises(SelectionError) as caught:
        enabled_rules(registry, [word])
    assert advice in str(caught.value)
    with pytest.raises(SelectionError):
        enabled_rules(registry, [], [word])


def test_failures_cannot_be_ignored(registry: Registry) -> None:
    with pytest.raises(SelectionError, match="PARSE cannot be ignored"):
        enabled_rules(registry, [], ["PARSE"])
    assert enabled_rules(registry, [], ["ALL"]) == ALWAYS
