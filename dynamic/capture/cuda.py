"""Stand-ins for what torch says of GPUs, so that host code believes in one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

from .devices import Device
from .tensors import Stage


class Context:
    """`torch.cuda.device(…)`, `stream(…)`, `graph(…)` as contexts that do nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.idx = 0

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: Any) -> None:
        return


class Stream(Context):
    """A stream on which nothing runs."""

    cuda_stream = 0
    device_index = 0
    stream_id = 0
    priority = 0

    @property
    def device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return

    def wait_stream(self, *_: Any) -> None:
        return

    def wait_event(self, *_: Any) -> None:
        return

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0


class Event:
    """An event that has always happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._time = 0.0

    def record(self, *_: Any) -> None:
        self._time = time.monotonic()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return

    def wait(self, *_: Any) -> None:
        return

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds; never 0, which host code divides by."""
        return max(1e-3, 1e3 * (getattr(other, "_time", 0.0) - self._time))


class Graph:
    """A CUDA graph: the code that it was recorded from ran, and that is all."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def replay(self) -> None:
        return

    def reset(self) -> None:
        return

    def pool(self) -> tuple[int, int]:
        return (0, 0)

    def capture_begin(self, *_: Any, **__: Any) -> None:
        return

    def capture_end(self) -> None:
        return


def properties(device: Device) -> Any:
    """What `get_device_properties` gives."""
    return SimpleNamespace(
        name=device.name,
        major=device.capability[0],
        minor=device.capability[1],
        multi_processor_count=device.multiprocessors,
        total_memory=device.memory,
        warp_size=32,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=device.shared_limit,
        shared_memory_per_multiprocessor=device.shared_per_multiprocessor,
        max_threads_per_multi_processor=device.threads_per_multiprocessor,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        L2_cache_size=device.l2,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        uuid="00000000-0000-0000-0000-000000000000",
    )


def _answers(device: Device) -> dict[str, Any]:
    """What the functions of `torch.cuda` answer, by name."""
    import torch

    board = properties(device)
    memory = (device.memory, device.memory)
    nothing: dict[str, Any] = dict.fromkeys(
        (
            "synchronize set_device init _lazy_init empty_cache ipc_collect set_stream "
            "reset_peak_memory_stats reset_max_memory_allocated reset_max_memory_cached "
            "reset_accumulated_memory_stats set_per_process_memory_fraction _sleep"
        ).split()
    )
    numbers = dict.fromkeys(
        (
            "memory_allocated max_memory_allocated memory_reserved max_memory_reserved "
            "current_device utilization temperature power_draw"
        ).split(),
        0,
    )
    values = {
        **nothing,
        **numbers,
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "get_device_capability": device.capability,
        "get_device_properties": board,
        "get_device_name": device.name,
        "get_arch_list": [device.arch],
        "mem_get_info": memory,
        "memory_stats": {},
        "is_bf16_supported": True,
        "is_tf32_supported": True,
        "is_current_stream_capturing": False,
        "can_device_access_peer": False,
        "current_stream": Stream(),
        "default_stream": Stream(),
    }
    answers: dict[str, Any] = {name: _constant(value) for name, value in values.items()}
    answers |= {"Stream": Stream, "ExternalStream": Stream, "Event": Event, "CUDAGraph": Graph}
    answers |= dict.fromkeys(("device", "device_of", "stream", "StreamContext", "graph"), Context)
    answers["_DeviceGuard"] = Context
    return answers | _random_numbers(torch.default_generator)


def _random_numbers(generator: Any) -> dict[str, Any]:
    """The functions of `torch.cuda` about random numbers, which are those of the CPU."""

    def seed(value: Any) -> None:
        # Not torch.manual_seed: that one seeds the CPU and then calls this.
        generator.manual_seed(int(value))

    return {
        "manual_seed": seed,
        "manual_seed_all": seed,
        "seed": lambda: seed(generator.seed()),
        "seed_all": lambda: seed(generator.seed()),
        "initial_seed": generator.initial_seed,
        "get_rng_state": lambda *_, **__: generator.get_state(),
        "set_rng_state": lambda state, *_, **__: generator.set_state(state),
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state_all": lambda states: generator.set_state(states[0]),
    }


def _constant(value: Any) -> Any:
    return lambda *_, **__: value


def patches(device: Device, stage: Stage) -> Iterator[Any]:
    """Contexts in which torch speaks of that device alone."""
    import torch

    for name, answer in _answers(device).items():
        yield mock.patch.object(torch.cuda, name, answer, create=True)
    raw = _constant(0)
    yield mock.patch.object(torch._C, "_cuda_getCurrentRawStream", raw, create=True)
    yield mock.patch.object(torch.version, "cuda", torch.version.cuda or "12.8")
    yield from _default_device(torch, stage)
    yield mock.patch.object(torch, "Generator", _generator(torch))
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        yield mock.patch.object(torch.cuda.nvtx, name, _constant(None))
    yield mock.patch.object(torch.cuda.nvtx, "range", Context)
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        told = {"is_available": True, "device_count": 1, "current_device_index": 0}
        for name, value in {**told, "synchronize": None, "set_device_index": None}.items():
            yield mock.patch.object(accelerator, name, _constant(value), create=True)
        current = torch.device("cuda", 0)
        yield mock.patch.object(accelerator, "current_accelerator", _constant(current))


def _default_device(torch: Any, stage: Stage) -> Iterator[Any]:
    """`torch.set_default_device("cuda")` is for the stage alone to know."""
    genuine = torch.set_default_device

    def choose(device: Any) -> None:
        kind = None if device is None else torch.device(device).type
        stage.default_on_gpu = kind == "cuda"
        genuine(None if stage.default_on_gpu else device)

    def default() -> Any:
        return torch.device("cuda", 0) if stage.default_on_gpu else torch.device("cpu")

    yield mock.patch.object(torch, "set_default_device", choose)
    yield mock.patch.object(torch, "get_default_device", default)


def _generator(torch: Any) -> Any:
    """`torch.Generator("cuda")` is one of the CPU."""

    class Generator(torch.Generator):  # type: ignore[misc]
        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, "cpu")

    return Generator


@contextmanager
def threads_watched(stage: Stage) -> Iterator[None]:
    """Inside, threads of Python that are started are watched as well."""
    import threading

    genuine = threading.Thread.run

    def run(self: threading.Thread) -> None:
        with stage.active():
            genuine(self)

    with mock.patch.object(threading.Thread, "run", run):
        yield
