"""What `ptxlint diff` of two caches costs beside checking both: CPU time and memory, in one run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import caches

Row = tuple[str, str, str, str]
HEADING: Final = "## Comparing two builds"
KERNELS: Final = 700
QUICK: Final = 12


class Cost(NamedTuple):
    """CPU seconds of a command and its children, and the most memory that it held, in MiB."""

    seconds: float
    mebibytes: float


def cost(*arguments: str) -> Cost:
    """Run ptxlint. Raises `RuntimeError` if it could not do its job."""
    command = [sys.executable, "-m", "ptxlint", *arguments]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode > 1:
            out.seek(0)
            raise RuntimeError(f"{' '.join(command)}: {out.read()[-500:].decode()}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measured(count: int) -> tuple[list[Row], list[str]]:
    """The rows, and a note on what was run."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="ptxlint-caches-") as scratch:
        old, renamed, changed = (Path(scratch, name) for name in ("old", "renamed", "changed"))
        kernels = caches.write(old, count)
        caches.write(renamed, count, renames=True)
        caches.write(changed, count, renames=True, changes=True)
        both = [cost("check", str(folder)) for folder in (old, changed)]
        seconds = sum(one.seconds for one in both)
        for words, new, options in (
            ("all renamed", renamed, ()),
            ("one in ten changed, no assembler", changed, ("--no-exact",)),
            ("one in ten changed, assembled", changed, ()),
        ):
            found = cost("diff", str(old), str(new), *options)
            ratio = found.seconds / seconds
            rows.append(
                (
                    f"diff of two caches, {words}: CPU time, times checking both",
                    f"{ratio:.2f}",
                    "<= 1",
                    "met" if ratio <= 1 else "missed",
                )
            )
            rows.append((f"{words}: most memory, MiB", f"{found.mebibytes:.0f}", "", ""))
        most = max(one.mebibytes for one in both)
    rows.append(("check of one cache: most memory, MiB", f"{most:.0f}", "", ""))
    return rows, [
        "",
        f"Each cache has {kernels} kernels of the fixtures. *Checking both* is `ptxlint check` of",
        f"one and of the other; it took {1000 * seconds / (2 * kernels):.0f} ms of CPU a kernel.",
        "`diff` says of changed kernels what has become of their verdicts, for which it checks",
        "them, and of their registers, for which it runs an assembler unless a cubin lies beside,",
        "as in Triton's own cache.",
    ]


def part(quick: bool) -> tuple[list[Row], str]:
    """The rows, and the part of the page."""
    rows, details = measured(QUICK if quick else KERNELS)
    lines = [
        HEADING,
        "",
        "Written by `make bench`, or alone by `python benchmarks/bench.py --only comparing`.",
        "",
        "| what | figure | target | |",
        "|---|---:|---:|---|",
        *(f"| {a} | {b} | {c} | {d} |" for a, b, c, d in rows),
        *details,
    ]
    return rows, "\n".join(lines) + "\n"


__all__ = ["HEADING", "KERNELS", "part"]
