"""Findings of an audit, and a person's word on each."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
LABELS = HERE / "labels.toml"
PACKAGES = ("liger_kernel", "fla", "gemlite", "sageattention", "conch", "moe_ops")

Finding = dict[str, Any]


class Label(NamedTuple):
    """A person's word on a finding: `true` only if a launch and finite input reproduce it."""

    verdict: str
    why: str


def labels() -> dict[str, Label]:
    """By fingerprint."""
    table = tomllib.loads(LABELS.read_text(encoding="utf-8"))
    return {key: Label(entry["verdict"], entry["why"]) for key, entry in table.items()}


def digest(report: dict[str, Any]) -> list[Finding]:
    """What of the findings of a JSON report is compared and committed."""
    found: dict[str, Finding] = {}
    for finding in report["findings"]:
        # What the input says of itself is no word on a kernel.
        if finding["rule"] == "INPUT":
            continue
        made = _finding(finding)
        # Builds of one kernel may word the same finding with other numbers.
        known = found.setdefault(made["fingerprint"], {**made, "builds": 0})
        known["builds"] += made["builds"]
    return sorted(found.values(), key=lambda f: (f["rule"], f["place"], f["message"]))


def _finding(finding: dict[str, Any]) -> Finding:
    source = finding["source"] or {"path": "", "line": 0}
    parts = Path(source["path"]).parts
    roots = [at for at, part in enumerate(parts) if part in PACKAGES]
    place = "/".join(parts[roots[-1] :]) if roots else Path(source["path"]).name
    return {
        "fingerprint": finding["fingerprint"],
        "rule": finding["rule"],
        "severity": finding["severity"],
        "kernel": finding["kernel"],
        "builds": max(1, len(finding["paths"])),
        "place": f"{place}:{source['line']}",
        "message": finding["message"],
    }


def changes(before: Iterable[Finding], after: Iterable[Finding]) -> list[str]:
    """What findings are new, gone or of another severity, a line each."""
    old = {f["fingerprint"]: f for f in before}
    new = {f["fingerprint"]: f for f in after}
    lines = [f"new {line(new[key])}" for key in new if key not in old]
    lines += [f"gone {line(old[key])}" for key in old if key not in new]
    for key in new.keys() & old.keys():
        if new[key]["severity"] != old[key]["severity"]:
            lines.append(f"{old[key]['severity']} -> {line(new[key])}")
    return lines


def line(finding: Finding) -> str:
    """A finding in one line."""
    return "{severity} {rule} {kernel} {place} [{fingerprint}] {message}".format(**finding)


def unlabelled(findings: Iterable[Finding], known: dict[str, Label]) -> list[str]:
    """Errors and warnings that nobody has judged."""
    alarms = (f for f in findings if f["severity"] != "note")
    return sorted({line(f) for f in alarms if f["fingerprint"] not in known})


def false_ones(
    findings: Iterable[Finding], known: dict[str, Label], severities: tuple[str, ...]
) -> int:
    """How many findings are false, or have no label, counted once for each build of a kernel."""
    unknown = Label("false", "")
    return sum(
        f["builds"]
        for f in findings
        if f["severity"] in severities and known.get(f["fingerprint"], unknown).verdict != "true"
    )


def one_by_one(findings: Iterable[Finding], known: dict[str, Label]) -> str:
    """All errors and warnings with the word on each."""
    found = {f["fingerprint"]: f for f in findings if f["severity"] != "note"}
    if not found:
        return "There are none."
    lines = ["| finding | where | true | why |", "|---|---|---|---|"]
    for key, finding in sorted(found.items(), key=lambda item: (item[1]["rule"], item[1]["place"])):
        label = known.get(key, Label("not judged", ""))
        where = f"`{finding['kernel']}`, {finding['place']}"
        lines.append(
            f"| {finding['rule']} {finding['message']} | {where} | {label.verdict} | {label.why} |"
        )
    return "\n".join(lines)
