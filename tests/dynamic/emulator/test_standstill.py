"""Runs that repeat themselves are told early, and nothing else is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.emulator import emulate

Kernel = Callable[..., str]
WAIT = """
again:
  ld.volatile.global.b32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
"""
PARTED = """
  and.b32 %r2, %r3, 1;
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra other;
again:
  ld.volatile.global.b32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  bra out;
other:
  atom.global.cas.b32 %r1, [%rd1], 1, 2;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra other;
out:
"""
LOCK = """
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra out;
again:
  atom.global.cas.b32 %r1, [%rd1+4], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra again;
out:
"""
TOGGLE = """
again:
  ld.global.b32 %r1, [%rd1];
  xor.b32 %r1, %r1, 5;
  st.global.b32 [%rd1], %r1;
  bra again;
"""
COUNT = """
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 60000;
  @%p1 bra again;
"""
BEAT = """
  mov.u32 %r1, 0;
again:
  ld.global.b32 %r2, [%rd1+8];
  add.u32 %r2, %r2, 1;
  st.global.b32 [%rd1+8], %r2;
  setp.lt.u32 %p1, %r2, 40000;
  mov.u32 %r2, 0;
  @%p1 bra again;
"""
"""Registers are the same each time: only memory goes on."""


def ran(kernel: Kernel, body: str, grid: int = 1, threads: int = 32, **how: Any) -> Any:
    start = "  mov.u32 %r3, %tid.x;\n  mov.u32 %r4, %ctaid.x;\n  ld.param.u64 %rd1, [k_param_0];\n"
    text = kernel(start + body, 1, threads)
    return emulate(text, grid, [np.zeros(8, np.int32)], count=False, **how)


@pytest.mark.parametrize(
    ("body", "grid"),
    [(WAIT, 1), (WAIT, 600), (PARTED, 2), (LOCK, 3)],
    ids=["wait", "two groups", "parted", "lock"],
)
def test_what_repeats_itself_is_told_early(kernel: Kernel, body: str, grid: int) -> None:
    before = time.process_time()
    found = ran(kernel, body, grid)
    assert not found.is_complete
    assert {f.rule for f in found.findings} == {"EMU909"}
    assert all("it does the same again and again" in f.message for f in found.findings)
    # A million turns of these take a quarter of a minute and more.
    assert time.process_time() - before < 12


def test_memory_that_changes_is_part_of_it(kernel: Kernel) -> None:
    assert "again and again" in ran(kernel, TOGGLE).findings[0].message


@pytest.mark.parametrize("body", [COUNT, BEAT], ids=["register", "memory"])
def test_what_goes_on_is_left_to_go_on(kernel: Kernel, body: str) -> None:
    found = ran(kernel, body, threads=1)
    assert found.is_complete
    assert found.findings == ()


def test_a_flag_that_a_later_program_sets_arrives(kernel: Kernel) -> None:
    body = (
        """
  setp.eq.u32 %p2, %r4, 512;
  @!%p2 bra wait;
  mov.u32 %r2, 0;
  mov.u32 %r5, 1;
slow:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 22000;
  @%p1 bra slow;
  st.global.b32 [%rd1], %r5;
wait:
"""
        + WAIT
    )
    found = ran(kernel, body, 513)
    assert found.is_complete
    assert not [f for f in found.findings if f.rule == "EMU909"]
