"""How RES101's estimate compares with ptxas: `python benchmarks/pressure_table.py`.

Assembles the Triton fixtures, and products and attention with tiles that are too large, and writes
docs/rules-res101.md. Needs Triton for its ptxas and to compile the tiles; takes a few minutes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import ptxlint
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "rules-res101.md"
FIXTURES = ROOT / "fixtures"
SHOWN_FROM = 120
"""The least estimate of a variant that gets a row."""
TILE_ARCHS = ("sm_80", "sm_90", "sm_100")
PRODUCTS = ((256, 128, 4), (128, 256, 4), (256, 256, 4), (256, 256, 8))
ATTENTION = ((128, 64), (128, 128), (256, 64))


class Measured(NamedTuple):
    """One kernel: the estimate, what ptxas made of it, and what RES101 says (`""` for nothing)."""

    name: str
    arch: str
    estimate: int
    registers: int
    spill: int
    finding: str

    def cell(self) -> str:
        """`371 → 244`, with the spilled bytes if there are some."""
        spilled = f", {self.spill} B" if self.spill else ""
        return f"{self.estimate} → {self.registers}{spilled}"


def assemblers() -> tuple[list[Path], str]:
    """The ptxas binaries that Triton ships, and the release of the first."""
    import triton

    folder = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    found = [folder / name for name in ("ptxas", "ptxas-blackwell") if (folder / name).exists()]
    version = subprocess.run([found[0], "--version"], capture_output=True, text=True, check=True)
    release = re.search(r"release ([\d.]+)", version.stdout)
    return found, release[1] if release else "unknown"


def measure(path: Path, name: str, arch: str, programs: list[Path]) -> Measured:
    """Estimate and assemble a file with one kernel."""
    module = parse(path.read_text(encoding="utf-8"), str(path))
    facts = Facts(module, module.kernels()[0])
    report = ptxlint.check(path, select="RES101")
    severity = next((f.severity for f in report.findings if f.rule == "RES101"), "")
    registers, spill = assemble(path, module.arch, programs)
    return Measured(name, arch, facts.get(PressureAnalysis).peak.words, registers, spill, severity)


def assemble(path: Path, target: str, programs: list[Path]) -> tuple[int, int]:
    """Registers a thread and bytes of spill stores, from the first ptxas that takes the file."""
    for program in programs:
        with tempfile.TemporaryDirectory() as scratch:
            command = [program, "-v", f"-arch={target}", "-o", f"{scratch}/out", path]
            done = subprocess.run(command, capture_output=True, text=True)
        registers = re.search(r"Used (\d+) registers", done.stderr)
        spill = re.search(r"(\d+) bytes spill stores", done.stderr)
        if done.returncode == 0 and registers and spill:
            return int(registers[1]), int(spill[1])
    raise SystemExit(f"{path}: no ptxas takes it: {done.stderr}")


def fixtures(programs: list[Path]) -> Iterator[Measured]:
    """All Triton fixtures."""
    for path in sorted((FIXTURES / "ptx").rglob("*.ptx")):
        yield measure(path, path.stem, path.parent.name, programs)


def tiles(programs: list[Path]) -> Iterator[Measured]:
    """Kernels of the fixtures compiled with larger tiles than anybody should."""
    sys.path.insert(0, str(FIXTURES))
    import compile as fixture_compiler
    import variants

    with tempfile.TemporaryDirectory() as scratch:
        fixture_compiler.prepare_environment(scratch)
        triton = fixture_compiler.import_triton()
        for variant in large_variants(variants):
            for arch in TILE_ARCHS:
                path = Path(scratch) / f"{arch}.ptx"
                ptx, metadata = fixture_compiler.build(triton, variant, arch)
                path.write_text(ptx)
                path.with_suffix(".json").write_text(metadata)
                yield measure(path, variant.name, arch, programs)


def large_variants(variants: Any) -> Iterator[Any]:
    """Products of fp16 and attention over heads of 128, named after their tiles."""
    for m, n, warps in PRODUCTS:
        name = f"matmul {m} x {n}, {warps} warps"
        yield variants.matmul_dot(name, "fp16", "fp16", (m, n, 32), warps, 2)
    for m, n in ATTENTION:
        name = f"attention {m} x {n}, 4 warps"
        yield variants.flash_fwd(name, "fp16", (m, n, 128), True, 4, 1)


def table(rows: Iterable[Measured], archs: Iterable[str]) -> list[str]:
    """A row a name and a column an architecture."""
    columns = list(archs)
    by_name: dict[str, dict[str, Measured]] = defaultdict(dict)
    for row in rows:
        by_name[row.name][row.arch] = row
    lines = [f"| kernel | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for name, cells in by_name.items():
        texts = []
        for arch in columns:
            cell = cells.get(arch)
            mark = {"warning": " **W**", "note": " n"}.get(cell.finding, "") if cell else ""
            texts.append(cell.cell() + mark if cell else "")
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return lines


def page(known: list[Measured], large: list[Measured], release: str) -> str:
    """The whole page."""
    ratios = [row.registers / row.estimate for row in known if 40 <= row.estimate <= 255]
    cuts = quantiles(ratios, n=20)
    shares = ", ".join(f"{100 * cuts[at]:.0f} %" for at in (0, 1, 9, 17, 18))
    peak: dict[str, int] = defaultdict(int)
    for row in known:
        peak[row.name] = max(peak[row.name], row.estimate)
    shown = [row for row in known if peak[row.name] >= SHOWN_FROM]
    everything = [*known, *large]
    over = [row for row in everything if row.estimate > 255]
    far = [row for row in everything if 0.7 * row.estimate > 255]
    warned = [row for row in everything if row.finding == "warning"]
    archs = dict.fromkeys(row.arch for row in known)
    return "\n".join(
        [
            "# RES101 against the assembler",
            "",
            f"Written by `python benchmarks/pressure_table.py` with ptxas {release}.",
            "A cell is the estimate (the most 32-bit registers live at once in the PTX), what",
            "ptxas allocated, and the bytes of spill stores; **W** marks a warning of RES101 and n",
            "a note. ptxas allocates 255 registers a thread at most; 32 with a large spill means",
            "that it gave up.",
            "",
            _bullet(
                f"{len(ratios)} fixtures have an estimate from 40 to 255. ptxas takes, at the "
                f"5th, 10th, 50th, 90th and 95th percentile, {shares} of it. So RES101 counts "
                "70 % of the estimate before it speaks of occupancy."
            ),
            _bullet(
                f"{len(over)} kernels have an estimate over 255: {_spilling(over)} of them spill. "
                f"Where 70 % of it are over 255, {_spilling(far)} of {len(far)} spill: that is "
                "called likely, in a note."
            ),
            _bullet(
                f"RES101 warns in {len(warned)} kernels, where a loop carries more than 255 "
                f"registers: {_spilling(warned)} of them spill."
            ),
            "",
            f"## Fixtures with an estimate of {SHOWN_FROM} or more",
            "",
            *table(shown, archs),
            "",
            "## Tiles that are too large",
            "",
            "Not among the fixtures; compiled by the script.",
            "",
            *table(large, TILE_ARCHS),
            "",
        ]
    )


def _bullet(text: str) -> str:
    return textwrap.fill(text, 96, initial_indent="- ", subsequent_indent="  ")


def _spilling(rows: list[Measured]) -> int:
    return sum(row.spill > 0 for row in rows)


def main() -> int:
    """Measure and write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    programs, release = assemblers()
    large = list(tiles(programs))
    PAGE.write_text(page(list(fixtures(programs)), large, release), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
