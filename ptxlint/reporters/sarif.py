"""SARIF 2.1.0 for code scanning.

The Python line is the primary location where it is known, and the PTX line a related one; without
a Python line the PTX line is primary. Faults of the input and of rules are results too, and
additionally make the invocation unsuccessful.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import ptxlint
from ptxlint.engine.fingerprint import digest
from ptxlint.engine.pseudo import PSEUDO_RULES, PseudoRule
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.registry import default_registry
from ptxlint.reporters.wording import launch_lines, spread

if TYPE_CHECKING:
    from ptxlint.diagnostics import Finding
    from ptxlint.engine.baseline.entries import FindingEntry
    from ptxlint.engine.emulated import EmulatedRule
    from ptxlint.engine.report import Report
    from ptxlint.rulekit import Rule

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_RANK = {"high": 90.0, "medium": 60.0, "low": 30.0}


def render_sarif(report: Report) -> str:
    """The report as a SARIF log of one run."""
    import json

    return json.dumps(sarif_log(report), indent=1) + "\n"


def sarif_log(report: Report, kinds: tuple[PseudoRule, ...] = ()) -> dict[str, Any]:
    """The SARIF log as plain data; `kinds` explain findings that no check makes."""
    held = () if report.baseline is None else report.baseline.held
    descriptors = _descriptors((*report.findings, *held), kinds)
    index = {descriptor["id"]: at for at, descriptor in enumerate(descriptors)}
    sources = PythonSources()
    driver = {
        "name": "ptxlint",
        "semanticVersion": ptxlint.__version__,
        "rules": descriptors,
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": report.exit_code != 2}],
        "results": _results(report, index, sources),
    }
    s = report.summary
    if s.launches or s.left_out:
        run["properties"] = {
            "launches": s.launches,
            "launchedKernels": s.launched,
            "launchesLeftOut": s.left_out,
        }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _results(report: Report, index: dict[str, int], sources: PythonSources) -> list[dict[str, Any]]:
    """All findings; with a baseline those that it holds back and those that are gone, too."""
    outcome = report.baseline
    if outcome is None:
        return [_result(finding, index, sources) for finding in report.findings]
    results = [
        {**_result(finding, index, sources), "baselineState": outcome.state(finding)}
        for finding in report.findings
    ]
    results += [
        {**_result(finding, index, sources), "baselineState": "unchanged"}
        for finding in outcome.held
    ]
    return results + [_absent(entry, index) for entry in outcome.absent]


def _absent(entry: FindingEntry, index: dict[str, int]) -> dict[str, Any]:
    """A finding of the baseline that does not occur any more."""
    where = {"logicalLocations": [{"name": entry.kernel, "kind": "function"}]}
    text = f"no longer found: {entry.line}" if entry.line else "no longer found"
    return {
        "ruleId": entry.rule,
        **({"ruleIndex": index[entry.rule]} if entry.rule in index else {}),
        "level": _LEVELS[entry.severity],
        "message": {"text": text},
        **({"locations": [where]} if entry.kernel else {}),
        "partialFingerprints": {"ptxlint/v1": entry.fingerprint},
        "baselineState": "absent",
    }


def _descriptors(
    findings: Iterable[Finding], kinds: tuple[PseudoRule, ...]
) -> list[dict[str, Any]]:
    """Descriptions of all rules there are, in the order of their identifiers."""
    known: dict[str, type[Rule] | PseudoRule] = {
        **default_registry().rules,
        **{pseudo.id: pseudo for pseudo in (*PSEUDO_RULES, *kinds)},
    }
    out = {identifier: _descriptor(rule) for identifier, rule in known.items()}
    others = {finding.rule: finding.name for finding in findings if finding.rule not in out}
    if others:
        # Most reports are of checks, which need none of this.
        from ptxlint.engine.emulated import EMULATED

        out |= {rule.id: _descriptor(rule) for rule in EMULATED}
    for identifier, name in others.items():
        out.setdefault(identifier, {"id": identifier, "name": name})
    return [out[identifier] for identifier in sorted(out)]


def _descriptor(rule: type[Rule] | PseudoRule | EmulatedRule) -> dict[str, Any]:
    markdown = f"{rule.why}\n\n**Fix:** {rule.fix}"
    out: dict[str, Any] = {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\nFix: {rule.fix}", "markdown": markdown},
        "defaultConfiguration": {
            "level": _LEVELS[rule.severity],
            "rank": _RANK[rule.confidence],
            "enabled": not rule.preview,
        },
        "properties": {"tags": sorted({rule.category, rule.family}), "precision": rule.confidence},
    }
    if rule.refs:
        out["helpUri"] = rule.refs[0]
    return out


def _result(finding: Finding, index: dict[str, int], sources: PythonSources) -> dict[str, Any]:
    place = finding.place
    source = place.source
    ptx = _location(place.path, place.line, place.column, finding.kernel)
    related: list[dict[str, Any]] = []
    if source is None:
        primary = ptx
    else:
        primary = _location(source.path, source.line, source.column, finding.kernel)
        label = finding.label or "the instruction in PTX"
        related.append({**_location(place.path, place.line, place.column), **_message(label)})
    for other in finding.related:
        shown = other.place.source or other.place
        related.append(
            {**_location(shown.path, shown.line, shown.column), **_message(other.message)}
        )
    for frame in place.chain:
        if source is not None and frame != source:
            location = _location(frame.path, frame.line, frame.column)
            related.append({**location, **_message("on the inlining chain")})
    fingerprints = {"ptxlint/v1": finding.fingerprint}
    text = sources.line(source.path, source.line).strip() if source is not None else ""
    if text:
        fingerprints["pythonLine/v1"] = digest(finding.rule, finding.kernel, text)
    return {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": _LEVELS[finding.severity],
        "rank": _RANK[finding.confidence],
        "message": {"text": _text(finding)},
        "locations": [primary],
        **({"relatedLocations": _numbered(related)} if related else {}),
        "partialFingerprints": fingerprints,
        "properties": {
            "family": finding.family,
            "kernel": finding.kernel,
            "architectures": list(finding.archs),
            "exact": finding.exact,
            **({"launch": finding.launch} if finding.launch else {}),
            **({"witness": finding.witness} if finding.launch and finding.witness else {}),
        },
    }


def _text(finding: Finding) -> str:
    parts = [finding.message]
    if finding.breaks_when:
        parts.append(f"Breaks when: {finding.breaks_when}")
    parts += [f"{title.capitalize()}: {text}" for title, text in launch_lines(finding)]
    if finding.help:
        parts.append(f"Help: {finding.help}")
    where = spread(finding)
    if where:
        parts.append(f"In: {where}")
    return "\n".join(parts)


def _location(path: str, line: int, column: int, kernel: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(path)},
            "region": {"startLine": max(1, line), "startColumn": max(1, column)},
        }
    }
    if kernel:
        out["logicalLocations"] = [{"name": kernel, "kind": "function"}]
    return out


def _message(text: str) -> dict[str, Any]:
    return {"message": {"text": text}}


def _numbered(locations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": number, **location} for number, location in enumerate(locations, 1)]


def _uri(path: str) -> str:
    """A path as a URI reference: relative as it is, absolute with its scheme."""
    from urllib.parse import quote

    plain = quote(os.fsencode(path.replace(os.sep, "/")))
    return f"file://{plain}" if os.path.isabs(path) else plain
