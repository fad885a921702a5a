"""What tensors of a launch hold when a kernel is run: seeded, the same on every machine.

A storage is filled whole, by the type of the first tensor that lies in it. What the launch says was
freshly allocated stays so: zeros, or blank, where no file gives it.
"""

from __future__ import annotations

import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.formats import Array
from ptxlint.dynamic.emulator.rounding import FORMATS, encoded, narrowed, to_bf16
from ptxlint.launches import DTYPE_BYTES, Tensor

_FLOATS: Final = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
_NARROW: Final = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
_COMPLEX: Final = {"complex64": np.float32, "complex128": np.float64, "complex32": np.float16}


class InputError(ValueError):
    """Contents that do not fit the launch: the text says which and what to do."""


class Inputs(Protocol):
    """Where contents come from."""

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """The bytes of the storage behind an argument, `size` of them; None for blank memory."""

    def made_up(self, name: str, tensor: Tensor) -> str:
        """What a tensor holds that nobody told, in words; empty if somebody did."""


class Laid(ABC):
    """Contents of tensors, not of storages: each is laid over what its storage holds otherwise."""

    @abstractmethod
    def has(self, name: str, tensor: Tensor) -> bool:
        """True if there is something to lay for a tensor."""

    @abstractmethod
    def lay(self, name: str, tensor: Tensor, storage: Array) -> None:
        """Write what a tensor holds into the bytes of its storage. Raises `InputError`."""


class PartlyBlank(ABC):
    """Contents of which some bytes may be blank."""

    @abstractmethod
    def written(self, name: str, tensor: Tensor, size: int) -> NDArray[np.bool_] | None:
        """Flags of the bytes, `size` of them, that something was written to; None for all."""


def storage_contents(
    inputs: Inputs, views: Sequence[tuple[str, Tensor]], size: int
) -> Array | None:
    """What a storage holds that these tensors lie in, by argument name; None for blank memory."""
    name, tensor = views[0]
    out = inputs.contents(name, tensor, size)
    if isinstance(inputs, Laid):
        for each, view_ in views:
            if inputs.has(each, view_):
                out = np.zeros(size, dtype=np.uint8) if out is None else out
                inputs.lay(each, view_, out)
    return out


def _told(name: str, tensor: Tensor, size: int) -> Array | None:
    """The numbers that the launch tells of a tensor's storage; None if it tells none. Raises
    `InputError` for more than fit in."""
    if tensor.contents is None:
        return None
    kind = np.dtype(np.uint8 if tensor.dtype == "bool" else tensor.dtype)
    out = np.zeros(size, dtype=np.uint8)
    flat = np.array(tensor.contents).astype(kind).view(np.uint8)
    if len(flat) > size:
        raise InputError(
            f"the launch tells {len(tensor.contents):,} numbers of `{name}`, {len(flat):,} bytes, "
            f"and its memory has {size:,}"
        )
    out[: len(flat)] = flat
    return out


def read_arrays(path: str) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz. Nothing in it is executed. Raises `InputError`."""
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise InputError(f"{path}: this is one array, without a name; save it with np.savez")
        with file:
            return {name: file[name] for name in file.files}
    except InputError:
        raise
    except OSError as error:
        why = error.strerror or error
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        why = f"no .npz file that can be read: {error}"
    except MemoryError:
        why = "an array in it is larger than the memory"
    raise InputError(f"{path}: {why}")


class RandomInputs:
    """Numbers from PCG64, seeded by the seed and the argument's name; what the launch tells of a
    tensor is taken as it is.

    Floating-point numbers are normal with variance 1; integers are uniform between the values that
    the launch promises, else between all that 8 bits hold; wider ones without a promise are zeros,
    as most are indices or lengths, for which any other number could be one too many.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """Drawn anew for each name."""
        if tensor.fresh == "uninitialised":
            return None
        if tensor.fresh == "zeroed":
            return np.zeros(size, dtype=np.uint8)
        told = _told(name, tensor, size)
        if told is not None:
            return told
        generator = np.random.Generator(np.random.PCG64([self.seed, zlib.crc32(name.encode())]))
        drawn = _drawn(generator, tensor, size // DTYPE_BYTES[tensor.dtype])
        out = np.zeros(size, dtype=np.uint8)
        flat = np.ascontiguousarray(drawn).view(np.uint8)
        out[: len(flat)] = flat
        return out

    def made_up(self, name: str, tensor: Tensor) -> str:
        """What is drawn, or that it is zeros."""
        if _is_told(tensor):
            return ""
        width, kind = DTYPE_BYTES[tensor.dtype], tensor.dtype
        is_whole = kind == "bool" or "int" in kind
        if is_whole and tensor.values is not None and kind != "bool":
            return "random between {:,} and {:,}".format(*tensor.values)
        return "zeros" if is_whole and width > 1 else "random"


def _is_told(tensor: Tensor) -> bool:
    """True if the launch says what a tensor holds."""
    return bool(tensor.fresh) or tensor.contents is not None


def _drawn(generator: np.random.Generator, tensor: Tensor, count: int) -> Array:
    kind = tensor.dtype
    if kind in _COMPLEX:
        return generator.standard_normal(2 * count).astype(_COMPLEX[kind])
    if kind in _FLOATS or kind == "bfloat16" or kind in _NARROW:
        return as_stored(generator.standard_normal(count), kind)
    if kind == "bool":
        return generator.integers(0, 2, count).astype(np.uint8)
    if kind.startswith("float"):
        return generator.integers(0, 256, count * DTYPE_BYTES[kind]).astype(np.uint8)
    target = np.dtype(kind)
    if tensor.values is not None:
        low, high = tensor.values
        return generator.integers(low, high, count, endpoint=True, dtype=np.int64).astype(target)
    if target.itemsize == 1:
        return generator.integers(0, 256, count).astype(np.uint8)
    return np.zeros(count, dtype=target)


def as_stored(values: NDArray[np.float64], kind: str) -> Array:
    """Numbers rounded to a floating-point type of torch's names, as its bits are kept."""
    if kind in _FLOATS:
        return values.astype(_FLOATS[kind])
    if kind == "bfloat16":
        return to_bf16(values.astype(np.float32))
    form = FORMATS[_NARROW[kind]]
    return encoded(narrowed(values, form, "rn", True), form)


class ZeroInputs:
    """Zeros everywhere."""

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """Blank where the host left it so, what the launch tells where it tells something."""
        if tensor.fresh == "uninitialised":
            return None
        told = _told(name, tensor, size)
        return np.zeros(size, dtype=np.uint8) if told is None else told

    def made_up(self, name: str, tensor: Tensor) -> str:
        """Zeros, where the launch tells nothing."""
        return "" if _is_told(tensor) else "zeros"


class GivenInputs(Laid):
    """Arrays by argument name, and something else for arguments that have none."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], others: Inputs, where: str) -> None:
        self._arrays = dict(arrays)
        self._others = others
        self._where = where
        self._used: set[str] = set()
        self._asked: dict[str, None] = {}
        """Arguments of all launches so far."""

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """What lies beside the arrays."""
        return self._others.contents(name, tensor, size)

    def has(self, name: str, tensor: Tensor) -> bool:
        """True if there is an array of the argument's name."""
        self._asked[name] = None
        return name in self._arrays

    def lay(self, name: str, tensor: Tensor, storage: Array) -> None:
        """The array's elements, by the tensor's strides. Raises `InputError`."""
        given = self._arrays[name]
        self._used.add(name)
        if given.shape != tensor.shape:
            raise InputError(
                f"{self._where}: `{name}` has shape {list(given.shape)}, the launch has "
                f"{list(tensor.shape)}"
            )
        fitting = fitted(given, tensor.dtype)
        if fitting is None:
            raise InputError(
                f"{self._where}: `{name}` is {given.dtype}, the launch has {tensor.dtype}"
            )
        width = DTYPE_BYTES[tensor.dtype]
        view(storage, tensor, width)[...] = np.ascontiguousarray(fitting).view(f"V{width}")

    def unused(self) -> list[str]:
        """What to say of arrays that no argument is called after."""
        out = []
        for name in self._arrays.keys() - self._used:
            near = get_close_matches(name, self._asked, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"they are {', '.join(self._asked)}"
            out.append(f"{self._where}: no tensor of the launch is called `{name}`; {hint}")
        return sorted(out) if self._asked else []

    def origin(self, name: str, tensor: Tensor) -> str:
        """Where a tensor's contents come from, in words."""
        return "given" if name in self._arrays else _otherwise(tensor)

    def made_up(self, name: str, tensor: Tensor) -> str:
        """What lies beside the arrays."""
        return "" if name in self._arrays else self._others.made_up(name, tensor)


class RecordedInputs(Laid):
    """What tensors held when the launch was captured, and something else where that is not
    recorded."""

    def __init__(self, others: Inputs) -> None:
        self._others = others
        self._files: dict[str, Mapping[str, NDArray[Any]]] = {}

    def contents(self, name: str, tensor: Tensor, size: int) -> Array | None:
        """What lies beside the recordings."""
        return self._others.contents(name, tensor, size)

    def has(self, name: str, tensor: Tensor) -> bool:
        """True if the tensor's memory was recorded."""
        return is_recorded(tensor)

    def lay(self, name: str, tensor: Tensor, storage: Array) -> None:
        """The bytes as they were. Raises `InputError` where the file has others."""
        found = tensor.recorded
        assert found is not None
        if found.path not in self._files:
            self._files[found.path] = read_arrays(found.path)
        data = self._files[found.path].get(found.key)
        if data is None or data.dtype != np.uint8 or data.ndim != 1:
            raise InputError(f"{found.path}: what `{name}` held is not in it; capture it again")
        if found.start + len(data) > len(storage):
            raise InputError(
                f"{found.path}: {len(data):,} bytes for `{name}` from byte {found.start:,} on, and "
                f"its memory has {len(storage):,}; capture it again"
            )
        storage[found.start : found.start + len(data)] = data

    def origin(self, name: str, tensor: Tensor) -> str:
        """Where a tensor's contents come from, in words."""
        found = tensor.recorded
        if found is None or not found.key:
            reason = f" ({found.reason})" if found is not None and found.reason else ""
            return f"{_otherwise(tensor)}{reason}"
        return "recorded" if found.known else "recorded, not as a GPU would hold it"

    def made_up(self, name: str, tensor: Tensor) -> str:
        """What lies beside the recordings, and what was recorded where no kernel had run."""
        if not is_recorded(tensor):
            return self._others.made_up(name, tensor)
        return "" if tensor.recorded and tensor.recorded.known else self.origin(name, tensor)


def is_recorded(tensor: Tensor) -> bool:
    """True if what a tensor's memory held is at hand."""
    return tensor.recorded is not None and bool(tensor.recorded.key)


def _otherwise(tensor: Tensor) -> str:
    """What a tensor holds for which there is nothing else."""
    if tensor.fresh:
        return "zeros" if tensor.fresh == "zeroed" else "uninitialised"
    return "told by the launch" if tensor.contents is not None else "random"


def fitted(given: NDArray[Any], kind: str) -> Array | None:
    """An array as elements of a type of torch's names: floating-point numbers are rounded, whole
    numbers must fit, and of what numpy has no type the bits may be given; None if it does not fit.
    """
    width, source = DTYPE_BYTES[kind], given.dtype
    if source.name == kind:
        return given
    if source.kind == "f" and (kind in _FLOATS or kind == "bfloat16" or kind in _NARROW):
        return as_stored(given.astype(np.float64), kind)
    if (
        source.kind in "uV"
        and source.itemsize == width
        and (source.kind == "V" or _has_no_numpy_type(kind))
    ):
        return given
    if source.kind in "iub" and (kind == "bool" or "int" in kind):
        target = np.dtype(np.uint8 if kind == "bool" else kind)
        moved = given.astype(target)
        return moved if np.array_equal(moved, given) else None
    return None


def _has_no_numpy_type(kind: str) -> bool:
    return kind == "complex32" or kind == "bfloat16" or kind.startswith(("float8", "float4"))


def typed(array: Array, kind: str) -> Array:
    """Bits of elements as numpy's type, or as unsigned numbers where it has none."""
    width = DTYPE_BYTES[kind]
    if not _has_no_numpy_type(kind):
        return array.view(np.dtype(kind))
    return array.view(f"u{width}")


def view(storage: NDArray[np.uint8], tensor: Tensor, width: int) -> Array:
    """A tensor's elements in its storage, `width` bytes each, by shape and strides."""
    if 0 in tensor.shape:
        return np.zeros(tensor.shape, dtype=f"V{width}")
    if tensor.offset % width:
        raise InputError(f"a {tensor.dtype} begins at byte {tensor.offset} of its storage")
    count = len(storage) // width * width
    flat = storage[:count].view(f"V{width}")[tensor.offset // width :]
    strides = tuple(step * width for step in tensor.strides)
    return np.lib.stride_tricks.as_strided(flat, tensor.shape, strides)


__all__ = [
    "GivenInputs", "InputError", "Inputs", "Laid", "RandomInputs", "RecordedInputs", "ZeroInputs",
    "as_stored", "fitted", "is_recorded", "read_arrays", "storage_contents", "typed", "view",
]  # fmt: skip
