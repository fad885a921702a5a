"""What twins in fixtures/kernels/twins/ are launched with, and what is found then.

A case is a kernel, what it is launched with given its build, and the rules that must report. Sizes
lie on both sides of each threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ptxlint.launches import AS_COMPILED, Argument, Autotuned, Constant, Launch, Scalar, Tensor

_BYTES = {"fp32": ("float32", 4), "fp16": ("float16", 2), "bf16": ("bfloat16", 2),
          "i32": ("int32", 4)}  # fmt: skip


class Case(NamedTuple):
    """One launch of one twin, and the rules that report it."""

    kernel: str
    name: str
    found: frozenset[str]
    given: Callable[[Mapping[str, Any]], dict[str, Any]]
    """By the build's constants: `grid`, elements of tensors, numbers. Besides, `fresh` and
    `storages` by tensor (tensors with the same number are in the same memory), `autotuned`, and
    `views`: the shape and the strides of tensors that begin where their storage does."""


def launch(
    names: list[str], types: Mapping[str, str], build: Mapping[str, Any], given: Any
) -> Launch:
    """A launch of a build: constants are compiled in, tensors have a storage each."""
    arguments: dict[str, Argument] = {}
    for number, name in enumerate(names):
        if name in build:
            arguments[name] = Constant(str(build[name]))
            continue
        value = given[name]
        if not name.endswith("ptr"):
            arguments[name] = Scalar(types.get(name, "i32"), value)
            continue
        elements, values, contents = (*value, None, None)[:3] if isinstance(value, tuple) else (
            value, None, None
        )  # fmt: skip
        if contents is not None:
            values = (min(contents), max(contents))
        kind = types.get(name, "*T").removeprefix("*")
        dtype, size = _BYTES[build.get("T", "fp32") if kind == "T" else kind]
        storage = given.get("storages", {}).get(name, number)
        fresh = given.get("fresh", {}).get(name, "")
        shape, strides = given.get("views", {}).get(name, ((elements,), (1,)))
        arguments[name] = Tensor(
            dtype,
            shape,
            strides,
            storage,
            elements * size,
            fresh=fresh,
            values=values,
            contents=contents,
        )
    x, y, z = (*given["grid"], 1, 1)[:3]
    tuned = given.get("autotuned")
    return Launch((x, y, z), AS_COMPILED, arguments, shared=0, autotuned=tuned)


def _rows(rows: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    count = rows * 4096
    return lambda build: {
        "grid": [rows], "stride": 4096, "n_cols": 4096, "out_ptr": count, "x_ptr": count,
    }  # fmt: skip


def _tiles(rows: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    columns = 128_256
    return lambda build: {
        "grid": [-(-rows // build["BLOCK_M"]), -(-columns // build["BLOCK_N"])],
        "M": rows, "N": columns, "stride_m": columns,
        "out_ptr": rows * columns, "x_ptr": rows * columns,
    }  # fmt: skip


def _heads(batch: int, axis: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    grid = [1, 1, 1]
    grid[axis] = 6 * batch
    count = 6 * batch * 4000
    return lambda build: {"grid": grid, "n_cols": 4000, "out_ptr": count, "x_ptr": count}


def _line(n: int, **other: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda build: {
        "grid": [-(-n // build["BLOCK"])],
        "n": n, "value": 1.0, "scale": 2.0, "out_ptr": n, "x_ptr": n,
    } | other  # fmt: skip


def _whole_tiles(n: int, **other: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """As many programs as there are whole tiles."""
    return lambda build: _line(n, **other)(build) | {"grid": [n // build["BLOCK"]]}


def _halves(
    n: int, elements: int, programs: int = 2
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda build: {
        "grid": [programs], "n": n,
        "out_ptr": programs * build["BLOCK"], "x_ptr": programs * build["BLOCK"] + elements,
    }  # fmt: skip


def _product(m: int, n: int, k: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda build: {
        "grid": [-(-m // build["BLOCK"]), -(-n // build["BLOCK"])],
        "M": m, "N": n, "K": k, "stride_am": k, "stride_bk": n, "stride_cm": n,
        "a_ptr": m * k, "b_ptr": k * n, "c_ptr": m * n,
    }  # fmt: skip


def _steps(n: int, short: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Steps that are so many elements shorter than a tile."""
    return lambda build: {
        "grid": [-(-n // (build["BLOCK"] - short))], "step": build["BLOCK"] - short,
        "n": n, "out_ptr": n, "x_ptr": n,
    }  # fmt: skip


def _grouped(
    m: int, n: int, programs: int = 0, **other: Any
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """One program a tile, or so many more."""

    def given(build: Mapping[str, Any]) -> dict[str, Any]:
        rows, columns = m * build["BLOCK_M"], n * build["BLOCK_N"]
        return {
            "grid": [m * n + programs], "M": rows, "N": columns, "stride": columns,
            "out_ptr": rows * columns, "x_ptr": rows * columns,
        } | other  # fmt: skip

    return given


def _summed(m: int, n: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda build: {
        "grid": [-(-m // build["BLOCK_M"]), -(-n // build["BLOCK_N"])],
        "M": m, "N": n, "stride": n, "out_ptr": m, "x_ptr": m * n,
    }  # fmt: skip


def _sums(fresh: str = "", cells: int = 1, **other: Any) -> Callable[[Mapping[str, Any]], Any]:
    n = 10_000
    return lambda build: {
        "grid": [-(-n // build["BLOCK"])],
        "n": n, "out_ptr": cells, "x_ptr": n, "fresh": {"out_ptr": fresh},
    } | other  # fmt: skip


def _ids(**changed: int) -> tuple[int, None, tuple[int, ...]]:
    """Indices that are all told: a permutation, with some of them changed."""
    ids = [at * 7 % 5000 for at in range(5000)]
    for place, value in changed.items():
        ids[int(place.removeprefix("at"))] = value
    return 5000, None, tuple(ids)


def _view(
    stride_row: int, stride_col: int = 1, rows: int = 8, columns: int = 1000, **other: Any
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Rows and columns in a storage that has room for three such tensors and whole tiles."""
    shape, count = (rows, columns), rows * columns

    def given(build: Mapping[str, Any]) -> dict[str, Any]:
        own = {key: value(build) if callable(value) else value for key, value in other.items()}
        return sizes | own

    sizes = {
        "grid": [rows], "n": count, "n_cols": columns,
        "stride_x": stride_row, "stride": stride_row,
        "stride_row": stride_row, "stride_col": stride_col,
        "x_ptr": 3 * count + 2048, "q_ptr": 3 * count + 2048, "y_ptr": 3 * count + 2048,
        "out_ptr": count,
        "views": dict.fromkeys(("x_ptr", "q_ptr", "y_ptr"), (shape, (stride_row, stride_col)))
        | {"out_ptr": (shape, (columns, 1))},
    }  # fmt: skip
    return given


def _lines(build: Mapping[str, Any]) -> list[int]:
    return [-(-8000 // build["BLOCK"])]


_CLEAN: frozenset[str] = frozenset()
_OVERFLOW = frozenset({"BND301"})
_ABOVE = frozenset({"BND302"})
_REFUSED = frozenset({"BND304"})
_BELOW = frozenset({"BND305"})
_TWICE = frozenset({"HAZ601"})
_GARBAGE = frozenset({"HAZ603"})
_AGAIN = frozenset({"HAZ604"})
_STRIDES = frozenset({"BND306"})
_FOUR = Autotuned(4)
_ONE = {"out_ptr": 0, "x_ptr": 0}
_MISSED = frozenset({"BND307"})
_FRESH = {"out_ptr": "uninitialised"}

CASES = [
    Case("copy_rows", "524288", _CLEAN, _rows(524_288)),
    Case("copy_rows", "524289", _OVERFLOW, _rows(524_289)),
    Case("copy_rows_wide", "524289", _CLEAN, _rows(524_289)),
    Case("copy_tiles", "16000", _CLEAN, _tiles(16_000)),
    Case("copy_tiles", "16743", _CLEAN, _tiles(16_743)),
    Case("copy_tiles", "16744", _OVERFLOW, _tiles(16_744)),
    Case("copy_tiles", "40960", _OVERFLOW, _tiles(40_960)),
    Case("copy_tiles_wide", "40960", _CLEAN, _tiles(40_960)),
    Case("fill", "2147483648", _CLEAN, _line(2**31)),
    Case("fill", "2147483649", _OVERFLOW, _line(2**31 + 1)),
    Case("fill", "3270000000", _OVERFLOW, _line(3_270_000_000)),
    Case("fill_wide", "3270000000", _CLEAN, _line(3_270_000_000)),
    Case("copy_heads", "10922", _CLEAN, _heads(10_922, 2)),
    Case("copy_heads", "10923", _REFUSED, _heads(10_923, 2)),
    Case("copy_heads_wide", "10923", _CLEAN, _heads(10_923, 0)),
    Case("scale_line", "whole tiles", _CLEAN, _line(2048)),
    Case("scale_line", "one more", _ABOVE, _line(2049)),
    Case("scale_line", "one less", _ABOVE, _line(2047)),
    Case("shift_line", "by none", _CLEAN, _line(5000, back=0)),
    Case("shift_line", "by one", _BELOW, _line(5000, back=1)),
    Case("shift_line", "ahead by one", _ABOVE, _line(5000, back=-1)),
    Case("gather", "indices inside", _CLEAN, _line(5000, ids_ptr=(5000, (0, 4999)))),
    Case("gather", "indices not told", _CLEAN, _line(5000, ids_ptr=5000)),
    Case("gather", "an index may be beyond", _CLEAN, _line(5000, ids_ptr=(5000, (0, 5000)))),
    Case("gather", "an index may be negative", _CLEAN, _line(5000, ids_ptr=(5000, (-1, 4999)))),
    Case("gather", "all indices told", _CLEAN, _line(5000, ids_ptr=_ids())),
    Case("gather", "the last index told", _CLEAN, _line(5000, ids_ptr=_ids(at777=4999))),
    Case("gather", "an index beyond", _ABOVE, _line(5000, ids_ptr=_ids(at777=5000))),
    Case("gather", "an index far beyond", _ABOVE, _line(5000, ids_ptr=_ids(at4999=2**31 - 1))),
    Case("gather", "a negative index", _BELOW, _line(5000, ids_ptr=_ids(at3001=-1))),
    Case("gather", "fewer indices", _ABOVE, _line(5000, ids_ptr=(4999, (0, 4999)))),
    Case("map_bare_load", "5", _ABOVE, _line(5)),
    Case("map_bare_load", "whole tiles", _CLEAN, _line(1024)),
    Case("map_masked", "5", _CLEAN, _line(5)),
    Case("map_bare_store", "5", _ABOVE, _line(5)),
    Case("product_bare_store", "513 x 1000", _ABOVE, _product(513, 1000, 256)),
    Case("product_bare_store", "whole tiles", _CLEAN, _product(512, 1024, 256)),
    Case("product_masked_store", "513 x 1000", _CLEAN, _product(513, 1000, 256)),
    Case("sum_halves", "first step inside", _CLEAN, _halves(700, 700)),
    Case("sum_halves", "first step outside", _ABOVE, _halves(701, 700)),
    Case("sum_halves", "large grid", _ABOVE, _halves(701, 700, 1_000_000)),
    Case("scale_first_tile", "one program", _CLEAN, _line(200, grid=[1])),
    Case("scale_first_tile", "two programs", _TWICE, _line(200, grid=[2])),
    Case("scale_first_tile", "an axis too many", _TWICE, _line(200, grid=[1, 1, 3])),
    Case("keep_last_tile", "one program", _CLEAN, _line(200)),
    Case("keep_last_tile", "many programs", _TWICE, _line(5000)),
    Case("copy_in_steps", "of a tile", _CLEAN, _steps(5000, 0)),
    Case("copy_in_steps", "of a tile, large", _CLEAN, _steps(2_000_000_000, 0)),
    Case("copy_in_steps", "one short", _TWICE, _steps(5000, 1)),
    Case("copy_in_steps", "one short, large", _TWICE, _steps(2_000_000_000, 1)),
    Case("copy_wrapped", "whole tiles", _CLEAN, _line(2048)),
    Case("copy_wrapped", "a part left", _TWICE, _line(2047)),
    Case("copy_and_flag", "many programs", _CLEAN, _line(5000, flag_ptr=1)),
    Case("copy_and_sign", "one program", _CLEAN, _line(200, flag_ptr=1)),
    Case("copy_and_sign", "many programs", _TWICE, _line(5000, flag_ptr=1)),
    Case("copy_and_sign_once", "many programs", _CLEAN, _line(5000, flag_ptr=1)),
    Case("copy_by_strides", "132 programs", _CLEAN, _line(1_000_000, grid=[132])),
    Case("copy_by_strides", "one program", _CLEAN, _line(5000, grid=[1])),
    Case("tiles_in_groups", "whole groups", _CLEAN, _grouped(16, 5)),
    Case("tiles_in_groups", "a part of a group", _CLEAN, _grouped(19, 5)),
    Case("tiles_in_groups", "large", _CLEAN, _grouped(1001, 300)),
    Case("tiles_in_whole_groups", "whole groups", _CLEAN, _grouped(16, 5)),
    Case("tiles_in_whole_groups", "a part of a group", _MISSED, _grouped(19, 5)),
    Case("tiles_in_whole_groups", "a part of a group, large", _MISSED, _grouped(1001, 300)),
    Case("tiles_in_groups", "fresh", _CLEAN, _grouped(19, 5, fresh=_FRESH)),
    Case("tiles_in_groups", "a tile less", _MISSED, _grouped(16, 5, -1)),
    Case("partial_products", "split", _CLEAN, _summed(500, 1000)),
    Case("add_sums", "zeroed", _CLEAN, _sums("zeroed")),
    Case("add_sums", "of the host", _CLEAN, _sums("")),
    Case("add_sums", "uninitialised", _GARBAGE, _sums("uninitialised")),
    Case("add_sums", "tuned", _AGAIN, _sums("zeroed", autotuned=_FOUR)),
    Case(
        "add_sums",
        "tuned, uninitialised",
        _GARBAGE | _AGAIN,
        _sums("uninitialised", autotuned=_FOUR),
    ),
    Case(
        "add_sums",
        "tuned and reset",
        _CLEAN,
        _sums("uninitialised", autotuned=Autotuned(4, ("out_ptr",))),
    ),
    Case(
        "add_sums",
        "tuned and restored",
        _CLEAN,
        _sums("zeroed", autotuned=Autotuned(4, (), ("out_ptr",))),
    ),
    Case(
        "add_sums", "another one reset", _AGAIN, _sums("zeroed", autotuned=Autotuned(4, ("x_ptr",)))
    ),
    Case(
        "add_sums", "tuned with one configuration", _CLEAN, _sums("zeroed", autotuned=Autotuned(1))
    ),
    Case(
        "store_sums", "tuned, uninitialised", _CLEAN, _sums("uninitialised", 100, autotuned=_FOUR)
    ),
    Case("raise_maximum", "tuned", _CLEAN, _sums("zeroed", autotuned=_FOUR)),
    Case("raise_maximum", "uninitialised", _GARBAGE, _sums("uninitialised")),
    Case(
        "clear_and_add",
        "tuned, uninitialised",
        _CLEAN,
        _sums("uninitialised", 10_000, autotuned=_FOUR),
    ),
    Case("scale_in_place", "tuned", _AGAIN, _line(5000, autotuned=_FOUR)),
    Case(
        "scale_in_place",
        "tuned and restored",
        _CLEAN,
        _line(5000, autotuned=Autotuned(4, (), ("x_ptr",))),
    ),
    Case(
        "scale_in_place", "uninitialised", _GARBAGE, _line(5000, fresh={"x_ptr": "uninitialised"})
    ),
    Case("clip_in_place", "tuned", _CLEAN, _line(5000, autotuned=_FOUR)),
    Case("copy_by_row", "without gaps", _CLEAN, _view(1000)),
    Case("copy_by_row", "of a wider tensor", _CLEAN, _view(2000)),
    Case("copy_by_row", "expanded", _CLEAN, _view(0)),
    Case("copy_by_both", "every second element", _CLEAN, _view(2000, 2)),
    Case("copy_by_both", "transposed", _CLEAN, _view(1, 8)),
    Case("copy_by_both", "transposed, with gaps", _CLEAN, _view(1, 16)),
    Case("copy_without_stride", "without gaps", _CLEAN, _view(1000)),
    Case("copy_without_stride", "of a wider tensor", _STRIDES, _view(2000)),
    Case("copy_without_stride", "one element wider", _STRIDES, _view(1001)),
    Case("copy_without_stride", "one row", _CLEAN, _view(2000, rows=1)),
    Case("copy_without_stride", "expanded", _STRIDES, _view(0)),
    Case("copy_without_stride", "every second element", _STRIDES, _view(2000, 2)),
    Case("copy_as_line", "without gaps", _CLEAN, _view(1000, grid=_lines)),
    Case("copy_as_line", "of a wider tensor", _STRIDES, _view(2000, grid=_lines)),
    Case("add_by_one_stride", "alike", _CLEAN, _view(2000)),
    Case(
        "add_by_one_stride",
        "the other one is wider",
        _STRIDES,
        _view(2000, views={"x_ptr": ((8, 1000), (2000, 1)), "y_ptr": ((8, 1000), (3000, 1))}),
    ),
    Case(
        "add_by_one_stride",
        "the other one has no gaps",
        _STRIDES,
        _view(2000, views={"x_ptr": ((8, 1000), (2000, 1)), "y_ptr": ((8, 1000), (1000, 1))}),
    ),
    Case("sum_packed", "from the queries on", _CLEAN, _view(3000)),
    Case("add_to", "tuned", _CLEAN, _line(5000, autotuned=_FOUR)),
    Case("add_to", "tuned, in place", _AGAIN, _line(5000, autotuned=_FOUR, storages=_ONE)),
    Case(
        "add_to",
        "in place, the other name reset",
        _CLEAN,
        _line(5000, autotuned=Autotuned(4, ("out_ptr",)), storages=_ONE),
    ),
    Case(
        "add_to",
        "in place, uninitialised",
        _GARBAGE,
        _line(5000, storages=_ONE, fresh=dict.fromkeys(_ONE, "uninitialised")),
    ),
    Case("map_masked", "all tiles", _CLEAN, _line(5000, fresh=_FRESH)),
    Case("map_masked", "whole tiles", _MISSED, _whole_tiles(5000, fresh=_FRESH)),
    Case("map_masked", "whole tiles, large", _MISSED, _whole_tiles(2_000_000_001, fresh=_FRESH)),
    Case("map_masked", "whole tiles, written before", _MISSED, _whole_tiles(5000)),
    Case("map_masked", "nothing left over", _CLEAN, _whole_tiles(4096, fresh=_FRESH)),
    Case("map_masked", "a part of the tensor", _CLEAN, _line(5000, out_ptr=9000)),
    Case("map_masked", "a part of a fresh tensor", _CLEAN, _line(5000, out_ptr=9000, fresh=_FRESH)),
    Case("scale_line", "tiles left over, fresh", _MISSED, _whole_tiles(2047, fresh=_FRESH)),
    Case("scale_line", "tiles left over", _CLEAN, _whole_tiles(2047)),
    Case("scale_line", "all tiles, fresh", _CLEAN, _line(2048, fresh=_FRESH)),
    Case("copy_by_strides", "fresh", _CLEAN, _line(1_000_000, grid=[132], fresh=_FRESH)),
]
OPEN = {
    ("gather", "indices not told"), ("gather", "an index may be beyond"),
    ("gather", "an index may be negative"), ("sum_halves", "large grid"),
    ("sum_packed", "from the queries on"), ("map_masked", "a part of a fresh tensor"),
    ("store_sums", "tuned, uninitialised"),
}  # fmt: skip
"""Cases in which a property is open: not all is proved, nor is all that is not proved reported."""
