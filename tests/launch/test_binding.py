"""Arguments against the parameters of compiled kernels, and how they may not fit."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from ptxlint.facts import KernelMetadata
from ptxlint.frontends.ptx import parse
from ptxlint.ir.function import Function
from ptxlint.launch.binding import STORAGE_STEP, BindingError, Bound, bind
from ptxlint.launches import (
    AS_COMPILED,
    Argument,
    Constant,
    Descriptor,
    Extent,
    Launch,
    Scalar,
    Tensor,
    Unknown,
)

POINTER = ".param .u64 .ptr .global .align 1"
MAP = ".param .align 64 .b8 [128]"
TRITON = (POINTER, POINTER, ".param .u32", ".param .u64", POINTER, POINTER)
"""Two pointers and two numbers, and what Triton appends."""


def kernel(declared: tuple[str, ...], body: str = "", header: str = ".reqntid 128") -> Function:
    """A kernel with parameters `k_param_0`, …, of these declarations."""
    params = []
    for number, text in enumerate(declared):
        start, bracket, dims = text.partition(" [")
        params.append(f"{start} k_param_{number}{bracket.strip()}{dims}")
    text = f"""
        .version 8.0
        .target sm_90
        .address_size 64
        .visible .entry k({", ".join(params)}) {header} {{
            .reg .b64 %rd<4>;
            {body}
            ret;
        }}
        """
    module = parse(text, "k.ptx")
    assert not module.problems
    return module.kernels()[0]


def tensor(storage: int = 0, size: int = 4096, **fields: int) -> Tensor:
    return Tensor("float32", (size // 4,), (1,), storage, size)._replace(**fields)


def launch(arguments: dict[str, Argument], grid: Extent = (4, 1, 1), **fields: object) -> Launch:
    return Launch(grid, AS_COMPILED, arguments)._replace(**fields)


GOOD: dict[str, Argument] = {
    "x": tensor(0),
    "BLOCK": Constant("128"),
    "y": tensor(1),
    "n": Scalar("i32", -5),
    "none": Constant("None"),
    "stride": Scalar("i64", 1 << 40),
}
NAMES = {"k_param_0": "x", "k_param_1": "y", "k_param_2": "n", "k_param_3": "stride"}


def refused(function: Function, given: Launch, names: dict[str, str] | None = None) -> str:
    with pytest.raises(BindingError) as caught:
        bind(function, given, names or {})
    return caught.value.reason


def test_constants_are_dropped_and_scratch_is_left() -> None:
    bound = bind(kernel(TRITON), launch(GOOD), {})
    assert bound.values == {("k_param_2", 0): -5, ("k_param_3", 0): 1 << 40}
    assert {p: r.name for p, r in bound.regions.items()} == {"k_param_0": "x", "k_param_1": "y"}
    assert bound.names == NAMES
    assert (bound.grid, bound.block, bound.shared) == ((4, 1, 1), (128, 1, 1), -1)


def test_a_number_is_read_as_the_load_reads_it() -> None:
    bound = bind(kernel(TRITON), launch({**GOOD, "stride": Scalar("i64", (7 << 32) - 2)}), {})
    signed, unsigned = (-(1 << 31), (1 << 31) - 1), (0, (1 << 32) - 1)
    assert bound.value("k_param_2", 0, *signed) == -5
    assert bound.value("k_param_2", 0, *unsigned) == (1 << 32) - 5
    assert bound.value("k_param_3", 0, *signed) == -2
    assert bound.value("k_param_3", 4, *unsigned) == 6
    assert bound.value("k_param_0", 0, *unsigned) is None


def test_floats_are_numbers_and_bits() -> None:
    function = kernel((".param .f32", ".param .f64", ".param .b16"))
    given = {"a": Scalar("fp32", 1.5), "b": Scalar("fp64", -2.0), "c": Scalar("bf16", 1.0)}
    bound = bind(function, launch(dict(given)), {})
    assert bound.floats == {("k_param_0", 0): 1.5, ("k_param_1", 0): -2.0, ("k_param_2", 0): 1.0}
    assert bound.values["k_param_0", 0] == 0x3FC00000
    assert bound.values["k_param_1", 0] == 0xC000000000000000
    assert bound.values["k_param_2", 0] == 0x3F80
    infinite = bind(function, launch({**given, "a": Scalar("fp32", 1e300)}), {})
    assert infinite.values["k_param_0", 0] == 0x7F800000
    nan = bind(function, launch({**given, "c": Scalar("bf16", math.nan)}), {})
    assert nan.values["k_param_2", 0] & 0x7FFF > 0x7F80


def test_a_number_without_a_type_has_its_parameters() -> None:
    function = kernel((".param .u32", ".param .f32", ".param .u64", ".param .u8"))
    given = [Scalar("", 3_000_000_000), Scalar("", 2), Scalar("", -1), Scalar("", 1)]
    bound = bind(function, launch({str(i): s for i, s in enumerate(given)}), {})
    assert bound.value("k_param_0", 0, -(1 << 31), (1 << 31) - 1) == 3_000_000_000 - (1 << 32)
    assert bound.floats == {("k_param_1", 0): 2.0}
    assert bound.names["k_param_2"] == "k_param_2"
    text = refused(kernel((".param .u32",)), launch({"0": Scalar("", 1 << 32)}))
    assert "4294967296, which u32 does not hold" in text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stride": Constant("1")}, "3 arguments that are no constant (`x`, `y`, `n`) for 6 "),
        ({"extra": Scalar("i32", 1)}, "5 arguments that are no constant"),
        ({"extra": tensor(2), "more": Scalar("i32", 1)}, "`more` is a scalar of type i32, 4 byt"),
        ({"extra": tensor(2)}, "5 arguments that are no constant"),
        ({"n": tensor(2)}, "`n` is a tensor, 8 bytes, and its parameter k_param_2 has 4"),
        ({"n": Scalar("i64", 1)}, "`n` is a scalar of type i64, 8 bytes"),
        ({"n": Scalar("i32", 1 << 31)}, "`n` is 2147483648, which i32 does not hold"),
        ({"n": Scalar("u32", -1)}, "`n` is -1, which u32 does not hold (0 to 4294967295)"),
        ({"n": Scalar("i32", 0.5)}, "`n` is 0.5, which is no value of i32"),
        ({"n": Scalar("i33", 1)}, "`n` has the type 'i33', which is none of i1, "),
        ({"x": Scalar("i64", 7)}, "its parameter k_param_0 is a pointer; give the tensor"),
        ({"x": tensor(0, offset=5000)}, "`x` starts 5000 bytes into a storage of 4096"),
    ],
)
def test_what_does_not_fit_is_told(change: dict[str, Argument], says: str) -> None:
    assert says in refused(kernel(TRITON), launch({**GOOD, **change}))


def test_without_arguments_the_parameters_are_named() -> None:
    names = {"k_param_0": "x", "k_param_2": "n"}
    text = refused(kernel((POINTER, POINTER, ".param .u32", POINTER, POINTER)), launch({}), names)
    assert text.endswith("no argument for parameters `x`, `n`")
    # Where nobody knows Triton's pointers from the others, those that are read are meant.
    loaded = "    ld.param.u64 %rd1, [k_param_1];\n"
    text = refused(kernel((POINTER, POINTER, POINTER), loaded), launch({}))
    assert text.endswith("no argument for parameter `k_param_1`")
    text = refused(kernel((".param .u32",)), launch({}))
    assert text.endswith("no argument for parameter `k_param_0`")


def test_nothing_is_concluded_from_a_value() -> None:
    # A stride of 1 that is passed is passed; one that was dropped has to be a constant.
    bound = bind(kernel(TRITON), launch({**GOOD, "stride": Scalar("i64", 1)}), {})
    assert bound.values["k_param_3", 0] == 1
    without = kernel((POINTER, POINTER, ".param .u32", POINTER, POINTER))
    text = refused(without, launch({**GOOD, "stride": Scalar("i64", 1)}))
    assert "4 arguments that are no constant" in text
    assert bind(without, launch({**GOOD, "stride": Constant("1")}), {}).values == {
        ("k_param_2", 0): -5
    }


def test_a_null_pointer_is_a_number() -> None:
    bound = bind(kernel(TRITON), launch({**GOOD, "y": Scalar("", 0)}), {})
    assert bound.value("k_param_1", 0, 0, (1 << 64) - 1) == 0
    assert set(bound.regions) == {"k_param_0"}


def test_names_of_the_source_tell_the_order() -> None:
    shuffled = dict(reversed(GOOD.items()))
    bound = bind(kernel(TRITON), launch(shuffled, is_ordered=False), NAMES)
    assert bound.names == NAMES
    assert bound.values["k_param_2", 0] == -5
    assert list(bound.arguments) == list(shuffled)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"nn": Scalar("i32", 1)}, "`nn` is no parameter of the kernel, which has `x`, `y`, `n`"),
        ({"n": Constant("5")}, "`n` is a constant in the launch and a parameter of this kernel"),
        ({"n": None}, "no argument for parameter `n`"),
    ],
)
def test_names_that_do_not_fit_are_told(change: dict[str, Argument | None], says: str) -> None:
    given = {key: a for key, a in {**GOOD, **change}.items() if a is not None}
    assert says in refused(kernel(TRITON), launch(given, is_ordered=False), NAMES)


def test_names_without_order_need_names() -> None:
    text = refused(kernel(TRITON), launch(GOOD, is_ordered=False))
    assert "no .ttir" in text
    assert "`k_param_0`" in text


def test_an_order_that_contradicts_the_names_is_no_order() -> None:
    swapped = {"y": GOOD["y"], "x": GOOD["x"], "n": GOOD["n"], "stride": GOOD["stride"]}
    text = refused(kernel(TRITON), launch(swapped), NAMES)
    assert "in the order `y`, `x`, `n`, `stride`" in text


def test_arguments_by_the_names_of_the_ptx() -> None:
    function = kernel((POINTER, ".param .u32"))
    given: dict[str, Argument] = {"k_param_1": Scalar("i32", 7), "k_param_0": tensor()}
    bound = bind(function, launch(given), {"k_param_0": "x", "k_param_1": "n"})
    assert bound.regions["k_param_0"].name == "x"
    assert list(bound.arguments) == ["n", "x"]
    assert "no argument for parameter `k_param_1`" in refused(
        function, launch({"k_param_0": tensor()})
    )
    assert "`n` is no parameter of the kernel, which has `k_param_0`" in refused(
        function, launch({"k_param_0": tensor(), "n": Scalar("i32", 1)})
    )
    assert "compiled in and no parameter" in refused(
        function, launch({"k_param_0": tensor(), "k_param_1": Constant("1")})
    )


def test_pointers_that_are_read_are_no_scratch_unless_the_launch_is_tritons() -> None:
    reads = "ld.param.u64 %rd1, [k_param_2];\nld.global.b64 %rd2, [%rd1];"
    function = kernel((POINTER, ".param .u32", POINTER, POINTER), reads)
    given: dict[str, Argument] = {"x": tensor(), "n": Scalar("i32", 1)}
    assert "for 4 parameters" in refused(function, launch(given))
    assert bind(function, launch({**given, "BLOCK": Constant("1")}), {}).names
    assert bind(function, launch(given, scratch=(0, 0)), {}).names
    assert bind(kernel((POINTER, ".param .u32", POINTER, POINTER)), launch(given), {}).names


def test_scratch_memory_of_a_known_size() -> None:
    bound = bind(kernel(TRITON), launch(GOOD, scratch=(256, 0)), {})
    assert bound.regions["k_param_4"].high == 256
    assert bound.values["k_param_5", 0] == 0
    text = refused(kernel(TRITON[:-2]), launch(GOOD, scratch=(0, 0)))
    assert "4 arguments that are no constant" in text


def test_storages_lie_apart_and_first_elements_are_aligned_as_promised() -> None:
    huge = tensor(7, size=3 << 40)
    given: dict[str, Argument] = {
        "a": huge,
        "b": tensor(1, size=4096, offset=12, alignment=4),
        "c": tensor(1, size=4096, offset=64, alignment=64),
        "d": tensor(2, alignment=256),
    }
    function = kernel((POINTER,) * 4)
    regions = list(bind(function, launch(given), {}).regions.values())
    assert [r.address & -r.address for r in regions] == [16, 4, 64, 256]
    spans = sorted({(r.address + r.low, r.address + r.high) for r in regions})
    for (_, end), (start, _) in pairwise(spans):
        assert start - end >= STORAGE_STEP
    assert regions[2].address - regions[1].address == 52
    assert (regions[1].low, regions[1].high) == (-12, 4084)


def described(by: str = "", passed: tuple[Scalar, ...] = ()) -> Descriptor:
    matrix = Tensor("float16", (100, 64), (64, 1), 0, 12800)
    return Descriptor(matrix, (32, 64), "nan", by, passed)


def test_a_tensor_map_is_followed_by_shape_and_strides() -> None:
    function = kernel(
        (MAP, ".param .u32", ".param .u32", ".param .u64", ".param .u64", ".param .u32")
    )
    bound = bind(function, launch({"d": described(), "n": Scalar("i32", 9)}), {})
    assert bound.descriptors["k_param_0"].tensor.shape == (100, 64)
    assert [bound.values[f"k_param_{i}", 0] for i in range(1, 6)] == [100, 64, 64, 1, 9]
    assert "`d` is a tensor map" in refused(kernel((POINTER,)), launch({"d": described("map")}))


def test_a_descriptor_of_several_parameters_is_not_called_as_one_of_them() -> None:
    function = kernel((MAP, ".param .u32", ".param .u32", ".param .u64", ".param .u64"))
    text = refused(function, launch({"k_param_0": described()}))
    assert "`k_param_0` is a descriptor, which takes several parameters" in text


@pytest.mark.parametrize("flags", [0, 1, 2])
def test_a_descriptor_without_hardware_is_taken_apart(flags: int) -> None:
    wide, narrow = (".param .u64",), (".param .u32",)
    declared = (POINTER, *wide * 4, *(".param .u8",) * flags, *narrow * 2, *wide * 2, ".param .u32")
    bound = bind(kernel(declared), launch({"d": described(), "n": Scalar("i32", 9)}), {})
    values = [bound.values.get((f"k_param_{i}", 0)) for i in range(1, len(declared))]
    # Whether it rounds to tf32 is not told.
    padding = [1, *[None] * (flags - 1)][:flags]
    assert values == [100, 64, 64, 1, *padding, 100, 64, 64, 1, 9]
    assert [bound.names[f"k_param_{i}"] for i in (0, 1, 4)] == ["d", "d.shape[0]", "d.strides[1]"]
    assert bound.regions["k_param_0"].high == 12800


def test_a_descriptor_that_tells_what_is_passed() -> None:
    passed = (Scalar("i32", 100), Scalar("i64", 64))
    function = kernel((MAP, ".param .u32", ".param .u64", ".param .u32"))
    given = {"d": described("map", passed), "n": Scalar("i32", 9)}
    bound = bind(function, launch(dict(given)), {})
    assert bound.values == {("k_param_1", 0): 100, ("k_param_2", 0): 64, ("k_param_3", 0): 9}


def test_an_unknown_argument_leaves_its_parameter_unknown() -> None:
    bound = bind(kernel(TRITON), launch({**GOOD, "n": Unknown("i32", "a custom object")}), {})
    assert ("k_param_2", 0) not in bound.values
    assert bound.names == NAMES


def block_of(function: Function, given: Extent, metadata: KernelMetadata | None = None) -> Bound:
    return bind(function, launch({}, block=given), {}, metadata)


def test_the_block_is_the_compiled_one() -> None:
    fixed, free = kernel((), header=".reqntid 64, 2"), kernel((), header="")
    assert block_of(fixed, AS_COMPILED).block == (64, 2, 1)
    assert block_of(fixed, (64, 2, 1)).block == (64, 2, 1)
    assert block_of(free, (33, 1, 1)).block == (33, 1, 1)
    assert block_of(free, AS_COMPILED, KernelMetadata(num_warps=8)).block == (256, 1, 1)
    assert "(128, 1, 1), and the kernel is compiled for (64, 2, 1)" in refused(
        fixed, launch({}, block=(128, 1, 1))
    )
    assert "needs a `block`" in refused(free, launch({}))


def test_dynamic_shared_memory_is_the_launchs_or_the_metadatas() -> None:
    metadata = KernelMetadata(shared=1024)
    assert bind(kernel(()), launch({}), {}, metadata).shared == 1024
    assert bind(kernel(()), launch({}, shared=0), {}, metadata).shared == 0
