"""Sizes that leave a rest: where a tile is accessed whole, none but its multiples is right.

The last CTA of a grid that counts tiles begins where the last whole tile ends. If all its lanes
access their element whatever the size is, the last of them lies beyond the end for every size that
is no multiple. That is a statement on all these sizes at once, by the arithmetic of their rest.
"""

from __future__ import annotations

from ptxlint.dataflow.polynomial import Polynomial
from ptxlint.launch.generalise.family import Family
from ptxlint.launch.generalise.under_family import UnderFamily
from ptxlint.launch.under import Judged


def fails_between(under: UnderFamily, judged: Judged, tile: int) -> bool:
    """True if an access goes beyond the end for every size that is no multiple of a tile.

    `under` speaks of all sizes in steps of one, as far as it has been narrowed.
    """
    access, family = judged.access, under.family
    axis = next((at for at, axis in family.grid.items() if axis == ((0, 1), tile)), None)
    end = family.end(access.base)
    if axis is None or end is None or len(end) != 2 or end[1] <= 0:
        return False
    if judged.wraps or access.guard or under.conditions(access.instr):
        return False
    last = _last_lane(access.offset, axis, family)
    if last is None:
        return False
    step, start = last
    # Size n = tile * k + rest: the last CTA is number k, and `rest` elements are left for it.
    fixed, each = end
    return step >= each * tile and start + access.width > fixed + each * (tile - 1)


def _last_lane(offset: Polynomial, axis: int, family: Family) -> tuple[int, int] | None:
    """Bytes per CTA along an axis, and where the furthest lane of the first CTA begins."""
    step, start = 0, offset.constant
    for monomial, scale in offset.terms.items():
        if not monomial:
            continue
        atom = offset.table.atoms[monomial[0]]
        if len(monomial) > 1 or atom.kind not in ("bit", "ctaid"):
            return None
        if atom.kind == "ctaid":
            step += scale if "xyz".index(atom.data[0]) == axis else 0
            continue
        extent = family.bound.block["xyz".index(atom.data[0])]
        if extent & (extent - 1) or extent <= 1 << atom.data[1]:
            return None
        start += max(0, scale)
    return step, start


__all__ = ["fails_between"]
