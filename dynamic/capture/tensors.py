"""CPU tensors that stand for tensors on a GPU.

Two modes of torch watch all calls. One sees what Python code asks of a tensor (`x.device`,
`x.cuda()`), the other every operation that is carried out. Together they know which tensors the
host takes for tensors on the GPU, and which were allocated uninitialised or zeroed and not touched
since.

Operations on more than `LARGE` bytes are not carried out: their results have the right shapes and
hold zeros in memory that is only there where it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any

from .autocast import is_widened, widened
from .custom_ops import is_python
from .execution import Execution
from .memory import extent, sparse_zeros
from .storages import UNINITIALISED, ZEROED, Storages, is_whole

LARGE = 32 << 20
"""Bytes from which on a tensor's values are not computed."""
_SLOW = 1 << 31
"""Multiplications from which on a product is not computed."""
_PRODUCTS = frozenset(
    {"mm", "bmm", "addmm", "baddbmm", "addbmm", "convolution", "convolution_backward", "_scaled_mm"}
)
_UNINITIALISED = frozenset(
    {"empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "empty_permuted"}
)
_ZEROED = frozenset({"zeros", "zeros_like", "new_zeros", "zero_"})
_FILLED = frozenset({"full", "full_like", "new_full", "fill_", "fill"})
_OVERWRITING = frozenset(
    {"copy_", "fill_", "zero_", "random_", "uniform_", "normal_", "exponential_", "geometric_"}
)
"""Operations that write all elements of a tensor and read none of them."""
_MOVING = frozenset({"set_", "resize_", "resize_as_"})
"""Operations that lay a tensor into other memory, or into more, and write nothing."""
_CUDA = re.compile(r"cuda(:\d+)?")


class Stage:
    """The modes and what they share.

    `pretend` is False where there is a GPU: then tensors are where they are, and only what is in
    them is followed. With an `execution` launches are made, so that results are those of a GPU:
    then all is computed, however large, and what cannot be is an error.
    """

    def __init__(
        self, storages: Storages, pretend: bool = True, execution: Execution | None = None
    ) -> None:
        import torch

        self.storages = storages
        self.pretend = pretend
        self.execution = execution
        self.default_on_gpu = False
        self._torch = torch
        self._modes = _modes(self)
        self._attributes = _attributes(self, torch)
        self._moves = {torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu}
        self._reads = {torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__}
        self._makers = _makers(torch)
        self._speak_of_devices = {torch.device, torch._C._nn._parse_to}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside, calls of this thread are watched; entered again, nothing changes."""
        function_mode, dispatch_mode = self._modes
        with ExitStack() as stack:
            if not any(isinstance(mode, dispatch_mode) for mode in _dispatch_modes()):
                stack.enter_context(dispatch_mode())
            if self.pretend and not any(isinstance(m, function_mode) for m in _function_modes()):
                stack.enter_context(function_mode())
            yield

    # What Python asks.

    def call(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call of torch's Python interface."""
        answer = self._attributes.get(function)
        if answer is not None and args:
            return answer(args[0])
        if self.pretend and is_widened(function):
            args, named = (widened(given, self.storages.on_gpu) for given in (args, named))
        if function in self._reads and args:
            self._host_reads(args[0])
        if function in self._moves and args:
            return self._move(function, args, named)
        if function is self._torch.Tensor.backward:
            # Code of the user's runs in there, with the modes that are active now.
            with self.active():
                return self._torch.autograd.backward(
                    args[0],
                    named.get("gradient"),
                    named.get("retain_graph"),
                    named.get("create_graph", False),
                    inputs=named.get("inputs"),
                )
        if function in self._speak_of_devices:
            return function(*args, **named)
        wanted = self._is_cuda(named.get("device")) or any(map(self._is_cuda, args))
        if "device" not in named and self.default_on_gpu and function in self._makers:
            wanted = True
        if not wanted:
            return function(*args, **named)
        named.pop("pin_memory", None)
        args = tuple("cpu" if self._is_cuda(a) else a for a in args)
        if "device" in named or self.default_on_gpu:
            named["device"] = "cpu"
        result = function(*args, **named)
        for tensor in self.tensors(result):
            self.storages.place(tensor)
        return result

    def _is_cuda(self, value: Any) -> bool:
        """True for what names a GPU."""
        if isinstance(value, str):
            return _CUDA.fullmatch(value) is not None
        return isinstance(value, self._torch.device) and value.type == "cuda"

    def _move(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """`to`, `cuda` and `cpu`: a copy when it goes to the other side, as it would be."""
        tensor, rest = args[0], args[1:]
        before = self.storages.on_gpu(tensor)
        target = self._target(function, rest, named)
        if target is None:
            return function(*args, **named)
        if function is self._torch.Tensor.cuda:
            result = tensor
        else:
            named = {k: "cpu" if k == "device" else v for k, v in named.items()}
            if "other" in named:
                named["other"] = named["other"].cpu() if before else named["other"]
            moved = ["cpu" if i == 0 and self._names_device(a) else a for i, a in enumerate(rest)]
            result = function(tensor, *moved, **named)
        if target == before:
            return result
        if self.storages.of(result) is self.storages.of(tensor):
            result = result.clone()
        self.storages.place(result, target)
        return result

    def _target(self, function: Any, rest: tuple[Any, ...], named: dict[str, Any]) -> bool | None:
        """Whether a move goes to the GPU; None if it goes nowhere."""
        if function is self._torch.Tensor.cuda:
            return True
        if function is self._torch.Tensor.cpu:
            return False
        other = named.get("other", rest[0] if rest else None)
        if isinstance(other, self._torch.Tensor):
            return self.storages.on_gpu(other)
        device = named.get("device", rest[0] if rest and self._names_device(rest[0]) else None)
        if device is None:
            return None
        if str(device) == "meta":
            return None
        return isinstance(device, int) or bool(self._is_cuda(device))

    def _names_device(self, value: Any) -> bool:
        named = isinstance(value, str | self._torch.device)
        return named or (isinstance(value, int) and not isinstance(value, bool))

    # What is carried out.

    def dispatch(self, operation: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """An operation below Python's interface."""
        schema = operation._schema
        with self._torch._C.DisableTorchFunction():
            tensors = list(self.tensors((args, named)))
            on_gpu = self._place_here(tensors, named)
            made = self._stand_in(operation, schema, tensors, args, named)
        result = self._carry_out(operation, schema, args, named) if made is None else made[0]
        with self._torch._C.DisableTorchFunction():
            is_known = self.execution is not None or (
                made is None
                and not self.storages.is_astray
                and all(map(self.storages.is_known, _read(schema, args, named, self.tensors)))
            )
            self._note(schema, args, named, result, is_known)
            if not any(True for _ in self.tensors(result)) and not schema.is_mutable:
                for tensor in tensors:
                    self._host_reads(tensor)
            if on_gpu:
                for tensor in self.tensors(result):
                    self.storages.place(tensor)
        return result

    def _host_reads(self, tensor: Any) -> None:
        """The host takes numbers out of a tensor. Those of losses decide little; what is counted,
        chosen or compared is what shapes and indices come of."""
        if self.execution is not None:
            return
        if not tensor.dtype.is_floating_point and not self.storages.is_known(tensor):
            self.storages.is_astray = True

    def _carry_out(
        self, operation: Any, schema: Any, args: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """The result; zeros of the right shape for what only GPUs can compute."""
        try:
            return operation(*args, **named)
        except NotImplementedError:
            is_replaced = self.pretend and self.execution is None
            if not is_replaced or schema.is_mutable or is_python(operation):
                raise
            with self._torch._C.DisableTorchFunction():
                shapes = self._shapes(operation, schema, args, named)
                if shapes is None:
                    raise
                result = self._map(self._zeros, shapes)
                for tensor in self.tensors(result):
                    self.storages.spoil(tensor)
                return result

    def _shapes(
        self, operation: Any, schema: Any, args: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """A result without values; None where shapes depend on values."""
        alone = self._map(self._shape_alone, named)
        if any(argument.name == "device" for argument in schema.arguments):
            alone["device"] = self._torch.device("meta")
        try:
            return operation(*self._map(self._shape_alone, args), **alone)
        except Exception:
            return None

    def _place_here(self, tensors: list[Any], named: dict[str, Any]) -> bool:
        """Whether results stand for tensors on the GPU; an argument that says so is changed."""
        if not self.pretend:
            return False
        if self._is_cuda(named.get("device")):
            named["device"] = self._torch.device("cpu")
            named.pop("pin_memory", None)
            return True
        return any(map(self.storages.on_gpu, tensors))

    def _note(
        self,
        schema: Any,
        args: tuple[Any, ...],
        named: dict[str, Any],
        result: Any,
        is_known: bool,
    ) -> None:
        """Follow what storages hold."""
        name = schema.name.partition("::")[2]
        if name in _UNINITIALISED:
            self.storages.allocate(result, UNINITIALISED)
            if self.execution is not None:
                self.execution.allocated(result)
            elif self.pretend and result.device.type == "cpu" and _bytes(result) <= LARGE:
                # Recordings are to be alike.
                result.zero_()
        elif name in _ZEROED or (name in _FILLED and _is_zero(name, args, named)):
            if is_whole(result):
                self.storages.allocate(result, ZEROED)
            else:
                self.storages.write(result, True)
        elif name in _MOVING:
            if name != "set_":
                self.storages.spoil(result)
        elif schema.is_mutable:
            for value, argument in _arguments(schema, args, named):
                if _is_written(argument):
                    for tensor in self.tensors(value):
                        self.storages.write(tensor, is_known)
        elif not is_known and not _is_view(schema):
            for tensor in self.tensors(result):
                self.storages.spoil(tensor)

    def _stand_in(
        self,
        operation: Any,
        schema: Any,
        tensors: list[Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> tuple[Any] | None:
        """A result of the right shape for what is too large to carry out, else None."""
        if (
            not self.pretend
            or self.execution is not None
            or not _may_be_large(tensors, args, named)
            or _is_view(schema)
            or any(t.device.type != "cpu" for t in tensors)
            or is_python(operation)
        ):
            return None
        shapes = self._shapes(operation, schema, args, named)
        if shapes is None or not _is_large(schema, tensors, list(self.tensors(shapes))):
            return None
        if schema.is_mutable:
            return (_written(schema, args, named),)
        return (self._map(self._zeros, shapes),)

    def _zeros(self, like: Any) -> Any:
        """Zeros of the shape of a tensor without values."""
        if _bytes(like) > LARGE:
            return sparse_zeros(like.shape, like.stride(), like.dtype)
        return self._torch.zeros_like(like, device="cpu")

    def _shape_alone(self, tensor: Any) -> Any:
        """A tensor without values."""
        return self._torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
        )

    def tensors(self, value: Any) -> Iterator[Any]:
        """All tensors in tuples, lists and dicts."""
        pending = [value]
        while pending:
            item = pending.pop()
            if isinstance(item, self._torch.Tensor):
                yield item
            elif isinstance(item, tuple | list):
                pending.extend(item)
            elif isinstance(item, dict):
                pending.extend(item.values())

    def _map(self, change: Callable[[Any], Any], value: Any) -> Any:
        """The same structure with its tensors changed."""
        if isinstance(value, self._torch.Tensor):
            return change(value)
        if isinstance(value, tuple | list):
            return type(value)(self._map(change, item) for item in value)
        if isinstance(value, dict):
            return {key: self._map(change, item) for key, item in value.items()}
        return value


def _bytes(tensor: Any) -> int:
    """Bytes of all elements, repeated ones too, or of all that they span."""
    elements = max(int(tensor.numel()), extent(tensor.shape, tensor.stride()))
    return elements * int(tensor.dtype.itemsize)


def _is_zero(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """True for filling with 0."""
    position = 2 if name == "new_full" else 1
    value = named.get("fill_value", args[position] if len(args) > position else None)
    return isinstance(value, int | float) and value == 0


def _is_view(schema: Any) -> bool:
    """True for operations whose result lies in an argument's memory, without writing it."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def _arguments(
    schema: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> Iterator[tuple[Any, Any]]:
    """Values with the arguments of the schema that they are for."""
    for index, argument in enumerate(schema.arguments):
        if index < len(args):
            yield args[index], argument
        elif argument.name in named:
            yield named[argument.name], argument


def _is_written(argument: Any) -> bool:
    """True for an argument of a schema that the operation writes."""
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def _read(
    schema: Any,
    args: tuple[Any, ...],
    named: dict[str, Any],
    tensors: Callable[[Any], Iterator[Any]],
) -> Iterator[Any]:
    """The tensors that an operation reads: not those that it is given to put its results into."""
    room, _, name = schema.name.partition("::")
    # What operators of the user's do with what they are given is theirs to know.
    is_own = room == "aten"
    overwrites = name in _OVERWRITING
    for value, argument in _arguments(schema, args, named):
        if not (is_own and _is_written(argument) and (overwrites or argument.kwarg_only)):
            yield from tensors(value)


def _written(schema: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What an operation that writes its arguments returns: those."""
    written = [
        value for value, argument in _arguments(schema, args, named) if _is_written(argument)
    ]
    results = written[: len(schema.returns)]
    if not results:
        return None
    return results[0] if len(results) == 1 else tuple(results)


def _may_be_large(tensors: Iterable[Any], args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """False when no combination of the arguments can make something large."""
    bound = 16
    for tensor in tensors:
        bound *= max(1, tensor.numel())
    for value in (*args, *named.values()):
        if isinstance(value, int):
            bound *= max(1, abs(value))
        elif isinstance(value, tuple | list) and all(isinstance(v, int) for v in value):
            bound *= max(1, prod(max(1, abs(v)) for v in value))
    return bound > LARGE


def _is_large(schema: Any, tensors: list[Any], made: list[Any]) -> bool:
    """True for what is too large to compute."""
    if any(_bytes(t) > LARGE for t in (*tensors, *made)):
        return True
    name = schema.name.partition("::")[2]
    if name not in _PRODUCTS or not made or not tensors:
        return False
    largest = max(t.numel() for t in tensors)
    return bool(made[0].numel() * (largest**0.5) > _SLOW)


def _attributes(stage: Stage, torch: Any) -> dict[Any, Callable[[Any], Any]]:
    """What a tensor says of where it is."""
    device = torch.device("cuda", 0)
    real = torch.Tensor.device.__get__

    def on_gpu(tensor: Any) -> bool:
        return stage.storages.on_gpu(tensor)

    return {
        torch.Tensor.is_cuda.__get__: on_gpu,
        torch.Tensor.is_cpu.__get__: lambda t: real(t).type == "cpu" and not on_gpu(t),
        torch.Tensor.device.__get__: lambda t: device if on_gpu(t) else real(t),
        torch.Tensor.get_device: lambda t: 0 if on_gpu(t) else -1,
        torch.Tensor.pin_memory: lambda t: t,
        torch.Tensor.is_pinned: lambda t: False,
        torch.Tensor.record_stream: lambda t: None,
    }


def _makers(torch: Any) -> frozenset[Any]:
    """Functions that make tensors on the default device."""
    from torch.utils._device import _device_constructors

    return frozenset(_device_constructors())


def _modes(stage: Stage) -> tuple[Any, Any]:
    """The classes of the two modes."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Calls(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return stage.call(function, tuple(args), dict(kwargs or {}))

    class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return stage.dispatch(operation, tuple(args), dict(kwargs or {}))

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """True where torch's compiler is to work as if nobody watched, and what it made is
            watched as it runs. Otherwise it leaves functions as they stand under a mode."""
            return not stage.pretend

    return Calls, Operations


def _dispatch_modes() -> list[Any]:
    """Modes of operations that are active in this thread."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    return list(_get_current_dispatch_mode_stack())


def _function_modes() -> list[Any]:
    """Modes of calls that are active in this thread."""
    from torch.overrides import _get_current_function_mode_stack

    return list(_get_current_function_mode_stack())  # type: ignore[no-untyped-call]
