"""Recording Triton kernels on a machine without a GPU.

`recording(arch)` puts a driver in Triton's place that compiles for the architecture asked for and
launches nothing, and sends every tensor that is meant for a GPU to the CPU. Unmodified library code
then compiles its kernels as it would on that GPU. Since nothing runs, what a kernel should have
written is zeros: host code that decides by results may go astray, but the same way each time.

This runs user code in the current process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock


class Launch(NamedTuple):
    """One launch that would have happened."""

    grid: tuple[int, int, int]
    arguments: dict[str, Any]
    """By parameter name: tensors as they are, scalars, and compile-time constants."""


class Kernel(NamedTuple):
    """A compiled kernel. `signature` maps parameters to types (`i32`, `*fp16`, `constexpr`)."""

    name: str
    arch: str
    ptx: str
    ttir: str
    cubin: bytes
    metadata: dict[str, Any]
    signature: dict[str, str]
    digest: str
    launches: list[Launch]


class Recording:
    """What was compiled and launched while recording."""

    def __init__(self, capability: int) -> None:
        self.capability = capability
        self._kernels: dict[str, Kernel] = {}

    @property
    def kernels(self) -> list[Kernel]:
        """All kernels, in the order of their first launch."""
        return list(self._kernels.values())

    def add(self, source: Any, compiled: Any, grid: tuple[int, int, int], values: Any) -> None:
        """Take in one launch."""
        metadata = compiled.metadata
        known = self._kernels.get(metadata.hash)
        if known is None:
            fields = ("num_warps", "num_stages", "num_ctas", "shared")
            known = self._kernels[metadata.hash] = Kernel(
                metadata.name,
                f"sm_{self.capability}",
                compiled.asm["ptx"],
                compiled.asm["ttir"],
                compiled.asm["cubin"],
                {field: getattr(metadata, field, None) for field in fields},
                dict(source.signature),
                metadata.hash,
                [],
            )
        known.launches.append(Launch(grid, dict(zip(source.signature, values, strict=False))))


@contextmanager
def recording(arch: str) -> Iterator[Recording]:
    """Record all Triton launches inside; `arch` as in `sm_90`.

    Raises ImportError without Triton and torch, ValueError for a malformed architecture.
    """
    import torch
    from triton.runtime import driver as slot

    digits = arch.removeprefix("sm_").rstrip("af")
    if not digits.isdigit():
        raise ValueError(f"{arch!r} is no architecture: write sm_90")
    record = Recording(int(digits))
    with ExitStack() as stack:
        before = getattr(slot, "_active", None)
        slot.set_active(_driver(record))
        stack.callback(_restore, slot, before)
        for patch in _cuda_patches(torch, record.capability):
            stack.enter_context(patch)
        stack.enter_context(_cpu_mode(torch))
        yield record


def _restore(slot: Any, before: Any) -> None:
    """Put the driver back that was there; none if Triton had not looked for one."""
    slot._active = before


def _driver(record: Recording) -> Any:
    """A driver object that answers what Triton asks of one."""
    from triton.backends.compiler import GPUTarget

    class Utils:
        """Device questions, answered for a large GPU so that any kernel loads."""

        def get_device_properties(self, device: int) -> dict[str, int]:
            return {
                "max_shared_mem": 1 << 20,
                "multiprocessor_count": 132,
                "max_num_regs": 65536,
                "warpSize": 32,
                "sm_clock_rate": 1,
                "mem_clock_rate": 1,
                "mem_bus_width": 1,
            }

        def load_binary(self, *_: Any) -> tuple[int, int, int, int, int]:
            return (0, 0, 0, 0, 1024)

        def unload_module(self, *_: Any) -> None:
            return

        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_, **__: None

    class Launcher:
        """Notes a launch instead of making it."""

        def __init__(self, source: Any, metadata: Any) -> None:
            self.source = source

        def __call__(self, x: int, y: int, z: int, stream: int, function: Any, *rest: Any) -> None:
            compiled = _COMPILED.get(id(self.source))
            if compiled is not None:
                # Packed metadata, launch metadata and two hooks come before the arguments.
                record.add(self.source, compiled, (int(x), int(y), int(z)), rest[4:])

    class Driver:
        utils = Utils()
        launcher_cls = Launcher

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", record.capability, 32)

        def get_current_device(self) -> int:
            return 0

        def set_current_device(self, device: int) -> None:
            return

        def get_current_stream(self, device: int = 0) -> int:
            return 0

        def get_device_capability(self, device: int = 0) -> tuple[int, int]:
            return divmod(record.capability, 10)

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cpu")

        def get_device_interface(self) -> Any:
            import torch

            return torch.cuda

        def get_benchmarker(self) -> Callable[..., list[float]]:
            return lambda *_, **__: [1.0, 1.0, 1.0]

        def get_empty_cache_for_benchmark(self) -> Any:
            return None

        def map_python_to_cpp_type(self, kind: str) -> str:
            return kind

    return Driver()


_COMPILED: dict[int, Any] = {}
"""Compiled kernels by the identity of their source, kept alive by `_SOURCES`."""


def _cuda_patches(torch: Any, capability: int) -> list[Any]:
    """Patches that make torch speak of one GPU and put tensors on the CPU."""
    import triton.compiler.compiler as compiler

    genuine = compiler.CompiledKernel.__init__

    def remember(self: Any, source: Any, *rest: Any, **named: Any) -> None:
        genuine(self, source, *rest, **named)
        _COMPILED[id(source)] = self

    def own(name: str, value: Any) -> Any:
        return mock.patch.object(torch.cuda, name, value)

    major_minor = divmod(capability, 10)
    properties = mock.Mock(
        multi_processor_count=132, name="recording", major=major_minor[0], minor=major_minor[1],
        total_memory=80 << 30, warp_size=32, shared_memory_per_block_optin=232448,
    )  # fmt: skip
    return [
        mock.patch.object(compiler.CompiledKernel, "__init__", remember),
        own("is_available", lambda: True),
        own("device_count", lambda: 1),
        own("current_device", lambda: 0),
        own("get_device_capability", lambda *_: major_minor),
        own("get_device_properties", lambda *_: properties),
        own("get_device_name", lambda *_: "recording"),
        own("synchronize", lambda *_: None),
        own("current_stream", lambda *_: mock.Mock(cuda_stream=0)),
        own("set_device", lambda *_: None),
        own("is_bf16_supported", lambda *_, **__: True),
        own("device", _NoDevice),
    ]


class _NoDevice:
    """`torch.cuda.device(…)` as a context that does nothing."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> _NoDevice:
        return self

    def __exit__(self, *_: Any) -> None:
        return


@contextmanager
def _cpu_mode(torch: Any) -> Iterator[None]:
    """Inside, `device="cuda"` means the CPU, tensors say that they are on the GPU, and fresh memory
    is zeroed, so that two recordings are alike."""
    from torch.overrides import TorchFunctionMode

    on_gpu = torch.Tensor.is_cuda.__get__
    uninitialised = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}

    def is_cuda(value: Any) -> bool:
        if isinstance(value, str):
            return value.startswith("cuda")
        return isinstance(value, torch.device) and value.type == "cuda"

    class Mode(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            named = dict(kwargs or {})
            if is_cuda(named.get("device")):
                named["device"] = "cpu"
            if function == on_gpu:
                return True
            name = getattr(function, "__name__", "")
            if name == "cuda":
                return args[0]
            moved = tuple("cpu" if is_cuda(a) else a for a in args)
            made = function(*moved, **named)
            if name in uninitialised and made.device.type == "cpu":
                made.zero_()
            return made

    with Mode():
        yield
