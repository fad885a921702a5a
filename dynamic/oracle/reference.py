"""What an operator should compute, from the function that people wrote for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Outputs: TypeAlias = tuple[Array, ...]
Evaluate: TypeAlias = Callable[[Mapping[str, Any]], Outputs]


class ReferenceFailedError(ValueError):
    """A reference that raised, or returned what is no array; the text says which, as the end of a
    sentence that begins with the reference."""


def evaluate(reference: Callable[..., Any], arguments: Mapping[str, Any]) -> Outputs:
    """What a reference returns for numpy arrays, as a tuple of float64 or integer arrays.

    It gets copies, may return numpy arrays, numbers, torch tensors on the CPU, or a sequence of
    these, and may divide by zero: what numpy would warn of is what it is asked for. Raises
    `ReferenceFailedError`.
    """
    own = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    try:
        with np.errstate(all="ignore"):
            returned = reference(**own)
    except SystemExit as left:
        raise ReferenceFailedError(f"ends the process: exit({left.code!r})") from left
    except Exception as error:
        raise ReferenceFailedError(f"raises {type(error).__name__}: {error}") from error
    many = returned if isinstance(returned, tuple | list) else (returned,)
    return tuple(_array(number, value) for number, value in enumerate(many))


def _array(number: int, value: Any) -> Array:
    plain = value.detach().cpu().numpy() if hasattr(value, "detach") else value
    try:
        array = np.asarray(plain)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "fiub":
        raise ReferenceFailedError(
            f"returns a {type(value).__name__} as output {number}, no array of numbers"
        )
    return array.astype(np.float64) if array.dtype.kind == "f" else array


__all__ = ["Array", "Evaluate", "Outputs", "ReferenceFailedError", "evaluate"]
