"""Words that are linear in the thread index, against random integer code on all threads."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.lane_words import LaneWords, Word
from ptxlint.dataflow.shared_cells import lanes_where
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
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
WIDTH = 6
HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k() .reqntid 64
{
.reg .pred %p<60>;
.reg .b32 %r<60>;
.reg .b64 %d<60>;
mov.u32 %r0, %tid.x;
mov.u32 %r1, %laneid;
setp.eq.u32 %p0, %r0, 0;
cvt.u64.u32 %d0, %r0;
"""


def random_body(r: Random) -> str:
    """Straight-line code in which each register is written once."""
    words, predicates, longs = ["%r0", "%r1"], ["%p0"], ["%d0"]
    lines = []
    for at in range(2, 40):
        a, b, p, d = (r.choice(x) for x in (words, words, predicates, longs))
        bit = r.randrange(7)
        constant = r.choice((0, 1, 3, 7, 8, 15, 16, 31, 32, 96, 112, 128, 1088, -1, -16, 0x3FFF))
        kind = r.choice(("s32", "u32"))
        new, predicate, long = f"%r{at}", f"%p{at}", f"%d{at}"
        line = r.choice(
            (
                f"and.b32 {new}, {a}, {constant};", f"xor.b32 {new}, {a}, {b};",
                f"xor.b32 {new}, {a}, {constant};", f"or.b32 {new}, {a}, {b};",
                f"or.b32 {new}, {a}, {constant};", f"add.s32 {new}, {a}, {b};",
                f"add.s32 {new}, {a}, {constant};", f"sub.s32 {new}, {a}, {b};",
                f"sub.s32 {new}, {constant}, {a};", f"shl.b32 {new}, {a}, {bit};",
                f"shr.{kind} {new}, {a}, {bit};", f"neg.s32 {new}, {a};",
                f"not.b32 {new}, {a};", f"mul.lo.s32 {new}, {a}, {constant};",
                f"mad.lo.s32 {new}, {a}, {constant}, {b};", f"min.{kind} {new}, {a}, {constant};",
                f"bfe.{kind} {new}, {a}, {bit}, {r.randrange(1, 5)};",
                f"bfi.b32 {new}, {a}, {b}, {bit}, {r.randrange(1, 5)};",
                f"prmt.b32 {new}, {a}, {b}, {r.choice((0x5410, 0x7632, 0x3210, 0xBA98))};",
                f"shf.l.wrap.b32 {new}, {a}, {b}, {bit};", f"rem.u32 {new}, {a}, 8;",
                f"div.u32 {new}, {a}, 4;", f"selp.b32 {new}, {a}, {b}, {p};",
                f"selp.b32 {new}, {constant}, 0, {p};",
                f"shfl.sync.idx.b32 {new}, {a}, {r.randrange(32)}, 31, -1;",
                f"setp.{r.choice(('eq', 'ne', 'lt', 'ge', 'gt', 'le'))}.{kind} {predicate}, {a}, "
                f"{abs(constant)};",
                f"and.pred {predicate}, {p}, {r.choice(predicates)};",
                f"or.pred {predicate}, {p}, {r.choice(predicates)};",
                f"xor.pred {predicate}, {p}, {r.choice(predicates)};",
                f"not.pred {predicate}, {p};",
                f"cvt.u64.u32 {long}, {a};", f"cvt.s64.s32 {long}, {a};",
                f"mul.wide.{kind} {long}, {a}, {abs(constant)};", f"cvt.u32.u64 {new}, {d};",
                f"add.s64 {long}, {d}, {constant};", f"shl.b64 {long}, {d}, {bit};",
            )
        )  # fmt: skip
        lines.append(line)
        written = line.split()[1].rstrip(",")
        {"%r": words, "%p": predicates, "%d": longs}[written[:2]].append(written)
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(80))
def test_random_code(seed: int) -> None:
    """Whatever is said of a register is what all threads have."""
    body = random_body(Random(seed))
    module = parse(f"{HEAD}{body}\nret;\n}}\n", "k.ptx")
    facts = Facts(module, module.functions[0])
    ssa = facts.get(SsaAnalysis)
    words = LaneWords(ssa, WIDTH)
    runner = machine.SharedMachine(facts, 1 << WIDTH, Random(0))
    runner.compute_all()
    assert list(runner.run(10_000)) == []
    known = 0
    for instr in facts.function.instrs:
        for register, value in zip(instr.defs, ssa.def_values[instr.index], strict=True):
            found, truth = words.plain(value), runner.registers[register]
            if found is None or None in truth:
                continue
            known += 1
            if isinstance(found, Word):
                mask = (1 << BITS[register.type]) - 1
                assert [found.value(t) & mask for t in range(1 << WIDTH)] == truth, str(instr)
                continue
            assert isinstance(found, tuple)
            lanes = lanes_where(found, WIDTH)
            holds = set()
            if lanes is not None:
                spread = LaneMap(lanes.start, lanes.directions)
                holds = {spread.value(t) for t in range(1 << len(lanes.directions))}
            assert holds == {t for t, bit in enumerate(truth) if bit}, str(instr)
    assert known > 3


@pytest.mark.parametrize(
    ("code", "muted", "bit"),
    [
        ("shr.u32 %r2, %r0, 1;\nor.b32 %r3, %r2, %r0;\nand.b32 %r4, %r3, 16;", 16, 5),
        ("shr.u32 %r2, %r0, 1;\nor.b32 %r3, %r0, %r2;\nshl.b32 %r5, %r3, 3;\n"
         "and.b32 %r4, %r5, 128;", 16, 5),
        ("shl.b32 %r2, %r0, 2;\nor.b32 %r3, %r0, %r2;\nshr.u32 %r5, %r3, 1;\n"
         "and.b32 %r4, %r5, 4;", 2, 3),
    ],
)  # fmt: skip
def test_a_mask_is_put_through_what_is_not_linear_as_a_whole(
    code: str, muted: int, bit: int
) -> None:
    """Lanes whose addresses do not matter leave one of two bits that are joined."""
    module = parse(f"{HEAD}{code}\nret;\n}}\n", "k.ptx")
    facts = Facts(module, module.functions[0])
    ssa = facts.get(SsaAnalysis)
    runner = machine.SharedMachine(facts, 1 << WIDTH, Random(0))
    runner.compute_all()
    assert list(runner.run(100)) == []
    instr = next(i for i in facts.function.instrs if i.opcode == "and")
    (value,) = ssa.def_values[instr.index]
    assert LaneWords(ssa, WIDTH).plain(value) is None
    found = LaneWords(ssa, WIDTH, muted).plain(value)
    assert isinstance(found, Word)
    assert [bool(entry) for entry in found.basis] == [at == bit for at in range(WIDTH)]
    truth = runner.registers[instr.defs[0]]
    assert all(found.value(t) == truth[t] for t in range(1 << WIDTH) if not t & muted)
