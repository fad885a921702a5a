"""What is said of cells that are written twice or never."""

from __future__ import annotations

from typing import Any

from ptxlint.launch.binding import Bound, Region
from ptxlint.launch.coverage.apart import Clash
from ptxlint.launch.coverage.missed import Missed
from ptxlint.launch.questions import element_at


def element_of(region: Region, offset: int) -> str:
    """The element of an argument that a byte of its storage belongs to: `element [3, 0]`."""
    own = offset + region.low
    found = element_at(region.tensor, own) if own >= 0 else None
    if found is None:
        return f"byte {own:,}"
    return f"element [{', '.join(map(str, found))}]"


def cell_of(clash: Clash) -> str:
    """The cell that two programs write."""
    return element_of(clash.store.region, clash.offset)


def numbers_of(bound: Bound) -> dict[str, int]:
    """The integers that a launch passes, by the source's names."""
    return {
        bound.names.get(name, name): number
        for (name, offset), number in bound.values.items()
        if not offset and (name, offset) not in bound.floats
    }


def witness_of(bound: Bound, clash: Clash) -> dict[str, Any]:
    """Two threads and the cell, as plain data."""
    region = clash.store.region
    own = clash.offset + region.low
    element = element_at(region.tensor, own) if own >= 0 else None
    return {
        "ctaid": list(clash.first.ctaid),
        "tid": list(clash.first.tid),
        "other": {"ctaid": list(clash.second.ctaid), "tid": list(clash.second.tid)},
        "offset": own,
        "element": None if element is None else list(element),
        "values": numbers_of(bound),
    }


def why_missed(bound: Bound, word: Missed) -> str:
    """Which element is not written, and what shows that it should be."""
    missing, region = word.missing, word.region
    assert missing is not None
    element = element_of(region, missing.offset - region.low)
    text = f"{element} of {region.name} is written by no program: "
    if word.why == "map":
        return text + (
            f"there are programs enough in a grid of {bound.grid}, and none is given its tile"
        )
    extent = bound.grid["xyz".index(missing.axis)]
    text += f"the grid ends at {extent:,} along {missing.axis}"
    if word.why == "mask":
        return f"{text}, and the mask lets in program {extent:,}"
    return f"{text}, and a part of a tile is left"


def missed_witness(bound: Bound, word: Missed) -> dict[str, Any]:
    """The element that is not written, as plain data."""
    missing, region = word.missing, word.region
    assert missing is not None
    element = element_at(region.tensor, missing.offset)
    return {
        "offset": missing.offset,
        "element": None if element is None else list(element),
        "values": numbers_of(bound),
    }


__all__ = ["cell_of", "element_of", "missed_witness", "numbers_of", "why_missed", "witness_of"]
