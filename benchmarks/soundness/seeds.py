"""Launches made wrong, or nearly so: one change each of a launch that is right.

Whether a change does any harm is not known here: that is what is asked, of ptxlint and of the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.launches import DTYPE_BYTES, Launch, Scalar, Tensor

LARGE = 1 << 28
"""Bytes of tensors from which on a launch is run as it is alone."""
_LEAP = 16
"""What Triton asks whether sizes are a multiple of; a size that is stays one."""


def seeded(launch: Launch) -> Iterator[tuple[str, Launch]]:
    """The launch as it is, and its variations by name."""
    yield "as it is", launch
    tensors = {n: a for n, a in launch.arguments.items() if isinstance(a, Tensor)}
    if sum(tensor.storage_bytes for tensor in tensors.values()) > LARGE:
        return
    for name, tensor in tensors.items():
        size = DTYPE_BYTES[tensor.dtype]
        for what, lost in (("an element", size), ("a hundred elements", 100 * size)):
            if tensor.storage_bytes > lost:
                yield f"{name} shorter by {what}", _shorter(launch, tensor.storage, lost)
        late = _replaced(launch, name, tensor._replace(offset=tensor.offset + _LEAP))
        if tensor.storage_bytes > _LEAP:
            yield f"{name} starts {_LEAP} bytes late", late
        askew = tensor._replace(
            offset=tensor.offset + size,
            storage_bytes=tensor.storage_bytes + size,
            alignment=size,
        )
        yield f"{name} starts askew", _replaced(launch, name, askew)
    for axis, extent in enumerate(launch.grid):
        if extent > 1 or axis == 0:
            grid = [*launch.grid]
            grid[axis] += 1
            more = launch._replace(grid=(grid[0], grid[1], grid[2]))
            yield f"one more along {'xyz'[axis]}", more
    for name, argument in launch.arguments.items():
        if isinstance(argument, Scalar) and argument.type == "i32":
            value = int(argument.value)
            step = 1 if value % _LEAP else _LEAP
            larger = Scalar(argument.type, value + step)
            yield f"{name} + {step}", _replaced(launch, name, larger)


def _replaced(launch: Launch, name: str, argument: Tensor | Scalar) -> Launch:
    return launch._replace(arguments=launch.arguments | {name: argument})


def _shorter(launch: Launch, storage: int, lost: int) -> Launch:
    """All views of a storage, whose end is gone."""
    return launch._replace(
        arguments={
            name: argument._replace(storage_bytes=argument.storage_bytes - lost)
            if isinstance(argument, Tensor) and argument.storage == storage
            else argument
            for name, argument in launch.arguments.items()
        }
    )


def is_watched(seed: str) -> bool:
    """True for what the memory checker looks at, which takes long: what is at the very edge."""
    return seed == "as it is" or seed.endswith("by an element") or seed.startswith("one more")
