"""Labels of computations against all that the bits which are not known may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import RAW, raw, seen_as
from ptxlint.dynamic.emulator.labels.blank.values import Known, outcome
from ptxlint.dynamic.emulator.semantics import lanewise
from ptxlint.frontends.ptx import parse
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import bits

HEAD = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k() {
  .reg .pred %p<9>;
  .reg .b16 %rs<9>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
"""
EXACT = [
    "and.b32 %r0, %r1, %r2;", "or.b32 %r0, %r1, %r2;", "xor.b32 %r0, %r1, %r2;",
    "not.b32 %r0, %r1;", "lop3.b32 %r0, %r1, %r2, %r3, 0xe8;", "lop3.b32 %r0, %r1, %r2, %r3, 0xc0;",
    "and.pred %p0, %p1, %p2;", "or.pred %p0, %p1, %p2;", "xor.pred %p0, %p1, %p2;",
    "selp.b32 %r0, %r1, %r2, %p3;", "brev.b32 %r0, %r1;", "cvt.u64.u32 %rd0, %r1;",
    "cvt.s64.s32 %rd0, %r1;", "cvt.u16.u32 %rs0, %r1;", "cvt.s32.s8 %r0, %r1;",
    "setp.eq.s32 %p0, %r1, %r2;", "setp.lt.u32 %p0, %r1, %r2;", "setp.le.u32 %p0, %r1, %r2;",
    "setp.gt.s32 %p0, %r1, %r2;", "setp.ge.s32 %p0, %r1, %r2;", "setp.hi.u32 %p0, %r1, %r2;",
    "setp.ls.u32 %p0, %r1, %r2;",
    "prmt.b32 %r0, %r1, %r2, 0x3715;", "prmt.b32 %r0, %r1, %r2, 0xbb40;", "shl.b32 %r0, %r1, 7;",
    "shr.u32 %r0, %r1, 9;", "shr.s32 %r0, %r1, 30;", "shf.l.wrap.b32 %r0, %r1, %r2, 12;",
    "bfe.u32 %r0, %r1, 5, 11;", "bfe.s32 %r0, %r1, 24, 8;", "bfi.b32 %r0, %r1, %r2, 8, 8;",
]  # fmt: skip
"""Labels are all bits that may differ, and no others."""
SOUND = [
    "add.s32 %r0, %r1, %r2;", "sub.s32 %r0, %r1, %r2;", "add.u64 %rd0, %rd1, %rd2;",
    "mul.lo.s32 %r0, %r1, %r2;", "mul.hi.s32 %r0, %r1, %r2;", "mul.wide.s32 %rd0, %r1, %r2;",
    "mul.wide.u32 %rd0, %r1, %r2;", "mad.lo.s32 %r0, %r1, %r2, %r3;", "neg.s32 %r0, %r1;",
    "mad.wide.s32 %rd0, %r1, %r2, %rd3;", "min.s32 %r0, %r1, %r2;", "max.s32 %r0, %r1, %r2;",
    "min.u32 %r0, %r1, %r2;", "max.u32 %r0, %r1, %r2;", "abs.s32 %r0, %r1;",
    "div.u32 %r0, %r1, %r2;", "rem.s32 %r0, %r1, %r2;", "popc.b32 %r0, %r1;", "clz.b32 %r0, %r1;",
    "setp.ne.and.s32 %p0|%p4, %r1, %r2, %p3;", "setp.lt.or.u32 %p0|%p4, %r1, %r2, %p3;",
    "setp.lt.xor.u32 %p0|%p4, %r1, %r2, !%p3;", "setp.lt.f32 %p0, %r1, %r2;",
    "setp.lt.f16x2 %p0|%p4, %r1, %r2;", "setp.ne.and.bf16x2 %p0|%p4, %r1, %r2, %p3;",
    "slct.b32.s32 %r0, %r1, %r2, %r3;", "shl.b32 %r0, %r1, %r2;", "shr.s32 %r0, %r1, %r2;",
    "add.f32 %r0, %r1, %r2;", "fma.rn.f32 %r0, %r1, %r2, %r3;", "add.f16x2 %r0, %r1, %r2;",
    "max.f16x2 %r0, %r1, %r2;", "cvt.rn.f16x2.f32 %r0, %r1, %r2;", "cvt.rn.f32.s32 %r0, %r1;",
    "cvt.rn.f16x2.e4m3x2 %r0, %rs1;", "cvt.rn.satfinite.e4m3x2.f32 %rs0, %r1, %r2;",
    "cvt.sat.u8.s32 %r0, %r1;", "dp4a.s32.s32 %r0, %r1, %r2, %r3;", "sad.s32 %r0, %r1, %r2, %r3;",
    "add.sat.s32 %r0, %r1, %r2;", "add.u16x2 %r0, %r1, %r2;", "cnot.b32 %r0, %r1;",
    "bfe.u32 %r0, %r1, %r2, %r3;", "prmt.b32 %r0, %r1, %r2, %r3;",
]  # fmt: skip
UNKNOWN = 7
"""Bits that are not known, at most."""
HALVES = ("add.f16x2", "max.f16x2", "add.u16x2", "cvt.rn.f16x2")


def operands(
    kinds: tuple[str, ...], literals: list[int | None], random: np.random.Generator
) -> list[tuple[int, int]]:
    """Values and labels: few bits are not known, and values lie close to each other."""
    near = int(random.integers(1 << 62))
    out = []
    for kind in kinds:
        width = bits(kind)
        value = near if random.random() < 0.5 else int(random.integers(1 << 62))
        if random.random() < 0.3:
            value = int(random.integers(40))
        value ^= int(random.integers(2)) << int(random.integers(width))
        out.append([value & ((1 << width) - 1), 0])
    free = [at for at, literal in enumerate(literals) if literal is None]
    for at, literal in enumerate(literals):
        if literal is not None:
            out[at][0] = literal
    for _ in range(int(random.integers(1, UNKNOWN + 1))):
        at = int(random.choice(free))
        out[at][1] |= 1 << int(random.integers(bits(kinds[at])))
    return [(value, label) for value, label in out]


def words(numbers: list[int], kind: str) -> NDArray[Any]:
    word = RAW[bits(kind)]
    return np.array([numbers], dtype=np.uint64).astype(word) if word.kind != "b" else np.array(
        [[bool(n) for n in numbers]]
    )  # fmt: skip


def completions(given: list[tuple[int, int]]) -> list[list[int]]:
    """All that the operands may be, one list an operand."""
    places = [(at, bit) for at, (_, label) in enumerate(given) for bit in range(64)
              if label >> bit & 1]  # fmt: skip
    out: list[list[int]] = [[] for _ in given]
    for choice in range(1 << len(places)):
        row = [value & ~label for value, label in given]
        for number, (at, bit) in enumerate(places):
            row[at] |= (choice >> number & 1) << bit
        for at, value in enumerate(row):
            out[at].append(value)
    return out


@pytest.mark.parametrize("instruction", [*EXACT, *SOUND])
def test_a_label_is_on_all_bits_that_may_differ(instruction: str) -> None:
    module = parse(f"{HEAD}{instruction}\n ret;\n}}\n", "one.ptx")
    instr = module.kernels()[0].instrs[0]
    found = lanewise(instr)
    assert found is not None
    random = np.random.default_rng(0)
    literals = [fold(operand) for operand in instr.operands[1:]]
    labelled = 0
    with np.errstate(all="ignore"):
        for _ in range(60):
            given = operands(found.sources, literals, random)
            known = [
                Known(seen_as(words([value], kind), kind), words([label], kind))
                for (value, label), kind in zip(given, found.sources, strict=True)
            ]
            labels = outcome(instr, found, known)
            columns = completions(given)
            made: Any = found.compute(
                *(seen_as(words(c, k), k) for c, k in zip(columns, found.sources, strict=True))
            )
            results = made if isinstance(made, tuple) else (made,)
            for label, result in zip(labels, results, strict=True):
                bits_ = raw(np.asarray(result)).astype(np.uint64)
                differ = int(np.bitwise_or.reduce(bits_ ^ bits_[0, 0], axis=None))
                have = int(label.astype(np.uint64).item())
                assert differ & ~have == 0, (given, hex(differ), hex(have))
                if instruction in EXACT:
                    assert differ == have, (given, hex(differ), hex(have))
                labelled += have != 0
    assert labelled


@pytest.mark.parametrize("instruction", [i for i in SOUND if i.startswith(HALVES)])
def test_halves_of_a_pair_are_apart(instruction: str) -> None:
    module = parse(f"{HEAD}{instruction}\n ret;\n}}\n", "one.ptx")
    instr = module.kernels()[0].instrs[0]
    found = lanewise(instr)
    assert found is not None
    kinds = found.sources
    is_packing = len(kinds) == 2 and kinds[0] == "f32"
    first = 0xFFFFFFFF if is_packing else 0x00FF if bits(kinds[0]) == 16 else 0xFFFF
    known = [Known(seen_as(words([7], k), k), words([0], k)) for k in kinds]
    known[-1] = known[-1]._replace(label=words([first], kinds[-1]))
    (label,) = outcome(instr, found, known)
    assert int(label.item()) == 0xFFFF
