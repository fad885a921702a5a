"""Files whose dimensions are integers at their top: what inputs follow from which of them.

A file in the form of KernelBench makes its inputs with `get_inputs()`, of sizes that are integers
assigned at the top of the module. It is executed again with other integers to see what follows.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple
from unittest import mock

from ptxlint.dynamic.operators.executing import executed
from ptxlint.dynamic.operators.spec import (
    Axis,
    Dim,
    Dims,
    Domain,
    Input,
    Size,
    SpecError,
    Tensor,
    Value,
)

PARTS: Final = ("Model", "get_inputs", "get_init_inputs")
_MORE: Final = 2
"""Sizes go up to so many times those of the file."""
_STEP: Final = 3
"""By how much an integer is changed to see what follows it."""


_PRODUCTS: Final = (
    "mm",
    "mv",
    "dot",
    "convolution",
    "attention",
    "linear",
    "matmul",
    "rnn",
    "lstm",
)
"""In names of operations whose products tensor cores may compute."""


class Source:
    """The reference's file, which can be executed with other integers at its top."""

    def __init__(self, path: str) -> None:
        """Raises `SpecError` for a file that lacks a part."""
        module = executed(path)
        for part in PARTS:
            if not hasattr(module, part):
                raise SpecError(f"{path}: no {part} in it")
        self.path = path
        self.integers = dict(_integers(ast.parse(Path(path).read_bytes())))
        self._made: dict[tuple[int, ...], Mapping[str, Any]] = {}

    def at(self, dims: Dims) -> Mapping[str, Any]:
        """The names of the module as it would be with these integers."""
        wanted = {name: dims.get(name, value) for name, value in self.integers.items()}
        key = tuple(wanted.values())
        if key not in self._made:
            tree = ast.parse(Path(self.path).read_bytes())
            for assigned in _assignments(tree):
                assigned.value = ast.copy_location(
                    ast.Constant(wanted[assigned.targets[0].id]),  # type: ignore[attr-defined]
                    assigned.value,
                )
            module = ModuleType("ptxlint_specs_reference")
            sys.modules[module.__name__] = module
            exec(compile(tree, str(Path(self.path).resolve()), "exec"), vars(module))
            self._made[key] = vars(module)
        return self._made[key]

    def arguments(self, dims: Dims) -> list[Any]:
        """What `get_inputs` gives: tensors without memory where that can be."""
        import torch

        get_inputs = self.at(dims)["get_inputs"]
        try:
            with torch.device("meta"):
                return list(get_inputs())
        except Exception:
            return list(get_inputs())

    def accepts(self, dims: Dims) -> bool:
        """True for sizes at which `Model` can be called, as far as shapes tell."""
        import torch

        try:
            names = self.at(dims)
            with torch.device("meta"), torch.no_grad():
                names["Model"](*names["get_init_inputs"]())(*names["get_inputs"]())
        except Exception:
            return False
        return True

    def multiplies(self) -> bool:
        """True if `Model` computes a product that tensor cores may; also where that is not seen."""
        from torch.utils._python_dispatch import TorchDispatchMode

        seen: set[str] = set()

        class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __torch_dispatch__(
                self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                seen.add(operation._schema.name.partition("::")[2])
                return operation(*args, **(kwargs or {}))

        with Operations():  # type: ignore[no-untyped-call]
            is_seen = self.accepts(self.integers)
        return not is_seen or any(word in name for name in seen for word in _PRODUCTS)


def _assignments(tree: ast.Module) -> Iterator[ast.Assign]:
    """`NAME = 123` at the top of a module."""
    for statement in tree.body:
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
            and isinstance(statement.value, ast.Constant)
            and type(statement.value.value) is int
            and statement.value.value > 0
        ):
            yield statement


def _integers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for assigned in _assignments(tree):
        target, value = assigned.targets[0], assigned.value
        assert isinstance(target, ast.Name)
        assert isinstance(value, ast.Constant)
        yield target.id, int(str(value.value))


# What the inputs are --------------------------------------------------------------------------
class _Given(NamedTuple):
    """What `get_inputs` and `get_init_inputs` give for some sizes."""

    inputs: tuple[Any, ...]
    ranges: tuple[tuple[int, int] | None, ...]
    """Of each input that `torch.randint` made, the least integer and the one above the greatest."""
    initial: str

    def axes(self, number: int) -> tuple[int, ...]:
        """The shape of an input; one that is no tensor has none."""
        return tuple(int(size) for size in getattr(self.inputs[number], "shape", ()))


def _given(source: Source, dims: Dims) -> _Given:
    with _randint_seen() as seen:
        inputs = tuple(source.arguments(dims))
    ranges = tuple(
        next((limits for made, limits in seen if made is value), None) for value in inputs
    )
    return _Given(inputs, ranges, repr(source.at(dims)["get_init_inputs"]()))


@contextmanager
def _randint_seen() -> Iterator[list[tuple[Any, tuple[int, int]]]]:
    """Notes the limits of each tensor that `torch.randint` makes."""
    import torch

    seen: list[tuple[Any, tuple[int, int]]] = []
    genuine = torch.randint

    def randint(*args: Any, **named: Any) -> Any:
        made = genuine(*args, **named)
        numbers = [arg for arg in args if isinstance(arg, int)]
        low = named.get("low", numbers[0] if len(numbers) > 1 else 0)
        high = named.get("high", numbers[-1] if numbers else 0)
        seen.append((made, (int(low), int(high))))
        return made

    with mock.patch.object(torch, "randint", randint):
        yield seen


class Inputs:
    """The inputs of an operator, found by calling `get_inputs` at some sizes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.base = _given(source, source.integers)
        moved = {n: {**source.integers, n: v + _STEP} for n, v in source.integers.items()}
        self.moved = {name: _given(source, dims) for name, dims in moved.items()}

    def dims(self) -> dict[str, Dim]:
        """The integers that anything depends on."""
        sizes = self._source.integers
        return {
            name: Dim(1, _MORE * sizes[name], typical=sizes[name])
            for name, there in self.moved.items()
            if _sizes(there) != _sizes(self.base) or there.initial != self.base.initial
        }

    def input(self, name: str, number: int, domain: Domain | None) -> Input:
        """One of them. Raises `SpecError` for what no spec can describe."""
        value = self.base.inputs[number]
        if not hasattr(value, "shape"):
            if isinstance(value, list | tuple | dict):
                raise SpecError(f"input {name}: a {type(value).__name__} is no tensor nor number")
            if type(value) is int:
                return Size(self._axis(lambda given: int(given.inputs[number])))
            return Value(value)
        axes = [self._axis(_length(number, axis)) for axis in range(len(value.shape))]
        dtype = str(value.dtype).removeprefix("torch.")
        if value.is_floating_point():
            return Tensor(*axes, domain=domain)
        if domain is None and dtype != "bool":
            limits = self.base.ranges[number]
            if limits is None:
                raise SpecError(
                    f"input {name}: integers that torch.randint did not make; give their domain"
                )
            below = self._axis(lambda given: (given.ranges[number] or limits)[1])
            domain = Domain(limits[0], below=below)
        return Tensor(*axes, dtype=dtype, domain=domain)

    def _axis(self, size: Callable[[_Given], int]) -> Axis:
        """A size as a number, a dimension, or what is made of them."""
        here = size(self.base)
        moving = [name for name, there in self.moved.items() if size(there) != here]
        if not moving:
            return here
        known = self._source.integers
        is_one = len(moving) == 1 and here == known[moving[0]]
        if is_one and size(self.moved[moving[0]]) == here + _STEP:
            return moving[0]
        return lambda dims: size(_given(self._source, dims))


def _length(number: int, axis: int) -> Callable[[_Given], int]:
    """What tells the size of an axis of an input."""
    return lambda given: given.axes(number)[axis]


def _sizes(given: _Given) -> list[Any]:
    numbers = [value for value in given.inputs if type(value) is int]
    return [given.ranges, numbers, *(given.axes(number) for number in range(len(given.inputs)))]


__all__ = ["PARTS", "Inputs", "Source"]
