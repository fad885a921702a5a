"""Where the elements of a tensor lie in its allocation."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from ptxlint.dynamic.cases.seeds import Shape

_ROOM: Final = 7
"""Elements behind each row: odd, so that rows begin at addresses of no alignment."""
_OFFSET: Final = 1
"""Elements before the first one: a tensor that was sliced, at an address of no alignment."""


class Placement(NamedTuple):
    """Strides, and the elements before the first one and in all."""

    strides: tuple[int, ...]
    offset: int
    elements: int


def placement(shape: Shape, layout: str) -> Placement:
    """Where a tensor lies in this layout (`ptxlint.dynamic.operators.spec.LAYOUTS`).

    What a tensor has too few axes for leaves it contiguous: rows and their exchange need two.
    Raises `KeyError` for a layout that is none.
    """
    return _LAYOUTS[layout](shape)


def _rows(shape: Shape, step: int, pitch: int) -> tuple[int, ...]:
    """Strides of rows that begin `pitch` apart, their elements `step`."""
    strides = [step, pitch]
    for size in reversed(shape[1:-1]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides[: len(shape)]))


def _contiguous(shape: Shape) -> Placement:
    return Placement(_rows(shape, 1, shape[-1]) if shape else (), 0, prod(shape))


def _padded_rows(shape: Shape) -> Placement:
    if len(shape) < 2:
        return _contiguous(shape)
    pitch = shape[-1] + _ROOM
    return Placement(_rows(shape, 1, pitch), 0, prod(shape[:-1]) * pitch)


def _transposed(shape: Shape) -> Placement:
    if len(shape) < 2:
        return _contiguous(shape)
    plain = _contiguous((*shape[:-2], shape[-1], shape[-2]))
    *others, last, before = plain.strides
    return plain._replace(strides=(*others, before, last))


def _every_second(shape: Shape) -> Placement:
    if not shape:
        return _contiguous(shape)
    return Placement(_rows(shape, 2, 2 * shape[-1]), 0, 2 * prod(shape))


def _offset(shape: Shape) -> Placement:
    plain = _contiguous(shape)
    return plain._replace(offset=_OFFSET, elements=plain.elements + _OFFSET)


_LAYOUTS: Final = {
    "contiguous": _contiguous,
    "padded-rows": _padded_rows,
    "transposed": _transposed,
    "every-second": _every_second,
    "offset": _offset,
}

__all__ = ["Placement", "placement"]
