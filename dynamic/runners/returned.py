"""What an operator returned, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .runner import Output
from .tensors import elements_of


class NoArrayError(TypeError):
    """An operator returned something else than arrays; the text says what."""


def outputs_of(returned: Any, is_nothing_right: bool) -> tuple[Output, ...]:
    """The arrays that were returned: one, or several in a tuple or a list. With
    `is_nothing_right`, None is none. Raises `NoArrayError`."""
    if returned is None and is_nothing_right:
        return ()
    many = returned if isinstance(returned, tuple | list) else (returned,)
    return tuple(_output(f"output {number}", value) for number, value in enumerate(many))


def _output(name: str, value: Any) -> Output:
    try:
        if hasattr(value, "untyped_storage"):
            elements, dtype = elements_of(value)
            return Output(name, dtype, elements)
        array = np.array(value)
        if array.dtype.kind in "fiub":
            return Output(name, array.dtype.name, array)
    except (KeyError, TypeError, ValueError):
        pass
    if value is None:
        raise NoArrayError(
            f"the operator returned None as {name}; if it writes into an input, name that in the "
            "spec's `writes`"
        )
    raise NoArrayError(f"the operator returned a {type(value).__name__} as {name}, no array")


__all__ = ["NoArrayError", "outputs_of"]
