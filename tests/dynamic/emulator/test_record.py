"""What a run keeps for those who hold it against something: accesses and meetings, lane by lane."""

from __future__ import annotations

import numpy as np

from ptxlint.dynamic.emulator.arena import ORIGIN
from ptxlint.dynamic.emulator.record import Record
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.frontends.ptx import parse

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x)
.reqntid 64
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ctaid.y;
    shl.b32 %r4, %r3, 1;
    add.u32 %r4, %r4, %r2;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    setp.eq.u32 %p1, %r1, 33;
    @%p1 st.global.b32 [%rd3], %r4;
    ld.global.b32 %r5, [%rd1];
    red.global.add.u32 [%rd1+64], 1;
    bar.sync 0;
    @%p1 bar.warp.sync 2;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 st.global.b32 [%rd1+4096], %r1;
    ret;
}
"""


def recorded(**choice: bool) -> tuple[Record, int]:
    """A run of two by two CTAs, and where its 128 bytes begin."""
    module = parse(TEXT, "k.ptx")
    emulator = Emulator(module, module.kernels()[0])
    arena, record = emulator.arena(), Record(**choice)
    place = arena.allocate("x", 128, np.zeros(128, dtype=np.uint8))
    values = {"x": place.start.to_bytes(8, "little")}
    emulator.run((2, 2, 1), (64, 1, 1), values, arena, record=record)
    return record, place.start - ORIGIN


def test_stores_and_atomics_are_kept_and_loads_are_not() -> None:
    record, start = recorded()
    store, *atomics = record.touched[:2]
    assert (store.writes, store.reads, store.size) == (True, False, 4)
    assert store.cta.tolist() == [0, 1, 2, 3]
    assert store.thread.tolist() == [33] * 4
    assert (store.place - start).tolist() == [0, 4, 8, 12]
    assert store.values is not None
    assert store.values.tolist() == [0, 1, 2, 3]
    (atomic,) = atomics
    assert (atomic.writes, atomic.reads, len(atomic.place)) == (True, True, 256)


def test_what_does_not_take_place_is_not_kept() -> None:
    """The last store is outside of all memory."""
    record, _ = recorded()
    assert [len(one.place) for one in record.touched] == [4, 256, 0]


def test_loads_are_kept_on_request() -> None:
    record, start = recorded(loads=True)
    (load,) = (one for one in record.touched if not one.writes)
    assert load.reads
    assert set((load.place - start).tolist()) == {0}


def test_who_came_to_meet_others_is_counted() -> None:
    record, _ = recorded()
    counts = {i.opcode + i.shape.has("warp") * ".warp": c for i, c in record.came.items()}
    assert set(counts["bar"]) == {(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)}
    assert all((by_thread == 1).all() for by_thread in counts["bar"].values())
    assert np.flatnonzero(counts["bar.warp"][1, 0, 0]).tolist() == [33]


def test_a_record_that_is_full_says_so(monkeypatch) -> None:
    monkeypatch.setattr("ptxlint.dynamic.emulator.record.MOST_LANES", 100)
    record, _ = recorded()
    assert record.is_full
    assert sum(len(one.place) for one in record.touched) <= 100
