"""Code of the user's that torch calls: operators registered with torch.library, backward functions.

Implementations for CUDA are registered for the CPU as well, where the stand-ins of tensors are; and
whatever is registered is watched while it runs, since torch leaves its modes on the way there.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from .tensors import Stage

_RUN = frozenset({"CPU", "CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"})


def is_python(operation: Any) -> bool:
    """True for an operator that somebody implemented in Python, whose kernels are to be seen."""
    import torch

    schema = operation._schema
    name = schema.name.replace("::", "/")
    overload = f"{name}.{schema.overload_name}" if schema.overload_name else name
    implemented: set[str] = getattr(torch.library, "_impls", set())
    return any(f"{overload}/{key}" in implemented for key in _RUN)


@contextmanager
def operators_watched(stage: Stage) -> Iterator[None]:
    """Inside, implementations that are registered are run with the stage active."""
    import torch

    genuine: Any = torch.library.Library.impl
    moved: set[str] = set()

    def impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **named: Any) -> Any:
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        watched = _watched(stage, fn) if key in _RUN and callable(fn) else fn
        operator = f"{self.ns}::{op_name}"
        if key == "CPU" and operator in moved:
            return None
        result = genuine(self, op_name, watched, dispatch_key, **named)
        if key == "CUDA" and stage.pretend:
            moved.add(operator)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                genuine(self, op_name, watched, "CPU", **named)
        return result

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch.library.Library, "impl", impl))
        # torch.autograd.grad leaves the modes, too.
        node = torch.autograd.function.BackwardCFunction
        for name in ("apply", "apply_boxed"):
            if hasattr(node, name):
                watched = _watched(stage, getattr(node, name))
                stack.enter_context(mock.patch.object(node, name, watched))
        yield


def _watched(stage: Stage, function: Any) -> Any:
    """A function that runs with the stage active."""

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        with stage.active():
            return function(*args, **named)

    return run
