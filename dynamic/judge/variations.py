"""Launches that are nearly a given one: tensors too short, grids too large, sizes one off.

Whether a launch is right does not matter: what the static half says of it must be true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ptxlint.launches import DTYPE_BYTES, Launch, Scalar, Tensor

_MOST_CTAS = 4096


def varied(launch: Launch, random: np.random.Generator, count: int) -> Iterator[Launch]:
    """The launch itself, then `count` changed ones."""
    yield launch
    for _ in range(count):
        changed = launch
        for _ in range(int(random.integers(1, 3))):
            changed = _changed(changed, random)
        yield changed


def _changed(launch: Launch, random: np.random.Generator) -> Launch:
    """One thing is changed, drawn at random."""
    names = list(launch.arguments)
    name = names[int(random.integers(len(names)))]
    argument = launch.arguments[name]
    arguments: dict[str, Any] = dict(launch.arguments)
    if random.random() < 0.25:
        return launch._replace(grid=_grid(launch.grid, random))
    if isinstance(argument, Tensor):
        arguments[name] = _shorter(argument, random)
    elif isinstance(argument, Scalar) and isinstance(argument.value, int):
        arguments[name] = argument._replace(value=_number(argument.value, random))
    return launch._replace(arguments=arguments)


def _grid(grid: tuple[int, int, int], random: np.random.Generator) -> tuple[int, int, int]:
    axis = int(random.integers(3))
    extent = max(1, grid[axis] + int(random.integers(-1, 3)))
    changed = [*grid]
    changed[axis] = extent
    if changed[0] * changed[1] * changed[2] > _MOST_CTAS:
        return grid
    return changed[0], changed[1], changed[2]


def _shorter(tensor: Tensor, random: np.random.Generator) -> Tensor:
    """A storage that ends before the tensor does, by an element, a few or a row."""
    width = DTYPE_BYTES[tensor.dtype]
    row = tensor.strides[-2] if len(tensor.strides) > 1 else 8
    elements = int(random.choice([1, 2, 3, max(1, row), int(random.integers(1, 64))]))
    size = max(width, tensor.storage_bytes - elements * width)
    return tensor._replace(storage_bytes=size)


def _number(value: int, random: np.random.Generator) -> int:
    step = int(random.choice([-16, -4, -2, -1, 1, 2, 4, 16]))
    return max(0, value + step)


__all__ = ["varied"]
