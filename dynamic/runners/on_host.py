"""Operators that are plain numpy, run as they are. There are no kernels, and nobody watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from ..cases.arrays import Given, Placed
from ..operators.spec import Operator, SpecError
from .manner import Manner
from .returned import outputs_of
from .runner import Called


class HostRunner:
    """Calls operators with numpy arrays."""

    name = "numpy"
    manners = frozenset({"poison"})

    def call(self, operator: Operator, arguments: Mapping[str, Given], manner: Manner) -> Called:
        """Call an operator on copies of its arguments (`Runner`)."""
        copies = {
            name: given._replace(storage=given.storage.copy())
            for name, given in arguments.items()
            if isinstance(given, Placed)
        }
        for name, placed in copies.items():
            if placed.storage.dtype.name != placed.dtype:
                raise SpecError(f"numpy has no {placed.dtype}, which {name} is to be of")
        given = {**arguments, **{name: placed.elements for name, placed in copies.items()}}
        with new_memory_filled(manner.poison):
            returned = operator.kernel(**given)
        return Called(outputs_of(returned, bool(operator.writes)), copies)


@contextmanager
def new_memory_filled(byte: int) -> Iterator[None]:
    """Inside, `numpy.empty` and `numpy.empty_like` give memory that holds this byte."""

    def filled(genuine: Any) -> Any:
        def make(*args: Any, **named: Any) -> Any:
            array = genuine(*args, **named)
            if array.dtype.kind in "fiub" and array.flags.c_contiguous:
                array.reshape(-1).view(np.uint8)[...] = byte
            return array

        return make

    with (
        mock.patch.object(np, "empty", filled(np.empty)),
        mock.patch.object(np, "empty_like", filled(np.empty_like)),
    ):
        yield


__all__ = ["HostRunner", "new_memory_filled"]
