"""The page of the defects: `python benchmarks/defects/table.py`.

Reads results.json, which run.py wrote on a machine with a GPU, and writes docs/sanitizers.md.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from defects.catalogue import DEFECTS
from defects.kit import ROOT, Defect
from defects.probes import PROBES
from defects.reasons import FALSE_ALARMS, UNSEEN
from defects.right import CASES

RESULTS: Final = Path(__file__).resolve().parent / "results.json"
PAGE: Final = ROOT / "docs" / "sanitizers.md"
TOOLS: Final = ("memcheck", "initcheck", "racecheck", "synccheck")
_BY_HARDWARE: Final = ("Illegal instruction", "Unknown Error", "Trace/breakpoint trap")
"""What memcheck says of a fault that the device raises anyway."""
INTRO: Final = """\
# Sanitizers

Kernels that are made wrong on purpose, run in the [emulator](emulator.md) with all that
`--sanitize` has, and on a GPU under each tool of NVIDIA's
[compute-sanitizer](https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html). Each
defect is one small change of a right kernel, or of its launch; the right ones are run as well, and
so are Triton's own reductions, scans, products and more of
[fixtures](../fixtures/README.md#kernels). They lie in `benchmarks/defects`;
`tests/dynamic/emulator/test_defects.py` holds the emulator to what is said of it here, down to the
line and the thread.

{count} defects; {device}, compute-sanitizer {tool}, assembled by CUDA 13.0's ptxas for sm_90a, each
in a process of its own. memcheck keeps 1 MiB free behind each allocation (`--padding`), racecheck
looks for deadlocks (`--racecheck-deadlock-timeout 3000`); all else is as the tools have it. After
{limit} s a run is ended. `python benchmarks/defects/table.py` writes this page from
[results.json](../benchmarks/defects/results.json), which
[run.py](../benchmarks/defects/run.py) writes on a machine with a GPU.
"""


def by_us(defect: Defect) -> list[str]:
    """What the emulator finds."""
    return sorted({mark.rule for mark in defect.marks})


def by_tools(result: dict[str, Any]) -> dict[str, bool]:
    """The tools that find it; true where it is a fault of the device that one explains."""
    found = {}
    for tool in TOOLS:
        told = result.get(tool, {}).get("told")
        if told:
            found[tool] = all(line in _BY_HARDWARE for line in told)
    return found


def alone(result: dict[str, Any], right: dict[str, Any]) -> str:
    """What the GPU does where nobody watches."""
    found, wanted = result["alone"], right["alone"]
    if found.get("hangs"):
        return "hangs"
    name = found.get("fault") or found.get("refused")
    if name:
        return str(name).removeprefix("CUDA_ERROR_").lower().replace("_", " ")
    return "same result" if found["ran"] == wanted["ran"] else "other result"


def summary(rows: list[tuple[Defect, list[str], dict[str, bool]]]) -> list[str]:
    """How many are found by whom."""
    lines = [
        "| whose business | defects | found by both | emulator alone | compute-sanitizer alone | "
        "neither |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    counts: dict[str, Counter[tuple[bool, bool]]] = defaultdict(Counter)
    for defect, ours, tools in rows:
        for name in (defect.family, "**all**"):
            counts[name][bool(ours), bool(tools)] += 1
    for name in (*TOOLS, "none", "**all**"):
        found = counts[name]
        cells = [found.total(), *(found[who] for who in _WHO)]
        shown = "no tool's" if name == "none" else name
        lines.append(f"| {shown} | " + " | ".join(map(str, cells)) + " |")
    return lines


_WHO: Final = ((True, True), (True, False), (False, True), (False, False))


def table(
    rows: list[tuple[Defect, list[str], dict[str, bool]]], results: dict[str, Any]
) -> list[str]:
    """A line for each defect."""
    lines = [
        "| defect | what is wrong | emulator | compute-sanitizer | the GPU alone |",
        "|---|---|---|---|---|",
    ]
    for defect, ours, tools in rows:
        named = ", ".join(f"{tool} (fault)" if fault else tool for tool, fault in tools.items())
        does = alone(results[defect.name], results[defect.right.name])
        cells = defect.name, defect.what, ", ".join(ours) or "–", named or "–", does
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def why(names: dict[str, str], missed: list[Defect]) -> list[str]:
    """Reasons, each with the defects that it is the reason for. Raises SystemExit where there is
    none, or one that is not needed."""
    lacking = [d.name for d in missed if d.name not in names]
    idle = set(names) - {d.name for d in missed}
    if lacking or idle:
        raise SystemExit(f"no reason for {lacking}; reasons for what is found: {sorted(idle)}")
    groups: dict[str, list[str]] = defaultdict(list)
    for defect in missed:
        groups[names[defect.name]].append(defect.name)
    return [f"- **{'; '.join(group)}**: {reason}" for reason, group in groups.items()]


def alarms(results: dict[str, Any]) -> list[str]:
    """What tools say of right kernels."""
    found: dict[str, list[str]] = defaultdict(list)
    names = [d.right.name for d in DEFECTS] + [case.name for case in CASES]
    for name in names:
        for tool in TOOLS:
            if results[name].get(tool, {}).get("told"):
                found[tool].append(name)
    spoken_of = {name for group in found.values() for name in group}
    lines = [
        f"{len(names)} right kernels: the emulator says nothing of any of them. compute-sanitizer "
        f"speaks of {len(spoken_of)}:",
        "",
    ]
    for tool, group in found.items():
        for name in group:
            reason = FALSE_ALARMS.get((tool, name))
            if reason is None:
                raise SystemExit(f"why does {tool} speak of {name}? {results[name][tool]}")
            lines.append(f"- {tool}, *{name}*: {reason}")
    return lines


def asked(results: dict[str, Any]) -> list[str]:
    """What tools say of the probes."""
    lines = ["| kernel | told by |", "|---|---|"]
    for probe in PROBES:
        tools = [tool for tool in TOOLS if results[probe.case.name][tool].get("told")]
        lines.append(f"| {probe.asks} | {', '.join(tools) or '–'} |")
    return lines


def page() -> str:
    """The whole page."""
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    results, about = data["cases"], data["about"]
    rows = [(d, by_us(d), by_tools(results[d.name])) for d in DEFECTS]
    tool = about["tool"].removeprefix("Version ").partition(" ")[0]
    ours = {d.name: d.unseen for d, found, _ in rows if not found}
    lines = [
        INTRO.format(count=len(DEFECTS), device=about["device"], tool=tool, limit=about["limit"]),
        "## Found by whom",
        "",
        *summary(rows),
        "",
        "*Whose business*: the tool whose task the defect falls to, or would, if the tool looked "
        "at that memory. *(fault)*: the device stops by itself, and memcheck says where.",
        "",
        *table(rows, results),
        "",
        "## Why the emulator does not find it",
        "",
        *why(ours, [d for d, found, _ in rows if not found]),
        "",
        "## Why compute-sanitizer does not find it",
        "",
        *why(UNSEEN, [d for d, _, tools in rows if not tools]),
        "",
        "## Right kernels",
        "",
        *alarms(results),
        "",
        "## What was asked besides",
        "",
        "Kernels of `probes.py`, which ask what a tool looks at.",
        "",
        *asked(results),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
