"""What every rule says about every fixture: `python benchmarks/findings_table.py`.

Checks fixtures/ and writes `findings.md`: a row a kernel, a column a rule. The page depends on the
fixtures and the rules alone, so that a change of either shows as a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import ptxlint
from ptxlint.diagnostics import Finding
from ptxlint.obligations import Obligation
from ptxlint.reporters.verdicts import judged

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "findings.md"
GROUPS = (
    ("ptx", "Triton", "a row stands for the builds of one variant, an architecture each"),
    ("ptx-nvcc", "nvcc", "a row is a kernel of one source; `_debug` is built with `-G`"),
    ("ptx-llvm", "LLVM", "a row is a kernel of one source"),
)
SEVERITIES = ("error", "warning", "note")
STATUSES = ("proved", "open", "refuted")


class Row(NamedTuple):
    """A kernel of one fixture name: its builds, and its findings by rule and severity."""

    name: str
    builds: int
    findings: Counter[tuple[str, str]]
    verdicts: Counter[tuple[str, str]]


def rows(group: str) -> list[Row]:
    """The rows of a folder of fixtures, by name."""
    builds: Counter[str] = Counter()
    findings: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    verdicts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for path in sorted((ROOT / "fixtures" / group).rglob("*.ptx")):
        report = ptxlint.check(path)
        for kernel in report.kernels:
            builds[_name(group, path.stem, kernel.name)] += 1
        for finding in report.findings:
            findings[_name(group, path.stem, finding.kernel)].update(_findings(finding))
        for obligation in judged(report.obligations):
            verdicts[_name(group, path.stem, obligation.kernel)].update(_verdicts(obligation))
    names = sorted({*builds, *findings})
    return [Row(name, builds[name], findings[name], verdicts[name]) for name in names]


def _name(group: str, stem: str, kernel: str) -> str:
    return stem if group == "ptx" else f"{stem}: {kernel}"


def _findings(finding: Finding) -> list[tuple[str, str]]:
    """A finding counts once for each place in which it was met."""
    return [(finding.rule, finding.severity)] * (1 + len(finding.occurrences))


def _verdicts(obligation: Obligation) -> list[tuple[str, str]]:
    return [(obligation.rule, obligation.status)]


def table(found: list[Row], rules: list[str]) -> list[str]:
    """The rows as a Markdown table."""
    lines = [
        f"| kernel | builds | {' | '.join(rules)} |",
        f"|---|---:|{'---|' * len(rules)}",
    ]
    for row in found:
        cells = " | ".join(_cell(row, rule) for rule in rules)
        lines.append(f"| {row.name} | {row.builds} | {cells} |")
    return lines


def _cell(row: Row, rule: str) -> str:
    counts = [(row.findings[rule, severity], severity) for severity in SEVERITIES]
    return ", ".join(f"{n} {severity}{'s' * (n > 1)}" for n, severity in counts if n)


def totals(found: list[Row], rules: list[str]) -> list[str]:
    """Findings and verdicts by rule over all rows."""
    lines = [
        f"| rule | {' | '.join(f'{s}s' for s in SEVERITIES)} | {' | '.join(STATUSES)} |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for rule in rules:
        counts = [sum(row.findings[rule, severity] for row in found) for severity in SEVERITIES]
        counts += [sum(row.verdicts[rule, status] for row in found) for status in STATUSES]
        lines.append(f"| {rule} | {' | '.join(str(n) if n else '' for n in counts)} |")
    return lines


def page() -> str:
    """The whole page."""
    groups = [(title, note, rows(folder)) for folder, title, note in GROUPS]
    everything = [row for _, _, found in groups for row in found]
    said = {rule for row in everything for rule, _ in (*row.findings, *row.verdicts)}
    rules = sorted(said)
    reporting = sorted({rule for row in everything for rule, _ in row.findings})
    lines = [
        "# Findings over the fixtures",
        "",
        "Written by `python benchmarks/findings_table.py`; a test holds it equal to what is found.",
        "Counts are of findings in all builds of a kernel together. Verdicts say whether a",
        "property of a build was proved, refuted or left open.",
        "",
        *totals(everything, rules),
    ]
    for title, note, found in groups:
        lines += ["", f"## {title}", "", f"Here {note}.", "", *table(found, reporting)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or with `--check` compare it; exit status 1 if it differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    text = page()
    if arguments.check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
