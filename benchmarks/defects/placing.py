"""The parameters of a case: memory that is set aside for them, and their bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from defects.kit import Launch, Map, Tensor
from ptxlint.dynamic.emulator.tensor_map import TensorMap
from ptxlint.ir.function import Variable
from ptxlint.ir.types import bits


class Pointer(NamedTuple):
    """A parameter that leads `first` bytes into the memory of a number."""

    memory: int
    first: int


class MapOf(NamedTuple):
    """A parameter that is a map of the memory of a number."""

    memory: int
    fields: TensorMap


class Placed(NamedTuple):
    """What a launch needs: memories by their numbers, and what each parameter is."""

    memories: list[Tensor]
    parameters: list[Pointer | MapOf | bytes]


def placed(launch: Launch, variables: list[Variable]) -> Placed:
    """Parameters beyond the arguments are zeros."""
    memories: list[Tensor] = []
    parameters: list[Pointer | MapOf | bytes] = []
    numbers: dict[int, int] = {}
    for at, argument in enumerate(launch.arguments):
        tensor = argument.tensor if isinstance(argument, Map) else argument
        if isinstance(tensor, Tensor):
            numbers[at] = len(memories)
            memories.append(tensor)
    for at, variable in enumerate(variables):
        width = variable.size or bits(variable.type) // 8
        argument = launch.arguments[at] if at < len(launch.arguments) else 0
        if isinstance(argument, Tensor):
            parameters.append(Pointer(numbers[at], argument.first))
        elif isinstance(argument, Map):
            of = numbers[at if argument.of < 0 else argument.of]
            parameters.append(MapOf(of, argument.fields))
        elif isinstance(argument, bytes):
            parameters.append(argument[:width].ljust(width, b"\0"))
        else:
            parameters.append((argument % (1 << 8 * width)).to_bytes(width, "little"))
    return Placed(memories, parameters)


def parameter_bytes(
    parameters: list[Pointer | MapOf | bytes],
    starts: list[int],
    encode: Callable[[TensorMap], bytes],
) -> list[bytes]:
    """The bytes of parameters, given where each memory lies and how maps are made."""
    out = []
    for given in parameters:
        if isinstance(given, Pointer):
            out.append((starts[given.memory] + given.first).to_bytes(8, "little"))
        elif isinstance(given, MapOf):
            out.append(encode(given.fields._replace(address=starts[given.memory])))
        else:
            out.append(given)
    return out


__all__ = ["MapOf", "Placed", "Pointer", "parameter_bytes", "placed"]
