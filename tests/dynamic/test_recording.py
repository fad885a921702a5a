"""Recording in this process: what of a launch is taken in."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.capture import Options, Recording, recording
from ptxlint.dynamic.capture.kernels import Tuple
from ptxlint.launches import (
    Autotuned,
    Constant,
    Descriptor,
    Launch,
    Scalar,
    Tensor,
)

SCRIPTS = Path(__file__).parent / "scripts"
Record = Callable[..., Recording]


@pytest.fixture(scope="module")
def record() -> Record:
    """Runs a script once for each architecture and options."""

    @cache
    def run(name: str, arch: str = "sm_90", **options: Any) -> Recording:
        with recording(arch, Options(**options)) as record:
            runpy.run_path(str(SCRIPTS / f"{name}.py"))
        return record

    return run


def launches(record: Recording, kernel: str) -> list[Launch]:
    return [launch for k in record.kernels if k.name == kernel for launch in k.launches]


def tensor(launch: Launch, name: str) -> Tensor:
    found = launch.arguments[name]
    assert isinstance(found, Tensor)
    return found


def test_a_kernel_and_its_launches(record: Record) -> None:
    small, large = record("vector_add").kernels
    assert (small.name, small.arch) == ("add", "sm_90")
    assert ".target sm_90a" in small.ptx
    assert "tt.func public @add" in small.ttir
    assert small.cubin.startswith(b"\x7fELF")
    assert small.metadata["num_warps"] == 4
    assert list(small.signature.items())[-2:] == [("n", "i32"), ("BLOCK", "constexpr")]
    assert large.signature["n"] == "i64"
    assert Path(small.source[0]).name == "vector_add.py"
    (launch,) = small.launches
    assert launch.times == 2
    assert launch.grid == (1, 1, 1)
    assert launch.block == (128, 1, 1)
    assert launch.place.endswith("vector_add.py:19")
    assert launch.arguments["n"] == Scalar("i32", 1000)
    assert launch.arguments["BLOCK"] == Constant("1024")
    assert tensor(launch, "x") == Tensor("float32", (1000,), (1,), 0, 4000, 0, 256, "")
    assert tensor(launch, "y") == Tensor("float32", (1000,), (1,), 1, 4000, 0, 256, "zeroed")
    assert tensor(launch, "out").fresh == "uninitialised"


def test_more_elements_than_memory(record: Record) -> None:
    _, large = record("vector_add").kernels
    (launch,) = large.launches
    assert launch.grid == (2**33 // 1024, 1, 1)
    assert tensor(launch, "x").storage_bytes == 2**35
    assert tensor(launch, "out").fresh == "uninitialised"


def test_operations_on_what_is_too_large_to_compute(record: Record) -> None:
    first, second = launches(record("huge"), "column")
    assert tensor(first, "x") == Tensor("float16", (2**20,), (1,), 0, 2**34, 5 * 2**21, 256, "")
    strided = tensor(second, "x")
    assert strided.strides == (2**13,)
    assert strided.storage_bytes == 4 * ((2**20 - 1) * 2**13 + 1)


def test_arguments_of_every_kind(record: Record) -> None:
    first, second = launches(record("arguments"), "pick")
    parts = first.arguments["parts"]
    assert isinstance(parts, Tuple)
    assert parts.items[0] == Tensor("bfloat16", (36, 6), (1, 40), 0, 640, 168, 8, "")
    assert parts.items[1:] == (Scalar("i32", 3), Tuple((Scalar("fp32", 2.5),)))
    assert {n: a for n, a in first.arguments.items() if n not in ("parts", "out")} == {
        "scale": Scalar("fp32", float("inf")),
        "flag": Scalar("u1", 1),
        "nothing": Constant("None"),
        "one": Constant("1"),
        "n": Scalar("i32", 7),
        "KIND": Constant("'max'"),
        "WHO": Constant("fp32"),
    }
    assert second.arguments["KIND"] == Constant("('a', 1)")


def test_aliases_share_a_storage(record: Record) -> None:
    _, launch = launches(record("arguments"), "pick")
    parts, out = launch.arguments["parts"], tensor(launch, "out")
    assert isinstance(parts, Tuple)
    assert isinstance(parts.items[0], Tensor)
    assert parts.items[0].storage == out.storage
    assert out.dtype == "float32", "the type that it is reinterpreted as"


@pytest.mark.parametrize(
    ("arch", "by", "types"),
    [
        ("sm_90", "map", "i32 i32 i64 i64"),
        ("sm_80", "pointer", "i64 i64 i64 i64 i32 i32 i64 i64"),
    ],
)
def test_descriptors_that_the_host_makes(record: Record, arch: str, by: str, types: str) -> None:
    made = record("arguments", arch)
    (launch,) = launches(made, "move")
    source = launch.arguments["source"]
    assert isinstance(source, Descriptor)
    assert (source.tensor.shape, source.tensor.strides) == ((64, 100), (128, 1))
    assert source.tensor.storage_bytes == 64 * 128 * 2
    assert (source.block, source.padding, source.by) == ((16, 16), "nan", by)
    # How many flags there are depends on the version of Triton.
    assert [s.type for s in source.passed if s.type != "i1"] == types.split()
    (kernel,) = (k for k in made.kernels if k.name == "move")
    # The descriptor, `out`, two pointers to scratch memory.
    assert kernel.ptx.count(".param .") == 1 + len(source.passed) + 1 + 2


def test_where_tensors_are_and_what_is_in_them(record: Record) -> None:
    made = launches(record("places"), "copy")
    assert record("places").troubles == []
    fresh = [tensor(launch, "out").fresh for launch in made]
    assert fresh == [
        "uninitialised",
        "zeroed",
        "uninitialised",
        "zeroed",
        *[""] * 3,
        "uninitialised",
    ]
    assert tensor(made[0], "x").storage_bytes == 64
    assert (tensor(made[1], "x").offset, tensor(made[1], "x").alignment) == (16, 16)
    # Of a tensor whose storage was given back the size is what it was made for.
    assert [tensor(launch, "x").freed for launch in made] == [False] * 7 + [True]
    assert tensor(made[7], "x").storage_bytes == 32


def test_the_range_of_indices_that_the_host_made(record: Record) -> None:
    first, again, made, more, zeroed, *others, fewer = launches(record("indices"), "gather")
    assert tensor(first, "rows").values == (3, 99)
    assert tensor(first, "rows").contents == (3, 99) * 8
    assert tensor(fewer, "rows").values == (3, 99)
    assert tensor(again, "rows").values == (3, 99), "a kernel that reads them leaves them"
    # What a kernel would have written, and what is computed from it.
    assert tensor(made, "rows").contents == (4, 100) * 8
    assert tensor(more, "rows").values == (5, 101)
    assert tensor(zeroed, "rows").values == (0, 0)
    assert tensor(first, "x").values is None
    # Launches that differ in these alone are a few, and one for all others.
    told = [tensor(launch, "rows").contents for launch in others]
    assert told == [(0, 9, *([last] * 22)) for last in range(4)] + [None]
    assert {tensor(launch, "rows").values for launch in others} == {(0, 9)}
    assert [launch.times for launch in others] == [1, 1, 1, 1, 2]


def test_what_is_reinterpreted_has_no_range() -> None:
    import torch
    import triton
    import triton.language as tl

    from ptxlint.dynamic.capture.arguments import Reader
    from ptxlint.dynamic.capture.storages import Storages
    from ptxlint.dynamic.capture.tensors import Stage

    storages = Storages()
    with Stage(storages).active():
        numbers = torch.arange(10, device="cuda", dtype=torch.int32)
    reader = Reader(storages, False)
    as_they_are = reader.read(numbers, "*i32")
    as_floats = reader.read(triton.reinterpret(numbers, tl.float32), "*fp32")
    assert isinstance(as_they_are, Tensor)
    assert isinstance(as_floats, Tensor)
    assert as_they_are.values == (0, 9)
    assert (as_floats.dtype, as_floats.values) == ("float32", None)


def test_indices_that_kernels_compute_from_what_is_known(record: Record) -> None:
    ordered, partly, floating = launches(record("routing"), "take")
    assert tensor(ordered, "order").values == (0, 199)
    assert tensor(ordered, "out").shape == (29, 64), "the host reads how many there are"
    assert tensor(partly, "order").values is None, "cells of it are not written"
    assert tensor(floating, "order").values is None
    assert record("routing").troubles == []


def test_what_the_host_computes_from_what_is_not_known(record: Record) -> None:
    made = launches(record("taint"), "look")
    made.sort(key=lambda launch: repr(launch.arguments["turn"]).zfill(99))
    seen = [tensor(launch, "ids") for launch in made]
    assert [ids.contents and ids.contents[:8] for ids in seen] == [
        None, None, (0, 1, 2, 3, 7, 7, 7, 7),
        None, None, None, (2, 1, 2, 3, 7, 7, 7, 7),
        None, (0, 1, 2, 3, 4, 5, 6, 7), None, (3,) * 8, (3, 9, 9, 3, 3, 3, 3, 3),
        None, None, tuple(range(10, 18)), None, None, (0,) * 8,
    ]  # fmt: skip
    assert all(ids.values is None for ids in seen if ids.contents is None)


def test_the_first_configuration_of_an_autotuner(record: Record) -> None:
    made = launches(record("tuned"), "accumulate")
    assert [launch.autotuned for launch in made] == [Autotuned(3, ("total",), ()), None]
    assert {launch.arguments["BLOCK"] for launch in made} == {Constant("256")}
    assert {launch.arguments["EVEN"] for launch in made} == {Constant("True")}
    # Compared and launched, then launched as the best one.
    assert [launch.times for launch in made] == [2, 1]
    assert tensor(made[0], "total").fresh == "zeroed", "by the autotuner"
    assert tensor(made[1], "total").fresh == ""


def test_all_configurations_of_an_autotuner(record: Record) -> None:
    made = launches(record("tuned", autotune="all"), "accumulate")
    compared = [launch for launch in made if launch.autotuned]
    blocks = [launch.arguments["BLOCK"] for launch in compared]
    assert blocks == [Constant("256"), Constant("512"), Constant("1024")]
    assert [launch.block[0] for launch in compared] == [128, 256, 256]
    (again,) = (launch for launch in made if not launch.autotuned)
    assert again.arguments["BLOCK"] == Constant("256")


@pytest.mark.slow
def test_configurations_that_do_not_fit_are_left_to_the_autotuner(record: Record) -> None:
    for arch, size in (("sm_90", "256"), ("sm_86", "32")):
        (launch,) = launches(record("tuned", arch), "square")
        assert launch.arguments["SIZE"] == Constant(size)
        assert launch.autotuned == Autotuned(2, (), ("x",))
        assert record("tuned", arch).troubles == []


def test_what_hooks_put_back_before_each_configuration(record: Record) -> None:
    made = launches(record("hooks"), "accumulate")
    seen = {
        (launch.arguments["n"].value, launch.autotuned): tensor(launch, "total").fresh
        for launch in made
        if launch.autotuned
    }
    assert seen == {
        (1000, Autotuned(2, ("total",), ())): "zeroed",
        (1001, Autotuned(2, (), ("total",))): "",
        (1002, Autotuned(2, (), ())): "",
    }


def test_operators_of_torch_library_and_backward(record: Record) -> None:
    made = launches(record("library"), "scale")
    factors = [launch.arguments["factor"] for launch in made]
    assert factors == [Scalar("fp32", float(factor)) for factor in range(2, 8)]
    backward = tensor(made[4], "x")
    assert (backward.strides, backward.storage_bytes) == ((0,), 4), "an expanded gradient"


def test_operators_on_large_tensors_run_all_the_same(record: Record) -> None:
    made = launches(record("large_operators"), "scale")
    factors = [launch.arguments["factor"] for launch in made]
    assert factors == [Scalar("fp32", 3.0), Scalar("fp32", 2.0)]
    assert {tensor(launch, "x").storage_bytes for launch in made} == {1 << 30}
    assert record("large_operators").troubles == []


def test_kernels_get_the_types_of_mixed_precision(record: Record) -> None:
    made = {
        launch.arguments["n"].value: tensor(launch, "x").dtype
        for launch in launches(record("mixed"), "copy")
    }
    dtypes = [made[number] for number in sorted(made)]
    plain, half = "float32", "float16"
    inside = [half, half, plain, plain, plain, half, half]
    assert dtypes == [plain, *inside, "bfloat16", plain, plain]
    assert record("mixed").troubles == []


def test_kernels_that_torch_generates(record: Record) -> None:
    made = record("generated")
    forward, backward, module = made.kernels
    assert "sigmoid" in module.name
    assert "gelu" in forward.name
    assert "backward" in backward.name
    assert [launch.times for launch in forward.launches] == [2]
    assert {a.shape for a in forward.launches[0].arguments.values() if isinstance(a, Tensor)} == {
        (40, 100),
        (100,),
    }
    (trouble,) = made.troubles
    assert trouble.what == "torch.compile(away)"
    assert "are not captured" in trouble.reason


def test_what_torch_does_not_compile_here_is_named(record: Record) -> None:
    (trouble,) = record("library").troubles
    assert trouble.what == "torch.compile(compiled)"


def test_nothing_stays_behind(record: Record) -> None:
    import torch
    from triton.runtime import driver

    record("places")
    assert not torch.cuda.is_available()
    assert driver._active is None
    assert torch.ones(1).device.type == "cpu"


def test_an_unknown_architecture() -> None:
    with pytest.raises(ValueError, match="sm_9"), recording("sm_9"):
        pass


def test_of_an_assembler_the_first_error_is_told() -> None:
    from ptxlint.dynamic.capture.recording import _said

    printed = (
        "PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
        "ptxas /somewhere/x.ptx, line 98; error   : Feature 'cvt with .e2m1x2' not supported\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\nRepro command: /somewhere/ptxas\n"
    )
    assert _said(ValueError(printed)) == (
        "the assembler says: Feature 'cvt with .e2m1x2' not supported"
    )
    assert _said(ValueError("another")) == "ValueError: another"
