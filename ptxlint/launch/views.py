"""Which bytes of its storage a tensor is made of, and whether accesses keep to them.

A tensor that is a part of another one (some columns, every second row) has gaps: bytes between its
elements that belong to something else. Where strides nest (a row is no longer than the step to the
next), an offset is written in mixed radix: what is left of it below the largest stride must lie in
a row, and so on down to a run of elements without gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.launch.binding import Region
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launches import DTYPE_BYTES, Tensor, reach


class View(NamedTuple):
    """The elements of a tensor: `levels` are the strides in bytes and the extents of axes, largest
    first, around runs of `run` bytes without gaps. `end` is how far all of it reaches."""

    levels: tuple[tuple[int, int], ...]
    run: int
    end: int


def view_of(tensor: Tensor) -> View | None:
    """The elements of a tensor; None where its strides do not nest."""
    size = DTYPE_BYTES.get(tensor.dtype, 0)
    if not size or not all(tensor.shape):
        return None
    axes = [
        (stride * size, extent)
        for extent, stride in zip(tensor.shape, tensor.strides, strict=True)
        if extent > 1 and stride
    ]
    run = end = size
    levels: list[tuple[int, int]] = []
    for stride, extent in sorted(axes):
        if stride < end:
            return None
        if stride == run and not levels:
            run *= extent
            end = run
        else:
            levels.insert(0, (stride, extent))
            end += (extent - 1) * stride
    return View(tuple(levels), run, end)


def is_part(region: Region, view: View | None) -> bool:
    """True if some bytes of a tensor's storage, from its first element on, are not the tensor's, or
    some elements lie in the same place."""
    if view is None or view.levels or region.high > view.end:
        return True
    axes = zip(region.tensor.shape, region.tensor.strides, strict=True)
    return any(extent > 1 and not stride for extent, stride in axes)


def keeps_to(under: UnderLaunch, judged: Judged, view: View) -> bool:
    """True if an access certainly touches elements alone."""
    access, region = judged.access, judged.region
    if judged.never:
        return True
    if region is None or access.guard is None or judged.wraps:
        return False
    offset = access.offset if access.base else access.offset - region.address
    ends = [view.end]
    for stride, extent in view.levels:
        ends.append(ends[-1] - (extent - 1) * stride)
    for at, end in enumerate(ends):
        most = end - access.width
        if not (
            under.is_at_most(offset, access.guard, most)
            and under.is_at_most(-offset, access.guard, 0)
        ):
            return False
        if at < len(view.levels):
            offset = _below(offset, view.levels[at][0])
    return True


def _below(offset: Polynomial, stride: int) -> Polynomial:
    """A polynomial that differs from another by a multiple of a stride, with small coefficients.

    Where it lies between 0 and the stride it is the rest of a division by it.
    """
    half = stride // 2
    terms = {
        monomial: (scale + half) % stride - half if monomial else scale % stride
        for monomial, scale in offset.terms.items()
    }
    return Polynomial(offset.table, {m: c for m, c in terms.items() if c})


def other_ends(region: Region, regions: Iterable[Region]) -> dict[int, str]:
    """How far the elements would reach if they lay otherwise, and how: without gaps, or by the
    strides of another tensor of the same shape."""
    tensor = region.tensor
    strides, step = [], 1
    for extent in reversed(tensor.shape):
        strides.append(step)
        step *= extent
    plain = tensor._replace(strides=tuple(reversed(strides)))
    found = {reach(plain): "without gaps"}
    for other in regions:
        if other.tensor.shape == tensor.shape:
            end = reach(tensor._replace(strides=other.tensor.strides))
            found.setdefault(end, f"by the strides of {other.name}")
    found.pop(reach(tensor), None)
    return found


def ends_within(under: UnderLaunch, judged: Judged, end: int) -> bool:
    """True if an access certainly stays below so many bytes from the first element."""
    access, region = judged.access, judged.region
    if judged.never:
        return True
    if region is None or access.guard is None or judged.wraps:
        return False
    offset = access.offset if access.base else access.offset - region.address
    return under.is_at_most(offset, access.guard, end - access.width)


__all__ = ["View", "ends_within", "is_part", "keeps_to", "other_ends", "view_of"]
