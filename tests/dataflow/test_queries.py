"""Queries, limits and sizes that the text cases and the random functions do not reach."""

from __future__ import annotations

from time import process_time

import pytest

from ptxlint.cfg.build import CfgAnalysis, build
from ptxlint.dataflow.liveness import Liveness, LivenessAnalysis, reads
from ptxlint.dataflow.pressure import Pressure, PressureAnalysis
from ptxlint.dataflow.reaching import UNINITIALISED, Reaching, ReachingAnalysis
from ptxlint.dataflow.solver import Worklist
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module

HEAD = """.version 8.0
.target sm_90a
.address_size 64
.file 1 "softmax.py"
.visible .entry k(.param .u64 out)
{
.reg .pred %p<100>;
.reg .b32 %r<100000>;
.reg .b64 %rd<9>;
"""


def module_of(body: str) -> Module:
    module = parse(f"{HEAD}{body}\n}}\n")
    assert not module.problems, module.problems[:3]
    return module


def facts_of(body: str) -> Facts:
    module = module_of(body)
    return Facts(module, module.functions[0])


def test_defs_of_a_register_that_is_not_used() -> None:
    facts = facts_of("mov.u32 %r1, 1;\nmov.u32 %r2, 2;\nret;")
    reaching = facts.get(ReachingAnalysis)
    first, second = facts.function.instrs[:2]
    with pytest.raises(ValueError, match=r"mov\.u32 does not use %r1"):
        reaching.defs_of(second, first.defs[0])


def test_definitions_and_reads() -> None:
    facts = facts_of("mov.u32 %r1, 1;\nadd.u32 %r1, %r1, %r1;\nst.global.b32 [%rd1], %r1;\nret;")
    reaching = facts.get(ReachingAnalysis)
    instrs = facts.function.instrs
    register = instrs[0].defs[0]
    assert reaching.definitions(register) == [0, 1]
    assert reaching.reads_of(register) == [instrs[1], instrs[2]]
    assert reaching.uses_of(instrs[0]) == [instrs[1]]
    assert reaching.uses_of(instrs[1]) == [instrs[2]]
    assert reaching.definitions(instrs[2].uses[0]) == []


def test_one_instruction_that_writes_a_register_twice() -> None:
    facts = facts_of("ld.global.v2.b32 {%r1, %r1}, [%rd1];\nst.global.b32 [%rd1], %r1;\nret;")
    store = facts.function.instrs[1]
    assert facts.get(ReachingAnalysis).defs_of(store, store.uses[1]) == (0,)
    assert facts.get(PressureAnalysis).words(facts.function.instrs[0]) == 3


def test_many_predicates_only_widen_the_answer() -> None:
    """Beyond the limits of what is followed, "maybe" is still the answer, never "always"."""
    writes = "".join(f"@%p{i} mov.u32 %r1, {i};\n" for i in range(40))
    facts = facts_of(writes + "st.global.b32 [%rd1], %r1;\nret;")
    store = facts.function.instrs[40]
    reaching = facts.get(ReachingAnalysis)
    assert reaching.defs_of(store, store.uses[1]) == (UNINITIALISED, *range(40))
    assert reaching.initialisation(store, store.uses[1]) == "maybe"


def test_many_correlated_branches_only_widen_the_answer() -> None:
    body = "".join(
        f"@%p{i} bra A{i};\n@!%p{i} bra B{i};\nA{i}: mov.u32 %r{i + 2}, 1;\nB{i}:\n"
        for i in range(30)
    )
    guarded = "".join(f"@%p{i} bra C{i};\nbra D{i};\nC{i}: add.u32 %r1, %r{i + 2}, 1;\nD{i}:\n"
                      for i in range(30))  # fmt: skip
    facts = facts_of(body + guarded + "ret;")
    reaching = facts.get(ReachingAnalysis)
    adds = [i for i in facts.function.instrs if i.opcode == "add"]
    assert len(adds) == 30
    for add in adds:
        assert reaching.initialisation(add, add.uses[0]) in ("always", "maybe")


def test_holders_name_the_source_lines() -> None:
    body = """
.loc 1 3 5
mov.u64 %rd1, 0;
.loc 1 7 9
ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];
.loc 1 8 9
st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};
st.global.b32 [%rd1], %r9;
ret;
"""
    facts = facts_of(body)
    pressure = facts.get(PressureAnalysis)
    assert pressure.peak_instr is facts.function.instrs[1]
    holders = pressure.holders(pressure.peak_instr, facts.module)
    shown = [(h.frame and (h.frame.path, h.frame.line), h.words, len(h.values)) for h in holders]
    assert shown == [(("softmax.py", 7), 4, 4), (("softmax.py", 3), 2, 1), (None, 1, 1)]


def test_copies_on_no_line_hold_what_they_copy() -> None:
    # As compilers write loops: the sum is carried in %r1 and copied to %r2 on line 0.
    body = """
.loc 1 5 1
mov.u64 %rd1, 0;
.loc 1 0 1
mov.u32 %r1, 0;
again:
.loc 1 0 1
mov.u32 %r2, %r1;
add.u64 %rd2, %rd1, 8;
.loc 1 9 1
ld.global.b32 %r3, [%rd1];
.loc 1 10 1
add.u32 %r1, %r2, %r3;
st.global.b32 [%rd2], %r1;
bra again;
"""
    facts = facts_of(body)
    pressure = facts.get(PressureAnalysis)
    at = facts.function.instrs[4]
    holders = pressure.holders(at, facts.module)
    shown = [(h.frame and h.frame.line, h.words, h.first and h.first.index) for h in holders]
    assert shown == [(5, 2, 0), (None, 2, None), (9, 1, 4), (10, 1, 5)]
    assert pressure.origins(at, facts.module, 2) == [
        (2, facts.function.instrs[0]), (1, facts.function.instrs[4])
    ]  # fmt: skip


def test_a_value_with_a_write_above_and_guarded_ones_below_it() -> None:
    body = (
        "mov.u32 %r1, 0;\nmov.u32 %r1, 1;\n@%p1 mov.u32 %r1, 2;\nst.global.b32 [%rd1], %r1;\nret;"
    )
    facts = facts_of(body)
    values = facts.get(PressureAnalysis).live_at(facts.function.instrs[2])
    written = {v.register.name: [d.index for d in v.definitions] for v in values}
    assert written == {"%rd1": [], "%r1": [1, 2]}


def test_a_guard_that_is_not_declared_still_makes_a_may_definition() -> None:
    body = "mov.u32 %r1, 0;\n@gone mov.u32 %r1, 1;\n@gone bra A;\nmov.u32 %r2, 1;\n"
    body += "A: st.global.b32 [%rd1], %r1;\nst.global.b32 [%rd1], %r2;\nret;"
    module = parse(f"{HEAD}{body}\n}}\n")
    assert module.problems
    facts = Facts(module, module.functions[0])
    cfg = facts.get(CfgAnalysis)
    assert cfg.blocks[0].succs == [2, 1]
    assert cfg.blocks[0].condition is None
    reaching = facts.get(ReachingAnalysis)
    first, second = facts.function.instrs[4:6]
    assert reaching.defs_of(first, first.uses[1]) == (0, 1)
    assert reaching.initialisation(second, second.uses[1]) == "maybe"


def test_wgmma_that_adds_reads_its_accumulators() -> None:
    form = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, "
    sparse = form.replace("mma_async.", "mma_async.sp.").replace("k16", "k32")
    body = f"""
{form}%rd1, %rd2, 0, 1, 1, 0, 0;
{form}%rd1, %rd2, 1, 1, 1, 0, 0;
{form}%rd1, %rd2, %p1, 1, 1, 0, 0;
{form}{{%r5, %r6, %r7, %r8}}, %rd2, 0, 1, 1, 0;
{sparse}%rd1, %rd2, %r9, 0, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
ret;
"""
    instrs = facts_of(body).function.instrs
    names = [[r.name for r in reads(i)] for i in instrs]
    accumulators = ["%r1", "%r2", "%r3", "%r4"]
    assert names == [
        ["%rd1", "%rd2"],
        [*accumulators, "%rd1", "%rd2"],
        [*accumulators, "%rd1", "%rd2", "%p1"],
        ["%r5", "%r6", "%r7", "%r8", "%rd2"],
        ["%rd1", "%rd2", "%r9"],
        [],
        [],
    ]


def test_a_loop_header_waits_for_all_its_latches() -> None:
    """A header that many blocks lead back to is visited once a sweep, not once for each."""
    order = list(range(101))
    work = Worklist(order, order)
    seen: set[int] = set()
    visits = 0
    while work:
        index = work.pop()
        visits += 1
        # Each latch has something new to tell once; the header tells all of them every time.
        if index == 0:
            targets = order[1:]
        else:
            targets = [] if index in seen else [0]
        seen.add(index)
        for target in targets:
            work.push(target)
    assert visits == 101 + 101


def straight(count: int) -> str:
    """Every instruction writes a register of its own and reads one from far above."""
    lines = [f"add.u32 %r{i}, %r{max(0, i - 500)}, %r{i - 1};" for i in range(1, count)]
    return "\n".join(["mov.u32 %r0, 1;", *lines, "ret;"])


def crossing(count: int) -> str:
    """Short blocks, every register read in the next one, and some much later."""
    lines = ["mov.u32 %r0, 1;"]
    for i in range(1, count):
        lines.append(f"add.u32 %r{i}, %r{i - 1}, %r{max(0, i - 500)};")
        if i % 10 == 0:
            lines.append(f"@%p1 bra L{i};\nL{i}:")
    return "\n".join([*lines, "ret;"])


def seconds_of(fn: Function) -> float:
    """Processor time of the graph, liveness, pressure and every reaching definition."""
    start = process_time()
    cfg = build(fn)
    liveness = Liveness(cfg)
    Pressure(cfg, liveness)
    reaching = Reaching(cfg, liveness)
    for instr in fn.instrs:
        for register in instr.uses:
            reaching.defs_of(instr, register)
    return process_time() - start


@pytest.mark.parametrize("shape", [straight, crossing])
def test_time_grows_about_linearly(shape) -> None:  # type: ignore[no-untyped-def]
    small = module_of(shape(5_000)).functions[0]
    large = module_of(shape(40_000)).functions[0]
    ratio = min(seconds_of(large) for _ in range(3)) / min(seconds_of(small) for _ in range(3))
    # Eight times the instructions; an exponent of 1.4 would make it 18 times the work.
    assert ratio < 18


def test_liveness_of_a_declaration() -> None:
    module = parse(".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f ();\n")
    facts = Facts(module, module.functions[0])
    assert facts.get(LivenessAnalysis).live_in == [0]
    assert facts.get(PressureAnalysis).peak_instr is None
    assert facts.get(PressureAnalysis).peak.words == 0
