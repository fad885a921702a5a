"""The launches that a file is checked under: which kernels they are of, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.binding import BindingError, Bound, bind
from ptxlint.launch.bound import BoundLaunches
from ptxlint.launches import Argument, Constant, Descriptor, Launch, Scalar, Tensor
from ptxlint.wording import counted

_MOST_NAMED = 6


class FileLaunches:
    """The launches of one file's kernels.

    `own` were captured with this file and must be of its kernels; `shared` were given for a whole
    run, and one of these that names no kernel is of a file's only one.
    """

    def __init__(
        self, own: tuple[Launch, ...], shared: tuple[Launch, ...], kernels: list[Function]
    ) -> None:
        self._names = [kernel.name for kernel in kernels]
        self.met = frozenset(i for i, launch in enumerate(shared) if self._is_here(launch))
        """Which of those for the whole run found their kernel, or have no name to find."""
        here = [launch for i, launch in enumerate(shared) if i in self.met]
        self._launches = [*own, *here]
        self.covered: dict[str, int] = {}
        """How many launches each kernel was checked under."""
        self.left_out: dict[str, tuple[tuple[str, int], ...]] = {}
        """Why launches of a kernel could not be used, and how many."""

    def _is_here(self, launch: Launch) -> bool:
        return not launch.kernel or launch.kernel in self._names

    def strays(self) -> list[str]:
        """What is wrong with launches that are of no kernel of this file."""
        faults: dict[str, None] = {}
        has = _names(self._names)
        for launch in self._launches:
            place = f"{launch.place}: " if launch.place else ""
            if not launch.kernel and len(self._names) != 1:
                faults[
                    f"{place}the launch names no `kernel`, and this file has "
                    f"{counted(len(self._names), 'kernel')}{f' ({has})' if has else ''}"
                ] = None
            elif not self._is_here(launch):
                faults[
                    f"{place}this file has no kernel `{launch.kernel}`"
                    + (f", it has {has}" if has else "")
                ] = None
        return list(faults)

    def bind(self, facts: Facts) -> list[str]:
        """Give a kernel its launches, bound to its parameters; returns what does not fit, and why.

        Launches that fail in the same way are one text.
        """
        function = facts.function
        given = [launch for launch in self._launches if self._is_of(launch, function)]
        if not given:
            return []
        names = facts.words.parameters(function)
        bound: list[Bound] = []
        faults: dict[str, list[str]] = {}
        for launch in given:
            try:
                bound.append(bind(function, launch, names, facts.metadata))
            except BindingError as error:
                faults.setdefault(error.reason, []).append(str(error))
        facts.launches = tuple(item.launch for item in bound)
        if bound:
            facts.words.learn(bound[0].names)
        facts.know(BoundLaunches, tuple(bound))
        self.covered[function.name] = len(bound)
        self.left_out[function.name] = tuple((why, len(each)) for why, each in faults.items())
        return [
            f"{first}; {counted(len(others), 'more launch', 'more launches')} alike"
            if others
            else first
            for first, *others in faults.values()
        ]

    def _is_of(self, launch: Launch, function: Function) -> bool:
        return launch.kernel == function.name or (not launch.kernel and len(self._names) == 1)


def launch_to_dict(bound: Bound) -> dict[str, Any]:
    """A launch as plain data for people and programs: arguments are numbers or short texts."""
    return {
        "grid": list(bound.grid),
        "block": list(bound.block),
        "arguments": {name: _argument(value) for name, value in bound.arguments.items()},
        "place": bound.launch.place,
        "more": 0,
    }


def _argument(argument: Argument) -> int | float | str:
    if isinstance(argument, Scalar | Constant):
        value = argument.value
        # JSON has no other numbers.
        return value if not isinstance(value, float) or isfinite(value) else str(value)
    if isinstance(argument, Tensor):
        return _tensor(argument)
    if isinstance(argument, Descriptor):
        return f"{_tensor(argument.tensor)} in tiles of {_extents(argument.block)}"
    return f"unknown {argument.type}"


def _tensor(tensor: Tensor) -> str:
    text = f"{tensor.dtype}{_extents(tensor.shape)}"
    if not _is_contiguous(tensor):
        text += f" strides {_extents(tensor.strides)}"
    return text + (f" from byte {tensor.offset}" if tensor.offset else "")


def _extents(extents: Iterable[int]) -> str:
    return f"[{', '.join(map(str, extents))}]"


def _is_contiguous(tensor: Tensor) -> bool:
    step = 1
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= max(1, extent)
    return True


def _names(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
