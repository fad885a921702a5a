"""Replay verdicts in the emulator and count: `python benchmarks/soundness/replays.py [PART ...]`.

Runs the parts of tests/soundness/corpus.py that are named, all without one; keeps their counts in
replays.json and writes the table of docs/judge.md. Leaves with status 1 if a run disproves a
verdict, which is printed. Needs Triton for the part `twins`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "replays.json"
PAGE = ROOT / "docs" / "judge.md"
BEGIN, END = "<!-- counts -->\n", "<!-- end of counts -->\n"
sys.path.insert(0, str(ROOT / "tests" / "soundness"))

import corpus  # noqa: E402

from ptxlint.dynamic.judge.criteria import RULES  # noqa: E402


def run(part: str) -> tuple[dict[str, Any], int]:
    """The counts of one part, and how many contradictions there are."""
    subjects, changes = corpus.PARTS[part]
    found = corpus.NOTHING
    kernels = 0
    for subject in subjects():
        one = corpus.judged(subject, changes, seed=1)
        kernels += one.done > 0
        found += one
        for wrong in one.wrong:
            print(f"{subject.name}: {wrong.property} {wrong.verdict}: {wrong.met}", file=sys.stderr)
    counts = {" | ".join(key): count for key, count in sorted(found.counts.items())}
    return {"kernels": kernels, "replays": found.done, "counts": counts}, len(found.wrong)


def table(results: dict[str, Any]) -> str:
    """How often each verdict was held to a run, by property; and the replays, by part."""
    total: Counter[str] = Counter()
    for part in results.values():
        total.update(part["counts"])
    lines = ["| part | kernels | replays |", "|---|---:|---:|"]
    for name, part in results.items():
        lines.append(f"| {name} | {part['kernels']:,} | {part['replays']:,} |")
    kernels, replays = (
        sum(part[key] for part in results.values()) for key in ("kernels", "replays")
    )
    lines += [f"| **all** | {kernels:,} | {replays:,} |", ""]
    lines += [
        "| property | proved and kept | proved, violated | refuted and seen | refuted, not seen "
        "| refuted, not told | open |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in RULES:
        cells = [
            sum(total[f"{name} | {verdict} | {happened}"] for happened in happenings)
            for verdict, happenings in (
                ("proved", ("kept",)),
                ("proved", ("violated",)),
                ("refuted", ("violated",)),
                ("refuted", ("kept",)),
                ("refuted", ("unknown",)),
                ("open", ("kept", "violated", "unknown")),
            )
        ]
        lines.append(f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, keep, write: after each part, so that parts may be run side by side."""
    wrong = 0
    for part in sys.argv[1:] or corpus.PARTS:
        found, disproved = run(part)
        wrong += disproved
        print(f"{part}: {found['replays']:,} replays, {disproved} contradictions")
        keep({part: found})
    return 1 if wrong else 0


def keep(found: dict[str, Any]) -> None:
    """Put the counts of parts among those that there are, and write the table."""
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {part: (known | found)[part] for part in corpus.PARTS if part in known | found}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + table(results) + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    raise SystemExit(main())
