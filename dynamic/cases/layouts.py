"""Where the elements of a tensor lie in its allocation."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import Final, NamedTuple

from ptxlint.dynamic.cases.seeds import Shape
from ptxlint.dynamic.operators.spec import LAYOUTS

_ROOM: Final = 7
"""Elements behind each row: odd, so that rows begin at addresses of no alignment."""
_OFFSET: Final = 1
"""Elements before the first one: a tensor that was sliced, at an address of no alignment."""


class Placement(NamedTuple):
    """Strides, and the elements before the first one and in all."""

    strides: tuple[int, ...]
    offset: int
    elements: int


def placement(shape: Shape, layouts: Collection[str]) -> Placement:
    """Where a tensor lies in these layouts (`ptxlint.dynamic.operators.spec.LAYOUTS`), all at once;
    contiguously in none.

    What a tensor has too few axes for makes no difference: rows and their exchange need two. Raises
    `ValueError` for a layout that is none.
    """
    unknown = sorted(set(layouts) - set(LAYOUTS))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no layout")
    if not shape:
        return Placement((), 0, 1)
    is_turned = "transposed" in layouts and len(shape) > 1
    order = (*shape[:-2], shape[-1], shape[-2]) if is_turned else shape
    step = 2 if "every-second" in layouts else 1
    room = _ROOM if "padded-rows" in layouts and len(shape) > 1 else 0
    offset = _OFFSET if "offset" in layouts else 0
    pitch = order[-1] * step + room
    strides = _rows(order, step, pitch)
    if is_turned:
        *others, last, before = strides
        strides = (*others, before, last)
    return Placement(strides, offset, offset + prod(order[:-1]) * pitch)


def _rows(shape: Shape, step: int, pitch: int) -> tuple[int, ...]:
    """Strides of rows that begin `pitch` apart, their elements `step`."""
    strides = [step, pitch]
    for size in reversed(shape[1:-1]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides[: len(shape)]))


__all__ = ["Placement", "placement"]
