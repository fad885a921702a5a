"""Seeded faults, told apart by structure: nine kernels and faulty twins on six architectures.

    python benchmarks/seeded_pairs.py        # writes docs/seeded-pairs.md

Registers and spills are those of the assembler that comes with Triton.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from ptxlint.comparison.changes import constants, instructions
from ptxlint.comparison.difference import Difference
from ptxlint.comparison.report import compare
from ptxlint.comparison.verdicts import Opinions
from ptxlint.engine.analyse import Checker
from ptxlint.engine.options import Options
from ptxlint.engine.registry import default_registry
from ptxlint.engine.resources import exact
from ptxlint.reporters.diff_words import KINDS

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "seeded-pairs.md"
ARCHS: Final = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
PAIRS: Final = (
    "softmax", "gelu", "silu", "rmsnorm", "l2norm", "leaky_relu", "matmul", "attention",
    "flash_attention",
)  # fmt: skip
HEAD: Final = """# Seeded faults, told apart

Nine kernels, each with a twin that has one fault, compiled for six architectures and compared by
`ptxlint diff`. Here the instructions themselves are held against each other, and **{told} of
{pairs} pairs are told apart on each architecture**. Counting registers and instructions tells
{counted} of {pairs} apart wherever they are compiled for: of {unseen} the counts are the same on
some architecture.

*Registers* and *instructions* are what a counting gate sees: the assembler's registers of the right
kernel and the faulty one, the PTX instructions of both. *By counting* says whether either differs.
`python benchmarks/seeded_pairs.py` writes this page.
"""


def main() -> int:
    """Compare all pairs, write the page; 1 if a pair is not told apart."""
    # Paths on the page are those of the repository.
    os.chdir(ROOT)
    opinions = Opinions(Checker(Options(evidence=False), default_registry()))
    rows: dict[str, dict[str, Difference]] = {}
    for name in PAIRS:
        for arch in ARCHS:
            old, new = (Path("fixtures", "ptx", arch, f"{n}.ptx") for n in _both(name))
            report = compare([str(old)], [str(new)], opinions=opinions, ptxas="")
            rows.setdefault(name, {})[arch] = report.differences[0]
            print(name, arch, report.differences[0].kind, file=sys.stderr)
    told = sum(
        all(d.kind in ("constants", "structural") for d in r.values()) for r in rows.values()
    )
    counts = {name: {a: _counts(d) for a, d in row.items()} for name, row in rows.items()}
    unseen = [n for n, row in counts.items() if any(old == new for old, new in row.values())]
    head = HEAD.format(
        told=told, pairs=len(rows), counted=len(rows) - len(unseen), unseen=", ".join(unseen)
    )
    parts = [head, _table(rows, counts), *(_details(name, row) for name, row in rows.items())]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    return 0 if told == len(rows) else 1


def _both(name: str) -> tuple[str, str]:
    return name, f"{name}_buggy"


Counts = tuple[tuple[int, int], tuple[int, int]]


def _counts(difference: Difference) -> Counts:
    """Registers and instructions of the right kernel and of the faulty one."""
    out = []
    for kernel in (difference.old, difference.new):
        found = exact(kernel.module)[kernel.name].registers
        assert found is not None
        out.append((found.value, len(kernel.function.instrs)))
    return out[0], out[1]


def _table(rows: dict[str, dict[str, Difference]], counts: dict[str, dict[str, Counts]]) -> str:
    out = ["| pair | arch | registers | instructions | by counting | by structure |"]
    out.append("|---|---|---|---|---|---|")
    for name, row in rows.items():
        for arch, difference in row.items():
            old, new = counts[name][arch]
            out.append(
                f"| {name} | {arch} | {old[0]} → {new[0]} | {old[1]} → {new[1]} | "
                f"{'yes' if old != new else '**no**'} | {KINDS[difference.kind]} |"
            )
    return "\n".join(out) + "\n"


def _details(name: str, row: dict[str, Difference]) -> str:
    """What has changed, architectures that say the same together."""
    told: dict[str, list[str]] = {}
    for arch, difference in row.items():
        told.setdefault("\n".join(_lines(difference)), []).append(arch)
    out = [f"## {name}", ""]
    for text, archs in told.items():
        out += [f"On {', '.join(archs)}:", "", text, ""]
    return "\n".join(out)


def _lines(difference: Difference) -> list[str]:
    out = [
        f"- `{c.old}` → `{c.new}` at {c.old_where} and {c.new_where}"
        + (f", {c.times} times" if c.times > 1 else "")
        for c in constants(difference.code)
    ]
    removed, added = instructions(difference.code)
    for word, changes in (("right", removed), ("faulty", added)):
        by_line: dict[str, int] = {}
        for change in changes:
            key = f"{change.where}"
            by_line[key] = by_line.get(key, 0) + change.times
        most = sorted(by_line.items(), key=lambda item: (-item[1], item[0]))[:3]
        out += [
            f"- {count} instructions of {line} in the {word} kernel alone" for line, count in most
        ]
    for verdict in difference.verdicts:
        if verdict.is_worse and verdict.example is not None:
            out.append(f"- {verdict.rule} got worse: {verdict.example.reason}")
    return out or ["- nothing"]


if __name__ == "__main__":
    sys.exit(main())
