"""A bound launch, laid out in memory and run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.arena import Allocation, Arena
from ptxlint.dynamic.emulator.counters import Counters
from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.host_maps import host_maps
from ptxlint.dynamic.emulator.inputs import (
    InputError,
    Inputs,
    PartlyBlank,
    storage_contents,
    typed,
    view,
)
from ptxlint.dynamic.emulator.record import Record
from ptxlint.dynamic.emulator.run import LANES, MOST_TURNS, Emulator, Outcome, Padding
from ptxlint.dynamic.emulator.sanitizer.choice import MEMORY, Sanitize
from ptxlint.facts import KernelMetadata
from ptxlint.launch.binding import Bound, Region
from ptxlint.launches import DTYPE_BYTES, Extent

MOST_BYTES: Final = 4 << 30
"""Of all storages together; each byte takes another one for its state."""
MOST_CTAS: Final = 16_384
"""CTAs that are run of a larger grid: every so many-th."""
_ALIGNMENT: Final = 256


class Ran(NamedTuple):
    """What a launch came to. `outputs` are tensors by argument name, of numpy's types where it has
    them, else as bits; `sampled` is the number of CTAs in the grid if not all were run, else 0;
    `storages` are the bytes behind the tensors, by number, and `places` where they lay in the
    `arena`."""

    outcome: Outcome
    outputs: dict[str, Array]
    sampled: int
    storages: dict[int, NDArray[np.uint8]] = {}  # noqa: RUF012
    places: dict[int, Allocation] = {}  # noqa: RUF012
    arena: Arena | None = None


def run_launch(
    emulator: Emulator,
    bound: Bound,
    inputs: Inputs,
    *,
    counters: Counters | None = None,
    most_ctas: int = MOST_CTAS,
    most_turns: int = MOST_TURNS,
    sanitize: Sanitize = MEMORY,
    metadata: KernelMetadata | None = None,
    padding: Padding | None = None,
    read_only: Collection[int] = (),
    keeps_interrupted: bool = False,
    record: Record | None = None,
    only: Sequence[Extent] | None = None,
    lanes: int = LANES,
) -> Ran:
    """Run a launch on contents; storages of the numbers in `read_only` must not be written.
    `only` are the CTAs to run, in their order; all of the grid, or a sample, without it. So many
    `lanes` run side by side: fewer than two CTAs have, and one comes after the other.

    With `keeps_interrupted`, Ctrl-C ends the run and what it came to so far is returned. Raises
    `InputError` where memory or contents do not fit.
    """
    try:
        return _ran(
            emulator, bound, inputs, counters, most_ctas, most_turns, sanitize, metadata, padding,
            read_only, keeps_interrupted, record, only, lanes,
        )  # fmt: skip
    except MemoryError:
        raise InputError("the launch needs more memory than there is: take a smaller one") from None


def _ran(
    emulator: Emulator,
    bound: Bound,
    inputs: Inputs,
    counters: Counters | None,
    most_ctas: int,
    most_turns: int,
    sanitize: Sanitize,
    metadata: KernelMetadata | None,
    padding: Padding | None,
    read_only: Collection[int],
    keeps_interrupted: bool,
    record: Record | None,
    only: Sequence[Extent] | None,
    lanes: int,
) -> Ran:
    if max(bound.launch.cluster) > 1:
        x, y, z = bound.launch.cluster
        raise InputError(f"a cluster has ({x}, {y}, {z}) CTAs; only clusters of one are emulated")
    arena = emulator.arena()
    storages = _allocate(arena, storages_of(bound, inputs), read_only)
    shared = max(0, bound.shared)
    ctas, sampled = (only, 0) if only is not None else _sample(bound.grid, most_ctas)
    starts = {storage: allocation.start for storage, allocation in storages.items()}
    values = parameters(emulator, bound, starts)
    values.update(host_maps(bound, starts, metadata))
    outcome = emulator.run(
        bound.grid,
        bound.block,
        values,
        arena,
        shared,
        lanes=lanes,
        ctas=ctas,
        counters=counters,
        most_turns=most_turns,
        sanitize=sanitize,
        padding=padding,
        keeps_interrupted=keeps_interrupted,
        record=record,
    )
    bytes_ = {number: arena.contents(allocation) for number, allocation in storages.items()}
    return Ran(outcome, tensors_of(bound, bytes_), sampled, bytes_, storages, arena)


def tensors_of(bound: Bound, storages: Mapping[int, NDArray[np.uint8]]) -> dict[str, Array]:
    """By argument name the bits of each tensor's elements, out of the bytes of its storage."""
    found = {}
    for region in (*bound.regions.values(), *bound.descriptors.values()):
        bytes_ = storages.get(region.storage)
        if bytes_ is not None and region.tensor.dtype in DTYPE_BYTES:
            width = DTYPE_BYTES[region.tensor.dtype]
            held = np.array(view(bytes_, region.tensor, width))
            found[region.name] = typed(held, region.tensor.dtype)
    return found


class Storage(NamedTuple):
    """Memory that tensors of a launch lie in: the first of them, its size in bytes, what it holds
    before the launch (None: nothing yet), whether the host gave it back already, and which of its
    bytes are written (None: all that it holds)."""

    first: Region
    size: int
    contents: Array | None
    is_freed: bool
    written: NDArray[np.bool_] | None = None


def storages_of(bound: Bound, inputs: Inputs) -> dict[int, Storage]:
    """The storages of a launch by their numbers. Raises `InputError` for too much memory, and for
    contents that do not fit."""
    groups: dict[int, list[Region]] = {}
    for region in (*bound.regions.values(), *bound.descriptors.values()):
        groups.setdefault(region.storage, []).append(region)
    total = sum(group[0].tensor.storage_bytes for group in groups.values())
    if total > MOST_BYTES:
        raise InputError(
            f"the launch has {total / (1 << 30):,.1f} GiB of tensors; at most "
            f"{MOST_BYTES >> 30} GiB are emulated: take a smaller launch"
        )
    found = {}
    for storage, group in groups.items():
        first = group[0]
        size = first.tensor.storage_bytes
        views = [(region.name, region.tensor) for region in group]
        contents = storage_contents(inputs, views, size)
        is_freed = any(region.tensor.freed for region in group)
        written = None
        if isinstance(inputs, PartlyBlank):
            written = inputs.written(first.name, first.tensor, size)
        found[storage] = Storage(first, size, contents, is_freed, written)
    return found


def _allocate(
    arena: Arena, storages: Mapping[int, Storage], read_only: Collection[int]
) -> dict[int, Allocation]:
    """Memory for each storage, aligned as the launch promises and no better."""
    found: dict[int, Allocation] = {}
    for number, (first, size, contents, is_freed, written) in storages.items():
        shift = (first.address + first.low) % _ALIGNMENT
        found[number] = arena.allocate(
            first.name, size, contents, shift=shift, is_read_only=number in read_only,
            written=written,
        )  # fmt: skip
        if is_freed:
            arena.free(found[number])
    return found


def parameters(emulator: Emulator, bound: Bound, starts: Mapping[int, int]) -> dict[str, bytes]:
    """The bytes of each parameter, with storages that begin at these addresses."""
    values: dict[str, bytes] = {}
    for variable in emulator.kernel.params:
        size = variable.size or 8
        region = bound.regions.get(variable.name)
        if region is not None:
            start = starts[region.storage] - region.low
            values[variable.name] = start.to_bytes(8, "little")
            continue
        known = {at: v for (name, at), v in bound.values.items() if name == variable.name}
        if not known:
            continue
        out = bytearray(size)
        places = sorted(known)
        for place, after in zip(places, [*places[1:], size], strict=True):
            width = after - place
            number = known[place] & ((1 << 8 * width) - 1)
            out[place:after] = number.to_bytes(width, "little")
        values[variable.name] = bytes(out)
    return values


def _sample(grid: Extent, most: int) -> tuple[list[Extent] | None, int]:
    """CTAs of a grid that is too large to be run whole: evenly spread, the last one included."""
    count = grid[0] * grid[1] * grid[2]
    if count <= most:
        return None, 0
    numbers = np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))
    x, y = grid[0], grid[1]
    return [(int(n % x), int(n // x % y), int(n // (x * y))) for n in numbers], count


__all__ = [
    "MOST_BYTES", "MOST_CTAS", "Ran", "Storage", "parameters", "run_launch", "storages_of",
    "tensors_of",
]  # fmt: skip
