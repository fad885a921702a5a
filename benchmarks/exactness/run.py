"""What cubins and machine code say, held against the assembler's own words.

    python benchmarks/exactness/run.py DIRECTORY... [--arch ARCH...]

Each DIRECTORY holds PTX files, at any depth: a captured bundle (docs/bundle.md), a Triton cache, or
some of the fixtures. Every file is assembled for its own target, or for each ARCH in place of it,
and of each kernel are compared

- registers, stack, shared memory and barriers in the cubin with the log of `ptxas -v`;
- the bytes of STL and LDL in the machine code with the spills in that log;
- the graph of control flow with the one that `nvdisasm -bbcfg` draws.

What was counted goes to results.json, in place of what was there of the same directory and
architecture, and docs/exactness.md is written from all of it. The exit status is 1 if anything did
not agree. A kernel takes a second.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from assembled import Tally, hold
from page import PAGE, written

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
RECORD: Final = HERE / "results.json"
OWN: Final = "own"
"""In place of an architecture: each file's own target."""


def main() -> int:
    """Compare, and write record and page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIRECTORY")
    parser.add_argument("--arch", nargs="+", default=[OWN], help="in place of the files' targets")
    parser.add_argument("--every", type=int, default=1, help="take each so many-th file alone")
    args = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    if RECORD.exists():
        rows = json.loads(RECORD.read_text(encoding="utf-8"))
    faulty = False
    for directory in args.directories:
        for arch in args.arch:
            tally = Tally()
            for path in sorted(directory.rglob("*.ptx"))[:: args.every]:
                hold(path, "" if arch == OWN else arch, tally)
            faulty |= bool(tally.faults)
            print(name_of(directory), arch, dict(tally.counts), *tally.faults, sep="\n  ")
            kept = {
                "counts": dict(sorted(tally.counts.items())),
                "faults": tally.faults,
                "rejected": dict(tally.rejected.most_common()),
            }
            rows[f"{name_of(directory)} {arch}"] = kept
    RECORD.write_text(json.dumps(dict(sorted(rows.items())), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(written(rows), encoding="utf-8")
    return int(faulty)


def name_of(directory: Path) -> str:
    """What a directory is called on the page: its path in the repository, or its last name."""
    path = directory.resolve()
    if path.is_relative_to(ROOT):
        return path.relative_to(ROOT).as_posix()
    name, _, tail = path.name.partition("_sm_")
    return name if tail else path.name


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
