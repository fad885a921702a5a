"""The JSON layout of launches, which hand-written files and captured bundles share.

The reader says of each fault where it is (`launches[0].arguments.x.shape`), what is wrong there,
and what to write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ptxlint.frontends.launch_nodes import (
    LARGEST,
    Node,
    Step,
    given,
    nearest,
    needed,
    shown,
    spelled,
)
from ptxlint.frontends.launch_numbers import read_numbers
from ptxlint.launches import (
    AS_COMPILED,
    DTYPE_BYTES,
    SCALAR_BYTES,
    Argument,
    Autotuned,
    Constant,
    Descriptor,
    Extent,
    Launch,
    Recorded,
    Scalar,
    Tensor,
    Unknown,
)

_SHORT = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([\s\d,]*)\]\s*")
_LAUNCH_KEYS: Final = frozenset(
    "kernel grid block cluster shared scratch count place autotuned arguments".split()
)
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "tensor": frozenset(
        "kind dtype shape strides storage storage_bytes offset alignment fresh values "
        "contents freed recorded".split()
    ),
    "scalar": frozenset(("kind", "type", "value")),
    "constant": frozenset(("kind", "value")),
    "descriptor": frozenset("kind tensor block padding by passed".split()),
    "tuple": frozenset(("kind", "items")),
    "unknown": frozenset("kind type reason".split()),
}
_RECORDED_KEYS: Final = frozenset(("key", "start", "known", "reason"))
_FRESH: Final = ("", "uninitialised", "zeroed")


def read_launch(node: Node, place: str, recordings: str = "") -> Launch:
    """One launch. `place` says where it is from, if the data does not; `recordings` is the .npz
    with what its tensors held. Raises `LayoutError`."""
    members = node.mapping("a launch", _LAUNCH_KEYS)
    grid = needed(node, members, "grid", "CTAs in x, y and z, as [100, 1, 1]")
    arguments = needed(node, members, "arguments", "what is passed, by the parameters' names")
    values, is_ordered = _Arguments(arguments, recordings).read()
    if "autotuned" in members:
        _check_tuned(members["autotuned"], values)
    return Launch(
        _extent(grid, 0),
        given(members, "block", lambda n: _extent(n, 1), AS_COMPILED),
        values,
        given(members, "shared", lambda n: n.integer(0), -1),
        given(members, "cluster", lambda n: _extent(n, 1), (1, 1, 1)),
        given(members, "autotuned", _autotuned, None),
        given(members, "place", _place, place),
        given(members, "count", lambda n: n.integer(1), 1),
        is_ordered,
        given(members, "kernel", lambda n: n.text(), ""),
        given(members, "scratch", _scratch, None),
    )


def _place(node: Node) -> str:
    """`script.py:31`, as a text, or as an object with `path` and `line`."""
    if isinstance(node.data, dict):
        members = node.mapping("a place")
        path = needed(node, members, "path", "the file").text()
        line = given(members, "line", lambda n: n.integer(0), 0)
        return f"{path}:{line}" if line else path
    return node.text()


def _extent(node: Node, least: int) -> Extent:
    """A number, or one to three of them."""
    if not isinstance(node.data, list):
        return node.integer(least), 1, 1
    values = node.integers(least)
    if not 1 <= len(values) <= 3:
        raise node.fault(f"expected 1 to 3 numbers (x, y, z), found {len(values)}")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _scratch(node: Node) -> tuple[int, int] | None:
    sizes = node.integers(0)
    if len(sizes) != 2:
        raise node.fault(f"expected bytes for 2 pointers, found {len(sizes)}")
    return sizes[0], sizes[1]


def _autotuned(node: Node) -> Autotuned | None:
    if node.data is None:
        return None
    members = node.mapping("`autotuned`", frozenset(("configurations", "reset", "restored")))
    what = "how many configurations were tried"
    return Autotuned(
        needed(node, members, "configurations", what).integer(1),
        given(members, "reset", _names, ()),
        given(members, "restored", _names, ()),
    )


def _check_tuned(node: Node, arguments: dict[str, Argument]) -> None:
    """What is reset or put back must be passed, if arguments have names: a name that is not there
    would say nothing of the one that was meant."""
    if node.data is None or all(name.isdecimal() for name in arguments):
        return
    known = {name.partition("[")[0] for name in arguments}
    members = node.mapping("`autotuned`")
    for key in ("reset", "restored"):
        for item in members[key].items("parameters' names") if key in members else ():
            if item.text() not in known:
                near = nearest(item.text(), known)
                hint = f"; did you mean `{near}`?" if near else ""
                raise item.fault(f"no argument is called `{item.text()}`{hint}")


def _names(node: Node) -> tuple[str, ...]:
    return tuple(item.text() for item in node.items("parameters' names"))


class _Arguments:
    """The arguments of one launch. Storages are numbered as they come, by what the data calls
    them; a tensor that names none has one of its own."""

    def __init__(self, node: Node, recordings: str) -> None:
        self.node = node
        self.recordings = recordings
        self.storages: dict[Step, int] = {}
        self.count = 0
        self.sized: dict[int, int] = {}
        """Bytes of each storage, as the data gives them or as its tensors need them."""
        self.stated: dict[int, tuple[int, Node]] = {}
        self.freed: set[int] = set()
        """Storages that some tensor says to be freed."""
        self.told: list[tuple[Node, Tensor]] = []
        """Tensors of which all numbers in the storage are given."""

    def read(self) -> tuple[dict[str, Argument], bool]:
        """The arguments by name, or by their numbers if they are a list."""
        if isinstance(self.node.data, list):
            every = [(str(node.path[-1]), node) for node in self.node.items("arguments")]
        else:
            every = list(self.node.mapping("the arguments, by the parameters' names").items())
        out: dict[str, Argument] = {}
        for name, node in every:
            for key, argument in self.argument(name, node):
                if key in out:
                    raise node.fault(f"two arguments are called `{key}`")
                out[key] = argument
        return self.with_sizes(out), isinstance(self.node.data, list)

    def with_sizes(self, arguments: dict[str, Argument]) -> dict[str, Argument]:
        """All tensors of one storage say the same of its size, and whether it is there."""
        for node, tensor in self.told:
            count = self.sized[tensor.storage] // DTYPE_BYTES[tensor.dtype]
            if count != len(tensor.contents or ()):
                raise node.fault(
                    f"{len(tensor.contents or ())} numbers, and the storage holds {count}: all of "
                    "them are given, from its first byte on"
                )
        out: dict[str, Argument] = {}
        for name, argument in arguments.items():
            if isinstance(argument, Tensor):
                argument = self._with_size(argument)
            elif isinstance(argument, Descriptor):
                argument = argument._replace(tensor=self._with_size(argument.tensor))
            out[name] = argument
        return out

    def _with_size(self, tensor: Tensor) -> Tensor:
        storage = tensor.storage
        return tensor._replace(storage_bytes=self.sized[storage], freed=storage in self.freed)

    def argument(self, name: str, node: Node) -> Iterable[tuple[str, Argument]]:
        """One argument; a tuple is several."""
        data = node.data
        if data is None:
            return [(name, Constant("None"))]
        if isinstance(data, bool | int | float):
            return [(name, _number(node, ""))]
        if isinstance(data, str):
            return [(name, self.tensor(node))]
        if isinstance(data, list):
            return self.items(name, node.items("arguments"))
        members = node.mapping("an argument")
        kind = given(members, "kind", lambda n: n.text(_KEYS), "")
        if not kind:
            raise node.fault(
                "`kind` is missing: one of " + ", ".join(f'"{word}"' for word in _KEYS)
            )
        members = node.mapping(f"a {kind}", _KEYS[kind])
        if kind == "tensor":
            return [(name, self.tensor(node))]
        if kind == "descriptor":
            return [(name, self.descriptor(node, members))]
        if kind == "tuple":
            held = needed(node, members, "items", "the elements, each an argument")
            return self.items(name, held.items("arguments"))
        return [(name, _plain(kind, node, members))]

    def items(self, name: str, items: list[Node]) -> Iterable[tuple[str, Argument]]:
        return [
            pair for i, item in enumerate(items) for pair in self.argument(f"{name}[{i}]", item)
        ]

    def descriptor(self, node: Node, members: dict[str, Node]) -> Descriptor:
        tensor = self.tensor(needed(node, members, "tensor", "what it describes"))
        block = needed(node, members, "block", "the extents of a tile").integers(1)
        if len(block) != len(tensor.shape):
            raise members["block"].fault(
                f"{len(block)} extents for a tensor of {len(tensor.shape)} axes"
            )
        passed = members["passed"].items("scalars") if "passed" in members else []
        return Descriptor(
            tensor,
            block,
            given(members, "padding", lambda n: n.text(("zero", "nan")), "zero"),
            given(members, "by", lambda n: n.text(("map", "pointer")), ""),
            tuple(_passed(item) for item in passed),
        )

    def tensor(self, node: Node) -> Tensor:
        """A tensor, or `float32[100, 1000]` for one that is alone in its storage."""
        if isinstance(node.data, str):
            return self._short(node)
        members = node.mapping("a tensor", _KEYS["tensor"])
        given(members, "kind", lambda n: n.text(("tensor",)), "")
        dtype = needed(node, members, "dtype", 'as "float32"').text(DTYPE_BYTES)
        shape = needed(node, members, "shape", "extents in elements, as [100, 1000]").integers(0)
        strides = given(members, "strides", lambda n: n.integers(-LARGEST), contiguous(shape))
        if len(strides) != len(shape):
            raise members["strides"].fault(
                f"{len(strides)} strides for {len(shape)} extents: one for each"
            )
        offset = given(members, "offset", lambda n: n.integer(0), 0)
        alignment = given(members, "alignment", lambda n: n.integer(1), _alignment(offset))
        if alignment & (alignment - 1):
            raise members["alignment"].fault(f"{alignment} is no power of two")
        fresh = given(members, "fresh", lambda n: n.text(_FRESH), "")
        storage = self._storage(members.get("storage"))
        values, contents = read_numbers(members.get("values"), members.get("contents"), dtype)
        if given(members, "freed", lambda n: n.flag(), False):
            self.freed.add(storage)
        recorded = given(members, "recorded", lambda n: self.recorded(n), None)
        tensor = Tensor(
            dtype, shape, strides, storage, 0, offset, alignment, fresh, values, contents,
            recorded=recorded,
        )  # fmt: skip
        self._size(node, members, tensor)
        if contents is not None:
            self.told.append((members["contents"], tensor))
        return tensor

    def recorded(self, node: Node) -> Recorded:
        """What the memory of a tensor held."""
        members = node.mapping("a recording", _RECORDED_KEYS)
        if "key" not in members:
            return Recorded("", reason=given(members, "reason", lambda n: n.text(), ""))
        if not self.recordings:
            raise node.fault(
                "only a captured bundle has recordings; give arrays with --inputs FILE.npz"
            )
        return Recorded(
            members["key"].text(),
            given(members, "start", lambda n: n.integer(0), 0),
            given(members, "known", lambda n: n.flag(), True),
            path=self.recordings,
        )

    def _short(self, node: Node) -> Tensor:
        match = _SHORT.fullmatch(node.data)
        if match is None or match[1] not in DTYPE_BYTES:
            near = nearest(match[1], DTYPE_BYTES) if match is not None else ""
            hint = f"; did you mean `{near}`?" if near else ""
            found = f"found {shown(node.data)}{hint}"
            raise node.fault(f'expected a tensor such as "float32[100, 1000]", {found}')
        shape = tuple(int(word) for word in match[2].split(",") if word.strip())
        tensor = Tensor(match[1], shape, contiguous(shape), self._storage(None), 0)
        self._size(node, {}, tensor)
        return tensor

    def _storage(self, node: Node | None) -> int:
        if node is None:
            self.count += 1
            return self.count - 1
        if not isinstance(node.data, str):
            node.integer(0)
        if node.data not in self.storages:
            self.storages[node.data] = self.count
            self.count += 1
        return self.storages[node.data]

    def _size(self, node: Node, members: dict[str, Node], tensor: Tensor) -> None:
        """Note how large the storage is, and that the tensor lies in it."""
        low, high = extent_bytes(tensor)
        if low < 0:
            raise node.fault(f"the tensor begins {-low} bytes before its storage")
        storage = tensor.storage
        if "storage_bytes" in members:
            size = members["storage_bytes"].integer(0)
            if storage in self.stated and self.stated[storage][0] != size:
                raise members["storage_bytes"].fault(
                    f"{size} bytes here, {self.stated[storage][0]} at "
                    f"{spelled(self.stated[storage][1].path)}: one storage has one size"
                )
            self.stated[storage] = (size, members["storage_bytes"])
        self.sized[storage] = max(self.sized.get(storage, 0), high)
        if storage in self.stated:
            size, where = self.stated[storage]
            if self.sized[storage] > size:
                raise node.fault(
                    f"the tensor ends at byte {high}, and its storage has {size} "
                    f"({spelled(where.path)})"
                )
            self.sized[storage] = size


def _plain(kind: str, node: Node, members: dict[str, Node]) -> Argument:
    """An argument that is no memory."""
    if kind == "unknown":
        return Unknown(
            given(members, "type", lambda n: n.text(), ""),
            given(members, "reason", lambda n: n.text(), ""),
        )
    value = needed(node, members, "value", f"what the {kind} is")
    if kind == "constant":
        return Constant(value.data if isinstance(value.data, str) else repr(value.data))
    return _number(value, given(members, "type", lambda n: n.text(SCALAR_BYTES), ""))


def _passed(node: Node) -> Scalar:
    members = node.mapping("a scalar", _KEYS["scalar"])
    given(members, "kind", lambda n: n.text(("scalar",)), "")
    kind = needed(node, members, "type", 'as "i64"').text(SCALAR_BYTES)
    return _number(needed(node, members, "value", "what it is"), kind)


def _number(node: Node, type_name: str) -> Scalar:
    data = node.data
    if isinstance(data, str) and data in ("inf", "-inf", "nan"):
        data = float(data)
    if not isinstance(data, bool | int | float):
        raise node.unfit('a number, or "inf", "-inf", "nan"')
    is_float = type_name.startswith(("f", "b"))
    if isinstance(data, float) and type_name and not is_float:
        raise node.unfit(f"a whole number, as {type_name} holds")
    return Scalar(type_name, int(data) if isinstance(data, bool) else data)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor without gaps, the last axis innermost."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))


def extent_bytes(tensor: Tensor) -> tuple[int, int]:
    """The bytes of its storage that a tensor reaches: the first, and the one behind the last."""
    if 0 in tensor.shape:
        return tensor.offset, tensor.offset
    reach = [(n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True)]
    size = DTYPE_BYTES[tensor.dtype]
    low = tensor.offset + size * sum(r for r in reach if r < 0)
    return low, tensor.offset + size * (1 + sum(r for r in reach if r > 0))


def _alignment(offset: int) -> int:
    """What divides an offset into a storage that is aligned as allocators do."""
    return min(16, offset & -offset) if offset else 16
