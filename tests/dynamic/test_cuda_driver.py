"""Launches through the CUDA driver. On a machine without one: what is said."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from ptxlint.dynamic.address_log import VARIABLE, logged
from ptxlint.dynamic.cuda_driver import (
    Context,
    CudaError,
    Driver,
    Memory,
    Module,
    NoDriverError,
    Placement,
    PlacementError,
    encoded,
    run,
)
from ptxlint.dynamic.cuda_driver.launching import _Cluster, _Config
from ptxlint.dynamic.emulator.tensor_map import TensorMap
from ptxlint.frontends.ptx import parse
from ptxlint.launch.binding import Bound, bind
from ptxlint.launches import Argument, Launch, Scalar, Tensor, Unknown

# Element i + 1 goes to i; the last thread reads the element behind its tensor.
SHIFT = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry shift(
    .param .u64 .ptr .global .align 4 out,
    .param .u64 .ptr .global .align 4 x,
    .param .u32 n
)
.reqntid 128
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [x];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r2, 128, %r3;
    setp.lt.s32 %p1, %r4, %r1;
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    add.s64 %rd5, %rd1, %rd3;
    @%p1 ld.global.b32 %r5, [%rd4+4];
    @%p1 st.global.b32 [%rd5], %r5;
    ret;
}
"""
MODULE = parse(SHIFT, "shift.ptx")
(KERNEL,) = MODULE.kernels()


def bound(elements: int, **other: Argument) -> Bound:
    """A launch on 1,000 elements of an `x` of so many."""
    arguments: dict[str, Argument] = {
        "out": Tensor("int32", (1000,), (1,), 0, 4000),
        "x": Tensor("int32", (elements,), (1,), 1, 4 * elements),
        "n": Scalar("i32", 1000),
    }
    return bind(KERNEL, Launch((8, 1, 1), (128, 1, 1), arguments | other, shared=0), {})


@pytest.fixture
def context() -> Iterator[Context]:
    try:
        made = Context()
    except NoDriverError as error:
        pytest.skip(f"no GPU: {error}")
    with made:
        yield made


def test_a_machine_without_a_driver_is_told_so() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        with pytest.raises(NoDriverError, match=r"no CUDA driver: .*libcuda\.so\.1"):
            Driver()
    else:
        pytest.skip("this machine has a CUDA driver")


def test_structures_are_as_long_as_the_drivers() -> None:
    assert ctypes.sizeof(_Cluster) == 72
    assert _Config.stream.offset == 32
    assert ctypes.sizeof(_Config) == 56


class RecordedDriver:
    """One that notes what it is called with, and fills the map that it is to make."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any]]] = []

    def call(self, function: str, *arguments: Any) -> None:
        told = [list(a) if isinstance(a, ctypes.Array) else a.value for a in arguments]
        self.calls.append((function, told))
        ctypes.memset(arguments[0], 0xA5, 128)


def test_a_tensor_map_is_asked_for_by_the_drivers_numbers() -> None:
    driver = RecordedDriver()
    found = TensorMap(0x7000, (88, 70, 3), (176, 12320), (64, 16, 1), (1, 1, 2), 10, 3, 1)
    data = encoded(driver, found)  # type: ignore[arg-type]
    assert data == b"\xa5" * 128
    ((function, (where, *told)),) = driver.calls
    assert function == "cuTensorMapEncodeTiled"
    assert where % 64 == 0
    # bfloat16 is 9 for the driver and 10 for `tensormap.replace`.
    assert told == [9, 3, 0x7000, [88, 70, 3], [176, 12320], [64, 16, 1], [1, 1, 2], 0, 3, 0, 1]


@pytest.mark.gpu
def test_a_tensor_map_that_the_hardware_does_not_take(context: Context) -> None:
    with pytest.raises(CudaError, match="cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE"):
        encoded(context.driver, TensorMap(0x7008, (64, 64), (128,), (64, 8), (1, 1), 6))


@pytest.mark.gpu
def test_a_launch_runs(context: Context) -> None:
    at = bound(1001)
    module = Module(context.driver, SHIFT.encode())
    placed = Placement(context.driver, KERNEL, at)
    assert {n: m.size for n, m in placed.memories.items()} == {0: 4000, 1: 4004}
    numbers = list(range(7, 1008))
    placed.memories[1].write(struct.pack("1001i", *numbers))
    placed.memories[0].fill(255)
    run(module.function("shift"), at.grid, at.block, placed.parameters)
    context.synchronise()
    assert list(struct.unpack("1000i", placed.memories[0].read())) == numbers[1:]
    placed.release()
    module.release()


@pytest.mark.gpu
@pytest.mark.parametrize("elements", [1000, 1001])
def test_addresses_are_recorded(context: Context, elements: int) -> None:
    at = bound(elements)
    log = logged(MODULE, KERNEL)
    module = Module(context.driver, log.text.encode())
    placed = Placement(context.driver, KERNEL, at)
    module.variable(VARIABLE).write(log.blank)
    run(module.function("shift"), at.grid, at.block, placed.parameters)
    context.synchronise()
    load, store = log.read(module.variable(VARIABLE).read()).values()
    assert (load.least - placed.addresses["x"], load.greatest - placed.addresses["x"]) == (4, 4000)
    assert (store.least, store.greatest) == (
        placed.addresses["out"],
        placed.addresses["out"] + 3996,
    )
    outside = load.greatest + 4 - placed.addresses["x"] > placed.memories[1].size
    assert outside == (elements == 1000)


@pytest.mark.gpu
def test_storages_are_no_better_aligned_than_promised(context: Context) -> None:
    view = Tensor("int32", (1001,), (1,), 1, 4100, offset=84, alignment=4)
    placed = Placement(context.driver, KERNEL, bound(1001, x=view))
    assert placed.addresses["x"] % 8 == 4
    assert placed.addresses["x"] - placed.memories[1].address >= 84
    aliased = Tensor("int32", (1001,), (1,), 0, 4004)
    placed = Placement(context.driver, KERNEL, bound(1001, x=aliased, out=aliased))
    assert placed.addresses["x"] == placed.addresses["out"]
    assert len(placed.memories) == 1


@pytest.mark.gpu
def test_errors_are_named(context: Context) -> None:
    with pytest.raises(CudaError, match=r"CUDA_ERROR_INVALID_PTX.*line"):
        Module(context.driver, re.sub("ret;", "ret what;", SHIFT).encode())
    module = Module(context.driver, SHIFT.encode())
    with pytest.raises(CudaError, match="cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"):
        module.function("shifty")
    at = bound(1001)
    placed = Placement(context.driver, KERNEL, at)
    with pytest.raises(CudaError, match="CUDA_ERROR_INVALID_VALUE"):
        run(module.function("shift"), (1, 65_536, 1), at.block, placed.parameters)
    with pytest.raises(PlacementError, match=r"`n`.*does not tell its value"):
        Placement(context.driver, KERNEL, bound(1001, n=Unknown("i32", "for a test")))
    with pytest.raises(CudaError, match="cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"):
        Memory(context.driver, 1 << 50)
    with pytest.raises(ValueError, match="4 bytes from 4 on, in memory of 7"):
        Memory(context.driver, 7).write(bytes(4), 4)
