"""A family of launches: one launch in which a size is left open, with all that goes with it.

A launch is a single point. What lies around it are launches in which one number is another one, and
every argument, extent and axis of the grid that is tied to it follows; all else stays as it was
launched. The ties are the premises of whatever is said of a family.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.dataflow.launched import Form
from ptxlint.launch.binding import Bound, Region, end_of_storage, storage_starts
from ptxlint.launches import DTYPE_BYTES, Tensor

LARGEST = 1 << 44
"""The largest size, and the most bytes of a tensor, that anything is said of."""


class Shape(NamedTuple):
    """The extents and strides of a tensor in elements, as forms in what is left open."""

    extents: tuple[Form, ...]
    strides: tuple[Form, ...]


class Axis(NamedTuple):
    """An axis of the grid that has `form` CTAs, divided by `divisor` and rounded up."""

    form: Form
    divisor: int


class Family(NamedTuple):
    """Launches that differ from one in a single number and in what is tied to it.

    `name` is what people call the number and `value` what it is in the launch; it is a multiple of
    `step` and at most `limit`. `scalars` and `tensors` are by parameter, `grid` by axis. A form is
    a polynomial in the number itself.
    """

    bound: Bound
    name: str
    value: int
    limit: int
    scalars: dict[str, Form]
    tensors: dict[str, Shape]
    grid: dict[int, Axis]
    step: int = 1

    def in_steps(self, step: int) -> Family:
        """Those launches of the family whose number is a multiple."""
        return self._replace(step=step)

    def end(self, parameter: str) -> Form | None:
        """How many bytes there are from where a parameter points to the end of its storage; None
        if that is the launch's own number."""
        shape = self.tensors.get(parameter)
        if shape is None:
            return None
        size = DTYPE_BYTES[self.bound.regions[parameter].tensor.dtype]
        return times(reach(shape), (size,))

    def at(self, number: int) -> Bound:
        """The launch of the family with this number."""
        bound = self.bound
        tensors = {
            name: self._tensor_at(name, region, number) for name, region in bound.regions.items()
        }
        starts = storage_starts(tensors.values())
        regions = {
            name: region._replace(
                tensor=tensors[name],
                address=starts[tensors[name].storage] + tensors[name].offset,
                high=end_of_storage(tensors[name]),
            )
            if region.storage >= 0
            else region
            for name, region in bound.regions.items()
        }
        values = dict(bound.values)
        for name, form in self.scalars.items():
            values[name, 0] = value(form, number)
        x, y, z = (
            -(-value(self.grid[at].form, number) // self.grid[at].divisor)
            if at in self.grid
            else extent
            for at, extent in enumerate(bound.grid)
        )
        launch = bound.launch._replace(grid=(x, y, z))
        return bound._replace(launch=launch, values=values, regions=regions, grid=(x, y, z))

    def _tensor_at(self, name: str, region: Region, number: int) -> Tensor:
        tensor, shape = region.tensor, self.tensors.get(name)
        end = self.end(name)
        if shape is None or end is None:
            return tensor
        return tensor._replace(
            shape=tuple(value(form, number) for form in shape.extents),
            strides=tuple(value(form, number) for form in shape.strides),
            storage_bytes=tensor.offset + value(end, number),
            contents=None,
        )


# Forms ------------------------------------------------------------------------------------------
def plus(a: Form, b: Form) -> Form:
    """The sum of two forms."""
    width = max(len(a), len(b))
    padded = [(*form, *(0,) * (width - len(form))) for form in (a, b)]
    return tuple(map(sum, zip(*padded, strict=True)))


def times(a: Form, b: Form) -> Form:
    """The product of two forms."""
    out = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return tuple(out)


def value(form: Form, number: int) -> int:
    """What a form comes to."""
    total = 0
    for coefficient in reversed(form):
        total = total * number + coefficient
    return total


def stretched(form: Form, step: int) -> Form:
    """The form of which the number is counted in steps."""
    return tuple(c * step**power for power, c in enumerate(form))


def reach(shape: Shape) -> Form:
    """How many elements lie from the first one of a tensor to its last one."""
    total: Form = (1,)
    for extent, stride in zip(shape.extents, shape.strides, strict=True):
        total = plus(total, times(plus(extent, (-1,)), stride))
    return total


def is_dense(shape: Shape) -> bool:
    """True if a tensor has no gaps."""
    step: Form = (1,)
    for extent, stride in zip(reversed(shape.extents), reversed(shape.strides), strict=True):
        if extent != (1,) and stride != step:
            return False
        step = times(step, extent)
    return True


def spelled(form: Form, name: str) -> str:
    """A form for people: `n`, `4096 * n`, `n^2 + 1`."""
    parts = []
    for power in range(len(form) - 1, -1, -1):
        coefficient = form[power]
        factor = "" if not power else name if power == 1 else f"{name}^{power}"
        if coefficient:
            times_of = f"{coefficient}" if abs(coefficient) != 1 or not power else ""
            times_of = "-" if coefficient == -1 and power else times_of
            join = " * " if factor and times_of not in ("", "-") else ""
            parts.append(f"{times_of}{join}{factor}")
    return " + ".join(parts).replace("+ -", "- ") or "0"


__all__ = [
    "LARGEST", "Axis", "Family", "Shape", "is_dense", "plus", "reach", "spelled", "stretched",
    "times", "value",
]  # fmt: skip
