"""The judge can see: errors planted in what proofs about barriers, warp operations and work in
place rest on are disproved by runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corpus
import pytest

from ptxlint.dataflow import uniformity, uniformity_rules
from ptxlint.dataflow.barrier_paths import BarrierPaths
from ptxlint.dataflow.convergence import FULL_MASK, Convergence
from ptxlint.dataflow.lane_bits import Level
from ptxlint.dataflow.uniformity import Uniformity
from ptxlint.dataflow.uniformity_reading import Reading
from ptxlint.dynamic.judge import in_place, sync
from ptxlint.dynamic.judge.replay import Criterion

Plant = Callable[[pytest.MonkeyPatch], None]


def threads_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a thread counts as the same in all of them."""
    monkeypatch.setattr(Reading, "_special_planes", lambda self, pattern: 0)


def guards_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard counts as the same in all threads."""
    monkeypatch.setattr(Uniformity, "guard_uniformity", lambda self, instr: Level.GRID)


def blocks_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that part count as meeting at once."""
    own = Uniformity.block_divergence

    def together(self: Any, block: int, stable_memory: bool = False) -> Any:
        return own(self, block, stable_memory)._replace(level=Level.GRID)

    monkeypatch.setattr(Uniformity, "block_divergence", together)


def exits_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that have left the kernel count as there."""
    own = Uniformity.block_divergence

    def alive(self: Any, block: int, stable_memory: bool = False) -> Any:
        return own(self, block, stable_memory)._replace(exit_level=Level.GRID)

    monkeypatch.setattr(Uniformity, "block_divergence", alive)


def loads_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a thread loads counts as what all threads load."""
    monkeypatch.setattr(Reading, "dependence", lambda self, operand: 0)
    rule = uniformity_rules._BY_OPCODE["ld"]
    changed = rule._replace(common=lambda read: 0)
    monkeypatch.setitem(uniformity_rules._BY_OPCODE, "ld", changed)
    monkeypatch.setattr(uniformity, "_rules", {})


def lanes_taken_for_warps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of one warp count as enough where all of the CTA are asked for."""
    own = Convergence.parting

    def fewer(self: Any, instr: Any, together: Level, mask: int = FULL_MASK) -> Any:
        return own(self, instr, max(together, Level.WARP), mask)

    monkeypatch.setattr(Convergence, "parting", fewer)


def barriers_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """There counts as a barrier between any two places."""
    monkeypatch.setattr(BarrierPaths, "within_round", lambda self, first, second: False)
    monkeypatch.setattr(BarrierPaths, "to_next_round", lambda self, first, second, loop: False)


def rounds_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a loop does in its next round is not looked at."""
    monkeypatch.setattr(BarrierPaths, "to_next_round", lambda self, first, second, loop: False)


TURNED = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry turned(.param .u64 .ptr .global .align 16 x_ptr, .param .u32 n)
.reqntid 128
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x_ptr];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    xor.b32 %r3, %r2, 127;
    mul.wide.u32 %rd2, %r2, 4;
    mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd4, %rd1, %rd2;
    add.s64 %rd5, %rd1, %rd3;
    mov.b32 %r5, 0;
    again:
    ld.global.b32 %r4, [%rd4];
    bar.sync 0;
    st.global.b32 [%rd5], %r4;
    add.s32 %r5, %r5, 1;
    setp.lt.s32 %p1, %r5, %r1;
    @%p1 bra again;
    ret;
}
"""
"""Turned round in each round: the next one reads what other warps have just written."""


PLANTS: list[tuple[Plant, Criterion]] = [
    (threads_alike, sync.judge),
    (guards_alike, sync.judge),
    (blocks_alike, sync.judge),
    (exits_forgotten, sync.judge),
    (loads_alike, sync.judge),
    (lanes_taken_for_warps, sync.judge),
    (barriers_everywhere, in_place.judge),
    (rounds_forgotten, in_place.judge),
]


def subjects() -> list[corpus.Subject]:
    """The rules' samples and a loop, under made-up launches."""
    turned = corpus.of_text("turned", TURNED, corpus.made_up(TURNED), None)
    return [*corpus.samples("SYN501", "SYN502", "HAZ602"), turned]


@pytest.mark.parametrize(("plant", "criterion"), PLANTS, ids=lambda p: p.__name__)
def test_a_planted_error_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, criterion: Criterion
) -> None:
    plant(monkeypatch)
    assert corpus.disproved(subjects(), 0, (criterion,))


def test_without_one_nothing_is_disproved() -> None:
    found = corpus.NOTHING
    for subject in subjects():
        found += corpus.judged(subject, 0, criteria=(sync.judge, in_place.judge))
    assert found.wrong == []
    for name in ("barriers", "warp operations", "in place"):
        assert found.counts[name, "proved", "kept"], name
