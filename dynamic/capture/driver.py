"""What Triton talks to in place of a GPU, or on the way to one."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

from .devices import Device

Took = Callable[[Any, Any, tuple[int, int, int], tuple[Any, ...]], None]
"""Takes a launch in: source, metadata, grid of programs, arguments."""


_NUMBERS = itertools.count()


def extent(x: Any, y: Any, z: Any) -> tuple[int, int, int]:
    """A grid; a TypeError for what is no integer, as the genuine launcher would raise."""
    return operator.index(x), operator.index(y), operator.index(z)


def recording_driver(device: Device, took: Took, limited: bool) -> Any:
    """A driver that answers what Triton asks of one and launches nothing.

    With `limited`, kernels that the device has too little shared memory for do not load.
    """
    from triton.backends.compiler import GPUTarget

    class Utils:
        """Questions to the device."""

        def get_device_properties(self, _: int) -> dict[str, int]:
            return {
                "max_shared_mem": device.shared_limit if limited else 1 << 20,
                "multiprocessor_count": device.multiprocessors,
                "max_num_regs": 65536,
                "warpSize": 32,
                "sm_clock_rate": 1_000_000,
                "mem_clock_rate": 1_000_000,
                "mem_bus_width": 5120,
            }

        def load_binary(self, *_: Any) -> tuple[int, int, int, int, int]:
            # Module, function, registers, spills, most threads.
            return (0, 0, 0, 0, 1024)

        def unload_module(self, *_: Any) -> None:
            return

        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_, **__: None

    class Launcher:
        """Takes a launch in instead of making it."""

        def __init__(self, source: Any, metadata: Any) -> None:
            self._source, self._metadata = source, metadata

        def __call__(self, x: Any, y: Any, z: Any, stream: Any, function: Any, *rest: Any) -> None:
            # Packed metadata, launch metadata and two hooks come before the arguments.
            took(self._source, self._metadata, extent(x, y, z), rest[4:])

    # Triton keeps what it compiled by device: that of another recording is none of this one's.
    number = next(_NUMBERS)

    class Driver:
        utils = Utils()
        launcher_cls = Launcher

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", device.number, 32)

        def get_current_device(self) -> int:
            return number

        def set_current_device(self, _: int) -> None:
            return

        def get_current_stream(self, _: int = 0) -> int:
            return 0

        def get_device_capability(self, _: int = 0) -> tuple[int, int]:
            return device.capability

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cuda", 0)

        def get_device_interface(self) -> Any:
            import torch

            return torch.cuda

        def get_benchmarker(self) -> Callable[..., Any]:
            return run_once

        def get_empty_cache_for_benchmark(self) -> Any:
            return None

        def clear_cache(self, _: Any) -> None:
            return

        def map_python_to_cpp_type(self, kind: str) -> str:
            return kind

        def assemble_tensormap_to_arg(self, _: Any, args: Any) -> Any:
            return args

    return Driver()


def run_once(call: Callable[[], Any], *_: Any, quantiles: Any = None, **named: Any) -> Any:
    """A benchmark of one run that takes a millisecond."""
    call()
    if quantiles is not None:
        return [1.0] * len(quantiles)
    return [1.0] if named.get("return_mode") == "all" else 1.0


def watched_run(genuine: property, took: Callable[..., None]) -> property:
    """`CompiledKernel.run`, whose launches are taken in and then made: by whatever driver, also of
    kernels that were compiled earlier. `took` is given the kernel, the grid and the arguments."""
    start = genuine.fget
    assert start is not None

    def run(kernel: Any) -> Any:
        made = start(kernel)
        if kernel.module is None:
            # It does not load: this raises what is wrong.
            return made

        def launch(x: Any, y: Any, z: Any, stream: Any, function: Any, *rest: Any) -> Any:
            took(kernel, extent(x, y, z), rest[4:])
            return made(x, y, z, stream, function, *rest)

        return launch

    return property(run)
