"""What numbers in memory would have to be for an access to stay inside, in words."""

from __future__ import annotations

from ptxlint.dataflow.extremes import Box
from ptxlint.dataflow.polynomial import Atom, Polynomial


def numbers_inside(
    offset: Polynomial, box: Box, low: int, high: int
) -> tuple[int, tuple[int, int]] | None:
    """The value that is loaded from memory, and from where to where it may be for an offset to lie
    between two bounds; None if the offset is made of memory in another way, or nothing helps."""
    found = [a for a in offset.atoms() if any(b.kind == "load" for b in _within(a))]
    if len(found) != 1:
        return None
    atom = found[0]
    load, scale = _loaded(atom), offset.coefficient(atom)
    rest = offset - offset.table.plain(atom) * scale
    if load is None or scale <= 0 or any(a.kind == "load" for a in rest.all_atoms()):
        return None
    least, most = box.range(rest)
    first, last = -((least - low) // scale), (high - most) // scale
    return None if first > last else (load, (first, last))


def _loaded(atom: Atom) -> int | None:
    """The loaded value that an atom is, or is where a mask holds."""
    if atom.kind == "load":
        return int(atom.data[0])
    if atom.kind != "select":
        return None
    arms = [part for part in atom.data[1:] if not part.is_constant]
    if len(arms) != 1 or arms[0].constant or len(arms[0].terms) != 1:
        return None
    (inner,) = arms[0].atoms()
    alone = inner.kind == "load" and arms[0].coefficient(inner) == 1
    return int(inner.data[0]) if alone else None


def _within(atom: Atom) -> list[Atom]:
    """An atom, and those that it is made of."""
    out = [atom]
    for part in atom.data:
        if isinstance(part, Polynomial):
            out += part.all_atoms()
    return out


__all__ = ["numbers_inside"]
