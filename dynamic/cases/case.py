"""One case: an operator, a dtype, sizes, and all that decides what its inputs hold, as plain data.

A case means the same inputs on every machine and for every runner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Case(NamedTuple):
    """What is run. `values` names the strategy that fills tensors, `layout` how they lie in memory
    (`LAYOUTS` and `FREE` of `ptxlint.dynamic.operators.spec`), `checks` what is looked at, in this
    order."""

    operator: str
    dtype: str
    dims: Mapping[str, int]
    values: str = "regular"
    seed: int = 0
    layout: str = "contiguous"
    checks: tuple[str, ...] = ("reference",)
    family: str = ""
    """What it was made for; says nothing about inputs."""

    @property
    def inputs_key(self) -> str:
        """Alike for cases with the same inputs, of whatever operator."""
        told = [self.dtype, sorted(self.dims.items()), self.values, self.seed, self.layout]
        return _digest(told)

    @property
    def key(self) -> str:
        """Alike for cases that are the same run."""
        return _digest([self.operator, self.inputs_key, list(self.checks)])

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`."""
        return {**self._asdict(), "dims": dict(self.dims), "checks": list(self.checks)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """A case as `to_json` tells it. Raises `KeyError` or `TypeError` for what is none."""
        dims = {str(name): int(size) for name, size in data["dims"].items()}
        given = {name: data[name] for name in cls._fields if name in data}
        return cls(**{**given, "dims": dims, "checks": tuple(data["checks"])})


def _digest(told: list[Any]) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


__all__ = ["Case"]
