"""The bytes of a tensor's elements, as nested steps."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.launches import DTYPE_BYTES, Tensor


class Step(NamedTuple):
    """`extent` things that begin `bytes_apart` bytes from each other."""

    bytes_apart: int
    extent: int


def steps_of(tensor: Tensor) -> list[Step] | None:
    """The steps from element to element, the largest first, the bytes of the innermost last.

    Steps without a gap between them are one: a tensor without gaps has one. None for a tensor
    without elements, and where elements share bytes or their size is not known.
    """
    size = DTYPE_BYTES.get(tensor.dtype, 0)
    if not size or 0 in tensor.shape:
        return None
    axes = [
        Step(stride * size, extent)
        for stride, extent in zip(tensor.strides, tensor.shape, strict=True)
        if extent > 1
    ]
    if any(step.bytes_apart <= 0 for step in axes):
        return None
    found = [Step(1, size)]
    for step in sorted(axes):
        inner = found[-1]
        whole = inner.bytes_apart * inner.extent
        if step.bytes_apart < whole:
            return None
        if step.bytes_apart == whole:
            found[-1] = Step(inner.bytes_apart, inner.extent * step.extent)
        else:
            found.append(step)
    return found[::-1]


def span_of(steps: list[Step]) -> int:
    """Bytes from the first one to behind the last one."""
    return 1 + sum(step.bytes_apart * (step.extent - 1) for step in steps)


__all__ = ["Step", "span_of", "steps_of"]
