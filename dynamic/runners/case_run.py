"""One case of an operator: its inputs, the calls that its checks ask for, and the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ptxlint.wording import counted

from ..cases.arrays import Given, Placed, inputs, numbers
from ..cases.case import Case
from ..emulator.sanitizer.choice import MEMORY, Sanitize
from ..operators.spec import Operator
from ..oracle.bounds import allowance
from ..oracle.compare import ShapesDisagreeError, compare
from ..oracle.compared import Compared
from ..oracle.reference import Outputs, evaluate
from .manner import Manner
from .runner import Called, Output, Runner
from .tensors import Array

_WATCHED: Final = Sanitize(uninitialised=True)
Referring: TypeAlias = Callable[[], AbstractContextManager[None]]
"""What the reference runs inside, so that others know who is at work."""


class Expected(NamedTuple):
    """What outputs should be, and how far off they may be."""

    values: Outputs
    allowed: Outputs


class CaseRun:
    """A case while it is run. What is asked for is made once."""

    def __init__(
        self, operator: Operator, runner: Runner, case: Case, referring: Referring = nullcontext
    ) -> None:
        """The reference runs inside `referring`. Raises `SpecError` for a case that the operator
        does not take."""
        self.operator = operator
        self.runner = runner
        self.case = case
        self.arguments = inputs(operator, case)
        self._referring = referring
        self.launched: list[str] = []
        self.launches: list[str] = []
        self.findings: tuple[Mapping[str, Any], ...] = ()
        self.compared: tuple[Compared, ...] = ()

    @cached_property
    def first(self) -> Called:
        """The first call."""
        is_watched = "sanitizer" in self.case.checks
        called = self.call(Manner(sanitize=_WATCHED if is_watched else MEMORY))
        self.findings = called.findings
        return called

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """What the first call came to."""
        return self.outputs_of(self.first)

    @cached_property
    def expected(self) -> Expected:
        """From the reference. Raises `ReferenceFailedError`."""
        reference, given = self.operator.reference, numbers(self.arguments)

        def again(arguments: Mapping[str, Any]) -> Outputs:
            with self._referring():
                return evaluate(reference, arguments)

        values = again(given)
        types = [output.dtype for output in self.outputs][: len(values)]
        return Expected(
            values, allowance(self.operator, self.case.dtype, given, again, values, types)
        )

    def may_mean(self, form: str) -> bool:
        """True if outputs in float32 that are wrong would be right, had the spec, which says
        nothing of it, said that products of its inputs are computed in `form`."""
        dtype, told = self.case.dtype, self.operator
        tensors = [given for given in self.arguments.values() if isinstance(given, Placed)]
        products = sum(given.dtype == dtype for given in tensors) > 1
        if dtype != "float32" or told.arithmetic or told.tolerance_for(dtype) or not products:
            return False
        computed = replace(told, arithmetic={dtype: form})
        other = CaseRun(computed, self.runner, self.case, self._referring)
        other.outputs = self.outputs
        return not wrong(other.held_to_reference(self.outputs))

    def call(self, manner: Manner, arguments: Mapping[str, Given] | None = None) -> Called:
        """Another call, of these arguments or those of the case."""
        called = self.runner.call(self.operator, arguments or self.arguments, manner)
        self.launched += called.launched
        self.launches += called.launches
        return called

    def outputs_of(self, called: Called) -> tuple[Output, ...]:
        """All that a call came to: what the spec says is written, then what was returned."""
        written = tuple(
            Output(name, called.after[name].dtype, np.array(called.after[name].elements))
            for name in self.operator.writes
        )
        return (*written, *called.returned)

    def held_to_reference(self, outputs: tuple[Output, ...]) -> tuple[Compared, ...]:
        """Outputs against the reference. Raises `ShapesDisagreeError`, `ReferenceFailedError`."""
        if not outputs:
            raise ShapesDisagreeError(
                "the operator has no outputs: it returns none, and its spec's `writes` names none"
            )
        expected = self.expected
        if len(outputs) != len(expected.values):
            raise ShapesDisagreeError(
                f"the operator has {counted(len(outputs), 'output')}, "
                f"the reference {len(expected.values)}"
            )
        return tuple(
            compare(output.name, output.dtype, output.numbers, value, allowed)
            for output, value, allowed in zip(outputs, *expected, strict=True)
        )

    def differing(self, called: Called) -> str:
        """In words, which outputs of a call are not those of the first one: to the bit, or, where
        the spec says that results differ from run to run, as far as the reference allows."""
        others = self.outputs_of(called)
        if len(others) != len(self.outputs):
            return f"{len(self.outputs)} outputs became {len(others)}"
        if not self.operator.deterministic:
            return wrong(self.held_to_reference(others))
        for one, other in zip(self.outputs, others, strict=True):
            if one.elements.shape != other.elements.shape or one.dtype != other.dtype:
                return f"{one.name} has another shape or type"
            differs = ~same(one, other)
            if differs.any():
                return told_apart(one, other, differs)
        return ""


def wrong(compared: tuple[Compared, ...]) -> str:
    """In words, the first output that is not what it should be; empty if all are."""
    for one in compared:
        if one.wrong:
            place = ", ".join(map(str, one.worst))
            return (
                f"{one.wrong:,} of {one.elements:,} elements of {one.output} are wrong; at "
                f"[{place}] it is {one.got:.9g}, not {one.expected:.9g} ± {one.allowed:.3g}"
            )
    return ""


def bits(elements: Array) -> Array:
    """Elements as unsigned integers of their width; of those of 128 bits, of halves of it."""
    flat = np.ascontiguousarray(elements)
    return flat.view(np.dtype(f"u{min(flat.itemsize, 8)}"))


def same(one: Output, other: Output) -> Array:
    """Where two outputs are the same to the bit, or both NaN."""
    out: Array = bits(one.elements) == bits(other.elements)
    a, b = one.numbers, other.numbers
    return out if a.dtype.kind != "f" else out | (np.isnan(a) & np.isnan(b))


def told_apart(one: Output, other: Output, differs: Array) -> str:
    at = tuple(int(i) for i in np.argwhere(differs)[0])
    place = ", ".join(map(str, at))
    return (
        f"{int(differs.sum()):,} of {one.elements.size:,} elements of {one.name} differ: at "
        f"[{place}] {one.numbers[at]:.9g} became {other.numbers[at]:.9g}"
    )


__all__ = ["CaseRun", "Expected", "Referring", "bits", "same", "told_apart", "wrong"]
