"""Random Triton kernels over masked tiles, and what they compute.

`Generator(seed).kernel()` makes an expression over masked loads, reductions, products and masks
that are right, missing or on another axis. It has two readings: the source of a Triton kernel, and
a numpy evaluation for any tile. A kernel whose padding is neutral gives the same for a tile as for
one that is exactly as large as the data.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Axes = tuple[str, ...]
EXTENTS = {"i": "n", "j": "n", "k": "m", "c": "p"}
"""Axes `i` and `j` share an extent, so that a mask on the wrong one has the same bound. `c` is the
axis of a loop: its extent may be larger than its tile."""


class Sizes(NamedTuple):
    """The tile and the extents of one evaluation."""

    tile: dict[str, int]
    extent: dict[str, int]
    start: int = 0
    """Where the tile begins on the axis of a loop."""

    def valid(self, axis: str) -> int:
        """How many of a tile's elements are within the extent."""
        left = self.extent[axis] - (self.start if axis == "c" else 0)
        return min(left, self.tile[axis])

    def data(self, axis: str) -> slice:
        """The tile's part of the data along an axis."""
        start = self.start if axis == "c" else 0
        return slice(start, start + self.valid(axis))


class Expression(NamedTuple):
    """A tile: its axes in order, Triton lines that make it in `name`, and its value in numpy."""

    axes: Axes
    name: str
    value: Callable[[Sizes, dict[str, Any]], Any]


UNARY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "exp": ("tl.exp({0})", np.exp),
    "abs": ("tl.abs({0})", np.abs),
    "square": ("{0} * {0}", lambda x: x * x),
    "negative": ("-{0}", lambda x: -x),
    "relu": ("tl.maximum({0}, 0.0)", lambda x: np.maximum(x, 0.0)),
    "sigmoid": ("1.0 / (1.0 + tl.exp(-{0}))", lambda x: 1.0 / (1.0 + np.exp(-x))),
    "shift": ("{0} + 1.5", lambda x: x + 1.5),
    "scale": ("{0} * 0.25", lambda x: x * 0.25),
    "clamp": ("tl.minimum(tl.maximum({0}, -2.0), 3.0)", lambda x: np.minimum(np.maximum(x, -2), 3)),
}
BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("{0} + {1}", lambda x, y: x + y),
    "subtract": ("{0} - {1}", lambda x, y: x - y),
    "multiply": ("{0} * {1}", lambda x, y: x * y),
    "maximum": ("tl.maximum({0}, {1})", np.maximum),
    "divide": ("{0} / (tl.abs({1}) + 1.0)", lambda x, y: x / (np.abs(y) + 1.0)),
}
REDUCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "sum": ("tl.sum({0}, axis={1})", np.sum),
    "max": ("tl.max({0}, axis={1})", np.max),
    "min": ("tl.min({0}, axis={1})", np.min),
}
FILLS = (0.0, 0.0, 0.0, float("-inf"), 1.0)


class Kernel(NamedTuple):
    """A whole kernel: its source, its inputs with their axes, and the evaluation of its output."""

    source: str
    inputs: dict[str, Axes]
    result: Expression
    combined: list[Expression]
    """The results of all reductions and products."""


class Generator:
    """Makes one random kernel from a seed."""

    def __init__(self, seed: int, products: bool = True) -> None:
        self.random = random.Random(seed)
        self.products = products
        self.lines: list[str] = []
        self.inputs: dict[str, Axes] = {}
        self.combined: list[Expression] = []
        self.count = 0
        self.indent = ""

    def kernel(self) -> Kernel:
        """The kernel; its result is a vector over `i`, a matrix over `i, j`, or a number."""
        axes: Axes = self.random.choice([("i",), ("i",), ("i", "j"), ()])
        result = self.tile(axes, 4)
        store = _store(result.axes, result.name)
        head = [
            "import triton", "import triton.language as tl", "", "", "@triton.jit",
            f"def kernel(out_ptr, {', '.join(f'{x}_ptr' for x in self.inputs)}, n, m, p, "
            "BI: tl.constexpr, BJ: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr):",
            "    i = tl.arange(0, BI)", "    j = tl.arange(0, BJ)", "    k = tl.arange(0, BK)",
        ]  # fmt: skip
        source = "\n".join([*head, *(f"    {line}" for line in [*self.lines, store])]) + "\n"
        return Kernel(source, self.inputs, result, self.combined)

    def new(self, text: str) -> str:
        self.count += 1
        name = f"t{self.count}"
        self.lines.append(f"{self.indent}{name} = {text}")
        return name

    # Tiles ------------------------------------------------------------------------------------
    def tile(self, axes: Axes, depth: int) -> Expression:
        """A random expression over these axes."""
        if depth <= 0:
            return self.load(axes) if axes else self.reduce(axes, 0)
        kinds = ["unary", "unary", "binary", "where", "reduce", "reduce", "load"]
        if len(axes) == 2 and self.products:
            kinds += ["dot", "dot", "transpose"]
        if not axes:
            kinds = ["reduce", "unary", "binary"]
        kind = self.random.choice(kinds)
        if kind == "reduce" and len(axes) == 2:
            kind = "broadcast"
        if kind in ("reduce", "dot") and not self.indent and self.random.random() < 0.4:
            kind = "loop"
        made: Expression = getattr(self, kind)(axes, depth - 1)
        return made

    def load(self, axes: Axes, depth: int = 0) -> Expression:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = axes
        fill = self.random.choice(FILLS)
        index = " + ".join(
            f"{_spread(axis, axes)}{' * ' + EXTENTS[axes[1]] if at == 0 and len(axes) == 2 else ''}"
            for at, axis in enumerate(axes)
        )
        text = f"tl.load({name}_ptr + {index}, mask={_mask(axes, axes)}, other={_number(fill)})"

        def value(sizes: Sizes, data: dict[str, Any]) -> Any:
            shape = tuple(sizes.tile[a] for a in axes)
            whole = np.full(shape, fill)
            valid = tuple(slice(0, sizes.valid(a)) for a in axes)
            whole[valid] = data[name][tuple(map(sizes.data, axes))]
            return whole

        return Expression(axes, self.new(text), value)

    def unary(self, axes: Axes, depth: int) -> Expression:
        of = self.tile(axes, depth)
        text, function = UNARY[self.random.choice(list(UNARY))]
        return Expression(
            axes, self.new(text.format(of.name)), lambda s, d: function(of.value(s, d))
        )

    def binary(self, axes: Axes, depth: int) -> Expression:
        left, right = self.tile(axes, depth), self.tile(axes, depth - 1)
        text, function = BINARY[self.random.choice(list(BINARY))]
        return Expression(
            axes,
            self.new(text.format(left.name, right.name)),
            lambda s, d: function(left.value(s, d), right.value(s, d)),
        )

    def where(self, axes: Axes, depth: int) -> Expression:
        of = self.tile(axes, depth)
        masked = tuple(a for a in axes if self.random.random() < 0.75) or axes[:1]
        fill = self.random.choice((0.0, 0.0, float("-inf"), 1.0))
        text = f"tl.where({_mask(masked, axes)}, {of.name}, {_number(fill)})"

        def value(sizes: Sizes, data: dict[str, Any]) -> Any:
            keep = np.ones(tuple(sizes.tile[a] for a in axes), bool)
            for at, axis in enumerate(axes):
                if axis in masked:
                    shape = [1] * len(axes)
                    shape[at] = -1
                    keep &= (np.arange(sizes.tile[axis]) < sizes.valid(axis)).reshape(shape)
            return np.where(keep, of.value(sizes, data), fill)

        return Expression(axes, self.new(text), value)

    def reduce(self, axes: Axes, depth: int) -> Expression:
        """Over one more axis than the result has."""
        if len(axes) == 2:
            return self.broadcast(axes, depth)
        if not axes:
            inner: Axes = ("i",)
        else:
            other = self.random.choice([a for a in "ijk" if a not in axes])
            inner = (axes[0], other) if self.random.random() < 0.5 else (other, axes[0])
        at = 0 if not axes else 1 - inner.index(axes[0])
        return self.reduction(self.random.choice(list(REDUCTIONS)), axes, inner, at, depth)

    def reduction(self, name: str, axes: Axes, inner: Axes, at: int, depth: int) -> Expression:
        """Over axis number `at` of what has the axes `inner`."""
        of = self.tile(inner, depth)
        text, function = REDUCTIONS[name]
        made = Expression(
            axes,
            self.new(text.format(of.name, at)),
            lambda s, d: function(of.value(s, d), axis=at),
        )
        self.combined.append(made)
        return made

    def loop(self, axes: Axes, depth: int) -> Expression:
        """A loop over tiles of an axis, whose rounds are combined."""
        at = len(self.lines)
        self.indent = "    "
        if len(axes) == 2:
            text, function, start = "{0} + {1}", np.add, 0.0
            body = self.product(axes, "c", depth)
        else:
            name = self.random.choice(list(REDUCTIONS))
            body = self.reduction(name, axes, (*axes, "c"), len(axes), depth)
            text, function, start = {
                "sum": ("{0} + {1}", np.add, 0.0),
                "max": ("tl.maximum({0}, {1})", np.maximum, float("-inf")),
                "min": ("tl.minimum({0}, {1})", np.minimum, float("inf")),
            }[name]
        self.count += 1
        carried = f"t{self.count}"
        shape = "[" + ", ".join(f"B{a.upper()}" for a in axes) + "]"
        made = f"tl.full({shape}, {_number(start)}, tl.float32)" if axes else _number(start)
        self.lines.append(f"{self.indent}{carried} = {text.format(carried, body.name)}")
        self.lines[at:at] = [
            f"{carried} = {made}", "for start in range(0, p, BC):",
            "    c = start + tl.arange(0, BC)",
        ]  # fmt: skip
        self.indent = ""

        def value(sizes: Sizes, data: dict[str, Any]) -> Any:
            whole: Any = np.full(tuple(sizes.tile[a] for a in axes), start)
            for first in range(0, sizes.extent["c"], sizes.tile["c"]):
                whole = function(whole, body.value(sizes._replace(start=first), data))
            return whole

        # What a round combines has no meaning outside the loop.
        self.combined = [e for e in self.combined if e is not body]
        result = Expression(axes, carried, value)
        self.combined.append(result)
        return result

    def broadcast(self, axes: Axes, depth: int) -> Expression:
        """A matrix and a vector along one of its axes."""
        left = self.tile(axes, depth)
        at = self.random.randrange(2)
        right = self.reduce((axes[at],), depth - 1)
        text, function = BINARY[self.random.choice(list(BINARY))]
        spread = f"{right.name}[:, None]" if at == 0 else f"{right.name}[None, :]"
        return Expression(
            axes,
            self.new(text.format(left.name, spread)),
            lambda s, d: function(left.value(s, d), np.expand_dims(right.value(s, d), 1 - at)),
        )

    def dot(self, axes: Axes, depth: int) -> Expression:
        return self.product(axes, self.random.choice([a for a in "ijk" if a not in axes]), depth)

    def product(self, axes: Axes, inner: str, depth: int) -> Expression:
        """A product of tiles along the axis `inner`."""
        left = self.tile((axes[0], inner), depth - 1)
        right = self.tile((inner, axes[1]), depth - 1)
        text = f"tl.dot({left.name}.to(tl.float16), {right.name}.to(tl.float16))"

        def value(sizes: Sizes, data: dict[str, Any]) -> Any:
            return left.value(sizes, data) @ right.value(sizes, data)

        made = Expression(axes, self.new(text), value)
        self.combined.append(made)
        return made

    def transpose(self, axes: Axes, depth: int) -> Expression:
        of = self.tile((axes[1], axes[0]), depth)
        return Expression(axes, self.new(f"tl.trans({of.name})"), lambda s, d: of.value(s, d).T)


def _number(value: float) -> str:
    return f'float("{value}")' if value in (float("inf"), float("-inf")) else str(value)


def _spread(axis: str, axes: Axes) -> str:
    if len(axes) == 1:
        return axis
    return f"{axis}[:, None]" if axes[0] == axis else f"{axis}[None, :]"


def _mask(masked: Axes, axes: Axes) -> str:
    parts = [f"({_spread(a, axes)} < {EXTENTS[a]})" for a in masked]
    # A tile of two axes needs a mask of two axes.
    whole = " & ".join(parts)
    if len(axes) == 2 and len(masked) == 1:
        other = axes[1 - axes.index(masked[0])]
        whole += f" & ({_spread(other, axes)} >= 0)"
    return whole


def _store(axes: Axes, name: str) -> str:
    if not axes:
        return f"tl.store(out_ptr, {name})"
    index = _spread(axes[0], axes)
    if len(axes) == 2:
        index += f" * {EXTENTS[axes[1]]} + {_spread(axes[1], axes)}"
    return f"tl.store(out_ptr + {index}, {name}, mask={_mask(axes, axes)})"


# Judging ------------------------------------------------------------------------------------------
def extents(tile: int) -> Iterator[dict[str, int]]:
    """Sizes around a tile: what is left over differs from axis to axis."""
    for n, m, p in ((-3, 0, 16), (0, -5, 21), (-3, -5, 0), (-15, -15, -13), (-1, -1, 2 * tile - 1)):
        yield {"i": tile + n, "j": tile + n, "k": tile + m, "c": tile + p}


RANGES = ((-2.0, 2.0), (0.5, 2.0), (-2.0, -0.5), (0.01, 0.02), (-0.02, -0.01))


def samples(
    kernel: Kernel, seed: int, tile: int
) -> Iterator[tuple[dict[str, int], dict[str, Any]]]:
    """Extents and finite data to try; each input has a sign and a size of its own."""
    made = np.random.default_rng(seed)
    for extent in extents(tile):
        for attempt in range(30 if tile <= 16 else 6):
            ranges = made.integers(0, 2 if attempt < 2 else len(RANGES), len(kernel.inputs))
            yield (
                extent,
                {
                    name: made.uniform(*RANGES[at], tuple(extent[a] for a in axes))
                    for at, (name, axes) in zip(ranges, kernel.inputs.items(), strict=True)
                },
            )


def is_neutral(kernel: Kernel, seed: int, tile: int, *, inside: bool = False) -> bool:
    """True if the padding of a tile never shows in what the kernel stores.

    With `inside`: nor in what any reduction or product gives, however little comes of it.
    """
    judged = kernel.combined if inside else [kernel.result]
    with np.errstate(all="ignore"):
        return all(
            _is_same(expression, extent, data, tile)
            for extent, data in samples(kernel, seed, tile)
            for expression in judged
        )


def _is_same(
    expression: Expression, extent: dict[str, int], data: dict[str, Any], tile: int
) -> bool:
    padded = _valid(expression, Sizes(dict.fromkeys(extent, tile), extent), data)
    exact = _valid(expression, Sizes(extent, extent), data)
    return np.allclose(padded, exact, rtol=1e-9, atol=1e-12, equal_nan=True)


def _valid(expression: Expression, sizes: Sizes, data: dict[str, Any]) -> Any:
    """A tile without its padding; along the axis of a loop, the tiles of all rounds together."""
    axes = expression.axes
    rounds = range(0, sizes.extent["c"], sizes.tile["c"]) if "c" in axes else [0]
    parts = []
    for start in rounds:
        here = sizes._replace(start=start)
        whole = np.asarray(expression.value(here, data))
        parts.append(whole[tuple(slice(0, here.valid(a)) for a in axes)])
    return np.concatenate(parts, axis=axes.index("c")) if "c" in axes else parts[0]
