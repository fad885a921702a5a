"""What a runner does: one call of an operator, and what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ..cases.arrays import Given, Placed
from ..emulator.elements import to_numbers
from ..operators.spec import Operator
from .manner import Manner
from .tensors import Array


class Output(NamedTuple):
    """An array that an operator returned, or wrote: its elements, as bits where numpy has no such
    type (`ptxlint.dynamic.emulator.elements.kept_as`)."""

    name: str
    dtype: str
    elements: Array

    @property
    def numbers(self) -> Array:
        """Its numbers, exactly."""
        found: Array = to_numbers(self.elements, self.dtype)
        return found


class Called(NamedTuple):
    """One call."""

    returned: tuple[Output, ...]
    after: Mapping[str, Placed]
    """The tensors that it was given, as they are behind the call."""
    launched: tuple[str, ...] = ()
    """Names of kernels, in the order of their launches."""
    findings: tuple[Mapping[str, Any], ...] = ()
    """What was seen by who watches, in the JSON of `check`."""
    trampled: tuple[str, ...] = ()
    """What was written around memory that the operator allocated, in words."""
    launches: tuple[str, ...] = ()
    """For each launch the kernel's name, its hash and its grid, as text."""


class Runner(Protocol):
    """Calls operators in one manner or another."""

    name: str
    """`emulator`, `cuda` or `numpy`."""
    manners: frozenset[str]
    """Fields of `Manner` that it can change."""

    def call(self, operator: Operator, arguments: Mapping[str, Given], manner: Manner) -> Called:
        """Call an operator on copies of its arguments.

        Raises `NotRunError` for what this runner cannot run, `HungError`, `DeviceError`, and
        whatever the operator raises.
        """


__all__ = ["Called", "Output", "Runner"]
