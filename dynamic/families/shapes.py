"""Sizes that reach what a kernel does at the edges of its tiles.

The tile sizes of a kernel are its constants that are powers of two. Which sizes of the operator
they cut is read off its launches: a size that a kernel is told as a number, as an argument or as a
constant, may end a tile or a loop in the middle; one that it is not told cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Final

from ptxlint.dynamic.operators.spec import Dim, Dims
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge

LINE: Final = 2503
"""A size for tensors of one axis: prime, and more than two of the tiles that are usual."""
ROW: Final = 131
"""For the last axis of others: prime, just behind a power of two."""
ROWS: Final = 5
"""For the axis before that: few, as its next power of two is hardly a tile of anything."""
BATCH: Final = 3
"""For all further axes."""
MOST_ELEMENTS: Final = 1 << 21
"""Of one tensor: beyond this, a run takes many seconds in the emulator."""
_TILE_LEAST, _TILE_MOST = 4, 1 << 16


def rich(described: Described) -> dict[str, int]:
    """Sizes for an operator of which nothing else is known: odd, several rows, within bounds."""
    wanted: dict[str, int] = {}
    for axes in described.axes.values():
        if len(axes) > 1:
            for axis, size in zip(reversed(axes), (ROW, ROWS), strict=False):
                wanted[axis] = max(wanted.get(axis, 0), size)
            for axis in axes[:-2]:
                wanted.setdefault(axis, BATCH)
    for axes in described.axes.values():
        if len(axes) == 1:
            wanted.setdefault(axes[0], LINE)
    sizes = {
        name: _uneven(dim, wanted.get(name, ROWS if any(described.axes.values()) else LINE))
        for name, dim in described.dims.items()
    }
    return affordable(described, sizes)


def _uneven(dim: Dim, size: int) -> int:
    """An allowed size that is about this one and an odd number of multiples, if there is any; below
    the highest, where tiles often are whole."""
    step: int = dim.multiple
    least: int = -(-dim.low // step)
    most: int = dim.high // step
    count: int = size // step if size < dim.high else most * 3 // 4
    return min(max(count | 1, least), most) * step


def fitted(described: Described, wanted: Mapping[str, int]) -> dict[str, int]:
    """The allowed sizes next to these, made smaller where tensors would be too large."""
    sizes = {n: dim.nearest(wanted[n]) or dim.low for n, dim in described.dims.items()}
    return affordable(described, sizes)


def affordable(described: Described, sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes halved, the largest first, until no tensor has more than `MOST_ELEMENTS`."""
    out = dict(sizes)
    while elements(described, out) > MOST_ELEMENTS:
        name = max(out, key=lambda name: out[name] - described.dims[name].low)
        smaller = _uneven(described.dims[name], out[name] // 2)
        if smaller >= out[name]:
            break
        out[name] = smaller
    return out


def elements(described: Described, sizes: Dims) -> int:
    """Of the largest tensor, as far as its axes are told."""
    return max(
        (prod(sizes[axis] for axis in axes if axis) for axes in described.axes.values()), default=0
    )


def tiles(kernels: Iterable[KernelKnowledge]) -> tuple[int, ...]:
    """Tile sizes of kernels, the largest first."""
    numbers = {number for kernel in kernels for number in _numbers(kernel)}
    return tuple(
        sorted(
            (n for n in numbers if _TILE_LEAST <= n <= _TILE_MOST and n & (n - 1) == 0),
            reverse=True,
        )
    )


def _numbers(kernel: KernelKnowledge) -> Iterator[int]:
    """Its constants that are numbers."""
    return (int(written) for written in kernel.constants.values() if written.isdecimal())


def told(described: Described, kernels: Sequence[KernelKnowledge], ran: Dims) -> tuple[str, ...]:
    """The sizes that kernels of `described` were told in a run at `ran`; all where nothing is
    known of kernels.

    A kernel that was told how many elements a tensor has was told the size of its last axis.
    """
    numbers = {n for k in kernels for n in (*k.scalars, *_numbers(k))}
    whole = {last for last, count in _wholes(described, ran) if count in numbers}
    return tuple(
        name for name, size in ran.items() if not kernels or size in numbers or name in whole
    )


def _wholes(described: Described, ran: Dims) -> Iterator[tuple[str, int]]:
    """For each tensor of several axes the last one, and how many elements it has."""
    for axes in described.axes.values():
        if len(axes) > 1 and all(axes):
            yield axes[-1], prod(ran[axis] for axis in axes)


def fixed_tiles(
    described: Described, kernels: Iterable[KernelKnowledge], ran: Dims
) -> tuple[int, ...]:
    """Tile sizes that are not the next power of two of a size at `ran`, or of another that the
    kernel was told, the largest first. How many elements a tensor has is no size that tiles grow
    with."""
    fixed = set()
    wholes = {count for _, count in _wholes(described, ran)}
    for kernel in kernels:
        sizes = {*ran.values(), *(set(kernel.scalars) - wholes)}
        follow = {next_power_of_two(size) for size in sizes}
        fixed |= set(tiles([kernel])) - follow
    return tuple(sorted(fixed, reverse=True))


def next_power_of_two(size: int) -> int:
    """The power of two at or above."""
    return 1 << max(size - 1, 0).bit_length()


def several_tiles(
    described: Described, kernels: Sequence[KernelKnowledge], ran: Dims
) -> dict[str, int]:
    """Sizes like those of a run at `ran`, but more than two tiles where fixed tiles may cut."""
    fixed = fixed_tiles(described, kernels, ran)
    if not fixed:
        return dict(ran)
    raised = {n: max(ran[n], 2 * fixed[0] + 7) for n in _growing(described, kernels, ran)}
    return fitted(described, {**ran, **raised})


def _growing(
    described: Described, kernels: Sequence[KernelKnowledge], ran: Dims
) -> tuple[str, ...]:
    """Sizes that kernels are told, and that no tile grows with."""
    known = set(tiles(kernels))
    return tuple(n for n in told(described, kernels, ran) if next_power_of_two(ran[n]) not in known)


def around_tiles(
    described: Described, kernels: Sequence[KernelKnowledge], more: Iterable[int] = ()
) -> Iterator[dict[str, int]]:
    """Sizes next to tiles: one more, one less, few elements, the tile itself, one, then `more`.

    The sizes that kernels are told move together; the first are several tiles and a part.
    """
    ran = rich(described)
    base = several_tiles(described, kernels, ran)
    moving = told(described, kernels, ran) or tuple(ran)
    ends = tiles(kernels) or (next_power_of_two(ROW),)
    near = (tile + step for tile in ends for step in (1, -1))
    yield from distinct(
        [base],
        (
            fitted(described, {**base, **dict.fromkeys(moving, size)})
            for size in (*near, 3, *ends, 1, *more)
        ),
    )


def growing(
    described: Described, kernels: Sequence[KernelKnowledge], rounds: Iterable[int] = (3, 5, 2)
) -> Iterator[dict[str, int]]:
    """Sizes of these numbers of tiles and a part of one more, where fixed tiles may cut."""
    ran = rich(described)
    tile = (fixed_tiles(described, kernels, ran) or (64,))[0]
    moving = _growing(described, kernels, ran) or tuple(ran)
    yield from distinct(
        (),
        (
            fitted(described, {**ran, **dict.fromkeys(moving, count * tile + 5 | 1)})
            for count in rounds
        ),
    )


def distinct(
    first: Iterable[dict[str, int]], more: Iterable[dict[str, int]]
) -> Iterator[dict[str, int]]:
    """Each once, in order."""
    seen: list[dict[str, int]] = []
    for part in (first, more):
        for sizes in part:
            if sizes not in seen:
                seen.append(sizes)
                yield sizes


def least(dims: Mapping[str, Dim]) -> dict[str, int]:
    """The smallest sizes."""
    return {name: -(-dim.low // dim.multiple) * dim.multiple for name, dim in dims.items()}


__all__ = [
    "affordable", "around_tiles", "distinct", "elements", "fitted", "fixed_tiles", "growing",
    "least", "next_power_of_two", "rich", "several_tiles", "tiles", "told",
]  # fmt: skip
