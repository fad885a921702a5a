"""The inputs of a case as arrays: what an operator is called with, on whatever runner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.cases.domains import Elements, filled
from ptxlint.dynamic.cases.layouts import placement
from ptxlint.dynamic.cases.number_types import NUMBER_TYPES
from ptxlint.dynamic.cases.seeds import Draws, Shape
from ptxlint.dynamic.emulator.elements import kept_as, to_elements, to_numbers
from ptxlint.dynamic.operators.spec import FREE, Operator, Size, SpecError, Tensor, Value, size_of


class Placed(NamedTuple):
    """A tensor in its allocation.

    `storage` are all elements of the allocation, of the type that numpy has for them
    (`ptxlint.dynamic.emulator.elements.kept_as`: bits where it has none); those that belong to no
    element of the tensor are poisoned. `strides` and `offset` are in elements.
    """

    dtype: str
    shape: Shape
    strides: tuple[int, ...]
    offset: int
    storage: Elements

    @property
    def elements(self) -> Elements:
        """The tensor itself: a view of the storage."""
        width = self.storage.itemsize
        return np.ndarray(
            self.shape,
            self.storage.dtype,
            self.storage,
            self.offset * width,
            [step * width for step in self.strides],
        )

    @property
    def numbers(self) -> Elements:
        """What it holds, exactly: a copy in float64, or int64 for integers (uint64 for those)."""
        return to_numbers(np.array(self.elements), self.dtype).copy()

    @property
    def gaps(self) -> Elements:
        """True for each element of the storage that belongs to no element of the tensor."""
        free = np.ones(self.storage.shape, dtype=np.bool_)
        self._replace(storage=free).elements[...] = False
        return free


Given = Placed | Any
"""A tensor, or an argument that is none."""


def inputs(operator: Operator, case: Case) -> dict[str, Given]:
    """What the operator is called with, by name: `Placed` for tensors, numbers and objects as the
    spec has them.

    A tensor lies in the case's layout if it takes that (`Tensor.layouts`), else contiguously; in
    all that it takes if the layout is `FREE`.
    Raises `SpecError` for what the operator does not take.
    """
    _check(operator, case)
    return {name: _argument(name, given, case) for name, given in operator.inputs.items()}


def numbers(arguments: Mapping[str, Given]) -> dict[str, Any]:
    """The same for a reference: tensors as float64, those of integers as int64."""
    return {
        name: given.numbers if isinstance(given, Placed) else given
        for name, given in arguments.items()
    }


def digest(arguments: Mapping[str, Given]) -> str:
    """Alike for inputs that are the same byte for byte, and lie alike."""
    told = hashlib.sha256()
    for name, given in arguments.items():
        what = (
            given._replace(storage=given.storage.tobytes()) if isinstance(given, Placed) else given
        )
        told.update(repr((name, what)).encode())
    return told.hexdigest()[:16]


def _check(operator: Operator, case: Case) -> None:
    if case.dtype not in operator.dtypes:
        raise SpecError(f"dtype {case.dtype!r} is none of {', '.join(operator.dtypes)}")
    unknown = [name for name in operator.dims if name not in case.dims]
    if unknown:
        raise SpecError(f"the case gives no size for {', '.join(unknown)}")


def _argument(name: str, given: Tensor | Value | Size, case: Case) -> Given:
    if isinstance(given, Value):
        return given.value
    if isinstance(given, Size):
        return size_of(given.of, case.dims)
    return _placed(name, given, case)


def _placed(name: str, tensor: Tensor, case: Case) -> Placed:
    dtype, shape = tensor.dtype or case.dtype, tensor.shape(case.dims)
    draws = Draws(case.seed, name, case.values)
    try:
        elements = filled(draws, shape, dtype, case.values, tensor.domain, case.dims)
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from None
    where = placement(shape, [n for n in tensor.layouts if case.layout in (n, FREE)])
    storage = np.full(where.elements, poison(dtype), dtype=kept_as(dtype))
    placed = Placed(dtype, shape, where.strides, where.offset, storage)
    placed.elements[...] = elements
    return placed


def poison(dtype: str) -> Any:
    """What belongs to nobody holds: NaN, or the greatest integer, as one element of a storage."""
    if dtype in NUMBER_TYPES:
        return to_elements(np.array([np.nan]), dtype)[0]
    kind = kept_as(dtype)
    return True if kind.kind == "b" else np.iinfo(kind).max


__all__ = ["Given", "Placed", "digest", "inputs", "numbers", "poison"]
