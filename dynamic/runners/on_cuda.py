"""Operators run on a GPU: their kernels are what they are, and are watched.

Tensors lie between margins (`buffers`). An error of the device does not go away: the process that
has seen one is of no use any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

from ..capture.driver import extent as grid_extent
from ..capture.recording import Options, Recording, recording
from ..cases.arrays import Given, Placed
from ..operators.spec import Operator
from .buffers import MARGIN, Buffers, allocations_watched
from .manner import DeviceError, Manner, NotRunError
from .returned import outputs_of
from .runner import Called
from .tensors import placed_again, storage_of
from .variants import configured

_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


class CudaRunner:
    """Calls operators inside of `on_cuda`."""

    name = "cuda"
    manners = frozenset({"poison", "margin", "again", "num_warps", "num_stages"})

    def __init__(self, record: Recording, room: int = MARGIN) -> None:
        """`room` is how many bytes of margin memory has on each side."""
        self._record = record
        self._room = room

    def call(self, operator: Operator, arguments: Mapping[str, Given], manner: Manner) -> Called:
        """Call an operator on copies of its arguments (`Runner`)."""
        import torch

        buffers = Buffers(manner.poison, manner.margin, self._room)
        tensors = {
            name: buffers.placed(given, "cuda", f"the input {name}")
            for name, given in arguments.items()
            if isinstance(given, Placed)
        }
        launched: list[str] = []
        launches: list[str] = []
        try:
            with (
                launches_seen(launched, manner.again, launches),
                configured(manner.num_warps, manner.num_stages),
                allocations_watched(buffers, "cuda", self._record.take_over),
            ):
                returned = operator.kernel(**{**arguments, **tensors})
            torch.cuda.synchronize()
            outputs = outputs_of(returned, bool(operator.writes))
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(str(error)) from None
        except Exception as error:
            _see_to_device(error)
            raise
        after = {
            name: placed_again(given, storage_of(tensors[name]))
            for name, given in arguments.items()
            if isinstance(given, Placed)
        }
        return Called(outputs, after, tuple(launched), (), buffers.trampled(), tuple(launches))


def _see_to_device(error: Exception) -> None:
    """Raises `DeviceError` if the device is lost, whatever the host made of that."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as sticky:
        said = str(sticky) or str(error)
        raise DeviceError(f"the device reports: {said.strip().splitlines()[0]}") from None


@contextmanager
def launches_seen(
    names: list[str], again: bool, launches: list[str] | None = None
) -> Iterator[None]:
    """Inside, the names of kernels that are launched are added, to `launches` with their code and
    grid, and with `again` each launch is made twice."""
    from triton.compiler.compiler import CompiledKernel

    genuine = CompiledKernel.run
    start = genuine.fget

    def run(kernel: Any) -> Any:
        made = start(kernel)

        def launch(x: Any, y: Any, z: Any, *rest: Any) -> Any:
            names.append(str(kernel.metadata.name))
            if launches is not None:
                grid = tuple(grid_extent(x, y, z))
                launches.append(f"{kernel.metadata.name} {kernel.hash} {grid}")
            if again and 0 not in grid_extent(x, y, z):
                made(x, y, z, *rest)
            return made(x, y, z, *rest)

        return launch

    with mock.patch.object(CompiledKernel, "run", property(run)):
        yield


@contextmanager
def on_cuda(gpu: int | None = None, room: int = MARGIN) -> Iterator[tuple[CudaRunner, Recording]]:
    """Inside, launches of this process are made on a GPU of this machine, and recorded.

    `gpu` counts those that are visible; memory has margins of `room` bytes. Raises `NotRunError`
    where there is none, and as `recording` does.
    """
    if gpu is not None:
        given = os.environ.get(_VISIBLE, "")
        visible = [word for word in given.split(",") if word]
        os.environ[_VISIBLE] = visible[gpu] if gpu < len(visible) else str(gpu)
    import torch

    if not torch.cuda.is_available():
        raise NotRunError(
            "there is no GPU that torch can use here: take --runner emulator, which needs none"
        )
    major, minor = torch.cuda.get_device_capability()
    with ExitStack() as stack:
        record = stack.enter_context(recording(f"sm_{major}{minor}", Options(gpu=True)))
        yield CudaRunner(record, room), record


__all__ = ["CudaRunner", "launches_seen", "on_cuda"]
