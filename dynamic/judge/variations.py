"""Launches that are nearly a given one: tensors too short, rows too far apart, grids too large,
sizes one off; made by an autotuner or not.

Whether a launch is right does not matter: what the static half says of it must be true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ptxlint.launches import DTYPE_BYTES, Autotuned, Launch, Scalar, Tensor

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
    if not names or random.random() < 0.25:
        return launch._replace(grid=_grid(launch.grid, random))
    name = names[int(random.integers(len(names)))]
    argument = launch.arguments[name]
    arguments: dict[str, Any] = dict(launch.arguments)
    if isinstance(argument, Tensor):
        is_wider = len(argument.shape) > 1 and random.random() < 0.3
        changed = (_wider if is_wider else _shorter)(argument, random)
        arguments = _in_one_storage(arguments | {name: changed}, changed)
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
    contents = None if tensor.contents is None else tensor.contents[: size // width]
    return tensor._replace(storage_bytes=size, contents=contents)


def _in_one_storage(arguments: dict[str, Any], changed: Tensor) -> dict[str, Any]:
    """Arguments of which all that lie in one storage agree on how large it is."""
    size = changed.storage_bytes
    return {
        name: argument._replace(storage_bytes=size)
        if isinstance(argument, Tensor) and argument.storage == changed.storage
        else argument
        for name, argument in arguments.items()
    }


def _wider(tensor: Tensor, random: np.random.Generator) -> Tensor:
    """Rows that begin further apart; the storage grows with them."""
    more = int(random.choice([1, 2, 8, 16]))
    *outer, inner = tensor.strides
    width = DTYPE_BYTES[tensor.dtype]
    strides = (*(stride * (row + more) // row for stride, row in _by_row(outer)), inner)
    steps = zip(tensor.shape, strides, strict=True)
    end = sum((extent - 1) * stride for extent, stride in steps) + 1
    size = max(tensor.storage_bytes, tensor.offset + end * width)
    return tensor._replace(strides=strides, storage_bytes=size)


def _by_row(outer: list[int]) -> list[tuple[int, int]]:
    """Steps of all axes but the innermost, each with that of rows."""
    row = max(1, outer[-1])
    return [(stride, row) for stride in outer]


def tuned(launch: Launch, random: np.random.Generator) -> Launch:
    """The same launch, made by an autotuner that sets some tensors to zero and puts others back,
    but none whose numbers the launch promises."""
    drawn: tuple[list[str], list[str]] = ([], [])
    for name, argument in launch.arguments.items():
        if isinstance(argument, Tensor) and argument.values is None and random.random() < 0.3:
            drawn[int(random.integers(2))].append(name)
    reset, restored = map(tuple, drawn)
    return launch._replace(autotuned=Autotuned(int(random.integers(2, 5)), reset, restored))


def _number(value: int, random: np.random.Generator) -> int:
    step = int(random.choice([-16, -4, -2, -1, 1, 2, 4, 16]))
    return max(0, value + step)


__all__ = ["tuned", "varied"]
