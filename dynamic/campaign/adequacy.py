"""Whether runs could speak: more than one tile, more than one program, ends of tiles that are not
full, strides that are not those of rows next to each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from ptxlint.dynamic.families.shapes import fixed_tiles, several_tiles, tiles, told
from ptxlint.dynamic.operators.spec import Dims
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge

VIEWS: Final = ("every-second", "transposed", "padded-rows")
"""Layouts in which strides differ from those of rows next to each other, the one first in which
most do."""


def view(described: Described) -> str | None:
    """The layout in which a run has to be made once, as a stride of 1 that a kernel leaves out is
    seen in no other; None where the spec allows none."""
    return next((layout for layout in VIEWS if layout in described.layouts), None)


def better(
    described: Described, kernels: Sequence[KernelKnowledge], ran: Dims
) -> dict[str, int] | None:
    """Sizes that say what a run at `ran` left out; None where nothing is missing, or nothing can
    be done about it.

    `kernels` are those that it launched. Of numpy nothing is known, and nothing is missing.
    """
    raised = several_tiles(described, kernels, ran) if kernels else dict(ran)
    return None if raised == dict(ran) else raised


def notes(described: Described, kernels: Sequence[KernelKnowledge], ran: Dims) -> tuple[str, ...]:
    """What the last semantic run could not reach within the sizes of the spec, for people."""
    if not kernels:
        return ()
    out = []
    cut = told(described, kernels, ran)
    fixed = fixed_tiles(described, kernels, ran)
    if fixed and all(ran[name] <= fixed[0] for name in cut):
        out.append(f"no size was more than one tile of {fixed[0]}")
    whole = [tile for tile in tiles(kernels) if cut and all(ran[n] % tile == 0 for n in cut)]
    if whole:
        out.append(f"all sizes were whole tiles of {whole[0]}: no lane was masked off")
    several = {k.name for k in kernels if any(prod(grid) > 1 for grid in k.grids)}
    alone = sorted({k.name for k in kernels} - several)
    if alone and len(described.dims) > 0:
        out.append(f"{', '.join(alone)} ran with one program")
    return tuple(out)


__all__ = ["better", "notes"]
