"""`torch.compile` without a GPU.

Torch's own compiler generates Triton kernels for tensors on the CPU if it is told so, and takes the
properties of the device for those of the GPU that tensors stand for. Where that fails, the function
runs as it stands: kernels that it launches itself are met on the way, and what is lost is named.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from .devices import Device
from .kernels import Captured
from .tensors import LARGE, Stage

_LOST = "runs as it stands; kernels that torch would generate are not captured"


@contextmanager
def compilation_redirected(device: Device, stage: Stage, captured: Captured) -> Iterator[None]:
    """Inside, functions given to `torch.compile` are compiled for the device."""
    import torch

    genuine: Any = torch.compile
    saved: dict[str, Any] = {}

    def compile_(model: Any = None, *args: Any, **named: Any) -> Any:
        if model is None:
            return lambda function: compile_(function, *args, **named)
        name = getattr(model, "__qualname__", type(model).__name__)
        if isinstance(model, torch.nn.Module):
            # What asks for the module's own attributes still finds them.
            model.forward = compile_(model.forward, *args, **named)
            return model
        lost: list[str] = []
        inner: list[Any] = []

        @functools.wraps(model)
        def run(*given: Any, **options: Any) -> Any:
            tensors = list(stage.tensors((given, options)))
            why = lost[0] if lost else _unfit(tensors)
            if not why:
                try:
                    with _compiling(device, saved):
                        if not inner:
                            inner.append(genuine(model, *args, **named))
                        result = inner[0](*given, **options)
                    _place(stage, tensors, result)
                    return result
                except Exception as error:
                    why = f"{type(error).__name__} in torch"
            if not lost:
                lost.append(why)
                captured.add_trouble(f"torch.compile({name})", f"{_LOST} ({why})")
            with stage.active():
                return model(*given, **options)

        return run

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch, "compile", compile_))
        node = torch.autograd.function.BackwardCFunction
        for name in ("apply", "apply_boxed"):
            if hasattr(node, name):
                call = _generated_backward(getattr(node, name), device, stage, saved)
                stack.enter_context(mock.patch.object(node, name, call))
        stack.callback(_restore, saved)
        yield


@contextmanager
def generated_kernels_seen() -> Iterator[None]:
    """Inside, kernels that torch generates are compiled in this process and launched by Triton; for
    a machine with a GPU."""
    from torch._inductor import config

    settings = {"compile_threads": 1, "use_static_cuda_launcher": False}
    known = {key: value for key, value in settings.items() if hasattr(config, key)}
    with config.patch(known):
        yield


def _restore(saved: dict[str, Any]) -> None:
    """Undo what was set."""
    if saved:
        from torch._inductor import config

        for key, value in saved.items():
            setattr(config, key, value)


def _generated_backward(genuine: Any, device: Device, stage: Stage, saved: dict[str, Any]) -> Any:
    """The call of a backward function, which may be one that torch's compiler made."""

    @functools.wraps(genuine)
    def call(self: Any, *gradients: Any) -> Any:
        if not type(self).__name__.startswith("CompiledFunction"):
            return genuine(self, *gradients)
        # It empties the list that it is given.
        given = list(stage.tensors(gradients))
        with _compiling(device, saved):
            result = inspect.unwrap(genuine)(self, *gradients)
        _place(stage, given, result)
        return result

    return call


def _unfit(tensors: list[Any]) -> str:
    """Why a call is not compiled, if it is not."""
    if any(t.numel() * t.dtype.itemsize > LARGE for t in tensors):
        return "its tensors are too large to compute with"
    return ""


def _place(stage: Stage, before: list[Any], result: Any) -> None:
    """Results stand for tensors on the GPU if arguments do; what is in them was not computed,
    unless launches are made."""
    if any(map(stage.storages.on_gpu, before)):
        for tensor in stage.tensors(result):
            stage.storages.place(tensor)
            if stage.execution is None:
                stage.storages.spoil(tensor)


@contextmanager
def _compiling(device: Device, saved: dict[str, Any]) -> Iterator[None]:
    """Inside, nobody watches, and torch's compiler makes Triton kernels for the device."""
    import torch
    from torch._dynamo import device_interface
    from torch._inductor import config
    from torch._inductor.runtime import hints, triton_helpers, triton_heuristics
    from torch.utils._python_dispatch import _disable_current_modes

    board = hints.DeviceProperties(
        type="cuda",
        index=0,
        multi_processor_count=device.multiprocessors,
        cc=device.number,
        major=device.capability[0],
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=device.threads_per_multiprocessor,
        max_threads_per_block=1024,
        warp_size=32,
    )
    interface = device_interface.CudaInterface
    heuristics: Any = triton_heuristics

    def patch(holder: Any, name: str, value: Callable[..., Any]) -> Any:
        return mock.patch.object(holder, name, value, create=True)

    settings = {
        "cpu_backend": "triton",
        "compile_threads": 1,
        "force_disable_caches": True,
        "use_static_cuda_launcher": False,
    }
    for key, value in settings.items():
        if hasattr(config, key):
            # Until the recording ends: backward functions are compiled by what is set for good.
            saved.setdefault(key, getattr(config, key))
            setattr(config, key, value)
    with ExitStack() as stack:
        for one in (
            patch(hints.DeviceProperties, "create", lambda _: board),
            patch(triton_helpers, "set_driver_to_gpu", lambda: None),
            patch(triton_helpers, "set_driver_to_cpu", lambda: None),
            patch(heuristics.CachingAutotuner, "bench", lambda *_, **__: 1.0),
            patch(interface, "exchange_device", staticmethod(lambda _: 0)),
            patch(interface, "maybe_exchange_device", staticmethod(lambda _: 0)),
            patch(interface, "synchronize", staticmethod(lambda *_: None)),
            _disable_current_modes(),
            torch._C.DisableTorchFunction(),
        ):
            stack.enter_context(one)
        if hasattr(torch, "accelerator"):
            stack.enter_context(patch(torch.accelerator, "is_available", lambda: False))
        yield
