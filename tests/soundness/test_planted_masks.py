"""The judge can see: errors planted in what is known of padding, sums, scales, infinities and NaN
lead to proofs that runs disprove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from leaking import followed
from planted_rows import LENGTHS, contradictions, row_kernel
from sums import emulated, judged
from twin_launches import older, twin_of

from ptxlint.dataflow import (
    accumulators,
    float_values,
    floats,
    last_round,
    masked_maximum,
    nonfinite,
    padding,
    padding_products,
    padding_values,
    reductions,
)
from ptxlint.dynamic.emulator.inputs import GivenInputs, ZeroInputs
from ptxlint.dynamic.emulator.launched import run_launch
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.judge.accumulation import RULES, Size, hold
from ptxlint.dynamic.judge.nonfinite import hold as hold_nonfinite
from ptxlint.dynamic.judge.verdicts import said
from ptxlint.engine.registry import default_registry
from ptxlint.engine.samples import module_text
from ptxlint.frontends.ptx import parse
from ptxlint.launch.binding import bind
from ptxlint.launches import Launch, Scalar, Tensor
from ptxlint.rules import num403_low_precision_accumulation as num403
from ptxlint.rules import num409_padding_in_count as num409

Plant = Callable[[pytest.MonkeyPatch], None]
Subject = Callable[[], list[str]]
"""What runs disprove of a kernel."""

NEGATIVE = -np.linspace(0.5, 3, 32, dtype=np.float32)
_THREADS = 32
_ROOM = 8192


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of arithmetic are remembered: planted ones must not be, nor be known already."""
    monkeypatch.setattr(padding_values, "_COMPUTED", {})


# Subjects: kernels with a defect --------------------------------------------------------------
def row(fill: str, formula: str, operator: str, index: str = "") -> Subject:
    """A row that is filled and reduced; all its numbers are negative."""
    text = row_kernel(fill, formula, operator, index)
    return lambda: contradictions(text, NEGATIVE, LENGTHS)


def build(name: str) -> Subject:
    """Sums of a fixture for sm_80."""

    def found() -> list[str]:
        held = judged(emulated.build(name, "sm_80"))
        assert held is not None
        return held.contradictions

    return found


def product(kernel: str) -> Subject:
    """A twin that multiplies by `wgmma`, as Triton 3.6 made it, and the padding of its factors."""
    built = older(twin_of(kernel), "sm_90")
    return lambda: [str(one.sizes) for one in followed(built, "proved") if one.leaks]


def sample_of(rule: str, number: int) -> Emulator:
    """The kernel of a bad sample of a rule."""
    text = module_text(default_registry().rules[rule].bad[number])
    module = parse(text, "sample.ptx")
    return Emulator(module, module.kernels()[0])


def _launch(kind: str, n: int) -> Launch:
    width = 2 if kind == "float16" else 4
    size = _ROOM * width
    arguments = {
        "in_ptr": Tensor(kind, (_ROOM,), (1,), 0, size, 0, 16, "", None),
        "out_ptr": Tensor(kind, (_ROOM,), (1,), 1, size, 0, 16, "", None),
        "n_elements": Scalar("i32", n),
    }
    return Launch((1, 1, 1), (_THREADS, 1, 1), arguments)


def summed(rule: str, number: int, kind: str, tile: int, of: Callable[[int], float]) -> Subject:
    """The first number that a sample stores of ones, held to what it should be of `n` of them."""
    emulator = sample_of(rule, number)

    def measure(size: Size) -> float | None:
        if size.rounds > 1 and tile == _THREADS:
            return None
        n = size.rounds * tile - (0 if size.is_whole else tile // 4)
        bound = bind(emulator.kernel, _launch(kind, n), {}, None)
        ones = np.ones(_ROOM, dtype=kind)
        inputs = GivenInputs({"in_ptr": ones}, ZeroInputs(), rule)
        got = run_launch(emulator, bound, inputs).outputs["out_ptr"].view(kind)[0]
        allowed = abs(of(n)) * (np.finfo(kind).eps + n * np.finfo(np.float32).eps)
        return abs(float(got) - of(n)) / allowed

    def found() -> list[str]:
        status = said(emulator.module, emulator.kernel, None, RULES)
        return hold({name: one.status for name, one in status.items()}, measure).contradictions

    return found


def stored(rule: str, number: int, first: int = 0) -> Subject:
    """What a sample stores of finite data. A number of its output tells which scores count."""
    emulator = sample_of(rule, number)
    out = np.zeros(_ROOM, dtype=np.uint32)
    out[2] = first
    contents = {"out_ptr": out.view(np.float32)}
    launches = [(_launch("float32", n), contents) for n in (32, 7, 64)]
    return lambda: hold_nonfinite(emulator, launches, None).contradictions


# Plants: masks --------------------------------------------------------------------------------
def _also_neutral(
    monkeypatch: pytest.MonkeyPatch, operator: str, is_so: Callable[[Any], bool]
) -> None:
    own = padding.Padding._neutral

    def told(self: Any, reduction: Any, value: Any, is_evaluated: bool = True) -> str:
        if reduction.operator == operator and is_so(value):
            return "planted"
        return own(self, reduction, value, is_evaluated)

    monkeypatch.setattr(padding.Padding, "_neutral", told)


def zero_for_a_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    """0 passes for the neutral element of a maximum."""
    _also_neutral(monkeypatch, "max", lambda value: value.is_zero)


def infinity_for_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minus infinity passes for the neutral element of a sum."""
    _also_neutral(monkeypatch, "add", lambda value: value.is_negative_infinity)


def exponential_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exponential of 0 is 0, as that of minus infinity."""
    own = floats.exp2
    monkeypatch.setattr(
        floats, "exp2", lambda a, mode: floats.exactly(0.0) if a.is_zero else own(a, mode)
    )


def arms_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selection takes its second operand where the predicate holds."""
    own = padding_values.Evaluator._outcome

    def told(self: Any, predicate: int) -> tuple[bool | None, bool]:
        truth, by_false = own(self, predicate)
        return None if truth is None else not truth, by_false

    monkeypatch.setattr(padding_values.Evaluator, "_outcome", told)


def half_the_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A butterfly exchanges lanes that are half as far apart as they are."""
    own = reductions.exchanged_lanes
    monkeypatch.setattr(reductions, "exchanged_lanes", lambda shfl: max(own(shfl) >> 1, 1))


def zero_swallows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum with 0 is 0."""
    own = floats.add
    monkeypatch.setattr(floats, "add", lambda a, b, mode: a if a.is_zero else own(a, b, mode))


def products_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a load fills in with 0 is still 0 where it is multiplied, whatever is done with it."""
    own = padding_products.Products.judge
    monkeypatch.setattr(
        padding_products.Products,
        "judge",
        lambda self, instr: (one._replace(holds=True, infinite="") for one in own(self, instr)),
    )


# Plants: sums ---------------------------------------------------------------------------------
def all_is_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a round loads anew is taken for what it carries on."""

    def ties(self: Any, loop: Any, values: Any) -> Any:
        return last_round._Ties(set(), set(), set(values))

    monkeypatch.setattr(last_round.LastRounds, "_ties", ties)


def scaled_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What scales one sum of a loop is taken to scale all of them."""
    own = accumulators.Accumulators.of

    def of(self: Any, loop: Any) -> list[Any]:
        found = own(self, loop)
        factors = tuple(dict.fromkeys(f for one in found for f in one.factors))
        return [
            one._replace(factors=factors, roles=one.roles | {accumulators.FACTOR}, bypass=False)
            if one.is_sum
            else one
            for one in found
        ]

    monkeypatch.setattr(accumulators.Accumulators, "of", of)


def half_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum in f16 is none in 16 bits."""
    monkeypatch.setattr(num403, "_NARROW", {"bf16": "bf16", "bf16x2": "bf16"})


def tile_is_the_extent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a mean divides by passes for the number of its elements."""
    monkeypatch.setattr(num409, "isclose", lambda a, b: False)
    monkeypatch.setattr(num409._Counts, "is_made_of", lambda self, divisor, extent: True)


# Plants: infinities and NaN -------------------------------------------------------------------
def magnitude_above_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """No magnitude is 0."""
    own = floats.absolute

    def told(a: Any) -> Any:
        found = own(a)
        if not found.finite:
            return found
        low = max(found.low, 2.0**-149)
        return floats.AbstractFloat(low, max(low, found.hi), found.ninf, found.pinf, found.nan)

    monkeypatch.setattr(floats, "absolute", told)


def exponential_without_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exponential ends at the largest number."""
    own = floats.exp2

    def told(a: Any, mode: Any) -> Any:
        found = own(a, mode)
        return floats.finite(mode.form, 0.0) if found.pinf else found

    monkeypatch.setattr(floats, "exp2", told)
    monkeypatch.setattr(nonfinite, "exp2", told)
    monkeypatch.setattr(
        float_values.FloatValues, "_with_overflow", lambda self, instr, word, form, part: word
    )


def some_lane_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mask leaves a lane of the first chunk."""
    monkeypatch.setattr(
        masked_maximum.MaskedMaxima, "_kept", lambda self, maximum, masks, depth=2: "planted"
    )


_EXP = "mul.f32 %r5, %r3, 0f3FB8AA3B;\nex2.approx.f32 %r4, %r5;"
_ONE_MORE = "add.f32 %r5, %r3, 0f3F800000;\n"
_SAME = "mov.b32 %r4, %r3;"
PLANTS: list[tuple[Plant, Callable[[], Subject]]] = [
    (zero_for_a_maximum, lambda: row("0f00000000", _SAME, "max")),
    (infinity_for_a_sum, lambda: row("0fFF800000", _SAME, "add")),
    (exponential_of_zero, lambda: row("0f00000000", _EXP, "add")),
    (
        arms_swapped,
        lambda: row("0f00000000", _ONE_MORE + "selp.f32 %r4, 0f00000000, %r5, %p1;", "add"),
    ),
    (half_the_distance, lambda: row("0f3F800000", _SAME, "add", "shr.u32 %r30, %r2, 4;")),
    (zero_swallows, lambda: row("0f00000000", _ONE_MORE + "mov.b32 %r4, %r5;", "add")),
    (products_of_zeros, lambda: product("dot_fill_infinity")),
    (all_is_carried, lambda: build("matmul_buggy")),
    (scaled_with_another, lambda: build("flash_attention_buggy")),
    (half_is_wide, lambda: summed("NUM403", 1, "float16", 600, float)),
    (tile_is_the_extent, lambda: summed("NUM409", 0, "float32", _THREADS, lambda n: 1.0)),
    (magnitude_above_zero, lambda: stored("NUM406", 0)),
    (exponential_without_overflow, lambda: stored("NUM405", 1)),
    (some_lane_is_left, lambda: stored("NUM404", 0, first=5)),
]


@pytest.mark.parametrize(("plant", "subject"), PLANTS, ids=[plant.__name__ for plant, _ in PLANTS])
def test_an_error_is_seen(
    plant: Plant, subject: Callable[[], Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = subject()
    assert found() == []
    padding_values._COMPUTED.clear()
    plant(monkeypatch)
    assert found() != []
