"""The part of the audit that captures launches: what is proved of accesses, and findings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import judged
from accesses import measure, rate
from judged import Label
from markdown import table

Run = dict[str, Any]


class Library(NamedTuple):
    """A library, and the share of its accesses that is to be proved at least, in percent."""

    name: str
    what: str
    goal: int


LIBRARIES = {
    "liger": Library("liger-kernel", "training: norms, losses, gates, mixture of experts", 98),
    "fla": Library("fla-core", "linear attention", 95),
    "gemlite": Library("gemlite", "GEMM on weights of few bits", 85),
    "sageattention": Library("sageattention", "attention on 8-bit integers", 85),
    "conch": Library("conch-triton-kernels", "paged attention, quantisation, vision", 85),
    "moe_ops": Library("moe-ops", "mixture of experts", 85),
}
OTHERS = ("gemlite", "sageattention", "conch", "moe_ops")
STATUSES = ("proved", "refuted", "open", "dead")
MEASURED = ("capture seconds", "seconds", "seconds without")
"""What differs from run to run."""


def summary(
    library: str, arch: str, bundle: Path, told: dict[str, Any], report: Run, plain: Run
) -> Run:
    """What of a bundle and its reports, with its launches and without, is committed."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    made = measure(str(bundle))
    problems = [f"`{p['what']}`: {_reason(p['reason'])}" for p in manifest["problems"]]
    return {
        "library": library,
        "arch": arch,
        "cases": len(told["cases"]),
        "failed": told["failed"],
        "not captured": sorted(set(problems)) + made.unbound,
        "kernels": made.kernels,
        "functions": len(made.operators),
        "launches": made.launches,
        "times": made.times,
        "accesses": {status: made.statuses[status] for status in STATUSES},
        "reasons": [
            [status, kernel, reason, count]
            for (status, kernel, reason), count in sorted(
                made.reasons.items(), key=lambda item: (-item[1], item[0])
            )
        ],
        "findings": judged.digest(report),
        "capture seconds": told["seconds"] and round(told["seconds"]),
        "seconds": round(report["seconds"], 1),
        "seconds without": round(plain["seconds"], 1),
    }


def changes(old: list[Run], new: list[Run]) -> list[str]:
    """What differs between two records but for times, a line each."""
    known = {(run["library"], run["arch"]): run for run in old}
    lines = []
    for run in new:
        name = f"{run['library']} {run['arch']} under launches"
        before = known.get((run["library"], run["arch"]))
        if before is None:
            lines.append(f"{name}: not in the record")
            continue
        for key in run.keys() - set(MEASURED) - {"findings"}:
            if run[key] != before.get(key):
                told = "" if key == "reasons" else f" {before.get(key)} -> {run[key]}"
                lines.append(f"{name}: {key}{told}")
        found = judged.changes(before["findings"], run["findings"])
        lines += [f"{name}: {line}" for line in found]
    return lines


def missed(runs: Iterable[Run]) -> list[str]:
    """Goals that are not reached, a line each."""
    lines = []
    for name, members, goal in _groups(list(runs)):
        reached = rate(_sum(members))
        if members and reached < goal:
            lines.append(f"{name}: {reached:.2f} % of the accesses are proved, not {goal} %")
    return lines


def _groups(runs: list[Run]) -> list[tuple[str, list[Run], int]]:
    groups = []
    for library in ("liger", "fla"):
        members = [run for run in runs if run["library"] == library]
        groups.append((LIBRARIES[library].name, members, LIBRARIES[library].goal))
    others = [run for run in runs if run["library"] in OTHERS]
    return [*groups, ("the other four together", others, LIBRARIES["conch"].goal)]


def _sum(runs: Iterable[Run]) -> Counter[str]:
    total: Counter[str] = Counter()
    for run in runs:
        total.update(run["accesses"])
    return total


# The page -----------------------------------------------------------------------------------------
def section(runs: list[Run], known: dict[str, Label]) -> str:
    """Of docs/precision.md."""
    parts = [_captured(runs), _accesses(runs), _open(runs), _alarms(runs, known), _lost(runs)]
    return "\n\n".join(parts)


def _name(run: Run) -> str:
    return f"{LIBRARIES[run['library']].name} {run['arch']}"


def _captured(runs: list[Run]) -> str:
    head = ["", "cases", "kernels", "launches", "distinct", "capture", "check", "without launches"]
    rows = [
        [
            f"{_name(run)} ({LIBRARIES[run['library']].what})",
            run["cases"],
            f"{run['kernels']} of {run['functions']} functions",
            run["times"],
            run["launches"],
            *(_seconds(run[key]) for key in MEASURED),
        ]
        for run in runs
    ]
    return table(head, rows)


def _seconds(measured: float | None) -> str:
    return "-" if measured is None else f"{measured} s"


def _accesses(runs: list[Run]) -> str:
    rows = [_access_row(_name(run), run["accesses"]) for run in runs]
    for name, members, goal in _groups(runs):
        rows.append(_access_row(f"**{name}** (goal: {goal} %)", _sum(members)))
    return (
        "Accesses to global memory, each once for each distinct launch. *Dead* ones have a mask "
        "that is constant false; they are not in the rate.\n\n"
        + table(["", *STATUSES, "proved of what is not dead"], rows)
    )


def _access_row(name: str, counts: dict[str, int]) -> list[Any]:
    return [name, *(counts.get(s, 0) for s in STATUSES), f"{rate(counts):.2f} %"]


def _open(runs: list[Run]) -> str:
    archs = sorted({run["arch"] for run in runs})
    total: dict[tuple[str, str, str], Counter[str]] = {}
    for run in runs:
        for status, kernel, reason, count in run["reasons"]:
            if status == "open":
                # What would be inside differs from launch to launch.
                key = run["library"], kernel, reason.partition("; in bounds if")[0]
                total.setdefault(key, Counter())[run["arch"]] += count
    if not total:
        return "None is open."
    order = list(LIBRARIES)
    rows = [
        [f"{LIBRARIES[library].name}, `{kernel}`: {reason}", *(counts[a] for a in archs)]
        for (library, kernel, reason), counts in sorted(
            total.items(), key=lambda item: (order.index(item[0][0]), -item[1].total(), item[0])
        )
    ]
    return "### What is open, and why\n\n" + table(["", *archs], rows)


def _alarms(runs: list[Run], known: dict[str, Label]) -> str:
    rules = sorted({(f["severity"], f["rule"]) for run in runs for f in run["findings"]})
    head = ["", *(_name(run) for run in runs)]
    rows: list[list[Any]] = []
    for severity in ("error", "warning", "note"):
        for _, rule in (pair for pair in rules if pair[0] == severity):
            cells = [_builds(run, severity, rule) for run in runs]
            rows.append([f"{rule}, {severity}s", *cells])
    rows.append(
        ["**false** errors for 100 launches", *(f"{per_hundred(run, known):.1f}" for run in runs)]
    )
    return "### Findings under launches\n\n" + table(head, rows)


def _builds(run: Run, severity: str, rule: str) -> int:
    found = (f for f in run["findings"] if (f["severity"], f["rule"]) == (severity, rule))
    return sum(f["builds"] for f in found)


def per_hundred(run: Run, known: dict[str, Label]) -> float:
    """False errors for a hundred launches."""
    return 100 * judged.false_ones(run["findings"], known, ("error",)) / max(1, run["launches"])


def _lost(runs: list[Run]) -> str:
    lines = []
    for run in runs:
        cases: dict[str, list[str]] = {}
        for name, why in run["failed"].items():
            cases.setdefault(why, []).append(f"`{name}`")
        for why, names in cases.items():
            lines.append(f"- {_name(run)}, {', '.join(names)}: {why}")
        lines += [f"- {_name(run)}, {told}" for told in run["not captured"]]
    return "### What was not captured\n\n" + ("\n".join(lines) or "Nothing is missing.")


def _reason(text: str) -> str:
    """The reason of a problem without what an assembler printed of its own files."""
    return text.partition("`ptxas` stderr")[0].strip().rstrip(":")
