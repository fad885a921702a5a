"""Operators from a function, a reference and arguments that both take: what people have at hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.operators.spec import (
    DTYPES,
    NUMPY,
    TRITON,
    Axis,
    Dim,
    Domain,
    Input,
    Operator,
    Size,
    SpecError,
    Tensor,
    Value,
)
from ptxlint.launches import DTYPE_BYTES

_MORE: Final = 2
"""Sizes go up to so many times that of the example."""


class Example(NamedTuple):
    """A tensor of torch or an array of numpy among example arguments."""

    dtype: str
    shape: tuple[int, ...]
    value: Any

    @property
    def is_float(self) -> bool:
        """True for a type that cases choose."""
        return self.dtype in DTYPES


def triple(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    arguments: Sequence[Any] | Mapping[str, Any],
    *,
    dtypes: tuple[str, ...] = (),
    domains: Mapping[str, Domain] | None = None,
    arithmetic: Mapping[str, str] | None = None,
    name: str = "",
) -> Operator:
    """An operator from example arguments, in the function's order or by its parameters' names.

    - Axes of the same size become one dimension, called as the first of them (`x.0`), from 1 to
      twice its size. An axis of size 1 stays so. An integer argument of the size of an axis goes
      with it; other arguments are what they are.
    - Tensors of floating-point numbers are of the case's dtype: of `dtypes`, or of the type that
      the examples have. They hold any number, tensors of integers what lies between the least and
      the greatest of the example; `domains` says otherwise, by parameter.
    - Of torch tensors the reference gets float64 tensors on the CPU, of numpy arrays such arrays,
      and the operator then is one without kernels.

    Raises `SpecError`.
    """
    named = _named(function, arguments)
    examples = {key: _example(value) for key, value in named.items()}
    tensors = {key: example for key, example in examples.items() if example is not None}
    if not tensors:
        raise SpecError("the example arguments hold no tensor or array")
    of_numpy = all(isinstance(example.value, np.ndarray) for example in tensors.values())
    axes = _axes(tensors)
    kinds = _dtypes(tensors, dtypes)
    inputs = {
        key: _input(key, value, examples[key], axes, kinds, domains or {})
        for key, value in named.items()
    }
    unknown = sorted(set(domains or {}) - set(tensors))
    if unknown:
        raise SpecError(f"domains speaks of {unknown[0]!r}, which is no tensor argument")
    return Operator(
        kernel=_called(function, named),
        reference=_called(reference, named) if of_numpy else on_torch(_called(reference, named)),
        inputs=inputs,
        dims={axis: Dim(1, _MORE * size, typical=size) for size, axis in axes.items()},
        dtypes=kinds,
        name=name,
        runs_on=NUMPY if of_numpy else TRITON,
        arithmetic=arithmetic or {},
    )


def on_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that is called with tensors of torch in place of numpy arrays."""

    def reference(**given: Any) -> Any:
        import torch

        tensors = {
            key: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            for key, value in given.items()
        }
        with torch.no_grad():
            return function(**tensors)

    return reference


def parameters(function: Callable[..., Any], count: int) -> list[str]:
    """Names for so many positional arguments: those of the parameters, as far as they are told."""
    try:
        every = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        every = []
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in every if each.kind in placed][:count]
    return names + [f"argument {number}" for number in range(len(names), count)]


def _named(
    function: Callable[..., Any], arguments: Sequence[Any] | Mapping[str, Any]
) -> dict[str, Any]:
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if isinstance(arguments, str | bytes) or hasattr(arguments, "shape"):
        raise SpecError(
            f"the example arguments are a {type(arguments).__name__}; give a list or a dict of them"
        )
    return dict(zip(parameters(function, len(arguments)), arguments, strict=True))


def _called(function: Callable[..., Any], named: Mapping[str, Any]) -> Callable[..., Any]:
    """The function, called with arguments by their names here: by position as far as they have
    none of their own."""
    try:
        known = set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        known = set()
    by_position = not set(named) <= known

    def call(**given: Any) -> Any:
        return function(*given.values()) if by_position else function(**given)

    return call


def _example(value: Any) -> Example | None:
    """A tensor or an array; None for anything else."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return None
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPE_BYTES or dtype.startswith("complex"):
        raise SpecError(f"an example argument has elements of {dtype}, which no case can hold")
    return Example(dtype, tuple(int(size) for size in value.shape), value)


def _axes(tensors: Mapping[str, Example]) -> dict[int, str]:
    """The dimension of each size."""
    axes: dict[int, str] = {}
    for name, example in tensors.items():
        for number, size in enumerate(example.shape):
            if size > 1:
                axes.setdefault(size, f"{name}.{number}")
    return axes


def _dtypes(tensors: Mapping[str, Example], asked: tuple[str, ...]) -> tuple[str, ...]:
    """The dtypes of cases: those asked for, else the type of most examples."""
    kinds = [example.dtype for example in tensors.values() if example.is_float]
    return asked or (max(kinds, key=kinds.count) if kinds else "float32",)


def _input(
    name: str,
    value: Any,
    example: Example | None,
    axes: Mapping[int, str],
    kinds: tuple[str, ...],
    domains: Mapping[str, Domain],
) -> Input:
    if example is None:
        is_size = isinstance(value, int) and not isinstance(value, bool) and value in axes
        return Size(axes[value]) if is_size else Value(value)
    shape: list[Axis] = [axes.get(size, size) for size in example.shape]
    # A tensor of another type than the examples' usual one keeps its own.
    own = "" if example.is_float and (example.dtype in kinds or len(kinds) > 1) else example.dtype
    return Tensor(*shape, dtype=own, domain=domains.get(name) or _domain(example))


def _domain(example: Example) -> Domain:
    """All numbers; of integers those between the least and the greatest of the example."""
    held = example.value
    is_whole = example.dtype.startswith(("int", "uint"))
    if not is_whole or 0 in example.shape:
        return Domain()
    return Domain(int(held.min()), int(held.max()))


__all__ = ["Example", "on_torch", "parameters", "triple"]
