"""Whether the sizes of a run could speak: more than one tile, more than one program, ends of tiles
that are not full, and whole ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ptxlint.dynamic.families.shapes import (
    fitted,
    fixed_tiles,
    next_power_of_two,
    several_tiles,
    tiles,
    told,
)
from ptxlint.dynamic.operators.spec import Dims
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge


def better(
    described: Described, kernels: Sequence[KernelKnowledge], ran: Dims
) -> dict[str, int] | None:
    """Sizes that say what a run at `ran` left out; None where nothing is missing, or nothing can
    be done about it.

    `kernels` are those that it launched. Of numpy nothing is known, and nothing is missing.
    """
    raised = several_tiles(described, kernels, ran) if kernels else dict(ran)
    return None if raised == dict(ran) else raised


def whole(
    described: Described, kernels: Sequence[KernelKnowledge], ran: Dims
) -> dict[str, int] | None:
    """Sizes that are whole tiles, for kernels that were told a truth value as a constant: hosts
    often set one where a size divides by the tile, and what is compiled then is other code. None
    where no kernel was."""
    words = {word for kernel in kernels for word in kernel.constants.values()}
    if words.isdisjoint({"True", "False"}):
        return None
    fixed = fixed_tiles(described, kernels, ran)
    ends = {name: fixed[0] if fixed else next_power_of_two(ran[name]) for name in ran}
    cut = told(described, kernels, ran)
    found = {name: -(-ran[name] // ends[name]) * ends[name] for name in cut}
    sizes: dict[str, int] = fitted(described, {**ran, **found})
    return sizes


def notes(described: Described, kernels: Sequence[KernelKnowledge], ran: Dims) -> tuple[str, ...]:
    """What the last semantic run could not reach within the sizes of the spec, for people."""
    if not kernels:
        return ()
    out = []
    cut = told(described, kernels, ran)
    fixed = fixed_tiles(described, kernels, ran)
    if fixed and all(ran[name] <= fixed[0] for name in cut):
        out.append(f"no size was more than one tile of {fixed[0]}")
    full = [tile for tile in tiles(kernels) if cut and all(ran[n] % tile == 0 for n in cut)]
    if full:
        out.append(f"all sizes were whole tiles of {full[0]}: no lane was masked off")
    several = {k.name for k in kernels if any(prod(grid) > 1 for grid in k.grids)}
    alone = sorted({k.name for k in kernels} - several)
    if alone and len(described.dims) > 0:
        out.append(f"{', '.join(alone)} ran with one program")
    return tuple(out)


__all__ = ["better", "notes", "whole"]
