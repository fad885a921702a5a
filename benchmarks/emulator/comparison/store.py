"""Outputs in files: a folder has `SIDE-N.npz` files for each side, of a few megabytes each.

Of a large tensor every so many-th element is kept, and a checksum of all of them.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

MOST: Final = 1 << 14
"""Elements of a tensor that are kept."""
_PART: Final = 12 << 20
"""Bytes of a file before it is compressed."""
CHECKSUM: Final = "#"


def kept(name: str, values: Array) -> dict[str, Array]:
    """What is kept of an output: elements, a checksum of all, and how many they are."""
    flat = np.ascontiguousarray(values).ravel()
    if flat.dtype.kind == "V" and flat.dtype.itemsize <= 8:
        flat = flat.view(f"u{flat.dtype.itemsize}")
    step = -(-flat.size // MOST) or 1
    told = np.array([zlib.crc32(flat.tobytes()), flat.size], dtype=np.uint64)
    return {name: flat[::step], name + CHECKSUM: told}


def save(folder: Path, side: str, outputs: dict[str, Array]) -> None:
    """Write outputs, instead of what was there of this side."""
    for old in folder.glob(f"{side}-*.npz"):
        old.unlink()
    part: dict[str, Array] = {}
    size = number = 0
    for name, values in outputs.items():
        part[name] = values
        size += values.nbytes
        if size > _PART:
            np.savez_compressed(folder / f"{side}-{number}.npz", **part)
            part, size, number = {}, 0, number + 1
    np.savez_compressed(folder / f"{side}-{number}.npz", **part)


def load(folder: Path, side: str) -> dict[str, Array]:
    """All outputs of a side, by name."""
    found: dict[str, Array] = {}
    for path in sorted(folder.glob(f"{side}-*.npz")):
        with np.load(path) as file:
            found.update({name: file[name] for name in file.files})
    return found


def of_case(outputs: dict[str, Array], key: str) -> dict[str, Array]:
    """The outputs of one case, by its own names."""
    start = key + "|"
    return {name[len(start) :]: a for name, a in outputs.items() if name.startswith(start)}
