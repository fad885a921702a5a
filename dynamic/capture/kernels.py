"""What was captured: kernels with their launches, and what could not be captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ptxlint.launches import Argument, Descriptor, Launch, Recorded, Tensor

_MOST_TOLD = 4
"""Launches that differ in the order of what lies in memory alone and are told apart by it."""
_TOLD_ELSEWHERE = Recorded("", reason=f"{_MOST_TOLD} launches that are like it are recorded")
Signature: TypeAlias = dict[str, Any]
"""Triton's type of each parameter: a text, or a tuple of them."""


class Tuple(NamedTuple):
    """An argument that is a tuple, whose items are arguments. What reads launches sees the items
    alone, as `t[0]`, `t[1]`, …: this stands in the launches of a capture only."""

    items: tuple[Argument | Tuple, ...]


def flattened(arguments: dict[str, Any]) -> dict[str, Argument]:
    """Arguments without tuples: their items in their places, as `t[0]`, `t[1]`, …"""
    out: dict[str, Argument] = {}
    for name, argument in arguments.items():
        if isinstance(argument, Tuple):
            out |= flattened({f"{name}[{i}]": item for i, item in enumerate(argument.items)})
        else:
            out[name] = argument
    return out


class Kernel(NamedTuple):
    """A compiled kernel and its launches, each different one once."""

    name: str
    arch: str
    hash: str
    ptx: str
    ttir: str
    cubin: bytes
    metadata: dict[str, Any]
    """What the compiler wrote beside it; plain JSON."""
    signature: Signature
    source: tuple[str, int]
    """Path and line of the Python function; an empty path if it has none."""
    launches: list[Launch]


class Trouble(NamedTuple):
    """Something that was not captured: what, and why."""

    what: str
    reason: str


class Sink:
    """Who is told while recording. Each method may be left as it is."""

    def compiling(self, name: str) -> None:
        """A kernel is about to be compiled."""

    def kernel(self, kernel: Kernel) -> None:
        """A kernel was compiled; `launches` is empty still."""

    def launch(self, kernel: Kernel, index: int, launch: Launch, again: bool) -> None:
        """A launch was taken in as number `index`; `again` if it was there already."""

    def contents(self, key: str, data: bytes) -> None:
        """Bytes that launches will name by their key."""

    def trouble(self, trouble: Trouble) -> None:
        """Something is not captured."""


class Captured:
    """Collects kernels and launches, and counts those that are alike."""

    def __init__(self, sink: Sink | None = None) -> None:
        self.sink = sink or Sink()
        self.troubles: list[Trouble] = []
        self.contents: dict[str, bytes] = {}
        """What launches say was recorded, by key."""
        self._kernels: dict[str, Kernel] = {}
        self._indices: dict[tuple[str, Any], int] = {}
        self._told: dict[tuple[str, Any], int] = {}

    @property
    def kernels(self) -> list[Kernel]:
        """All kernels, in the order of their first launch."""
        return list(self._kernels.values())

    def add_kernel(self, hash_: str, make: Callable[[], Kernel]) -> Kernel:
        """The kernel of a hash, made when it is seen for the first time."""
        known = self._kernels.get(hash_)
        if known is None:
            known = self._kernels[hash_] = make()
            self.sink.kernel(known)
        return known

    def add_launch(self, kernel: Kernel, launch: Launch) -> None:
        """Take in a launch."""
        key = (kernel.hash, _identity(launch))
        if key not in self._indices:
            key, launch = self._limited(kernel, key, launch)
        index = self._indices.get(key)
        again = index is not None
        if index is None:
            index = self._indices[key] = len(kernel.launches)
            kernel.launches.append(launch)
        else:
            known = kernel.launches[index]
            kernel.launches[index] = launch = known._replace(times=known.times + 1)
        self.sink.launch(kernel, index, launch, again)

    def _limited(
        self, kernel: Kernel, key: tuple[str, Any], launch: Launch
    ) -> tuple[tuple[str, Any], Launch]:
        """A new launch, without what lies in memory if there are many that differ in that alone: a
        program that draws other tokens each time would have no two launches alike."""
        arguments = {name: _bare(value) for name, value in launch.arguments.items()}
        bare = launch._replace(arguments=arguments)
        alike = (kernel.hash, _identity(bare))
        if alike == key:
            return key, launch
        count = self._told[alike] = self._told.get(alike, 0) + 1
        return (key, launch) if count <= _MOST_TOLD else (alike, bare)

    def add_contents(self, key: str, data: bytes) -> None:
        """Take in bytes that memory held."""
        self.contents[key] = data
        self.sink.contents(key, data)

    def add_trouble(self, what: str, reason: str) -> None:
        """Note what is not captured."""
        trouble = Trouble(what, reason)
        self.troubles.append(trouble)
        self.sink.trouble(trouble)


def _bare(argument: Any) -> Any:
    """An argument without what lies in its memory, but for its bounds."""
    if isinstance(argument, Tensor):
        recorded = None if argument.recorded is None else _TOLD_ELSEWHERE
        return argument._replace(contents=None, recorded=recorded)
    if isinstance(argument, Descriptor):
        return argument._replace(tensor=_bare(argument.tensor))
    if isinstance(argument, Tuple):
        return Tuple(tuple(map(_bare, argument.items)))
    return argument


def _identity(launch: Launch) -> Any:
    """What two launches agree in that are alike."""
    # Equal numbers of different kinds (1, 1.0, True; 0.0, -0.0) are told apart by how they look.
    return repr(launch._replace(place="", times=1))
