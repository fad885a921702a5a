"""Provenance of data in shared memory, held to what a machine sees that runs all threads."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ptxlint.dataflow.shared_provenance import SharedProvenance, SharedProvenanceAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


def load(name: str) -> ModuleType:
    """A module beside this file; tests are no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"dataflow_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load("shared_machine")
PTX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"


def facts_of(text: str, name: str = "k.ptx") -> Facts:
    module = parse(text, name)
    (function,) = [f for f in module.functions if not f.is_declaration]
    return Facts(module, function)


def compare(found: SharedProvenance, seen: Any) -> Counter[str]:
    """Hold what is said of a load to what it found; count loads and unknown parts."""
    counts: Counter[str] = Counter()
    loaded = found.of(seen.load)
    counts["loads"] += 1
    if not loaded:
        counts["unknown loads"] += 1
        return counts
    for (thread, register, byte), cell in seen.cells.items():
        entry = loaded[register]
        movement = entry.parts[byte * 8 // entry.bits]
        if movement is None:
            counts["unknown bytes"] += 1
            continue
        ways = []
        for passage in movement.passages:
            source = passage.source(thread)
            if source is not None:
                ways.append((passage.payload, source))
        assert ways, f"{seen.load}: nothing reaches thread {thread}"
        if cell is None:
            assert movement.maybe, f"{seen.load}: thread {thread} reads what nothing wrote"
            continue
        assert any(
            payload.instr.index == cell.instr
            and payload.operand == cell.operand
            and payload.part == cell.byte * 8 // payload.bits
            and source in cell.threads
            for payload, source in ways
        ), f"{seen.load}: register {register} byte {byte} of thread {thread} is from {cell}"
        counts["bytes"] += 1
        counts["ways"] += len(ways)
    return counts


def run(facts: Facts, seed: int, steps: int = 20_000) -> Counter[str]:
    """Run a kernel once and compare all loads on the way."""
    found = facts.get(SharedProvenanceAnalysis)
    assert found.width is not None
    total: Counter[str] = Counter()
    runner = machine.SharedMachine(facts, 1 << found.width, Random(seed))
    try:
        for seen in runner.run(steps):
            total += compare(found, seen)
    except machine.UnpredictableError:
        total["unpredictable"] += 1
    return total


KERNELS = (
    "sm_80/matmul_dot_fp16", "sm_80/matmul_dot_tf32", "sm_80/flash_bwd_dq",
    "sm_80/int4_gemm", "sm_80/layer_norm_bwd", "sm_80/argmax",
    "sm_90/matmul_dot_ieee", "sm_90/layer_norm_bwd_reduce", "sm_90/softmax",
)  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_loads_find_what_is_said(name: str) -> None:
    facts = facts_of((PTX / f"{name}.ptx").read_text(), name)
    total = run(facts, 1)
    assert total["bytes"] > 0
    assert total["unknown loads"] + total["unknown bytes"] == 0
