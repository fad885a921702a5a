"""The judge can see: errors planted in what proofs rest on lead to proofs that runs disprove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ptxlint.dataflow import access, bitwise, guards, launched, symbolic
from ptxlint.dataflow.extremes import Box
from ptxlint.dataflow.guards import Guards
from ptxlint.launch import under
from ptxlint.launch.binding import Bound
from ptxlint.launch.promises import Promises
from ptxlint.launch.under import UnderLaunch

SAMPLE = (
    "softmax", "gelu", "wrapped_matmul", "cross_entropy_fwd", "matmul_dot_fp16", "rope",
    "zero_fill", "exact_tile_scale", "matmul", "layer_norm_fwd", "moe_gemm", "segment_sum",
    "flash_fwd",
)  # fmt: skip

Plant = Callable[[pytest.MonkeyPatch], None]


def stricter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison is taken to say one more than it does: `a < b` for `a < b - 1`."""
    own = guards._inequality

    def told(relation: str, a: Any, b: Any) -> Any:
        if relation in ("lt", "le"):
            return own(relation, a + 1, b)
        return own(relation, a, b + 1) if relation in ("gt", "ge") else own(relation, a, b)

    monkeypatch.setattr(guards, "_inequality", told)


def one_element_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upper bounds are compared with the end of the next element."""
    own = UnderLaunch.is_at_most
    monkeypatch.setattr(
        UnderLaunch,
        "is_at_most",
        lambda self, poly, guard, bound: own(self, poly, guard, bound + 4),
    )


def one_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A polynomial passes for at most a number that is a few less than its greatest value."""
    own = Box.is_at_most
    monkeypatch.setattr(Box, "is_at_most", lambda self, poly, bound: own(self, poly, bound + 3))


def _with(monkeypatch: pytest.MonkeyPatch, change: Callable[[Bound], Bound]) -> None:
    own = UnderLaunch._setting

    def changed(self: UnderLaunch) -> Any:
        bound = self.bound
        self.bound = change(bound)
        try:
            return own(self)
        finally:
            self.bound = bound

    monkeypatch.setattr(UnderLaunch, "_setting", changed)


def last_program_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Program ids end one before the grid's last."""
    _with(monkeypatch, lambda bound: bound._replace(grid=tuple(max(1, n - 1) for n in bound.grid)))


def last_warp_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads end one warp before the CTA's last."""
    _with(
        monkeypatch,
        lambda bound: bound._replace(block=(max(32, bound.block[0] - 32), *bound.block[1:])),
    )


def vectors_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """An access of a vector counts as one of its first element."""
    own = access._bytes

    def first(instr: Any, at: int) -> int:
        for word, count in (("v2", 2), ("v4", 4), ("v8", 8)):
            if instr.shape.has(word):
                return own(instr, at) // count
        return own(instr, at)

    monkeypatch.setattr(access, "_bytes", first)


def last_round_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of a known number of rounds counts as one round less."""
    own = symbolic.last_index

    def earlier(*args: Any, **named: Any) -> int | None:
        found = own(*args, **named)
        return None if found is None else max(0, found - 1)

    monkeypatch.setattr(symbolic, "last_index", earlier)


def aligned_twice_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses count as multiples of twice what they are multiples of."""
    own = bitwise.low_zeros
    monkeypatch.setattr(under, "low_zeros", lambda poly: own(poly) + 1)
    mine = under.trailing_zeros
    monkeypatch.setattr(under, "trailing_zeros", lambda value: mine(value) + 1)


def negation_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A predicate that does not hold is taken for one that does."""
    own = Guards.of_predicate
    monkeypatch.setattr(Guards, "of_predicate", lambda self, value, holds=True: own(self, value))


def promised_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """The greatest number of a tensor is forgotten."""
    own = Promises.of

    def less(self: Any, instr: int) -> tuple[int, int] | None:
        found = own(self, instr)
        return None if found is None else (found[0], max(found[0], found[1] - 1))

    monkeypatch.setattr(Promises, "of", less)


def products_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shift to the left counts as one place less."""
    rules = symbolic._RULES
    own = rules["shl"]

    def less(*args: Any) -> Any:
        found = own(*args)
        return None if found is None else bitwise.floor_divide(found, 2)

    monkeypatch.setitem(rules, "shl", less)


def parameters_one_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that are passed count as one less."""
    own = launched.LaunchedSymbolic._parameter

    def less(self: Any, name: str, offset: int, low: int, high: int) -> Any:
        found = own(self, name, offset, low, high)
        value = self._setting.value(name, offset, low, high)
        return found if value is None or value < 2 else found - 1

    monkeypatch.setattr(launched.LaunchedSymbolic, "_parameter", less)


PLANTS: list[Plant] = [
    stricter, one_element_more, one_byte_more, last_program_forgotten,
    last_warp_forgotten, vectors_forgotten, last_round_forgotten, aligned_twice_as_well,
    negation_ignored, promised_less, products_halved, parameters_one_less,
]  # fmt: skip


SLOW = (aligned_twice_as_well, one_byte_more, promised_less, vectors_forgotten)


@pytest.mark.parametrize(
    "plant",
    [pytest.param(p, id=p.__name__, marks=[pytest.mark.slow] * (p in SLOW)) for p in PLANTS],
)
def test_a_planted_error_is_caught(
    judge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    # What is vectorised and has a stride is rare: alignment needs more launches of one kernel.
    names, changes = (("flash_fwd",), 24) if plant is aligned_twice_as_well else (SAMPLE, 3)
    for name in names:
        _, _, wrong = judge("sm_80", name, changes, first=3)
        if any(found.verdict == "proved" for found in wrong):
            return
    pytest.fail("no run disproves a proof")
