"""What is known of an operator and of its kernels, as plain data that a child hands over."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final, NamedTuple, TypeAlias

from ptxlint.dynamic.operators.spec import TRITON, Dim, Input, Operator, Tensor

_STANDARD: Final = os.path.join(sysconfig.get_paths()["stdlib"], "")
Grid: TypeAlias = tuple[int, int, int]
Said: TypeAlias = Mapping[str, Any]
"""A finding or an obligation in the JSON of `check`."""


class Described(NamedTuple):
    """An operator without its functions."""

    name: str
    dims: Mapping[str, Dim]
    dtypes: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]]
    """For each tensor its axes, as names of dimensions; an axis that is none is empty."""
    layouts: tuple[str, ...] = ()
    """Those that some tensor may have beside the contiguous one."""
    runs_on: str = TRITON
    restricted: bool = False
    """True where the spec refuses combinations of sizes (`Operator.where`)."""
    deterministic: bool = True
    in_place: bool = False
    """True where kernels change inputs (`Operator.writes`)."""
    path: str = ""
    """The file of the spec."""
    sources: str = ""
    """Alike while the code of the operator is: see `sources_key`."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`."""
        return {
            **self._asdict(),
            "dims": {name: asdict(dim) for name, dim in self.dims.items()},
            "axes": {name: list(axes) for name, axes in self.axes.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Described:
        """What `to_json` tells. Raises `KeyError`, `TypeError` or `SpecError` for what is none."""
        given = {name: data[name] for name in cls._fields if name in data}
        return cls(
            **{
                **given,
                "dims": {name: Dim(**dim) for name, dim in data["dims"].items()},
                "dtypes": tuple(data["dtypes"]),
                "axes": {name: tuple(axes) for name, axes in data["axes"].items()},
                "layouts": tuple(data["layouts"]),
            }
        )


class KernelKnowledge(NamedTuple):
    """One kernel, compiled for one architecture with one set of constants, and what `check` says
    of it under the launches that were captured."""

    name: str
    hash: str
    arch: str
    constants: Mapping[str, str]
    """Arguments that are compiled in, as Python writes them: `{"BLOCK": "1024"}`."""
    num_warps: int = 0
    num_stages: int = 0
    path: str = ""
    line: int = 0
    """Where its Python function stands."""
    grids: tuple[Grid, ...] = ()
    """Of its launches, each once."""
    scalars: tuple[int, ...] = ()
    """Integers that launches passed it, each once, in ascending order."""
    autotuned: bool = False
    """True where an autotuner ran it to compare configurations."""
    findings: tuple[Said, ...] = ()
    obligations: tuple[Said, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`."""
        return {
            **self._asdict(),
            "constants": dict(self.constants),
            "grids": [list(grid) for grid in self.grids],
            "scalars": list(self.scalars),
            "findings": [dict(said) for said in self.findings],
            "obligations": [dict(said) for said in self.obligations],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KernelKnowledge:
        """What `to_json` tells. Raises `KeyError` or `TypeError` for what is none."""
        given = {name: data[name] for name in cls._fields if name in data}
        return cls(
            **{
                **given,
                "grids": tuple((x, y, z) for x, y, z in data["grids"]),
                "scalars": tuple(data["scalars"]),
                "findings": tuple(data["findings"]),
                "obligations": tuple(data["obligations"]),
            }
        )


def describe(operator: Operator, path: str = "") -> Described:
    """An operator without its functions."""
    tensors = {n: given for n, given in operator.inputs.items() if isinstance(given, Tensor)}
    layouts = {layout for tensor in tensors.values() for layout in tensor.layouts}
    return Described(
        operator.name,
        dict(operator.dims),
        operator.dtypes,
        {name: _axes(tensor) for name, tensor in tensors.items()},
        tuple(sorted(layouts - {"contiguous"})),
        operator.runs_on,
        operator.where is not None,
        operator.deterministic,
        bool(operator.writes),
        path,
        sources_key(path),
    )


def sources_key(path: str) -> str:
    """Digest of a spec's file and of the files of all modules that are loaded in this process and
    are neither Python's, ptxlint's, nor in a folder of installed packages."""
    files = {os.path.realpath(path)} if path else set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.partition(".")[0] not in ("ptxlint", "__main__") and os.path.isabs(file):
            files |= set() if _installed(file) else {os.path.realpath(file)}
    # Where they lie does not matter, so that a copy elsewhere is the same code.
    told = sorted(map(_file_key, files))
    return hashlib.sha256("".join(told).encode()).hexdigest()[:16]


def _file_key(file: str) -> str:
    """Digest of a file's name and content; of the name alone where it cannot be read."""
    told = hashlib.sha256(os.path.basename(file).encode())
    with suppress(OSError), open(file, "rb") as stream:
        told.update(b"\0" + stream.read())
    return told.hexdigest()


def _installed(file: str) -> bool:
    """True for files of Python itself and of packages that were installed."""
    parts = os.path.normpath(file).split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    return os.path.abspath(file).startswith(_STANDARD)


def _axes(given: Input) -> tuple[str, ...]:
    axes = given.axes if isinstance(given, Tensor) else ()
    return tuple(axis if isinstance(axis, str) else "" for axis in axes)


__all__ = ["Described", "Grid", "KernelKnowledge", "Said", "describe", "sources_key"]
