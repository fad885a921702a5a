"""Verdicts on infinities and NaN, held to what a kernel stores of finite data.

The run-time criterion of the family nonfinite. All tensors of floating-point numbers hold one
number each time, 0, 1, 100, one whose square underflows and a subnormal one among them, or numbers
around 0 drawn at random; sizes and scalars are those of the launch.

- Where nothing that NUM404, NUM405 and NUM406 say of a kernel is *refuted* or *open*, and one of
  them is *proved*: no NaN is stored of any data, and no infinity of data up to 1, which nothing
  makes overflow. (Larger data may: NUM410 says so without a verdict, and products do.)
- Where NUM405 or NUM406 are *refuted*, or NUM410 finds something, a fault is named with the data
  that brings it about: all that is loaded is 0, 100 or -100. Then NaN, or an infinity, is stored
  as it is said.
- NUM404 *refuted* (a running maximum may be -inf) speaks of sizes that mask a whole first chunk:
  under one launch of several, at least, NaN is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dataflow.nonfinite import LARGE, OVERFLOW, QUOTIENT, ZERO, NonfiniteAnalysis
from ptxlint.dynamic.emulator.elements import kept_as, to_numbers
from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.inputs import GivenInputs, Inputs, RandomInputs, as_stored
from ptxlint.dynamic.emulator.launched import run_launch
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.judge.verdicts import Said, said
from ptxlint.engine.analyse import find_arch
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.launch.binding import bind
from ptxlint.launches import DTYPE_BYTES, Launch, Tensor

RULES: Final = ("NUM404", "NUM405", "NUM406")
_KINDS: Final = {"NUM405": QUOTIENT, "NUM406": ZERO, "NUM410": OVERFLOW}
_TURNS: Final = 20_000
_CONSTANTS: Final = (0.0, 1.0, -1.0, 2.0**-80, 2.0**-130, LARGE, -LARGE)


class Met(NamedTuple):
    """What a launch stored: whether there was a NaN, an infinity."""

    nan: bool
    infinity: bool

    @property
    def is_finite(self) -> bool:
        """True if it was numbers alone."""
        return not (self.nan or self.infinity)


class Held(NamedTuple):
    """What is said of a kernel, held to launches. `counts` are of runs by what is said and what
    came out."""

    counts: Counter[tuple[str, str]]
    contradictions: list[str]


class ConstantInputs:
    """One number in every floating-point tensor; what is not one comes from elsewhere."""

    def __init__(self, number: float, others: Inputs) -> None:
        self._number = number
        self._others = others

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """The number, rounded to the tensor's type; what nothing was written to is zeros."""
        if tensor.fresh:
            return np.zeros(size, dtype=np.uint8)
        if not tensor.dtype.startswith(("float", "bfloat")):
            return self._others.contents(name, tensor, size)
        count = size // DTYPE_BYTES[tensor.dtype]
        stored = as_stored(np.full(count, self._number), tensor.dtype)
        return np.ascontiguousarray(stored).view(np.uint8)


def met(
    emulator: Emulator, launch: Launch, metadata: KernelMetadata | None, inputs: Inputs
) -> Met | None:
    """What a launch stores; None if it did something wrong, or did not come to an end.

    Raises `BindingError` or `InputError` where it cannot be run.
    """
    bound = bind(emulator.kernel, _filled(launch), {}, metadata)
    ran = run_launch(emulator, bound, inputs, most_turns=_TURNS)
    if ran.outcome.faults or not ran.outcome.is_complete:
        return None
    kinds = {region.name: region.tensor.dtype for region in bound.regions.values()}
    numbers = [_numbers(bits, kinds[name]) for name, bits in ran.outputs.items() if name in kinds]
    return Met(
        any(bool(np.isnan(one).any()) for one in numbers),
        any(bool(np.isinf(one).any()) for one in numbers),
    )


def _filled(launch: Launch) -> Launch:
    """The launch with zeros for what is uninitialised, so that all outputs are numbers at first."""
    arguments: dict[str, Any] = {
        name: argument._replace(fresh="zeroed")
        if isinstance(argument, Tensor) and argument.fresh
        else argument
        for name, argument in launch.arguments.items()
    }
    return launch._replace(arguments=arguments)


def _numbers(elements: Array, dtype: str) -> NDArray[np.float64]:
    kept = np.ascontiguousarray(elements).view(kept_as(dtype))
    found: NDArray[np.float64] = np.asarray(to_numbers(kept, dtype), dtype=np.float64)
    return found


def hold(
    emulator: Emulator,
    launches: Sequence[tuple[Launch, Mapping[str, NDArray[Any]]]],
    metadata: KernelMetadata | None,
) -> Held:
    """Hold what is said of a kernel to launches, each with the contents of its integer tensors."""
    module, kernel = emulator.module, emulator.kernel
    found = said(module, kernel, metadata, (*RULES, "NUM410"))
    named = _named(Facts(module, kernel, find_arch(module.arch), metadata), found)
    is_proved = any(rule in found for rule in RULES) and all(
        found[rule].status == "proved" for rule in RULES if rule in found
    )
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    is_nan = False
    for launch, contents in launches:
        others = GivenInputs(contents, RandomInputs(1), "the launch")
        for data in _CONSTANTS if is_proved or named else ():
            came = met(emulator, launch, metadata, ConstantInputs(data, others))
            if came is None:
                continue
            if is_proved:
                counts["proved", "finite" if came.is_finite else "not"] += 1
                if came.nan or (came.infinity and abs(data) <= 1):
                    wrong.append(f"proved, but stores {came} where all data are {data:g}")
            for rule, result in named.get(data, ()):
                is_so = came.nan if result == "NaN" else came.infinity
                counts[f"{rule} refuted", "met" if is_so else "not met"] += 1
                if not is_so:
                    wrong.append(f"{rule}: no {result} is stored where all data are {data:g}")
        came = met(emulator, launch, metadata, others)
        if came is not None:
            is_nan |= came.nan
            if is_proved:
                counts["proved", "finite" if came.is_finite else "not"] += 1
                if not came.is_finite:
                    wrong.append(f"proved, but stores {came} of numbers around 0")
    if "NUM404" in found and found["NUM404"].status == "refuted":
        counts["NUM404 refuted", "met" if is_nan else "not met"] += 1
        if not is_nan:
            wrong.append("NUM404: no launch stores NaN")
    return Held(counts, wrong)


def _named(facts: Facts, found: Mapping[str, Said]) -> dict[float, set[tuple[str, str]]]:
    """By data: the rules that tell a fault there, and what is stored then."""
    out: dict[float, set[tuple[str, str]]] = {}
    for rule, kind in _KINDS.items():
        if rule not in found or not found[rule].hits:
            continue
        reported = {hit.at.index for hit in found[rule].hits if hit.at is not None}
        for data in (0.0, LARGE, -LARGE):
            for fault in facts.get(NonfiniteAnalysis).faults(data):
                if fault.kind == kind and fault.at.index in reported:
                    out.setdefault(data, set()).add((rule, fault.result))
    return out


__all__ = ["RULES", "ConstantInputs", "Held", "Met", "hold", "met"]
