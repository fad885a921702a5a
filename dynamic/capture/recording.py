"""Recording the launches of this process.

Without a GPU a driver is put in Triton's place that compiles for the architecture asked for and
launches nothing, and tensors on the CPU stand for tensors on the GPU. Unmodified code then compiles
its kernels as it would on that GPU. If nothing runs, what a kernel should have written is zeros:
host code that decides by results may go astray, but the same way each time. Something may make the
launches all the same (`Execution`), and then results are what they would be.

With a GPU everything runs as it does, and is watched.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from ptxlint.launches import Launch

from . import tuning
from .arguments import COUNTING, Reader, spelled
from .autocast import autocast_followed
from .compiled import compilation_redirected, generated_kernels_seen
from .contents import Contents
from .cuda import patches, threads_watched
from .custom_ops import operators_watched
from .devices import Device, device_of
from .driver import recording_driver, run_once, watched_run
from .execution import Execution, memory_behind
from .kernels import Captured, Kernel, Sink, Trouble
from .storages import Storages, unwatched
from .tensors import Stage
from .written import Writes

_LIBRARIES = ("triton", "torch", "ptxlint", "contextlib", "unittest", "threading", "runpy")
_OLDEST, _NEWEST = (3, 6), (3, 9)

_ASSEMBLER: Final = re.compile(r"\bline \d+; +(?:error|fatal) *: *([^\n]+)")
"""An error of ptxas."""


class Options(NamedTuple):
    """How to record."""

    autotune: str = tuning.FIRST
    """`first`: the first configuration that can be launched; `all`: each."""
    limited: bool = True
    """Kernels that the device has too little shared memory for do not load."""
    gpu: bool = False
    """Run on the GPU of this machine, whose architecture it must be."""
    record_inputs: int = 0
    """Bytes of a tensor up to which what it holds before a launch is recorded."""


class Recording:
    """What was compiled and launched while recording."""

    def __init__(
        self,
        device: Device,
        options: Options,
        sink: Sink | None,
        execution: Execution | None = None,
    ) -> None:
        self.device = device
        self._execution = execution
        self.captured = Captured(sink)
        self._options = options
        # What is run is run on small tensors, and each byte of them counts.
        self._storages = Storages() if execution is None else Storages(sys.maxsize)
        self._compiled: dict[str, Any] = {}
        self._made: list[Any] = []
        self._writes = Writes(self._storages)
        self._contents = Contents(options.record_inputs, self.captured.add_contents)
        self._is_open = True

    @property
    def capability(self) -> int:
        """90 for sm_90."""
        return self.device.number

    @property
    def kernels(self) -> list[Kernel]:
        """All kernels, in the order of their first launch."""
        return self.captured.kernels

    @property
    def contents(self) -> dict[str, bytes]:
        """What launches say was recorded of their tensors, by key."""
        return self.captured.contents

    @property
    def troubles(self) -> list[Trouble]:
        """What was not captured."""
        return self.captured.troubles

    def place(self, tensor: Any) -> None:
        """Say that a CPU tensor stands for one on the GPU, whatever lies around it in its memory;
        it holds what it holds."""
        with unwatched():
            self._storages.place(tensor)

    def take_over(self, tensor: Any, before: Any) -> None:
        """A tensor takes the place of one that was allocated just now, and holds as much."""
        with unwatched():
            self._storages.take_over(tensor, before)

    def written(self, tensor: Any) -> Any:
        """Flags of the bytes of a tensor's storage that something was written to; None for all."""
        with unwatched():
            storage = self._storages.of(tensor)
            return None if storage is None else memory_behind(tensor, storage).written

    def _took_real(self, kernel: Any, grid: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        """Take in a launch that is made on a GPU."""
        if self._is_open:
            # It may have been compiled before anybody looked.
            self._compiled.setdefault(kernel.metadata.hash, kernel)
            self._took(kernel.src, kernel.metadata, grid, values)

    def _took(
        self, source: Any, metadata: Any, grid: tuple[int, int, int], values: tuple[Any, ...]
    ) -> None:
        """Take in one launch, and see to what comes of it."""
        try:
            taken = self._take(source, metadata, grid, values)
        except Exception as error:
            # The user's code must go on as if nobody looked.
            name = getattr(metadata, "name", "a kernel")
            self.captured.add_trouble(name, f"its launch could not be read: {_said(error)}")
            return
        if taken is None:
            return
        kernel, launch, reader = taken
        if self._execution is not None:
            self._make(kernel, launch, reader)
            return
        try:
            self._follow_writes(kernel, launch, reader)
        except Exception as error:
            self.captured.add_trouble(
                kernel.name, f"what it writes could not be worked out: {_said(error)}"
            )

    def _take(
        self, source: Any, metadata: Any, grid: tuple[int, int, int], values: tuple[Any, ...]
    ) -> tuple[Kernel, Launch, Reader] | None:
        kernel = self._kernel(source, metadata)
        if kernel is None:
            return None
        reader = Reader(
            self._storages, bool(getattr(metadata, "tensordesc_meta", None)), self._contents
        )
        arguments: dict[str, Any] = {
            str(name): reader.read(value, kind)
            for (name, kind), value in zip(source.signature.items(), values, strict=True)
        }
        ctas = int(getattr(metadata, "num_ctas", 1) or 1)
        programs = grid[0] * ctas * grid[1] * grid[2]
        launch = Launch(
            grid=(grid[0] * ctas, grid[1], grid[2]),
            block=(32 * int(metadata.num_warps), 1, 1),
            arguments=arguments,
            shared=int(metadata.shared),
            cluster=(ctas, 1, 1),
            autotuned=tuning.autotuned(),
            place=_place(),
            scratch=(
                programs * int(getattr(metadata, "global_scratch_size", 0) or 0),
                programs * int(getattr(metadata, "profile_scratch_size", 0) or 0),
            ),
        )
        self.captured.add_launch(kernel, launch)
        return kernel, launch, reader

    def _make(self, kernel: Kernel, launch: Launch, reader: Reader) -> None:
        """Have a launch made, on the memory of its tensors."""
        assert self._execution is not None
        memory = {}
        for _, tensor in reader.seen:
            storage = self._storages.of(tensor)
            if storage is not None and reader.number(tensor) not in memory:
                memory[reader.number(tensor)] = memory_behind(tensor, storage)
        self._execution.launch(kernel, launch, memory)

    def _follow_writes(self, kernel: Kernel, launch: Launch, reader: Reader) -> None:
        """Say what is in the tensors that a launch was given, once it is over."""
        numbers = self._written_by(kernel, reader)
        written = [t for n, t in reader.seen if numbers is None or n in numbers]
        if self._options.gpu:
            for tensor in written:
                self._storages.took_place(tensor)
            return
        followed: set[int] = set()
        # An autotuner runs a kernel as often as it likes on the same arguments.
        try:
            if launch.autotuned is None:
                given = {reader.number(tensor): tensor for _, tensor in reader.seen}
                followed = self._writes.carry_out(
                    kernel, launch, given, {reader.number(tensor) for tensor in written}
                )
        finally:
            for tensor in written:
                if reader.number(tensor) not in followed:
                    self._storages.spoil(tensor)

    def _written_by(self, kernel: Kernel, reader: Reader) -> frozenset[int] | None:
        """Numbers of the parameters that a kernel may write through; None for any."""
        if not any(str(tensor.dtype) in COUNTING for _, tensor in reader.seen):
            # To find out takes time, and matters for indices alone.
            return None
        return self._writes.parameters(kernel)

    def _kernel(self, source: Any, metadata: Any) -> Kernel | None:
        compiled = self._compiled.get(metadata.hash)
        if compiled is None:
            self.captured.add_trouble(metadata.name, "launched without being compiled here")
            return None
        asm = compiled.asm
        if "ptx" not in asm:
            self.captured.add_trouble(
                metadata.name, "no PTX is kept: TRITON_STORE_BINARY_ONLY is set"
            )
            return None
        return self.captured.add_kernel(
            metadata.hash,
            lambda: Kernel(
                name=metadata.name,
                arch=self.device.arch,
                hash=metadata.hash,
                ptx=asm["ptx"],
                ttir=asm.get("ttir", ""),
                cubin=asm["cubin"],
                metadata=_metadata(metadata),
                signature={str(name): kind for name, kind in source.signature.items()},
                source=_source(source),
                launches=[],
            ),
        )

    def _refused(self, compiled: Any, error: Exception) -> None:
        """A kernel was compiled and does not load; inside an autotuner that is its business."""
        if tuning.autotuned() is None and tuning.tuning() is None:
            self._kernel(compiled.src, compiled.metadata)
            self.captured.add_trouble(compiled.metadata.name, f"not launched: {_said(error)}")


@contextmanager
def recording(
    arch: str,
    options: Options | None = None,
    sink: Sink | None = None,
    execution: Execution | None = None,
) -> Iterator[Recording]:
    """Record all Triton launches inside; `arch` as in `sm_90`. Without a GPU, an `execution` makes
    them.

    Raises ImportError without Triton and torch or with a Triton that is not known, ValueError for
    what is no architecture.
    """
    options = options or Options()
    import triton

    _check_version(triton.__version__)
    record = Recording(device_of(arch), options, sink, execution)
    stage = Stage(record._storages, not options.gpu, execution)
    with ExitStack() as stack:
        _enter_driver(stack, record, options)
        if options.gpu:
            stack.enter_context(generated_kernels_seen())
        else:
            _load_late_modules()
            for patch in patches(record.device, stage):
                stack.enter_context(patch)
            stack.enter_context(autocast_followed())
            stack.enter_context(mock.patch("triton.testing.do_bench", run_once))
            stack.enter_context(mock.patch("triton.testing.do_bench_cudagraph", run_once))
        stack.enter_context(tuning.tuners_steered(record._storages, options.autotune, options.gpu))
        stack.enter_context(operators_watched(stage))
        if not options.gpu:
            stack.enter_context(compilation_redirected(record.device, stage, record.captured))
        stack.enter_context(threads_watched(stage))
        stack.enter_context(stage.active())
        yield record
    if not options.gpu:
        # Nothing was loaded, and the driver that would unload it is gone.
        for compiled in record._made:
            compiled.module = None


def _load_late_modules() -> None:
    """Load what torch loads at its first call under a mode.

    A build for GPUs asks for the devices while it loads these, and does not load if what it is told
    is not true.
    """
    import torch._dynamo  # noqa: F401


def _check_version(text: str) -> None:
    version = tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
    if not _OLDEST <= version <= _NEWEST:
        raise ImportError(f"Triton {text} is not known; capturing works with 3.6 to 3.9")


def _enter_driver(stack: ExitStack, record: Recording, options: Options) -> None:
    """Put the driver in place, and remember what is compiled."""
    from triton.compiler import compiler
    from triton.runtime import driver as slot

    genuine_init = compiler.CompiledKernel.__init__
    genuine_load = compiler.CompiledKernel._init_handles

    def remember(self: Any, source: Any, *rest: Any, **named: Any) -> None:
        genuine_init(self, source, *rest, **named)
        record._compiled[self.metadata.hash] = self
        record._made.append(self)

    def load(self: Any) -> None:
        try:
            genuine_load(self)
        except Exception as error:
            record._refused(self, error)
            raise

    patch = mock.patch.object
    stack.enter_context(patch(compiler.CompiledKernel, "__init__", remember))
    stack.enter_context(patch(compiler.CompiledKernel, "_init_handles", load))
    stack.enter_context(_announced(record))
    if options.gpu:
        # Drivers are replaced, by torch's compiler for one: kernels are not.
        watched = watched_run(compiler.CompiledKernel.run, record._took_real)
        stack.enter_context(patch(compiler.CompiledKernel, "run", watched))
        stack.callback(setattr, record, "_is_open", False)
        return
    before = getattr(slot, "_active", None)
    slot.set_active(recording_driver(record.device, record._took, options.limited))
    stack.callback(setattr, slot, "_active", before)


@contextmanager
def _announced(record: Recording) -> Iterator[None]:
    """Inside, the sink is told what is being compiled."""
    from triton.runtime.jit import JITFunction

    genuine = JITFunction._do_compile

    def compile_(self: Any, *args: Any, **named: Any) -> Any:
        name = getattr(self, "__name__", "a kernel")
        record.captured.sink.compiling(name)
        try:
            return genuine(self, *args, **named)
        except Exception as error:
            if tuning.tuning() is None:
                record.captured.add_trouble(name, f"does not compile: {_said(error)}")
            raise

    with mock.patch.object(JITFunction, "_do_compile", compile_):
        yield


def _metadata(metadata: Any) -> dict[str, Any]:
    """Triton's metadata as it writes them beside the kernel."""
    fields: dict[str, Any] = json.loads(json.dumps(metadata._asdict(), default=_plain))
    return fields


def _plain(value: Any) -> Any:
    """JSON for an object: its fields, or how it is spelled."""
    try:
        return vars(value)
    except TypeError:
        return spelled(value)


def _source(source: Any) -> tuple[str, int]:
    """Where the Python function stands that a kernel was compiled from."""
    function = getattr(source, "fn", None)
    code = getattr(getattr(function, "fn", None), "__code__", None)
    if code is None:
        return "", 1
    return relative(code.co_filename), int(getattr(function, "starting_line_number", 1))


def _place() -> str:
    """File and line of the innermost code that is not a library's."""
    frame = sys._getframe(1)
    while frame is not None:
        root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if root and root not in _LIBRARIES and not frame.f_code.co_filename.startswith("<"):
            return f"{relative(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def relative(path: str) -> str:
    """A path, relative to the working directory where it lies below it."""
    try:
        return str(Path(path).resolve().relative_to(os.getcwd()))
    except ValueError:
        return path


def _said(error: BaseException) -> str:
    """An exception in one line; of what an assembler printed the first error, without its files."""
    assembled = _ASSEMBLER.search(str(error))
    if assembled is not None:
        return f"the assembler says: {assembled[1].strip()}"
    text = " ".join(str(error).split())
    # Triton quotes the source first, and then says what is wrong with it.
    shortened = text if len(text) <= 300 else f"{text[:100]} … {text[-200:]}"
    return f"{type(error).__name__}: {shortened}" if shortened else type(error).__name__
