"""Provenance of data in shared memory, held to what a machine sees that runs all threads."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.dataflow.shared_provenance import (
    Payload,
    SharedProvenance,
    SharedProvenanceAnalysis,
)
from ptxlint.dataflow.symbolic import SymbolicAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.operand import Address, Register, Vector
from ptxlint.ir.types import BITS


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
    if seen.operand:
        matrix = found.matrix(seen.load, seen.operand)
        assert matrix is not None
        loaded = () if matrix.loaded is None else (matrix.loaded,)
    else:
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


def run(facts: Facts, seed: int, steps: int = 6_000) -> Counter[str]:
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
    "sm_90/matmul_dot_ieee", "sm_90/matmul_dot_tf32",
    "sm_90/flash_bwd_dkdv", "sm_90/flash_fwd_d128", "sm_90/layer_norm_bwd_reduce", "sm_90/softmax",
)  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_loads_find_what_is_said(name: str) -> None:
    facts = facts_of((PTX / f"{name}.ptx").read_text(), name)
    total = run(facts, 1)
    assert total["bytes"] > 0
    assert total["unknown loads"] + total["unknown bytes"] == 0


def copied_from(facts: Facts, payload: Payload) -> Polynomial | None:
    """The global address of what is stored: of a `cp.async`, or of a load into the register."""
    symbolic = facts.get(SymbolicAnalysis)
    instr, offset = payload.instr, payload.part * payload.bits // 8
    if instr.opcode == "st":
        data = instr.operands[1]
        register = data.elements[payload.operand] if isinstance(data, Vector) else data
        assert isinstance(register, Register)
        ssa = symbolic.ssa
        value = ssa.written(ssa.resolve(symbolic.value_read(instr, register)))
        instr = facts.function.instrs[ssa.instr[value]]
        if instr.opcode != "ld" or instr.shape.space != "global":
            return None
        offset += ssa.result[value] * BITS[instr.shape.type] // 8
    address = instr.operands[1]
    assert isinstance(address, Address)
    found = symbolic.address(instr, address)
    return None if found is None else found + offset


def by_factor(poly: Polynomial, width: int) -> dict[tuple[int, ...], LaneMap]:
    """The lane parts of an address, by what they are multiplied with (a stride, or nothing)."""
    atoms = poly.table.atoms
    parts: dict[tuple[int, ...], Polynomial] = {}
    for monomial, coefficient in poly.terms.items():
        factor = tuple(n for n in monomial if atoms[n].kind != "bit")
        lanes = tuple(n for n in monomial if atoms[n].kind == "bit")
        if any(atoms[n].kind != "param" for n in factor):
            continue
        term = Polynomial(poly.table, {lanes: coefficient})
        parts[factor] = parts.get(factor, poly.table.constant(0)) + term
    found = {factor: LaneMap.of(part, width) for factor, part in parts.items()}
    return {factor: lane_map for factor, lane_map in found.items() if lane_map is not None}


@pytest.mark.parametrize("name", ["flash_fwd_d128", "flash_bwd_dkdv", "matmul_dot_tf32"])
def test_elements_of_a_descriptor_are_those_of_the_tile(name: str) -> None:
    """Rows of a matrix operand are a stride apart in global memory, columns an element."""
    facts = facts_of((PTX / "sm_90" / f"{name}.ptx").read_text(), name)
    found = facts.get(SharedProvenanceAnalysis)
    assert found.width is not None
    checked: Counter[str] = Counter()
    for instr in facts.function.instrs:
        for operand in (1, 2):
            matrix = found.matrix(instr, operand)
            if matrix is None or matrix.loaded is None:
                continue
            (movement, *_) = matrix.loaded.parts
            assert movement is not None
            sources = {p: copied_from(facts, p) for p in movement.payloads}
            if None in sources.values():
                continue
            maps = {p: by_factor(s, found.width) for p, s in sources.items() if s is not None}
            size = movement.payloads[0].bits // 8 * len(matrix.loaded.parts)
            rows, depth = range(matrix.rows), range(matrix.rows, matrix.rows + matrix.depth)
            for factor in set.intersection(*(set(m) for m in maps.values())):
                loaded = movement.push({p: m[factor] for p, m in maps.items()})
                if loaded is None or loaded.is_uniform:
                    continue
                moving = [k for k, entry in enumerate(loaded.basis) if entry]
                along = rows if moving[0] in rows else depth
                assert moving == list(along)
                entries = [loaded.basis[k] for k in along]
                assert entries == [entries[0] << k for k in range(len(entries))]
                assert factor or entries[0] == size
                checked["strided" if factor else "contiguous"] += 1
    assert checked["contiguous"] >= 4
