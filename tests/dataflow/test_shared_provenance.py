"""Provenance of data in shared memory, held to what a machine sees that runs all threads."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ptxlint.dataflow import shared_provenance
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


TILES = (
    "sm_90/flash_fwd_d128", "sm_90/flash_bwd_dkdv", "sm_90/matmul_dot_tf32",
    "sm_100/matmul_dot_tf32", "sm_100/flash_fwd_d128", "sm_100/flash_fwd_full_bf16",
    "sm_100/flash_fwd", "sm_100/flash_bwd_dq", "sm_100/flash_bwd_dkdv",
)  # fmt: skip


@pytest.mark.parametrize("name", TILES)
def test_elements_of_a_descriptor_are_those_of_the_tile(name: str) -> None:
    """Rows of a matrix operand are a stride apart in global memory, columns an element."""
    facts = facts_of((PTX / f"{name}.ptx").read_text(), name)
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


HEAD = """.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 .ptr .global a, .param .u32 n) .reqntid 64
{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<40>;
.reg .b64 %d<9>;
mov.u32 %r0, %tid.x;
mov.b32 %r1, smem;
shl.b32 %r2, %r0, 2;
add.s32 %r3, %r1, %r2;
ld.param.u32 %r4, [n];
"""


def small(body: str) -> tuple[Facts, SharedProvenance]:
    facts = facts_of(HEAD + body + "\nret;\n}\n")
    return facts, facts.get(SharedProvenanceAnalysis)


def last_load(facts: Facts) -> Any:
    return [i for i in facts.function.instrs if i.opcode == "ld" and i.shape.space == "shared"][-1]


def stores_behind(body: str) -> list[str]:
    """The data registers of the stores that the last load may read from."""
    facts, found = small(body)
    load = last_load(facts)
    loaded = found.of(load)
    assert loaded
    assert found.why(load) == ""
    names = set()
    for register in loaded:
        for part in register.parts:
            assert part is not None
            names |= {str(p.instr.operands[1]) for p in part.payloads}
    return sorted(names)


def reason(body: str) -> str:
    facts, found = small(body)
    load = last_load(facts)
    assert all(part is None for register in found.of(load) for part in register.parts)
    return found.why(load)


STORE = "st.shared.b32 [%r3], %r9;\nbar.sync 0;\n"
LOAD = "ld.shared.b32 %r20, [%r3];\n"


def test_the_last_store_counts() -> None:
    again = "st.shared.b32 [%r3], %r8;\nbar.sync 0;\n"
    assert stores_behind(STORE + LOAD) == ["%r9"]
    assert stores_behind(STORE + again + LOAD) == ["%r8"]
    elsewhere = "st.shared.b32 [%r3+256], %r8;\nbar.sync 0;\n"
    assert stores_behind(STORE + elsewhere + LOAD) == ["%r9"]
    half = "and.b32 %r5, %r2, 127;\nadd.s32 %r6, %r1, %r5;\nst.shared.b32 [%r6], %r8;\n"
    assert stores_behind(STORE + half + LOAD) == ["%r8", "%r9"]


def test_both_ways_count() -> None:
    body = """setp.lt.s32 %p1, %r4, 5;
    @%p1 bra THEN;
    st.shared.b32 [%r3], %r8;
    bra.uni DONE;
    THEN: st.shared.b32 [%r3], %r9;
    DONE: bar.sync 0;
    """
    assert stores_behind(body + LOAD) == ["%r8", "%r9"]


def test_what_is_not_known_is_said() -> None:
    assert reason(LOAD) == shared_provenance.NOT_WRITTEN
    unknown = "mul.lo.s32 %r5, %r4, 4;\nadd.s32 %r6, %r3, %r5;\n"
    assert reason(STORE + unknown + "st.shared.b32 [%r6], %r8;\n" + LOAD) == (
        shared_provenance.UNKNOWN_STORE
    )
    assert reason(STORE + unknown + "ld.shared.b32 %r20, [%r6];\n") == shared_provenance.NO_ADDRESS
    atomic = "atom.shared.add.u32 %r7, [%r3], 1;\n"
    generic = "ld.param.u64 %d1, [a];\nst.b32 [%d1], %r8;\n"
    remote = "mapa.shared::cluster.u32 %r6, %r3, 0;\nst.shared::cluster.b32 [%r6], %r8;\n"
    for other in (atomic, generic):
        assert reason(STORE + other + LOAD) == shared_provenance.UNKNOWN_WRITE
    # Another CTA may be faster, and write before this one comes to the load.
    assert reason(STORE + LOAD + remote) == shared_provenance.OTHER_CTAS
    one_way = "setp.lt.s32 %p1, %r4, 5;\n@%p1 bra DONE;\n" + STORE + "DONE:\n"
    assert reason(one_way + LOAD) == shared_provenance.NOT_WRITTEN


def test_stores_of_some_threads() -> None:
    some = (
        "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra DONE;\nst.shared.b32 [%r3], %r8;\nDONE: bar.sync 0;\n"
    )
    assert reason(STORE + some + LOAD) == shared_provenance.SOME_THREADS
    left = "setp.lt.u32 %p1, %r0, 32;\n@%p1 ret;\nst.shared.b32 [%r3], %r8;\nbar.sync 0;\n"
    assert reason(STORE + left + LOAD) == shared_provenance.SOME_THREADS
    # Elsewhere they do no harm.
    assert stores_behind(STORE + some.replace("%r3]", "%r3+512]") + LOAD) == ["%r9"]


def test_guards_are_followed_where_they_are_understood() -> None:
    low = "setp.lt.u32 %p1, %r0, 32;\n@%p1 st.shared.b32 [%r3], %r8;\nbar.sync 0;\n"
    facts, found = small(STORE + low + LOAD)
    (loaded,) = found.of(last_load(facts))
    for part in loaded.parts:
        assert part is not None
        assert not part.maybe
        assert {(str(p.payload.instr.operands[1]), p.fixed, p.at) for p in part.passages} == {
            ("%r8", 32, 0),
            ("%r9", 32, 32),
        }
    data = "ld.param.u64 %d1, [a];\nld.global.b32 %r7, [%d1];\nsetp.ne.s32 %p1, %r7, 0;\n"
    facts, found = small(STORE + data + "@%p1 st.shared.b32 [%r3], %r8;\nbar.sync 0;\n" + LOAD)
    (loaded,) = found.of(last_load(facts))
    (first, _) = loaded.parts
    assert first is not None
    assert first.maybe
    assert {str(p.instr.operands[1]) for p in first.payloads} == {"%r8"}


def test_stages_of_a_pipeline_are_told_apart() -> None:
    """Three stages, two copies ahead: what is read was copied two rounds before."""
    body = """st.shared.b32 [%r3], %r10;
    st.shared.b32 [%r3+256], %r11;
    mov.b32 %r5, 0;
    mov.b32 %r6, 2;
    mov.b32 %r7, 0;
    LOOP:
    bar.sync 0;
    shl.b32 %r21, %r5, 8;
    add.s32 %r22, %r3, %r21;
    ld.shared.b32 %r20, [%r22];
    shl.b32 %r23, %r6, 8;
    add.s32 %r24, %r3, %r23;
    st.shared.b32 [%r24], %r12;
    add.s32 %r25, %r5, 1;
    setp.lt.s32 %p1, %r25, 3;
    selp.b32 %r5, %r25, 0, %p1;
    add.s32 %r26, %r6, 1;
    setp.lt.s32 %p2, %r26, 3;
    selp.b32 %r6, %r26, 0, %p2;
    add.s32 %r7, %r7, 1;
    setp.lt.s32 %p3, %r7, %r4;
    @%p3 bra LOOP;
    """
    assert stores_behind(body) == ["%r10", "%r11", "%r12"]
    # Read one stage too early, and the first round finds what nobody wrote.
    facts, found = small(body.replace("mov.b32 %r5, 0", "mov.b32 %r5, 2"))
    assert found.why(last_load(facts)) == shared_provenance.NOT_WRITTEN


def test_blocks_of_other_sizes_are_not_followed() -> None:
    text = HEAD.replace(".reqntid 64", ".reqntid 96") + STORE + LOAD + "ret;\n}\n"
    facts = facts_of(text)
    found = facts.get(SharedProvenanceAnalysis)
    assert found.of(last_load(facts)) == ()
    assert found.why(last_load(facts)) == shared_provenance.NO_WIDTH


def test_the_work_is_bounded() -> None:
    facts, _ = small(STORE + LOAD)
    facts.effort = 0.0
    found = SharedProvenance(facts)
    assert found.of(last_load(facts)) == ()
    assert found.why(last_load(facts)) == "the work budget of 1 steps is spent"


@pytest.mark.parametrize("name", ["sm_80/matmul_dot_tf32", "sm_80/flash_bwd_dq", "sm_80/histogram"])
def test_maps_go_there_and_back(name: str) -> None:
    """What a passage pulls back, pushed forward again, is what was wanted."""
    facts = facts_of((PTX / f"{name}.ptx").read_text(), name)
    found = facts.get(SharedProvenanceAnalysis)
    assert found.width is not None
    random = Random(7)
    checked = 0
    for instr in facts.function.instrs:
        if instr.opcode not in ("ld", "ldmatrix") or instr.shape.space != "shared":
            continue
        for loaded in found.of(instr):
            for part in loaded.parts:
                assert part is not None
                basis = tuple(random.randrange(256) for _ in range(found.width))
                wanted = LaneMap(random.randrange(256), basis)
                for passage, pulled in zip(part.passages, part.pull(wanted), strict=True):
                    readers = [t for t in range(1 << found.width) if passage.source(t) is not None]
                    sources = [passage.source(t) or 0 for t in readers]
                    if pulled is None:
                        # Two readers of one thread that want different numbers.
                        numbers: dict[int, set[int]] = {}
                        for t, s in zip(readers, sources, strict=True):
                            numbers.setdefault(s, set()).add(wanted.value(t))
                        assert any(len(n) > 1 for n in numbers.values())
                        continue
                    for t, s in zip(readers, sources, strict=True):
                        assert pulled.holds_for(s)
                        assert pulled.value(s) == wanted.value(t)
                    pushed = passage.push(pulled)
                    assert pushed == wanted.restrict(passage.fixed, passage.at)
                    checked += 1
    assert checked > 10
