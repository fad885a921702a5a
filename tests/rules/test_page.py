"""The pages docs/rules.md and benchmarks/findings.md are what the rules and the fixtures say."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from ptxlint.engine.emulated import EMULATED
from ptxlint.engine.pseudo import PSEUDO_RULES
from ptxlint.engine.registry import default_registry
from ptxlint.rulekit import Rule

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "rules.md"
GROUPS = {
    "RES": "Resources",
    "MSK": "Masking",
    "BND": "Bounds",
    "NUM": "Numerics",
    "SYN": "Synchronisation",
    "HAZ": "Global hazards",
    "PRF": "Performance",
}
HEAD = """\
# Rules

This page is written from the rules themselves: `pytest tests/rules/test_page.py --update-cases`.
`ptxlint rule RES101` prints one rule with the PTX that it reports and the PTX that it leaves alone.

**error**: wrong or crashing for some launch that the finding names. **warning**: very likely a
defect. **note**: advice, or something that could not be decided. Only errors and warnings make the
exit status 1. A rule may lower its severity for a case that is less sure; *Why* says which.
A *preview* rule runs only when it is selected by its identifier.

"""


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def overview(rules: list[type[Rule]]) -> list[str]:
    lines = ["| rule | severity | confidence | family | what |", "|---|---|---|---|---|"]
    for rule in rules:
        name = f"{rule.id} {rule.name}"
        link = f"[{name}](#{name.lower().replace(' ', '-')})"
        severity = f"{rule.severity}, preview" if rule.preview else rule.severity
        cells = (link, severity, rule.confidence, rule.family, rule.summary)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def section(rule: type[Rule]) -> list[str]:
    lines = [f"### {rule.id} {rule.name}", "", wrapped(rule.summary), ""]
    lines += [wrapped(f"*Why*: {rule.why}"), "", wrapped(f"*Fix*: {rule.fix}"), ""]
    reported = "; ".join(sample.title for sample in rule.bad)
    fine = "; ".join(sample.title for sample in rule.good)
    lines += [wrapped(f"*Reported*: {reported}."), "", wrapped(f"*Fine*: {fine}."), ""]
    lines += [f"- <{url}>" for url in rule.refs]
    return lines if not rule.refs else [*lines, ""]


def page() -> str:
    """The text of docs/rules.md."""
    rules = list(default_registry().rules.values())
    lines = overview(rules)
    for prefix, title in GROUPS.items():
        members = [rule for rule in rules if rule.id.startswith(prefix)]
        if members:
            lines += ["", f"## {title}", ""]
            for rule in members:
                lines += section(rule)
            lines.pop()
    lines += [
        "",
        "## Findings that are no rule's",
        "",
        "| name | severity | what |",
        "|---|---|---|",
    ]
    lines += [f"| {p.id} | {p.severity} | {p.summary} |" for p in PSEUDO_RULES]
    lines += [
        "",
        "## What a run finds",
        "",
        "`ptxlint emulate` runs kernels ([Emulator](emulator.md)); `ptxlint rule EMU905` explains",
        "what it found, with samples.",
        "",
        "| name | `--sanitize` | family | what |",
        "|---|---|---|---|",
    ]
    lines += [f"| {e.id} {e.name} | {e.watch} | {e.family} | {e.summary} |" for e in EMULATED]
    return HEAD + "\n".join(lines) + "\n"


def test_every_rule_is_in_a_group() -> None:
    assert {rule[:3] for rule in default_registry().rules} <= set(GROUPS)


def test_the_page_of_rules(pytestconfig: pytest.Config) -> None:
    text = page()
    if pytestconfig.getoption("--update-cases"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def findings_table() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "findings_table", ROOT / "benchmarks" / "findings_table.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_group_of_the_findings_table() -> None:
    """The rows of nvcc's kernels; the whole page is compared by the slow test."""
    table = findings_table()
    rows = {row.name: row for row in table.rows("ptx-nvcc")}
    assert rows["barriers: divergent_barrier"].builds == 2
    assert rows["barriers: divergent_barrier"].findings["SYN501", "warning"] == 2
    assert rows["barriers: uniform_barrier"].verdicts["SYN501", "proved"] == 2
    shown = table.table([rows["barriers: divergent_barrier"]], ["NUM408", "SYN501"])
    assert shown[-1] == "| barriers: divergent_barrier | 2 |  | 2 warnings |"


@pytest.mark.slow
def test_the_findings_table() -> None:
    table = findings_table()
    assert table.PAGE.read_text(encoding="utf-8") == table.page()
