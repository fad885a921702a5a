"""How many lost guards MSK206 finds: `python benchmarks/removed_guards.py [FOLDER...]`.

The guard of one access to global memory is taken out of a kernel's PTX, the rest is assembled as it
is, and the machine code is held to the PTX that still has the guard. Of each kernel the first and
the last guarded load, store, atomic operation and asynchronous copy take part. A change after
which the machine code is the same, instruction by instruction, has lost nothing and is not
counted. FOLDERs are searched for `*.ptx`; without any the fixtures are. Needs Triton's assembler,
no GPU.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ptxlint.dataflow.lost_guards import Survival, survival
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.sass import parse as parse_listing
from ptxlint.frontends.toolkit import ToolError, assemble, disassemble, find_assembler
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.opcodes import memory_of
from ptxlint.structure.canonical import canonical

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "ptx"
KINDS = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp": "copy"}
GUARD = re.compile(r"@\s*!?\s*[%$\w]+")


class Removal(NamedTuple):
    """A guard that was taken out of a kernel, and what is said of the machine code without it."""

    path: str
    line: int
    kind: str
    survival: Survival


def guarded(kernel: Function) -> Iterator[tuple[str, Instr]]:
    """The first and the last access of each kind to global memory under a guard."""
    by_kind: dict[str, list[Instr]] = {}
    for instr in kernel.instrs:
        effect = memory_of(instr.shape)
        is_global = "global" in (*effect.reads, *effect.writes)
        if instr.shape.guard and instr.opcode in KINDS and is_global:
            by_kind.setdefault(KINDS[instr.opcode], []).append(instr)
    for kind, instrs in by_kind.items():
        for instr in dict.fromkeys((instrs[0], instrs[-1])):
            yield kind, instr


def without_guard(text: str, instr: Instr) -> str:
    """A text in which one instruction runs always; nothing moves."""
    found = GUARD.match(text, instr.offset)
    assert found is not None, text[instr.offset : instr.offset + 40]
    return text[: found.start()] + " " * len(found[0]) + text[found.end() :]


def machine_code(text: str, module: Module, name: str) -> Facts:
    """What a text is assembled into. Raises `ToolError`."""
    cubin = assemble(text, module.arch, find_assembler(module.version)).cubin
    listing = parse_listing(disassemble(cubin, "-c", "-gi"))
    return Facts(listing, next(k for k in listing.kernels() if k.name == name))


def removals(path: Path) -> Iterator[Removal]:
    """What comes of the removals in one file."""
    text = path.read_text(encoding="utf-8")
    module = parse(text, str(path))
    for kernel in module.kernels():
        facts = Facts(module, kernel)
        chosen = list(guarded(kernel))
        if not chosen:
            continue
        before = canonical(machine_code(text, module, kernel.name)).identity
        for kind, instr in chosen:
            after = machine_code(without_guard(text, instr), module, kernel.name)
            if canonical(after).identity != before:
                line = module.source.position(instr.offset).line
                yield Removal(str(path), line, kind, survival(facts, after))


def main() -> int:
    """Count, and name what is not found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--each", type=int, default=1, help="take every so many-th file")
    chosen = parser.parse_args()
    folders = chosen.folders or [FIXTURES]
    files = sorted(path for folder in folders for path in folder.rglob("*.ptx"))
    made: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for path in files[:: chosen.each]:
        try:
            for removal in removals(path):
                made[removal.kind] += 1
                found[removal.kind] += bool(removal.survival.lost)
                if not removal.survival.lost:
                    print(f"not found: {removal.path}:{removal.line} {removal.kind}", flush=True)
        except ToolError as error:
            print(f"{path}: {error}", file=sys.stderr)
    for kind in sorted(made):
        print(f"{kind}: {found[kind]} of {made[kind]}")
    print(f"all: {found.total()} of {made.total()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
