"""Where lanes go: branches, loops, tables, calls, returns, and runs without an end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptxlint.dynamic.emulator.batch import SPECIAL
from ptxlint.dynamic.emulator.run import Emulator, Outcome
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.frontends.ptx import parse

Execute = Callable[..., None]
Kernel = Callable[..., str]
Run = Callable[..., Outcome]
THREADS = 64
START = """
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r100, %tid.x;
  mad.wide.u32 %rd2, %r100, 4, %rd1;
  mov.u32 %r1, 0;
"""
END = """
  st.global.u32 [%rd2], %r1;
"""


def results(execute: Execute, text: str) -> list[int]:
    out = np.full(THREADS, 99, dtype=np.uint32)
    execute(text, [out])
    return [int(v) for v in out]


def test_both_arms_and_what_follows(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  and.b32 %r2, %r100, 3;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra $then;
  setp.eq.u32 %p2, %r2, 1;
  @%p2 add.u32 %r1, %r1, 10;
  @!%p2 add.u32 %r1, %r1, 20;
  bra $join;
$then:
  add.u32 %r1, %r1, 30;
$join:
  add.u32 %r1, %r1, 1;
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS))
    assert got == [{0: 31, 1: 11}.get(t % 4, 21) for t in range(THREADS)]


def test_loops_of_as_many_rounds_as_the_lane_says(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  mov.u32 %r2, 0;
$outer:
  setp.ge.u32 %p1, %r2, %r100;
  @%p1 bra $done;
  mov.u32 %r3, 0;
$inner:
  add.u32 %r1, %r1, 1;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, %r2;
  @%p2 bra $inner;
  add.u32 %r2, %r2, 1;
  bra $outer;
$done:
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS))
    assert got == [sum(max(1, i) for i in range(t)) for t in range(THREADS)]


def test_a_loop_left_from_its_middle(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
$round:
  add.u32 %r1, %r1, 1;
  setp.eq.u32 %p1, %r1, %r100;
  @%p1 ret;
  st.global.u32 [%rd2], %r1;
  setp.lt.u32 %p2, %r1, 40;
  @%p2 bra $round;
  mov.u32 %r1, 1000;
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS))
    want = [1000 if t == 0 or t > 40 else (t - 1 if t > 1 else 99) for t in range(THREADS)]
    assert got == want


def test_lanes_meet_again_before_what_follows(execute: Execute, kernel: Kernel) -> None:
    # A vote behind a loop of different lengths counts everybody.
    body = (
        START
        + """
$round:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, %r100;
  @%p1 bra $round;
  activemask.b32 %r1;
"""
        + END
    )
    assert set(results(execute, kernel(body, 1, THREADS))) == {0xFFFFFFFF}


def test_tables_of_labels(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  and.b32 %r2, %r100, 3;
table: .branchtargets $a, $b, $c, $a;
  brx.idx %r2, table;
$a:
  add.u32 %r1, %r1, 1;
  bra $join;
$b:
  add.u32 %r1, %r1, 2;
$c:
  add.u32 %r1, %r1, 4;
$join:
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS))
    assert got == [[1, 6, 4, 1][t % 4] for t in range(THREADS)]


def test_an_index_beyond_the_table_is_told(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
table: .branchtargets $a, $b;
  brx.idx %r100, table;
$a:
  add.u32 %r1, %r1, 1;
$b:
"""
        + END
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out])
    assert [(f.kind, f.lanes) for f in found.faults] == [("trap", THREADS - 2)]
    assert out.tolist() == [1] + [0] * (THREADS - 1)


FUNCTIONS = """
.func (.reg .u32 out) square (.reg .u32 x)
{
  mul.lo.u32 out, x, x;
  ret;
}
.func (.param .b32 out) halves (.param .b32 x, .param .align 8 .b8 pair[8])
{
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  ld.param.u32 %r1, [x];
  ld.param.u32 %r2, [pair+4];
  setp.gt.u32 %p1, %r1, 10;
  @%p1 bra $large;
  call (%r3), square, (%r1);
  add.u32 %r3, %r3, %r2;
  st.param.u32 [out], %r3;
  ret;
$large:
  st.param.u32 [out], 7;
}
"""


def test_functions_call_functions(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  {
  .param .b32 given;
  .param .align 8 .b8 both[8];
  .param .b32 back;
  st.param.u32 [given], %r100;
  st.param.u32 [both], 5;
  st.param.u32 [both+4], 1000;
  setp.ne.u32 %p1, %r100, 3;
  @%p1 call (back), halves, (given, both);
  @%p1 ld.param.u32 %r1, [back];
  }
  call (%r2), square, (%r1);
  add.u32 %r1, %r1, %r2;
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS, FUNCTIONS))
    inner = [0 if t == 3 else 7 if t > 10 else t * t + 1000 for t in range(THREADS)]
    assert got == [v + v * v for v in inner]


def refusal(text: str) -> UnsupportedError:
    module = parse(text, "snippet.ptx")
    with pytest.raises(UnsupportedError) as caught:
        Emulator(module, module.kernels()[0])
    return caught.value


def test_recursion_is_refused_before_anything_runs(kernel: Kernel) -> None:
    function = ".func again () {\n  call again;\n  ret;\n}\n"
    error = refusal(kernel(START + "  call again;" + END, 1, THREADS, function))
    assert "recursion" in error.reason
    assert error.instr.opcode == "call"


def test_a_call_through_a_register_is_refused(kernel: Kernel) -> None:
    body = (
        START
        + """
proto: .callprototype _ ();
  mov.u64 %rd5, %rd1;
  call %rd5, (), proto;
"""
        + END
    )
    assert refusal(kernel(body, 1, THREADS)).instr.opcode == "call"


def test_a_function_without_a_body_is_refused(kernel: Kernel) -> None:
    text = kernel(START + "  call elsewhere;" + END, 1, THREADS, ".extern .func elsewhere ();\n")
    assert "elsewhere" in refusal(text).reason


def test_guarded_exits(execute: Execute, kernel: Kernel) -> None:
    body = (
        START
        + """
  setp.lt.u32 %p1, %r100, 20;
  @%p1 exit;
  setp.lt.u32 %p1, %r100, 40;
  @!%p1 ret;
  mov.u32 %r1, 5;
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS))
    assert got == [5 if 20 <= t < 40 else 99 for t in range(THREADS)]


def test_a_trap_ends_the_lanes_that_meet_it(outcome: Run, kernel: Kernel) -> None:
    body = START + "  setp.eq.u32 %p1, %r100, 9;\n  @%p1 trap;\n  mov.u32 %r1, 5;" + END
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out])
    assert [(f.kind, f.tid, f.lanes) for f in found.faults] == [("trap", (9, 0, 0), 1)]


def test_two_threads_of_a_warp_that_wait_for_each_other(execute: Execute, kernel: Kernel) -> None:
    # One lane spins until another one of its warp has written: it must get a turn.
    body = (
        START
        + """
  setp.ne.u32 %p1, %r100, 0;
  @%p1 bra $writer;
$spin:
  ld.volatile.global.u32 %r2, [%rd1+4];
  setp.ne.u32 %p2, %r2, 1;
  @%p2 bra $spin;
  mov.u32 %r1, 50;
  bra $done;
$writer:
  setp.ne.u32 %p3, %r100, 1;
  @%p3 bra $done;
  st.volatile.global.u32 [%rd1+4], 1;
  mov.u32 %r1, 1;
$done:
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS))
    assert got[:3] == [50, 1, 0]


def test_programs_that_wait_for_each_other(execute: Execute, kernel: Kernel) -> None:
    # The first program waits for a flag that the last one sets; 400 do not fit one batch.
    body = (
        START
        + """
  ld.param.u64 %rd5, [k_param_1];
  mov.u32 %r5, %ctaid.x;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra $other;
$spin:
  ld.acquire.gpu.global.u32 %r2, [%rd5];
  setp.ne.u32 %p2, %r2, 1;
  @%p2 bra $spin;
  mov.u32 %r1, 3;
  st.global.u32 [%rd2], %r1;
  ret;
$other:
  setp.ne.u32 %p3, %r5, 399;
  @%p3 ret;
  st.release.gpu.global.u32 [%rd5], 1;
"""
    )
    out, flag = np.zeros(THREADS, np.uint32), np.zeros(1, np.uint32)
    execute(kernel(body, 2, THREADS), [out, flag], 400)
    assert out.tolist() == [3] * THREADS


def test_a_flag_that_nobody_sets(outcome: Run, kernel: Kernel) -> None:
    body = (
        START
        + """
$spin:
  ld.volatile.global.u32 %r2, [%rd1];
  setp.ne.u32 %p2, %r2, 1;
  @%p2 bra $spin;
"""
        + END
    )
    out = np.zeros(THREADS, dtype=np.uint32)
    found = outcome(kernel(body, 1, THREADS), [out], most_turns=20_000)
    assert not found.is_complete
    assert [(f.kind, f.lanes) for f in found.faults] == [("hang", THREADS)]


def test_irreducible_control_flow(execute: Execute, kernel: Kernel) -> None:
    # Two entries into one loop.
    body = (
        START
        + """
  mov.u32 %r2, 0;
  and.b32 %r3, %r100, 1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra $second;
$first:
  add.u32 %r1, %r1, 1;
$second:
  add.u32 %r1, %r1, 100;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, 3;
  @%p2 bra $first;
"""
        + END
    )
    got = results(execute, kernel(body, 1, THREADS))
    assert got == [302 if t % 2 == 0 else 303 for t in range(THREADS)]


# Special registers ----------------------------------------------------------------------------
def test_special_registers_have_the_values_of_their_place(execute: Execute, kernel: Kernel) -> None:
    names = ["%laneid", "%warpid", "%nwarpid", "%ctaid.x", "%nctaid.x", "%ntid.x", "%ntid.z",
             "%lanemask_lt", "%lanemask_ge", "%lanemask_eq"]  # fmt: skip
    body = "  mov.u32 %r1, %ctaid.x;\n  mov.u32 %r2, %tid.x;\n  ld.param.u64 %rd1, [k_param_0];\n"
    body += f"  mad.lo.u32 %r1, %r1, {THREADS}, %r2;\n  mad.wide.u32 %rd2, %r1, 40, %rd1;\n"
    for at, name in enumerate(names):
        body += f"  mov.u32 %r3, {name};\n  st.global.u32 [%rd2+{4 * at}], %r3;\n"
    out = np.zeros((2, THREADS, len(names)), dtype=np.uint32)
    execute(kernel(body, 1, THREADS), [out], 2)
    for cta in range(2):
        for thread in range(THREADS):
            lane = thread % 32
            below = (1 << lane) - 1
            want = [lane, thread // 32, 2, cta, 2, THREADS, 1, below, 0xFFFFFFFF ^ below, 1 << lane]
            assert out[cta, thread].tolist() == want


def test_each_special_register_that_is_taken_has_a_value(execute: Execute, kernel: Kernel) -> None:
    for name in sorted(SPECIAL):
        width, letter = (64, "rd") if name in ("%clock64", "%globaltimer") else (32, "r")
        body = START + f"  mov.u{width} %{letter}9, {name};\n" + END
        assert results(execute, kernel(body, 1, THREADS)) == [0] * THREADS


def test_other_special_registers_are_refused_before_anything_runs(kernel: Kernel) -> None:
    error = refusal(kernel(START + "  mov.u32 %r1, %pm0;" + END, 1, THREADS))
    assert "%pm0" in error.reason
