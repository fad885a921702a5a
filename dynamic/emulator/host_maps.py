"""Tensor maps that the host makes for descriptors among a launch's arguments.

How a tile is cut and swizzled is the compiler's choice, which Triton writes down in a kernel's
metadata (`tensordesc_meta`); without that it is taken to be what Triton chooses for plain tiles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ptxlint.dynamic.emulator.inputs import InputError
from ptxlint.dynamic.emulator.tensor_map import SWIZZLES, TensorMap, of_tensor
from ptxlint.facts import KernelMetadata
from ptxlint.launch.binding import Bound, Region
from ptxlint.launches import Descriptor


class Tile(NamedTuple):
    """How one descriptor's tiles are copied: their extents, outermost first, the swizzle in bytes,
    and what the emulator cannot do about it."""

    block: tuple[int, ...]
    swizzle: int | None
    problem: str = ""


def host_maps(
    bound: Bound, starts: Mapping[int, int], metadata: KernelMetadata | None
) -> dict[str, bytes]:
    """By parameter, the bytes of the map that is passed, as the emulator reads them.

    Raises `InputError` as `maps_of`, and for a map that has no room in them.
    """
    out = {}
    for parameter, found in maps_of(bound, starts, metadata).items():
        try:
            out[parameter] = found.encode()
        except ValueError as error:
            name = bound.descriptors[parameter].name
            raise InputError(f"the descriptor `{name}`: {error}") from None
    return out


def maps_of(
    bound: Bound, starts: Mapping[int, int], metadata: KernelMetadata | None
) -> dict[str, TensorMap]:
    """By parameter, what the map says that is passed; `starts` are device addresses of storages.

    Raises `InputError` for a descriptor that no map of the emulator stands for.
    """
    tiles = _tiles(metadata)
    out = {}
    for number, (parameter, region) in enumerate(bound.descriptors.items()):
        given = bound.arguments[region.name]
        assert isinstance(given, Descriptor)
        tile = tiles[number] if number < len(tiles) else Tile(given.block, None)
        out[parameter] = _map(region, given, tile, starts[region.storage] - region.low)
    return out


def _map(region: Region, given: Descriptor, tile: Tile, address: int) -> TensorMap:
    tensor = given.tensor
    where = f"the descriptor `{region.name}`"
    if tile.problem:
        raise InputError(f"{where} {tile.problem}, which is not emulated")
    try:
        return of_tensor(
            address, tensor.dtype, tensor.shape, tensor.strides, tile.block,
            padding=given.padding, swizzle=tile.swizzle,
        )  # fmt: skip
    except KeyError:
        raise InputError(f"{where}: tensor maps have no elements of {tensor.dtype}") from None


def _tiles(metadata: KernelMetadata | None) -> list[Tile]:
    """What a kernel's metadata says of its descriptors, in their order; nothing if it does not."""
    if metadata is None or metadata.path is None:
        return []
    try:
        with open(metadata.path, "rb") as file:
            found = json.load(file).get("tensordesc_meta")
    except (OSError, ValueError, AttributeError):
        return []
    return [_tile(entry) for entry in found or [] if isinstance(entry, dict)]


def _tile(entry: dict[str, Any]) -> Tile:
    number = entry.get("swizzle")
    swizzle = SWIZZLES[number] if isinstance(number, int) and 0 <= number < len(SWIZZLES) else None
    block = tuple(int(size) for size in entry.get("block_size", ()))
    problem = next(
        (
            what
            for field, what in (("is_im2col", "is of mode im2col"), ("fp4_padded", "pads fp4"))
            if entry.get(field)
        ),
        "rounds to tf32" if entry.get("elem_type") == 11 else "",
    )
    return Tile(block, swizzle, problem)


__all__ = ["Tile", "host_maps", "maps_of"]
