"""What people write of an operator: its kernel, what it should compute, and what it takes.

    from ptxlint.dynamic.operators import Dim, Operator, Tensor

    operator = Operator(
        kernel=softmax,                       # torch tensors in, torch tensors out
        reference=lambda x: ...,              # the same in float64 with numpy
        dims={"rows": Dim(1, 4096), "n": Dim(1, 8192)},
        inputs={"x": Tensor("rows", "n")},
        dtypes=("float32", "float16"),
    )

Plain data, checked when it is made. Needs neither torch nor Triton.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Final, TypeAlias

from ptxlint.launches import DTYPE_BYTES

Dims: TypeAlias = Mapping[str, int]
"""Sizes by the name of their dimension."""
Axis: TypeAlias = int | str | Callable[[Dims], int]
"""One size of a tensor: a number, a dimension, or what a function makes of all dimensions."""

LAYOUTS: Final = ("contiguous", "padded-rows", "transposed", "every-second", "offset")
"""How a tensor may lie in memory: rows next to each other; room behind each row; the last two axes
exchanged in memory; every second element of a row; not at the start of its allocation."""
FREE: Final = "free"
"""Of a case: each tensor in all the layouts at once that it may have."""
DTYPES: Final = ("float16", "bfloat16", "float32", "float64")
"""Types that an operator may be asked for, by torch's names."""
NUMPY: Final = "numpy"
TRITON: Final = "triton"


class SpecError(ValueError):
    """An operator that is not described as it must be; the text says what to change."""


@dataclass(frozen=True)
class Dim:
    """The sizes that a dimension may have: from `low` to `high`, both included, in multiples of
    `multiple`. `typical` is one that people use, 0 for none in particular."""

    low: int = 1
    high: int = 4096
    multiple: int = 1
    typical: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high or self.multiple < 1:
            raise SpecError(
                f"Dim({self.low}, {self.high}, multiple={self.multiple}): give 0 <= low <= high "
                "and a multiple from 1 on"
            )
        if self.nearest(self.low) is None:
            raise SpecError(f"no multiple of {self.multiple} lies in {self.low} to {self.high}")
        if self.typical and not self.allows(self.typical):
            raise SpecError(f"typical={self.typical} is none of the sizes that the Dim allows")

    def allows(self, size: int) -> bool:
        """True for a size that the dimension may have."""
        return self.low <= size <= self.high and size % self.multiple == 0

    def nearest(self, size: int) -> int | None:
        """The allowed size next to this one, the larger of two; None if none is allowed."""
        least = -(-self.low // self.multiple) * self.multiple
        most = self.high // self.multiple * self.multiple
        if least > most:
            return None
        below = size // self.multiple * self.multiple
        above = below if below == size else below + self.multiple
        best = above if above - size <= size - below else below
        return min(max(best, least), most)


@dataclass(frozen=True)
class Domain:
    """Which numbers an input may hold: from `low` to `high`, both included.

    Of tensors of integers, `below` names the dimension (or gives the number) that they index:
    they go from 0 to one less. `nonzero` leaves 0 out.
    """

    low: float = -inf
    high: float = inf
    nonzero: bool = False
    below: Axis | None = None

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise SpecError(f"Domain({self.low}, {self.high}): low is above high")


@dataclass(frozen=True, init=False)
class Tensor:
    """A tensor: its axes, its type (empty: that of the case), what it may hold, and in which other
    `layouts` (see `LAYOUTS`) than rows next to each other the operator takes it."""

    axes: tuple[Axis, ...]
    dtype: str = ""
    domain: Domain = field(default_factory=Domain)
    layouts: tuple[str, ...] = ()

    def __init__(
        self,
        *axes: Axis,
        dtype: str = "",
        domain: Domain | None = None,
        layouts: tuple[str, ...] = (),
    ) -> None:
        unknown = [layout for layout in layouts if layout not in LAYOUTS]
        if unknown:
            raise SpecError(f"layout {unknown[0]!r} is none of {', '.join(LAYOUTS)}")
        if dtype and dtype not in DTYPE_BYTES:
            raise SpecError(f"dtype {dtype!r} is none of {', '.join(DTYPE_BYTES)}")
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "domain", domain or Domain())
        object.__setattr__(self, "layouts", layouts)

    def shape(self, dims: Dims) -> tuple[int, ...]:
        """Its shape for these sizes."""
        return tuple(size_of(axis, dims) for axis in self.axes)


@dataclass(frozen=True)
class Value:
    """An argument that is no tensor, and is always this."""

    value: Any


@dataclass(frozen=True)
class Size:
    """An argument that is a size: a dimension, or what is made of dimensions."""

    of: Axis


Input: TypeAlias = Tensor | Value | Size


@dataclass(frozen=True)
class Tolerance:
    """How far a right result may be off: `absolute + relative * |expected|`."""

    absolute: float = 0.0
    relative: float = 0.0

    def __post_init__(self) -> None:
        if not all(isfinite(part) and part >= 0 for part in (self.absolute, self.relative)):
            raise SpecError(f"{self}: give finite numbers from 0 on")


@dataclass(frozen=True)
class Operator:
    """An operator.

    `kernel` is called with the inputs by name: torch tensors, or numpy arrays where `runs_on` says
    `numpy`; it returns an array or several. `reference` is called alike, with float64 numpy arrays
    (those of integers as they are), and returns as many. `dims` are the sizes that inputs speak of;
    `where` refuses combinations of them. `writes` names inputs that the kernel changes: what they
    hold afterwards are outputs before those returned, and the reference returns them, too.

    `arithmetic` says for a dtype in which the kernel computes, where that is coarser than the dtype
    (`{"float32": "tf32"}`); `tolerance` replaces what would be allowed else, for all dtypes or by
    dtype. Raises `SpecError`.
    """

    kernel: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: Mapping[str, Input]
    dims: Mapping[str, Dim] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32",)
    name: str = ""
    """Empty: that of the variable in the spec's file."""
    runs_on: str = TRITON
    where: Callable[[Dims], bool] | None = None
    writes: tuple[str, ...] = ()
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    tolerance: Tolerance | Mapping[str, Tolerance] | None = None
    calibrated: Mapping[str, float] = field(default_factory=dict)
    """By dtype what share of the oracle's bound is allowed, from `ptxlint calibrate`."""
    deterministic: bool = True
    """False where results may differ from run to run (atomics)."""

    def __post_init__(self) -> None:
        what = self.name or "the operator"
        for role in ("kernel", "reference"):
            if not callable(getattr(self, role)):
                raise SpecError(f"{what}: {role} is not callable")
        if self.runs_on not in (TRITON, NUMPY):
            raise SpecError(f"{what}: runs_on is {self.runs_on!r}; give 'triton' or 'numpy'")
        if not self.inputs:
            raise SpecError(f"{what}: it has no inputs")
        if not self.dtypes:
            raise SpecError(f"{what}: it has no dtypes")
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise SpecError(f"{what}: dtype {dtype!r} is none of {', '.join(DTYPES)}")
        for name in self.writes:
            if not isinstance(self.inputs.get(name), Tensor):
                raise SpecError(f"{what}: writes names {name!r}, which is no tensor among inputs")
        self._check_axes(what)

    def _check_axes(self, what: str) -> None:
        for name, given in self.inputs.items():
            if isinstance(given, Value):
                continue
            axes = given.axes if isinstance(given, Tensor) else (given.of,)
            below = given.domain.below if isinstance(given, Tensor) else None
            for axis in (*axes, *(() if below is None else (below,))):
                if isinstance(axis, str) and axis not in self.dims:
                    known = ", ".join(self.dims) or "none"
                    raise SpecError(f"{what}: {name} speaks of {axis!r}; dims are {known}")

    def uncallable(self) -> str:
        """In words, which of its functions cannot be called with the inputs by name, as far as
        signatures tell; empty for none."""
        for role in ("kernel", "reference"):
            try:
                signature = inspect.signature(getattr(self, role))
            except (TypeError, ValueError):
                continue
            try:
                signature.bind(**self.inputs)
            except TypeError as error:
                names = ", ".join(self.inputs)
                return f"its {role} takes {signature}, not the inputs {names} by name: {error}"
        return ""

    def allows(self, dims: Dims) -> bool:
        """True for sizes that the operator takes together."""
        return all(dim.allows(dims[name]) for name, dim in self.dims.items()) and (
            self.where is None or bool(self.where(dims))
        )

    def tolerance_for(self, dtype: str) -> Tolerance | None:
        """What the spec allows for a dtype; None if it leaves that to the oracle."""
        given = self.tolerance
        return given if given is None or isinstance(given, Tolerance) else given.get(dtype)


def size_of(axis: Axis, dims: Dims) -> int:
    """The size that an axis has. Raises `SpecError` for what is none."""
    size = dims[axis] if isinstance(axis, str) else axis if isinstance(axis, int) else axis(dims)
    if not isinstance(size, int) or size < 0:
        raise SpecError(
            f"an axis came to {size!r} for {dict(dims)}; it must be an integer from 0 on"
        )
    return size


__all__ = [
    "DTYPES", "FREE", "LAYOUTS", "NUMPY", "TRITON", "Axis", "Dim", "Dims", "Domain", "Input",
    "Operator", "Size", "SpecError", "Tensor", "Tolerance", "Value", "size_of",
]  # fmt: skip
