"""Every global access of the Triton fixtures points at its own call in the Python source."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / "fixtures" / "ptx").glob("sm_*/*.ptx"))
SAMPLE = PATHS[::7]
ACCESSES = {"load", "store"}


@cache
def calls(path: str) -> frozenset[tuple[int, int]]:
    """Line and column (from 1) of every memory access of a Python file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        (node.lineno, node.col_offset + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr in ACCESSES or node.func.attr.startswith("atomic_"))
    )


def is_access(instr: Instr) -> bool:
    if instr.opcode == "cp":
        return instr.shape.has("async") and len(instr.operands) >= 3
    return instr.shape.space == "global" and instr.opcode in ("ld", "st", "atom", "red")


def misplaced(module: Module) -> list[str]:
    out = []
    for function in module.kernels():
        for instr in function.instrs:
            if is_access(instr):
                frame = module.python_frame(instr.loc)
                assert frame is not None
                if (frame.line, frame.column) not in calls(frame.path):
                    out.append(f"{instr!r} at {frame.path}:{frame.line}:{frame.column}")
    return out


def load(path: Path) -> Module:
    with path.open(encoding="utf-8", newline="") as file:
        return parse(file.read(), path.name)


@pytest.mark.parametrize("path", SAMPLE, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_accesses_have_their_true_line(path: Path) -> None:
    assert misplaced(load(path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_all_accesses_have_their_true_line(path: Path) -> None:
    assert misplaced(load(path)) == []


def test_without_the_inline_assembly_rule_lines_would_drift() -> None:
    """The control: `.loc` inside inline assembly, taken at its word, points elsewhere."""
    wrong = 0
    for path in PATHS[::3]:
        text = path.read_text(encoding="utf-8")
        wrong += len(misplaced(parse(text.replace("// begin inline asm", "//"), path.name)))
    assert wrong > 0


def test_fixtures_hold_masked_accesses() -> None:
    count = sum(
        is_access(i) and i.guard is not None
        for p in SAMPLE
        for f in load(p).kernels()
        for i in f.instrs
    )
    assert count > 500
