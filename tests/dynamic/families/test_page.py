"""The page docs/families.md is what the families say."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from ptxlint.dynamic.cases.checks import CHECKS
from ptxlint.dynamic.families import Family
from ptxlint.dynamic.families.registry import all_families

PAGE = Path(__file__).resolve().parents[3] / "docs" / "families.md"
HEAD = """\
# Families of stress tests

This page is written from the families themselves:
`pytest tests/dynamic/families/test_page.py --update-cases`.

`ptxlint gate` runs *semantics* once for each dtype, and of the others those that decide a verdict
which the static half left open. `ptxlint stress` runs all, or those that `--family` names.
[How often each way to fill tensors](../benchmarks/gate/values-emulator.md) shows a fault at a
family's sizes is measured.

"""


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def section(family: type[Family]) -> list[str]:
    return [
        f"## {family.id}", "", wrapped(family.summary), "", wrapped(f"*Why*: {family.why}"), "",
        wrapped(
            f"Decides {', '.join(family.decides)}. Values: {', '.join(family.values)}. "
            f"Checks: {', '.join(family.checks)}. For {' and '.join(family.runs_on)}."
        ),
        "",
    ]  # fmt: skip


def page() -> str:
    """The text of docs/families.md."""
    lines = [line for family in all_families().values() for line in section(family)]
    checks = [f"| {name} | {what} |" for name, what in CHECKS.items()]
    return HEAD + "\n".join([*lines, "## Checks", "", "| check | what holds where it passes |",
                             "|---|---|", *checks]) + "\n"  # fmt: skip


def test_the_page_of_families(pytestconfig: pytest.Config) -> None:
    text = page()
    if pytestconfig.getoption("--update-cases"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
