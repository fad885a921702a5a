"""The part of the audit that knows no launch: findings, verdicts by family, why masks stay open."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import judged
from judged import Label
from markdown import table

LIBRARIES = {"liger": "liger-kernel", "fla": "fla-core"}
STATUSES = ("proved", "refuted", "open")

Run = dict[str, Any]


def summary(library: str, arch: str, report: dict[str, Any]) -> Run:
    """What of a report is compared and committed."""
    verdicts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for obligation in report["obligations"]:
        if obligation["family"] == "semantics":
            continue
        verdicts.setdefault(obligation["family"], Counter())[obligation["status"]] += 1
        if obligation["family"] == "tail-mask" and obligation["status"] == "open":
            reasons[_general(obligation["reason"])] += 1
    return {
        "library": library,
        "arch": arch,
        "kernels": report["summary"]["kernels"],
        "lines": report["summary"]["lines"],
        "findings": judged.digest(report),
        "verdicts": {family: dict(sorted(c.items())) for family, c in sorted(verdicts.items())},
        "open tail-mask": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    }


def _general(reason: str) -> str:
    """A reason without what differs from kernel to kernel."""
    return re.sub(r"\d[\d,]*", "N", reason.split(";")[0].split(":")[0].strip())


def changes(old: list[Run], new: list[Run]) -> list[str]:
    """What differs between two records, a line each."""
    known = {(run["library"], run["arch"]): run for run in old}
    lines = []
    for run in new:
        name = f"{run['library']} {run['arch']}"
        before = known.get((run["library"], run["arch"]))
        if before is None:
            lines.append(f"{name}: not in the record")
            continue
        if before["kernels"] != run["kernels"]:
            lines.append(f"{name}: {before['kernels']} -> {run['kernels']} kernels")
        found = judged.changes(before["findings"], run["findings"])
        lines += [f"{name}: {line}" for line in found]
        lines += [f"{name}: {line}" for line in _verdict_changes(before, run)]
    return lines


def _verdict_changes(before: Run, after: Run) -> list[str]:
    lines = []
    for family in sorted(before["verdicts"].keys() | after["verdicts"].keys()):
        old, new = (run["verdicts"].get(family, {}) for run in (before, after))
        lines += [
            f"{family} {status} {old.get(status, 0)} -> {new.get(status, 0)}"
            for status in STATUSES
            if old.get(status, 0) != new.get(status, 0)
        ]
    return lines


# The page -----------------------------------------------------------------------------------------
def sections(runs: list[Run], known: dict[str, Label]) -> list[str]:
    """Of docs/precision.md."""
    heads = [f"{LIBRARIES[run['library']]} {run['arch']}" for run in runs]
    return [
        "## Kernels and findings\n\n" + _counts(runs, heads, known),
        "## Verdicts\n\n" + _verdicts(runs, heads),
        "## Why masks stay open\n\n" + _reasons(runs, heads),
    ]


def _counts(runs: list[Run], heads: list[str], known: dict[str, Label]) -> str:
    rows: list[list[Any]] = [
        ["kernels", *(run["kernels"] for run in runs)],
        ["lines of PTX", *(f"{run['lines']:,}" for run in runs)],
    ]
    counted = [_by_rule(run) for run in runs]
    for severity in ("error", "warning", "note"):
        rules = sorted({r for c in counted for s, r in c if s == severity})
        rows += [[f"{r}, {severity}s", *(c[severity, r] for c in counted)] for r in rules]
    rows.append(["**false** errors and warnings", *(false_alarms(run, known) for run in runs)])
    return table(["", *heads], rows)


def _by_rule(run: Run) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for finding in run["findings"]:
        counted[finding["severity"], finding["rule"]] += finding["builds"]
    return counted


def false_alarms(run: Run, known: dict[str, Label]) -> int:
    """Errors and warnings that are not labelled true."""
    return judged.false_ones(run["findings"], known, ("error", "warning"))


def _verdicts(runs: list[Run], heads: list[str]) -> str:
    families = sorted({family for run in runs for family in run["verdicts"]})
    rows: list[list[Any]] = []
    for family in families:
        cells = []
        for run in runs:
            counts = run["verdicts"].get(family, {})
            cells.append(" / ".join(str(counts.get(status, 0)) for status in STATUSES))
        rows.append([f"`{family}`", *cells])
    rows.append(["`tail-mask` decided", *(_decided(run) for run in runs)])
    return "Proved / refuted / open.\n\n" + table(["family", *heads], rows)


def _decided(run: Run) -> str:
    counts = run["verdicts"].get("tail-mask", {})
    total = sum(counts.values())
    return f"{100 * (total - counts.get('open', 0)) / total:.1f} %" if total else "-"


def _reasons(runs: list[Run], heads: list[str]) -> str:
    total: Counter[str] = Counter()
    for run in runs:
        total.update(run["open tail-mask"])
    if not total:
        return "None does."
    rows = [
        [reason, *(run["open tail-mask"].get(reason, 0) for run in runs)]
        for reason, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))
    ]
    return table(["what is not known", *heads], rows)
