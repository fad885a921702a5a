"""Which numbers of a launch are one size: the families that the launch is one of.

A size is a number that several parts of a launch have in common: a scalar, extents of tensors, the
CTAs along an axis. Where the numbers agree in this launch they are tied in the family, and the tie
is told as a premise. A stride or a number of elements that follows from extents follows them; an
axis of the grid may count tiles of the size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from ptxlint.dataflow.access import Accesses
from ptxlint.dataflow.launched import Form
from ptxlint.ir.function import Function
from ptxlint.launch.binding import Bound, Region
from ptxlint.launch.generalise.family import (
    LARGEST,
    Axis,
    Family,
    Shape,
    plus,
    reach,
    times,
    value,
)
from ptxlint.launches import DTYPE_BYTES, Extent, Tensor

_NUMBER: Final[Form] = (0, 1)
_LEAST: Final = 2
"""A size of one is compiled in, or a coincidence."""
_LETTERS: Final = ("n", "N", "size", "extent")


def families(
    bound: Bound, function: Function, tiles: Mapping[int, Collection[int]], limits: Extent
) -> list[Family]:
    """The families of a launch, those first in which most is tied together.

    `tiles` are the elements that a CTA may cover, by axis of the grid, and `limits` the CTAs that a
    device takes along each.
    """
    finder = _Finder(bound, function, tiles, limits)
    found = [family for size in finder.sizes() if (family := finder.family(size)) is not None]
    return sorted(found, key=lambda f: (-_weight(f), min(f.grid, default=3), -_ties(f), -f.value))


def _weight(family: Family) -> int:
    return 4 * bool(family.tensors) + 2 * bool(family.grid) + bool(family.scalars)


def _ties(family: Family) -> int:
    return len(family.scalars) + len(family.tensors)


def tiles_of(accesses: Accesses, regions: Mapping[str, Region]) -> dict[int, list[int]]:
    """How many elements a CTA may cover along each axis of the grid, as addresses and guards have
    it: what its number is multiplied with."""
    found: dict[int, dict[int, None]] = {0: {}, 1: {}, 2: {}}
    for access in accesses.in_global:
        region = regions.get(access.base)
        size = 1 if region is None else DTYPE_BYTES.get(region.tensor.dtype, 1)
        guards = [c.polynomial for c in access.guard or () if c.polynomial is not None]
        for poly, unit in [*((guard, 1) for guard in guards), (access.offset, size)]:
            for atom in poly.atoms():
                factor = abs(poly.coefficient(atom))
                if atom.kind == "ctaid" and factor and not factor % unit:
                    found["xyz".index(atom.data[0])][factor // unit] = None
    return {axis: [tile for tile in sizes if tile > 1] for axis, sizes in found.items()}


class _Finder:
    """The numbers of one launch, while its families are found."""

    def __init__(
        self,
        bound: Bound,
        function: Function,
        tiles: Mapping[int, Collection[int]],
        limits: Extent,
    ) -> None:
        self._bound = bound
        self._tiles = tiles
        self._limits = limits
        widths = {variable.name: variable.size or 0 for variable in function.params}
        self._scalars = {
            name: number
            for (name, offset), number in bound.values.items()
            if not offset
            and (name, 0) not in bound.floats
            and name not in bound.regions
            and number >= _LEAST
            and widths.get(name, 0) in (4, 8)
        }
        self._widths = widths
        self._tensors = {
            name: region.tensor for name, region in bound.regions.items() if region.storage >= 0
        }

    def sizes(self) -> list[int]:
        """The numbers that may be a size, each once."""
        extents = [extent for tensor in self._tensors.values() for extent in tensor.shape]
        every = [*self._scalars.values(), *extents, *self._bound.grid]
        return [size for size in dict.fromkeys(every) if size >= _LEAST]

    def family(self, size: int) -> Family | None:
        """The family in which this number is another one; None if nothing goes with it."""
        tensors = self._tied(size)
        scalars = dict(self._followers(size, tensors))
        grid = dict(self._axes(size, alone=not (tensors or scalars)))
        if not (scalars or grid):
            # That tensors may be larger says nothing.
            return None
        name = self._name(scalars, tensors, grid)
        family = Family(self._bound, name, size, LARGEST, scalars, tensors, grid)
        limit = self._limit(family)
        return family._replace(limit=limit) if size <= limit else None

    def _name(
        self, scalars: Mapping[str, Form], tensors: Mapping[str, Shape], grid: Mapping[int, Axis]
    ) -> str:
        """What people call the size: an argument's name, an axis of the grid, or a letter."""
        names = self._bound.names
        named = [names.get(name, name) for name, form in scalars.items() if form == _NUMBER]
        if named:
            # Of a size and a stride that are one number, the size is what people think of.
            return min(named, key=lambda name: "stride" in name)
        if not tensors and not scalars:
            return f"grid {'xyz'[min(grid)]}"
        taken = set(names.values())
        return next((letter for letter in _LETTERS if letter not in taken), "the size")

    # Tensors ------------------------------------------------------------------------------------
    def _tied(self, size: int) -> dict[str, Shape]:
        found: dict[str, Shape] = {}
        ends: dict[int, set[Form]] = {}
        for name, tensor in self._tensors.items():
            shape = self._shape(size, tensor)
            end = times(reach(shape), (DTYPE_BYTES.get(tensor.dtype, 0),))
            whole = plus(end, (tensor.offset,))
            if tensor.freed or value(whole, size) != tensor.storage_bytes:
                whole = (tensor.storage_bytes,)
            elif any(whole[1:]):
                found[name] = shape
            ends.setdefault(tensor.storage, set()).add(whole)
        # Views of one storage agree on where it ends, or it stays as it is.
        return {n: s for n, s in found.items() if len(ends[self._tensors[n].storage]) == 1}

    def _shape(self, size: int, tensor: Tensor) -> Shape:
        extents = tuple(self._extent(size, extent, tensor) for extent in tensor.shape)
        strides: list[Form] = []
        dense: Form = (1,)
        for extent, stride in zip(reversed(extents), reversed(tensor.strides), strict=True):
            if value(dense, size) == stride:
                strides.append(dense)
            else:
                strides.append(_NUMBER if stride == size else (stride,))
            dense = times(dense, extent)
        return Shape(extents, tuple(reversed(strides)))

    def _extent(self, size: int, extent: int, tensor: Tensor) -> Form:
        if extent == size:
            return _NUMBER
        # A flat array holds so many of something else that the launch names.
        if len(tensor.shape) == 1 and extent % size == 0 and extent // size in self._named:
            return (0, extent // size)
        return (extent,)

    @property
    def _named(self) -> set[int]:
        return {*self._scalars.values(), *self._bound.grid}

    # Scalars ------------------------------------------------------------------------------------
    def _followers(self, size: int, tensors: Mapping[str, Shape]) -> Iterator[tuple[str, Form]]:
        """The scalars that are the size, or a stride or number of elements that follows from it."""
        following = [
            form
            for shape in tensors.values()
            for form in (*shape.strides, _product(shape.extents))
            if any(form[1:])
        ]
        for name, number in self._scalars.items():
            if number == size:
                yield name, _NUMBER
                continue
            form = next((form for form in following if value(form, size) == number), None)
            if form is not None:
                yield name, form

    # The grid -----------------------------------------------------------------------------------
    def _axes(self, size: int, *, alone: bool) -> Iterator[tuple[int, Axis]]:
        """The axes that have the size for their number of CTAs, or count tiles of it."""
        for at, count in enumerate(self._bound.grid):
            fitting = self._counting(size, at)
            others = [other for other in self._scalars.values() if other != size]
            if count == size and not any(self._counting(other, at) for other in others):
                yield at, Axis(_NUMBER, 1)
            elif alone:
                continue
            elif fitting:
                yield at, Axis(_NUMBER, fitting[0])
            elif self._is_product(count, size):
                yield at, Axis((0, count // size), 1)

    def _is_product(self, count: int, size: int) -> bool:
        """True for programs for each of two extents, as for heads in batches."""
        other, rest = divmod(count, size)
        return not rest and other in self._extents - {1} and count not in self._extents

    def _counting(self, size: int, at: int) -> list[int]:
        """Tiles of which an axis of the grid counts as many as a size has."""
        count = self._bound.grid[at]
        return [tile for tile in self._tiles.get(at, ()) if -(-size // tile) == count]

    @property
    def _extents(self) -> set[int]:
        return {extent for tensor in self._tensors.values() for extent in tensor.shape}

    # How far ------------------------------------------------------------------------------------
    def _limit(self, family: Family) -> int:
        """The largest number for which all scalars fit their types and the grid a device."""
        bounds: list[tuple[Form, int]] = [
            (form, (1 << (8 * self._widths[name] - 1)) - 1) for name, form in family.scalars.items()
        ]
        bounds += [(axis.form, self._limits[at] * axis.divisor) for at, axis in family.grid.items()]
        bounds += [(end, LARGEST) for name in family.tensors if (end := family.end(name))]
        return min((_last(form, most) for form, most in bounds), default=LARGEST)


def _product(extents: Sequence[Form]) -> Form:
    total: Form = (1,)
    for extent in extents:
        total = times(total, extent)
    return total


def _last(form: Form, most: int) -> int:
    """The largest number, up to `LARGEST`, for which a growing form is no more than `most`."""
    low, high = 0, LARGEST
    while low < high:
        middle = (low + high + 1) // 2
        if value(form, middle) <= most:
            low = middle
        else:
            high = middle - 1
    return low


__all__ = ["families", "tiles_of"]
