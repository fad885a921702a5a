"""Arguments of a launch, bound to the parameters of a compiled kernel.

Triton drops what is compiled in, takes tensor descriptors apart and appends two pointers to scratch
memory. So the arguments that are no constants are laid against the declared parameters in order, or
by name where names are known, and every count and width must fit: an argument list that does not is
a `BindingError`, never a guess. That an argument was dropped is never concluded from its value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ptxlint.facts import KernelMetadata
from ptxlint.ir.function import Function, Variable
from ptxlint.ir.operand import Address, Symbol
from ptxlint.ir.types import FLOATS
from ptxlint.launches import (
    AS_COMPILED,
    SCALAR_BYTES,
    Argument,
    Constant,
    Descriptor,
    Extent,
    Launch,
    Scalar,
    Tensor,
    Unknown,
)

STORAGE_STEP: Final = 1 << 40
"""How far the made-up addresses of two storages lie apart at least."""
_SCRATCH: Final = 2
"""Pointers that Triton appends: to global and to profile scratch memory."""
_SCRATCH_NAMES: Final = ("global scratch", "profile scratch")
_POINTER: Final = 8
_TENSOR_MAP: Final = 128
"""Bytes of a tensor descriptor as the hardware reads it."""
_MOST_NAMED: Final = 6


class BindingError(ValueError):
    """A launch that does not fit the kernel: the text says what does not, and what to do.

    `reason` is the text without the launch's place.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.reason = reason


class Region(NamedTuple):
    """What a pointer parameter points into.

    `name` is the source's. `address` is made up: storages lie `STORAGE_STEP` apart, and the first
    element is aligned exactly as promised, so that an address which wraps around or leaves its
    storage can be judged. Bytes from `low` up to, not including, `high` from `address` are the
    storage's; none if it was freed.
    """

    name: str
    storage: int
    address: int
    low: int
    high: int
    tensor: Tensor


def end_of_storage(tensor: Tensor) -> int:
    """Bytes from the first element up to behind the last byte that may be accessed."""
    return (0 if tensor.freed else tensor.storage_bytes) - tensor.offset


class Bound(NamedTuple):
    """A launch as one kernel sees it.

    `values` holds integers (floats as their bits) and `floats` numbers, both by parameter and byte
    offset in it; `regions` what each pointer points into; `descriptors` what each descriptor
    describes. Scratch memory is in none of them unless the launch tells its size. `names` is what
    the source calls the parameters.
    """

    launch: Launch
    values: dict[tuple[str, int], int]
    floats: dict[tuple[str, int], float]
    regions: dict[str, Region]
    descriptors: dict[str, Region]
    grid: Extent
    block: Extent
    shared: int
    """Dynamic shared memory in bytes; -1 when nobody says."""
    names: dict[str, str]
    arguments: dict[str, Argument]
    """Those of the launch, by the source's names where they are known."""

    def value(self, name: str, offset: int, low: int, high: int) -> int | None:
        """What a load from a parameter brings, as the integer of the range `low` … `high` that its
        bits stand for (their number is a power of two); None if it is not known.

        The addresses of `regions` are not among them.
        """
        found = self.values.get((name, offset))
        if found is None and offset:
            whole = self.values.get((name, 0))
            found = None if whole is None else whole >> (8 * offset)
        return None if found is None else (found - low) % (high - low + 1) + low


def bind(
    function: Function,
    launch: Launch,
    names: Mapping[str, str],
    metadata: KernelMetadata | None = None,
) -> Bound:
    """Lay the arguments of a launch against the parameters of a kernel.

    `names` is what the source calls the parameters, by their names in the PTX, as far as that is
    certain. Raises `BindingError`.
    """
    return _Binding(function, launch, names).bound(metadata)


class _Binding:
    """One launch and one kernel, while they are bound."""

    def __init__(self, function: Function, launch: Launch, names: Mapping[str, str]) -> None:
        self.function = function
        self.launch = launch
        self.declared: tuple[Variable, ...] = function.params
        self.source_names = names
        self.values: dict[tuple[str, int], int] = {}
        self.floats: dict[tuple[str, int], float] = {}
        self.regions: dict[str, Region] = {}
        self.descriptors: dict[str, Region] = {}
        self.names: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        """What an argument is called for people, by its key in the launch."""
        self.starts = storage_starts(launch.arguments.values())

    def bound(self, metadata: KernelMetadata | None) -> Bound:
        if self._is_by_parameter():
            self._by_parameter()
        elif self.launch.is_ordered or not self.launch.arguments:
            self._in_order(list(self.launch.arguments.items()))
        else:
            self._by_source_name()
        shared = self.launch.shared
        if shared < 0 and metadata is not None and metadata.shared is not None:
            shared = metadata.shared
        return Bound(
            self.launch,
            self.values,
            self.floats,
            self.regions,
            self.descriptors,
            self._grid(),
            self._block(metadata),
            shared,
            self.names,
            {self.shown.get(key, key): a for key, a in self.launch.arguments.items()},
        )

    # Which argument belongs to which parameter.

    def _is_by_parameter(self) -> bool:
        """True if an argument is called as the PTX calls a parameter."""
        return any(variable.name in self.launch.arguments for variable in self.declared)

    def _by_parameter(self) -> None:
        known = {variable.name: variable for variable in self.declared}
        for name, argument in self.launch.arguments.items():
            if name not in known:
                raise self._error(
                    f"`{name}` is no parameter of the kernel, which has {_listed(known)}; use "
                    "either these names or the source's for all arguments"
                )
            if isinstance(argument, Constant):
                raise self._error(
                    f"`{name}` is a constant here and a parameter of the kernel: a constant is "
                    "compiled in and no parameter; give its value as a scalar"
                )
            self.shown[name] = self.source_names.get(name, name)
            if self._width(argument, self.declared.index(known[name])) > 1:
                raise self._error(
                    f"`{name}` is a descriptor, which takes several parameters: give the arguments "
                    "as a list or by the source's names"
                )
            self._give(self.shown[name], argument, [known[name]])
        left = [v for v in self.declared if v.name not in self.launch.arguments]
        self._check_left(left, self._count_own())

    def _in_order(self, arguments: list[tuple[str, Argument]]) -> None:
        given = [(name, a) for name, a in arguments if not isinstance(a, Constant)]
        self._check_order([name for name, _ in given])
        left = len(self.declared) - self._count(given)
        if left not in self._scratch_counts():
            raise self._count_error(given)
        at = 0
        for name, argument in given:
            count = self._width(argument, at)
            if name.isdecimal():
                ptx = self.declared[at].name
                self.shown[name] = self.source_names.get(ptx, ptx)
                name = self.shown[name]
            self._give(name, argument, self.declared[at : at + count])
            at += count
        self._check_left(list(self.declared[at:]), self._count_own(), given)

    def _by_source_name(self) -> None:
        if not self.source_names:
            raise self._error(
                "what the source calls the kernel's parameters is not known, as there is no .ttir "
                "beside the PTX; give `arguments` as a list, in the parameters' order and without "
                f"constants, or call them {_listed([v.name for v in self.declared])}"
            )
        places = {self.source_names[v.name]: i for i, v in enumerate(self.declared)
                  if v.name in self.source_names}  # fmt: skip
        for name, argument in self.launch.arguments.items():
            if isinstance(argument, Constant):
                if name in places:
                    raise self._error(
                        f"`{name}` is a constant in the launch and a parameter of this kernel "
                        f"({self.declared[places[name]].name}): the launch is one of another build"
                    )
            elif name not in places:
                raise self._error(
                    f"`{name}` is no parameter of the kernel, which has {_listed(places)}; if it "
                    f'was compiled in, write {{"kind": "constant", "value": …}}'
                )
        taken: set[int] = set()
        for name, place in places.items():
            if name not in self.launch.arguments:
                raise self._error(f"no argument for parameter `{name}`")
            argument = self.launch.arguments[name]
            count = self._width(argument, place)
            if place + count > len(self.declared):
                raise self._error(f"`{name}`: the kernel has too few parameters for a descriptor")
            self._give(name, argument, self.declared[place : place + count])
            taken.update(range(place, place + count))
        left = [v for i, v in enumerate(self.declared) if i not in taken]
        self._check_left(left, self._count_own())

    def _check_order(self, given: list[str]) -> None:
        """The order of a signature and the names in Triton's IR must not contradict each other."""
        known = [self.source_names[v.name] for v in self.declared if v.name in self.source_names]
        ours = [name for name in given if name in known]
        if ours != [name for name in known if name in ours]:
            raise self._error(
                f"the arguments stand in the order {_listed(ours)}, the kernel's parameters in "
                f"the order {_listed(known)}: the launch is one of another build"
            )

    def _count_own(self) -> int:
        """How many of the parameters the source has, as far as their names are known."""
        return sum(variable.name in self.source_names for variable in self.declared)

    def _check_left(
        self,
        left: Sequence[Variable],
        own: int,
        given: Sequence[tuple[str, Argument]] | None = None,
    ) -> None:
        """What no argument was given to must be scratch memory."""
        missing = [v for v in left if v.name in self.source_names]
        if missing:
            raise self._missing([self.source_names[v.name] for v in missing])
        tail = self.declared[len(self.declared) - len(left) :]
        is_scratch = (
            len(left) in self._scratch_counts()
            and list(tail) == list(left)
            and all(v.size == _POINTER and not v.dims and "ptr" in v.attributes for v in left)
        )
        # Nobody says which parameters are Triton's: then only one that is never read is left out.
        is_told = own > 0 or (given is not None and self.launch.is_ordered and self._is_triton())
        if not is_scratch or (left and not is_told and self._are_read(left)):
            if given is not None:
                raise self._count_error(given)
            raise self._missing([v.name for v in left])
        if self.launch.scratch is not None:
            for number, variable in enumerate(left):
                self._give_scratch(number, self.launch.scratch[number], variable)

    def _give_scratch(self, number: int, size: int, variable: Variable) -> None:
        if size == 0:
            self.values[variable.name, 0] = 0
            return
        name = self.names[variable.name] = _SCRATCH_NAMES[number]
        # No argument has a negative storage, or lies below the first step.
        tensor = Tensor("uint8", (size,), (1,), -1 - number, size)
        address = STORAGE_STEP >> (1 + number)
        self.regions[variable.name] = Region(name, tensor.storage, address, 0, size, tensor)

    def _count(self, given: Sequence[tuple[str, Argument]]) -> int:
        """How many parameters these arguments take one after the other."""
        at = 0
        for _, argument in given:
            at += self._width(argument, at)
        return at

    def _scratch_counts(self) -> tuple[int, ...]:
        """How many parameters may be left over."""
        if self.launch.scratch is not None:
            return (_SCRATCH,)
        return (0, 1, _SCRATCH) if self.source_names else (0, _SCRATCH)

    def _missing(self, names: Sequence[str]) -> BindingError:
        return self._error(f"no argument for parameter{'s' * (len(names) > 1)} {_listed(names)}")

    def _is_triton(self) -> bool:
        """True if scratch memory or a constant is in the launch, as Triton's have them."""
        given = self.launch.arguments.values()
        return self.launch.scratch is not None or any(isinstance(a, Constant) for a in given)

    def _are_read(self, variables: Sequence[Variable]) -> bool:
        """True if an instruction names one of these parameters."""
        wanted = frozenset(variable.name for variable in variables)
        for instr in self.function.instrs:
            for operand in instr.operands:
                base = operand.base if isinstance(operand, Address) else operand
                if isinstance(base, Symbol) and base.name in wanted:
                    return True
        return False

    def _width(self, argument: Argument, at: int) -> int:
        """How many parameters an argument takes, from number `at` on."""
        if not isinstance(argument, Descriptor):
            return 1
        if argument.by:
            return 1 + len(argument.passed)
        axes = len(argument.tensor.shape)
        if at < len(self.declared) and self.declared[at].size == _TENSOR_MAP:
            return 1 + 2 * axes
        # Without hardware for them: pointer, shape, strides, flags of one byte, and both again.
        flags = 1 + 2 * axes
        while at + flags < len(self.declared) and self.declared[at + flags].size == 1:
            flags += 1
        return flags + 2 * axes

    # What an argument gives to its parameters.

    def _give(self, name: str, argument: Argument, declared: Sequence[Variable]) -> None:
        first = declared[0]
        if isinstance(argument, Tensor):
            self._names_and_width(name, first, _POINTER, "a tensor")
            self.regions[first.name] = self._region(name, argument)
        elif isinstance(argument, Descriptor):
            self._give_descriptor(name, argument, declared)
        elif isinstance(argument, Scalar):
            self._give_scalar(name, argument, first)
        elif isinstance(argument, Unknown):
            self.names[first.name] = name

    def _give_scalar(self, name: str, argument: Scalar, variable: Variable) -> None:
        if not argument.type:
            argument = Scalar(self._type_of(name, argument.value, variable), argument.value)
        size = SCALAR_BYTES.get(argument.type)
        if size is None:
            raise self._error(
                f"`{name}` has the type {argument.type!r}, which is none of "
                f"{', '.join(SCALAR_BYTES)}"
            )
        self._names_and_width(name, variable, size, f"a scalar of type {argument.type}")
        number = argument.value
        if "ptr" in variable.attributes and number:
            raise self._error(
                f"`{name}` is a number and its parameter {variable.name} is a pointer; give the "
                "tensor that it points to, or 0 for none"
            )
        if argument.type.startswith(("f", "b")):
            self.floats[variable.name, 0] = float(number)
            self.values[variable.name, 0] = _bits(float(number), argument.type)
            return
        if isinstance(number, float) and not number.is_integer():
            raise self._error(f"`{name}` is {number!r}, which is no value of {argument.type}")
        width = 1 if argument.type in ("i1", "u1") else 8 * size
        signed = argument.type.startswith("i") and width > 1
        low = -(1 << (width - 1)) if signed else 0
        if not low <= number < low + (1 << width):
            raise self._error(
                f"`{name}` is {number}, which {argument.type} does not hold "
                f"({low} to {low + (1 << width) - 1})"
            )
        self.values[variable.name, 0] = int(number)

    def _type_of(self, name: str, number: int | float, variable: Variable) -> str:
        """The type of a number of which only the parameter tells it."""
        size = variable.size
        if size not in (1, 2, 4, 8) or variable.dims:
            raise self._error(
                f"`{name}` is a number and its parameter {variable.name} has {size} bytes"
            )
        if isinstance(number, float) or variable.type in FLOATS:
            return {2: "bf16" if variable.type == "bf16" else "fp16", 4: "fp32", 8: "fp64"}.get(
                size, "float of 1 byte"
            )
        return f"{'u' if number >> (8 * size - 1) > 0 else 'i'}{8 * size}"

    def _give_descriptor(
        self, name: str, argument: Descriptor, declared: Sequence[Variable]
    ) -> None:
        first, tensor = declared[0], argument.tensor
        region = self._region(name, tensor)
        axes = len(tensor.shape)
        numbers: list[tuple[int, int | None]] = [
            *((4, extent) for extent in tensor.shape),
            *((8, stride) for stride in tensor.strides),
        ]
        if argument.by:
            numbers = [(SCALAR_BYTES.get(s.type, 0), int(s.value)) for s in argument.passed]
        if argument.by == "map" or (not argument.by and first.size == _TENSOR_MAP):
            self._names_and_width(name, first, _TENSOR_MAP, "a tensor map")
            self.descriptors[first.name] = region
        else:
            self._names_and_width(name, first, _POINTER, "a tensor descriptor")
            self.regions[first.name] = region
        if not argument.by and first.size != _TENSOR_MAP:
            flags = len(declared) - 1 - 4 * axes
            both = (*tensor.shape, *tensor.strides)
            numbers = [
                *((8, number) for number in both),
                *((1, int(argument.padding == "nan")) for _ in range(min(flags, 1))),
                # Whether it rounds to tf32 the launch does not tell.
                *((1, None) for _ in range(flags - 1)),
                *numbers,
            ]
        parts = [f"{name}.{field}[{i}]" for field in ("shape", "strides") for i in range(axes)]
        for at, (variable, (size, number)) in enumerate(zip(declared[1:], numbers, strict=True)):
            if at < len(parts):
                self.names[variable.name] = parts[at]
            self._names_and_width(name, variable, size, "a part of a tensor descriptor")
            if number is not None:
                self.values[variable.name, 0] = number

    def _names_and_width(self, name: str, variable: Variable, size: int, what: str) -> None:
        self.names.setdefault(variable.name, name)
        if variable.size != size:
            raise self._error(
                f"`{name}` is {what}, {size} byte{'s' * (size > 1)}, and its parameter "
                f"{variable.name} has {variable.size}: the launch is one of another build, or the "
                "arguments are out of order"
            )

    def _region(self, name: str, tensor: Tensor) -> Region:
        if tensor.offset < 0 or tensor.offset > tensor.storage_bytes:
            raise self._error(
                f"`{name}` starts {tensor.offset} bytes into a storage of {tensor.storage_bytes}"
            )
        if len(tensor.shape) != len(tensor.strides):
            raise self._error(
                f"`{name}` has {len(tensor.shape)} extents and {len(tensor.strides)} strides"
            )
        address = self.starts[tensor.storage] + tensor.offset
        return Region(name, tensor.storage, address, -tensor.offset, end_of_storage(tensor), tensor)

    # The rest of the launch.

    def _grid(self) -> Extent:
        if min(self.launch.grid) < 0:
            raise self._error(f"the grid {_extent(self.launch.grid)} has a negative extent")
        return self.launch.grid

    def _block(self, metadata: KernelMetadata | None) -> Extent:
        """The block: as given, and then it must be what the kernel was compiled for."""
        given = self.launch.block
        required = self.function.directives.get("reqntid")
        fixed = _padded(required) if required else None
        if given != AS_COMPILED:
            if min(given) < 0:
                raise self._error(f"the block {_extent(given)} has a negative extent")
            if fixed is not None and given != fixed:
                raise self._error(
                    f"the block is {_extent(given)}, and the kernel is compiled for "
                    f"{_extent(fixed)} (.reqntid): the device refuses such a launch"
                )
            return given
        if fixed is not None:
            return fixed
        if metadata is not None and metadata.num_warps:
            return (32 * metadata.num_warps, 1, 1)
        raise self._error("the launch needs a `block`: neither .reqntid nor metadata tell its size")

    def _count_error(self, given: Sequence[tuple[str, Argument]]) -> BindingError:
        if not given:
            # Which of them are Triton's is not known; those are seldom read.
            every = [v.name for v in self.declared]
            read = [v.name for v in self.declared if self._are_read([v])]
            return self._missing([*self.source_names.values()] or read or every)
        wanted = len(given)
        has = len(self.declared)
        text = f"{wanted} argument{'s' * (wanted != 1)} that {'is' if wanted == 1 else 'are'} no "
        text += f"constant ({_listed([name for name, _ in given])}) for {has} "
        text += f"parameter{'s' * (has != 1)}"
        if self.source_names:
            text += f" ({_listed(list(self.source_names.values()))})"
        scratch = "of which Triton adds up to two, pointers to scratch memory"
        return self._error(f"{text}, {scratch}" if has else text)

    def _error(self, text: str) -> BindingError:
        return BindingError(self.launch.place, f"launch of {self.function.name}: {text}")


def storage_starts(arguments: Any) -> dict[int, int]:
    """A made-up address for each storage."""
    tensors: dict[int, list[Tensor]] = {}
    for argument in arguments:
        tensor = argument.tensor if isinstance(argument, Descriptor) else argument
        if isinstance(tensor, Tensor):
            tensors.setdefault(tensor.storage, []).append(tensor)
    out: dict[int, int] = {}
    at = STORAGE_STEP
    for storage, views in tensors.items():
        best = max(views, key=lambda view: view.alignment)
        out[storage] = at + (best.alignment - best.offset) % (2 * best.alignment)
        size = max(view.storage_bytes for view in views)
        at += STORAGE_STEP * (size // STORAGE_STEP + 2)
    return out


def _bits(number: float, type_name: str) -> int:
    """The bits of a floating-point number, rounded to its type."""
    if type_name == "bf16":
        whole = _bits(number, "fp32")
        return whole >> 16 if number != number else (whole + 0x7FFF + (whole >> 16 & 1)) >> 16
    code, count = {"fp16": ("<e", 2), "fp64": ("<d", 8)}.get(type_name, ("<f", 4))
    try:
        data = struct.pack(code, number)
    except OverflowError:
        data = struct.pack(code, float("inf") if number > 0 else float("-inf"))
    return int.from_bytes(data[:count], "little")


def _padded(extents: Sequence[int | str]) -> Extent:
    values = [int(extent) for extent in extents] + [1, 1]
    return values[0], values[1], values[2]


def _extent(extent: Extent) -> str:
    return f"({', '.join(map(str, extent))})"


def _listed(names: Any) -> str:
    """Names as prose, the first few of many."""
    every = [f"`{name}`" for name in names]
    if len(every) > _MOST_NAMED:
        return f"{', '.join(every[:_MOST_NAMED])} and {len(every) - _MOST_NAMED} more"
    return ", ".join(every) if every else "none"
