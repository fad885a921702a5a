"""mbarrier objects: phases, who waits for them, and what goes wrong with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator import mbarrier
from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.run import Outcome, run
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.frontends.ptx import parse

Text = Callable[..., str]

START = """
  mov.u32 %r0, %tid.x;
  ld.param.u64 %rd0, [k_param_0];
  mad.wide.u32 %rd1, %r0, 4, %rd0;
  mov.u32 %r1, bars;
  setp.eq.u32 %p1, %r0, 0;
"""


def ran(
    kernel: Text, body: str, threads: int = 32, shape: tuple[int, ...] = (32,), grid: int = 1
) -> tuple[NDArray[np.uint32], Outcome]:
    """What a body wrote to its array, and what was found."""
    text = kernel(START + body, 1, threads, ".shared .align 16 .b8 bars[64];\n")
    module = parse(text, "snippet.ptx")
    out = np.zeros(shape, dtype=np.uint32)
    outcome = run(module, module.kernels()[0], (grid, 1, 1), [out])
    return out, outcome


def kinds(faults: list[Fault]) -> list[tuple[str, str]]:
    return [(fault.kind, fault.instr.shape.mnemonic) for fault in faults]


# The object -----------------------------------------------------------------------------------
def test_phases_of_an_object_are_those_of_a_model() -> None:
    """Arrivals, drops and transactions in random order against plain numbers."""
    rng = np.random.default_rng(1)
    count, waiting, bytes_, parity = 5, 5, 0, 0
    word = mbarrier.initial(np.array([5], dtype=np.uint32))
    phases = 0
    for _ in range(3000):
        arrivals = int(rng.integers(0, min(waiting, 2) + 1))
        dropped = arrivals if rng.random() < 0.02 and count > 2 else 0
        amount = int(rng.integers(-64, 65)) if rng.random() < 0.5 else -bytes_
        assert int(mbarrier.pending(word)[0]) == waiting
        assert int(mbarrier.transactions(word)[0]) == bytes_
        assert int(mbarrier.parity(word)[0]) == parity
        found = mbarrier.changed(
            word, np.array([arrivals]), np.array([amount]), np.array([dropped])
        )
        word = found.words
        count, waiting, bytes_ = count - dropped, waiting - arrivals, bytes_ + amount
        is_complete = waiting == 0 and bytes_ == 0
        assert bool(found.completed[0]) == is_complete
        assert not found.is_over[0]
        if is_complete:
            waiting, parity, phases = count, 1 - parity, phases + 1
    assert phases > 300


def test_more_than_an_object_can_count() -> None:
    word = mbarrier.initial(np.array([1], dtype=np.uint32))
    nothing = np.array([0])
    assert mbarrier.changed(word, np.array([2]), nothing, nothing).is_over[0]
    most = np.array([mbarrier.MOST_BYTES])
    assert not mbarrier.changed(word, nothing, most, nothing).is_over[0]
    assert mbarrier.changed(word, nothing, most + 1, nothing).is_over[0]


# Instructions ---------------------------------------------------------------------------------
def test_arrivals_states_and_counts(kernel: Text) -> None:
    out, outcome = ran(kernel, """
      @!%p1 ret;
      mbarrier.init.shared::cta.b64 [%r1], 3;
      mbarrier.arrive.shared::cta.b64 %rd10, [%r1];
      mbarrier.pending_count.b64 %r10, %rd10;
      mbarrier.arrive.noComplete.shared.b64 %rd11, [%r1], 1;
      mbarrier.pending_count.b64 %r11, %rd11;
      mbarrier.test_wait.shared.b64 %p2, [%r1], %rd11;
      selp.u32 %r12, 1, 0, %p2;
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 1;
      selp.u32 %r13, 1, 0, %p2;
      cvta.shared.u64 %rd3, bars;
      mbarrier.arrive.b64 %rd12, [%rd3];
      mbarrier.test_wait.shared.b64 %p2, [%r1], %rd12;
      selp.u32 %r14, 1, 0, %p2;
      mbarrier.try_wait.parity.b64 %p2, [%rd3], 1;
      selp.u32 %r15, 1, 0, %p2;
      mbarrier.arrive_drop.shared.b64 %rd13, [%r1];
      mbarrier.arrive.shared.b64 %rd14, [%r1], 2;
      mbarrier.arrive.shared.b64 %rd15, [%r1];
      mbarrier.pending_count.b64 %r16, %rd15;
      mbarrier.inval.shared::cta.b64 [%r1];
      st.global.v4.u32 [%rd1], {%r10, %r11, %r12, %r13};
      st.global.v4.u32 [%rd1+16], {%r14, %r15, %r16, %r16};
    """, shape=(8,))  # fmt: skip
    assert kinds(outcome.faults) == []
    # In the first phase the one before counts as complete; a drop leaves two for the third one.
    assert out.tolist() == [3, 2, 0, 1, 1, 0, 2, 2]


def test_bytes_are_waited_for_in_any_order(kernel: Text) -> None:
    out, outcome = ran(kernel, """
      @!%p1 ret;
      mbarrier.init.shared::cta.b64 [%r1], 1;
      mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 48;
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      selp.u32 %r10, 1, 0, %p2;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      selp.u32 %r11, 1, 0, %p2;
      mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      selp.u32 %r12, 1, 0, %p2;
      mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 32;
      mbarrier.arrive.shared::cta.b64 _, [%r1];
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 1;
      selp.u32 %r13, 1, 0, %p2;
      st.global.v4.u32 [%rd1], {%r10, %r11, %r12, %r13};
    """)  # fmt: skip
    assert kinds(outcome.faults) == []
    assert out[:4].tolist() == [0, 0, 1, 0]


def test_all_lanes_arrive_one_after_the_other(kernel: Text) -> None:
    out, outcome = ran(kernel, """
      @%p1 mbarrier.init.shared::cta.b64 [%r1], 16;
      bar.sync 0;
      mbarrier.arrive.shared::cta.b64 %rd10, [%r1];
      mbarrier.pending_count.b64 %r10, %rd10;
      st.global.u32 [%rd1], %r10;
    """)  # fmt: skip
    assert kinds(outcome.faults) == []
    assert sorted(out.tolist()) == sorted([*range(1, 17), *range(1, 17)])


RING = """
  @%p1 mbarrier.init.shared::cta.b64 [%r1], 1;
  @%p1 mbarrier.init.shared::cta.b64 [%r1+8], 96;
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
  mov.u32 %r9, 0;
  bar.sync 0;
  setp.lt.u32 %p3, %r0, 32;
  @%p3 bra $produce;
$consume:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], %r3;
  @!%p4 bra $consume;
  ld.shared.u32 %r10, [%r1+16];
  mad.lo.u32 %r9, %r9, 3, %r10;
  mbarrier.arrive.shared::cta.b64 _, [%r1+8];
  xor.b32 %r3, %r3, 1;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p5, %r2, 20;
  @%p5 bra $consume;
  st.global.u32 [%rd1], %r9;
  bra $out;
$produce:
  @!%p1 bra $out;
$fill:
  add.u32 %r11, %r2, 7;
  st.shared.u32 [%r1+16], %r11;
  mbarrier.arrive.shared::cta.b64 _, [%r1];
$empty:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1+8], %r3;
  @!%p4 bra $empty;
  xor.b32 %r3, %r3, 1;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p5, %r2, 20;
  @%p5 bra $fill;
$out:
"""


@pytest.mark.parametrize("grid", [1, 5])
def test_one_warp_produces_what_three_consume(kernel: Text, grid: int) -> None:
    """A cell that is filled and emptied in turn, with a barrier for each."""
    out, outcome = ran(kernel, RING, 128, (128,), grid)
    assert kinds(outcome.faults) == []
    assert outcome.is_complete
    wanted = 0
    for step in range(20):
        wanted = (3 * wanted + step + 7) % (1 << 32)
    assert (out[:32] == 0).all()
    assert (out[32:] == wanted).all()


def test_who_waits_in_vain_is_a_deadlock(kernel: Text) -> None:
    """A consumer count that nobody reaches: both sides wait for ever."""
    _, outcome = ran(kernel, RING.replace("[%r1+8], 96", "[%r1+8], 97"), 128, (128,))
    assert {kind for kind, _ in kinds(outcome.faults)} == {"deadlock"}
    assert all("try_wait" in name for _, name in kinds(outcome.faults))
    assert sorted(fault.lanes for fault in outcome.faults) == [1, 96]
    assert outcome.is_complete


def test_other_ctas_go_on_around_a_deadlock(kernel: Text) -> None:
    """The threads of its own CTA wait with it: who hangs never comes to their barrier."""
    out, outcome = ran(kernel, """
      @%p1 mbarrier.init.shared::cta.b64 [%r1], 2;
      bar.sync 0;
      mov.u32 %r5, %ctaid.x;
      mad.wide.u32 %rd1, %r5, 256, %rd1;
      st.global.u32 [%rd1], 1;
      setp.ge.u32 %p3, %r0, 32;
      @%p3 bra $others;
    $wait:
      mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], %r5;
      @!%p4 bra $wait;
    $others:
      bar.sync 0;
      st.global.u32 [%rd1], 2;
    """, 64, (128,), 2)  # fmt: skip
    assert [(fault.kind, fault.lanes, fault.ctaid[0]) for fault in outcome.faults] == [
        ("deadlock", 32, 0)
    ]
    assert outcome.faults[0].message == (
        "waits for what never comes: the mbarrier at 0x0 of shared memory lacks 2 arrivals and "
        "0 bytes; threads 32 to 63 wait at barrier 0 (`bar.sync`)"
    )
    assert outcome.is_complete
    assert (out == np.repeat([1, 2], 64)).all()


def test_polling_with_something_else_to_do(kernel: Text) -> None:
    """Who finds a phase incomplete may bring it about."""
    out, outcome = ran(kernel, """
      @!%p1 ret;
      mbarrier.init.shared::cta.b64 [%r1], 3;
      mov.u32 %r2, 0;
    $poll:
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      @%p2 bra $done;
      mbarrier.arrive.shared::cta.b64 _, [%r1];
      add.u32 %r2, %r2, 1;
      bra $poll;
    $done:
      st.global.u32 [%rd1], %r2;
    """)  # fmt: skip
    assert kinds(outcome.faults) == []
    assert out[0] == 3


def test_who_waits_is_woken_while_others_are_busy(kernel: Text) -> None:
    """One warp completes the phase and then spins until the other one, which waited, says so."""
    out, outcome = ran(kernel, """
      @%p1 mbarrier.init.shared::cta.b64 [%r1], 32;
      bar.sync 0;
      setp.ge.u32 %p3, %r0, 32;
      @%p3 bra $others;
    $wait:
      mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0;
      @!%p4 bra $wait;
      st.volatile.shared.u32 [%r1+16], 7;
      bra $out;
    $others:
      mbarrier.arrive.shared::cta.b64 _, [%r1];
    $spin:
      ld.volatile.shared.u32 %r3, [%r1+16];
      setp.eq.u32 %p4, %r3, 0;
      @%p4 bra $spin;
      st.global.u32 [%rd1], %r3;
    $out:
    """, 64, (64,))  # fmt: skip
    assert kinds(outcome.faults) == []
    assert outcome.is_complete
    assert (out == np.repeat([0, 7], 32)).all()


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", "arrive"),
        ("mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;", "try_wait"),
        ("mbarrier.init.shared::cta.b64 [%r1], 0;", "init"),
        ("mbarrier.init.shared::cta.b64 [%r1], 1048576;", "init"),
        (
            "mbarrier.init.shared::cta.b64 [%r1], 1;\nmbarrier.inval.shared::cta.b64 [%r1];\n"
            "mbarrier.inval.shared::cta.b64 [%r1];", "inval",
        ),
        (
            "mbarrier.init.shared::cta.b64 [%r1], 1;\nmbarrier.arrive.shared::cta.b64 _, [%r1], 2;",
            "arrive",
        ),
        (
            "mbarrier.init.shared::cta.b64 [%r1], 1;\n"
            "mbarrier.arrive.noComplete.shared::cta.b64 %rd9, [%r1], 1;", "arrive.noComplete",
        ),
    ],
)  # fmt: skip
def test_misuse_is_told(kernel: Text, body: str, name: str) -> None:
    _, outcome = ran(kernel, f"@!%p1 ret;\n{body}")
    ((kind, mnemonic),) = kinds(outcome.faults)
    assert kind == "mbarrier"
    assert f"mbarrier.{name}" in mnemonic
    assert outcome.is_complete


def test_copies_arrive(kernel: Text) -> None:
    """Without .noinc an arrival is added to those expected."""
    out, outcome = ran(kernel, """
      @%p1 mbarrier.init.shared::cta.b64 [%r1], 32;
      bar.sync 0;
      cp.async.ca.shared.global [%r1+16], [%rd0], 16;
      cp.async.mbarrier.arrive.shared::cta.b64 [%r1];
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      selp.u32 %r10, 2, 0, %p2;
      bar.sync 0;
      cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];
      mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], 0;
      selp.u32 %r11, 1, 0, %p2;
      add.u32 %r10, %r10, %r11;
      st.global.u32 [%rd1], %r10;
    """)  # fmt: skip
    assert kinds(outcome.faults) == []
    assert (out == 1).all()


# Clusters of one CTA --------------------------------------------------------------------------
def test_a_cluster_barrier_orders_the_warps_of_its_cta(kernel: Text) -> None:
    out, outcome = ran(kernel, """
      setp.lt.u32 %p3, %r0, 32;
      mov.u32 %r2, 0;
      @!%p3 bra $come;
    $slow:
      add.u32 %r2, %r2, 1;
      setp.lt.u32 %p4, %r2, 200;
      @%p4 bra $slow;
      @%p1 st.shared.u32 [%r1], %r2;
    $come:
      barrier.cluster.arrive.release.aligned;
      barrier.cluster.wait.acquire.aligned;
      mapa.shared::cluster.u32 %r3, %r1, 0;
      ld.shared::cluster.u32 %r4, [%r3];
      getctarank.shared::cluster.u32 %r5, %r3;
      mov.u32 %r6, %cluster_nctaid.x;
      add.u32 %r4, %r4, %r5;
      add.u32 %r4, %r4, %r6;
      mov.u32 %r7, %clusterid.x;
      add.u32 %r4, %r4, %r7;
      st.global.u32 [%rd1], %r4;
    """, 96, (96,))  # fmt: skip
    assert kinds(outcome.faults) == []
    assert (out == 201).all()


def test_threads_that_have_left_are_not_waited_for(kernel: Text) -> None:
    out, outcome = ran(kernel, """
      setp.ge.u32 %p3, %r0, 32;
      barrier.cluster.arrive;
      @%p3 ret;
      barrier.cluster.wait;
      barrier.cluster.arrive;
      barrier.cluster.wait;
      st.global.u32 [%rd1], 1;
    """, 64, (64,))  # fmt: skip
    assert kinds(outcome.faults) == []
    assert (out == np.repeat([1, 0], 32)).all()


def test_a_cluster_barrier_that_some_never_come_to(kernel: Text) -> None:
    _, outcome = ran(kernel, """
      setp.ge.u32 %p3, %r0, 32;
      @%p3 bra $others;
      barrier.cluster.arrive;
    $others:
      barrier.cluster.wait;
    """, 64, (64,))  # fmt: skip
    assert [(fault.kind, fault.lanes) for fault in outcome.faults] == [("deadlock", 64)]
    assert "32 of 64 threads have arrived at the barrier of the cluster" in (
        outcome.faults[0].message
    )
    assert outcome.is_complete


def test_another_cta_of_a_cluster_of_one(kernel: Text) -> None:
    _, outcome = ran(kernel, "mapa.shared::cluster.u32 %r3, %r1, 1;")
    assert [fault.kind for fault in outcome.faults] == ["outside"]


# Order ----------------------------------------------------------------------------------------
def raced(kernel: Text, body: str, threads: int) -> list[str]:
    """The instructions whose accesses nothing orders."""
    text = kernel(START + body, 1, threads, ".shared .align 16 .b8 bars[64];\n")
    module = parse(text, "snippet.ptx")
    out = np.zeros(threads, dtype=np.uint32)
    outcome = run(module, module.kernels()[0], (2, 1, 1), [out], sanitize=Sanitize(races=True))
    # Both CTAs write the same array, with the same numbers.
    return [fault.instr.shape.mnemonic for fault in outcome.faults if fault.kind == "race"]


def test_phases_order_who_arrives_before_who_waits(kernel: Text) -> None:
    assert raced(kernel, RING, 128) == []


@pytest.mark.parametrize("wait", ["$empty:", "$consume:"])
def test_without_waiting_there_is_a_race(kernel: Text, wait: str) -> None:
    """Who goes on without looking, on either side, meets the other one at the cell."""
    start = RING.index("mbarrier.try_wait", RING.index(wait))
    end = RING.index(";", RING.index("bra", start)) + 1
    found = raced(kernel, RING[:start] + RING[end:], 128)
    assert found
    assert set(found) <= {"st.shared.u32", "ld.shared.u32"}


CLUSTER = """
  mov.u32 %r2, bars;
  @%p1 st.shared.u32 [%r2], 7;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ld.shared.u32 %r3, [%r2];
"""


def test_a_cluster_barrier_orders(kernel: Text) -> None:
    assert raced(kernel, CLUSTER, 96) == []
    assert raced(kernel, CLUSTER.replace("  barrier.cluster.wait;\n", ""), 96) == ["ld.shared.u32"]
