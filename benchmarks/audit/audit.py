"""What ptxlint says about the kernels of two libraries, and what has changed since the last time.

    python benchmarks/audit/audit.py [--work DIR] [--arch sm_90,sm_80] [--update]

Installs the versions that requirements.txt pins, compiles their kernels without a GPU, checks
them with every rule and compares with `recorded.json`: findings by fingerprint, verdicts by
family. Each error and warning needs a word in `labels.toml`, true or false and why. With
`--update` the record and docs/precision.md are written anew; otherwise a difference, or a finding
without a label, is exit status 1. The libraries' code is run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
RECORD = HERE / "recorded.json"
LABELS = HERE / "labels.toml"
PAGE = HERE.parents[1] / "docs" / "precision.md"
LIBRARIES = {"liger": "liger-kernel", "fla": "fla-core"}
STATUSES = ("proved", "refuted", "open")


class Label(NamedTuple):
    """A person's word on a finding: `true` only if a launch and finite input reproduce it."""

    verdict: str
    why: str


def labels() -> dict[str, Label]:
    """By fingerprint."""
    table = tomllib.loads(LABELS.read_text(encoding="utf-8"))
    return {key: Label(entry["verdict"], entry["why"]) for key, entry in table.items()}


# Running ------------------------------------------------------------------------------------------
def install(site: Path) -> None:
    """Put the pinned libraries into a folder of their own."""
    if (site / "liger_kernel").exists() and (site / "fla").exists():
        return
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site),
         "--requirement", str(HERE / "requirements.txt")],
        check=True,
    )  # fmt: skip


def compile_kernels(library: str, arch: str, site: Path, out: Path) -> None:
    """Compile a library's kernels, unless they are there."""
    if (out / "failed.txt").exists():
        return
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "TRITON_CACHE_DIR": str(out.parent / "cache"),
    }
    command = [sys.executable, str(HERE / "collect.py"), library, str(out), "--arch", arch]
    subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)


def check(folder: Path) -> dict[str, Any]:
    """The JSON report of every rule that is not in preview."""
    command = [sys.executable, "-m", "ptxlint", "check", str(folder), "--no-config",
               "--format", "json"]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"ptxlint could not check {folder}: exit status {done.returncode}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def summary(library: str, arch: str, report: dict[str, Any]) -> dict[str, Any]:
    """What of a report is compared and committed."""
    findings: dict[str, dict[str, Any]] = {}
    for finding in map(_finding, report["findings"]):
        # Builds of one kernel may word the same finding with other numbers.
        known = findings.setdefault(finding["fingerprint"], {**finding, "builds": 0})
        known["builds"] += finding["builds"]
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
        "findings": sorted(findings.values(), key=lambda f: (f["rule"], f["place"], f["message"])),
        "verdicts": {family: dict(sorted(c.items())) for family, c in sorted(verdicts.items())},
        "open tail-mask": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    }


def _general(reason: str) -> str:
    """A reason without what differs from kernel to kernel."""
    return re.sub(r"\d[\d,]*", "N", reason.split(";")[0].split(":")[0].strip())


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    source = finding["source"] or {"path": "", "line": 0}
    parts = Path(source["path"]).parts
    roots = [at for at, part in enumerate(parts) if part in ("liger_kernel", "fla")]
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


# Comparing ----------------------------------------------------------------------------------------
def changes(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
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
        lines += [f"{name}: {line}" for line in _finding_changes(before, run)]
        lines += [f"{name}: {line}" for line in _verdict_changes(before, run)]
    return lines


def _finding_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    old = {f["fingerprint"]: f for f in before["findings"]}
    new = {f["fingerprint"]: f for f in after["findings"]}
    lines = [f"new {_line(new[key])}" for key in new if key not in old]
    lines += [f"gone {_line(old[key])}" for key in old if key not in new]
    for key in new.keys() & old.keys():
        if new[key]["severity"] != old[key]["severity"]:
            lines.append(f"{old[key]['severity']} -> {_line(new[key])}")
    return lines


def _line(finding: dict[str, Any]) -> str:
    return "{severity} {rule} {kernel} {place} [{fingerprint}] {message}".format(**finding)


def _verdict_changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    lines = []
    for family in sorted(before["verdicts"].keys() | after["verdicts"].keys()):
        old, new = (run["verdicts"].get(family, {}) for run in (before, after))
        lines += [
            f"{family} {status} {old.get(status, 0)} -> {new.get(status, 0)}"
            for status in STATUSES
            if old.get(status, 0) != new.get(status, 0)
        ]
    return lines


def unlabelled(runs: list[dict[str, Any]], known: dict[str, Label]) -> list[str]:
    """Errors and warnings that nobody has judged."""
    return sorted(
        {
            _line(f)
            for run in runs
            for f in run["findings"]
            if f["severity"] != "note" and f["fingerprint"] not in known
        }
    )


# The page -----------------------------------------------------------------------------------------
def page(runs: list[dict[str, Any]], known: dict[str, Label]) -> str:
    """docs/precision.md."""
    heads = [f"{LIBRARIES[run['library']]} {run['arch']}" for run in runs]
    parts = [
        (HERE / "page_head.txt").read_text(encoding="utf-8").rstrip(),
        "## Kernels and findings\n\n" + _counts(runs, heads, known),
        "## Errors and warnings, one by one\n\n" + _judged(runs, known),
        "## Verdicts\n\n" + _verdicts(runs, heads),
        "## Why masks stay open\n\n" + _reasons(runs, heads),
        (HERE / "page_tail.txt").read_text(encoding="utf-8").rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def _counts(runs: list[dict[str, Any]], heads: list[str], known: dict[str, Label]) -> str:
    rows: list[list[Any]] = [
        ["kernels", *(run["kernels"] for run in runs)],
        ["lines of PTX", *(f"{run['lines']:,}" for run in runs)],
    ]
    counted = [_by_rule(run) for run in runs]
    for severity in ("error", "warning", "note"):
        rules = sorted({r for c in counted for s, r in c if s == severity})
        rows += [[f"{r}, {severity}s", *(c[severity, r] for c in counted)] for r in rules]
    rows.append(["**false** errors and warnings", *(_false(run, known) for run in runs)])
    return _table(["", *heads], rows)


def _by_rule(run: dict[str, Any]) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for finding in run["findings"]:
        counted[finding["severity"], finding["rule"]] += finding["builds"]
    return counted


def _false(run: dict[str, Any], known: dict[str, Label]) -> int:
    return sum(
        f["builds"]
        for f in run["findings"]
        if f["severity"] != "note"
        and known.get(f["fingerprint"], Label("false", "")).verdict != "true"
    )


def _judged(runs: list[dict[str, Any]], known: dict[str, Label]) -> str:
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        found.update({f["fingerprint"]: f for f in run["findings"] if f["severity"] != "note"})
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


def _verdicts(runs: list[dict[str, Any]], heads: list[str]) -> str:
    families = sorted({family for run in runs for family in run["verdicts"]})
    rows: list[list[Any]] = []
    for family in families:
        cells = []
        for run in runs:
            counts = run["verdicts"].get(family, {})
            cells.append(" / ".join(str(counts.get(status, 0)) for status in STATUSES))
        rows.append([f"`{family}`", *cells])
    rows.append(["`tail-mask` decided", *(_decided(run) for run in runs)])
    return "Proved / refuted / open.\n\n" + _table(["family", *heads], rows)


def _decided(run: dict[str, Any]) -> str:
    counts = run["verdicts"].get("tail-mask", {})
    total = sum(counts.values())
    return f"{100 * (total - counts.get('open', 0)) / total:.1f} %" if total else "-"


def _reasons(runs: list[dict[str, Any]], heads: list[str]) -> str:
    total: Counter[str] = Counter()
    for run in runs:
        total.update(run["open tail-mask"])
    if not total:
        return "None does."
    rows = [
        [reason, *(run["open tail-mask"].get(reason, 0) for run in runs)]
        for reason, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))
    ]
    return _table(["what is not known", *heads], rows)


def main() -> int:
    """Run the audit; 1 if something changed or has no label."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--work", type=Path, default=HERE / "work", help="where files are kept")
    options.add_argument("--arch", default="sm_90,sm_80")
    options.add_argument("--update", action="store_true", help="write the record and the page")
    given = options.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    install(work / "site")
    runs = []
    for arch in given.arch.split(","):
        for library in LIBRARIES:
            folder = work / f"{library}-{arch}"
            compile_kernels(library, arch, work / "site", folder)
            runs.append(summary(library, arch, check(folder)))
    old = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else []
    differences = changes(old, runs)
    missing = unlabelled(runs, labels())
    print("\n".join(differences) or "nothing changed")
    print("\n".join(f"no label: {line}" for line in missing) or "every finding has a label")
    if given.update:
        RECORD.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(runs, labels()), encoding="utf-8")
        return 0
    return 1 if differences or missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
