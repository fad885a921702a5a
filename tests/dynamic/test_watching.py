"""Watching real launches, as on a machine with a GPU: a driver that counts takes its place."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dynamic.capture import Options, recording
from ptxlint.dynamic.capture.devices import device_of
from ptxlint.dynamic.capture.driver import recording_driver
from ptxlint.dynamic.capture.storages import Storages
from ptxlint.dynamic.capture.tensors import Stage
from ptxlint.launches import Constant, Scalar

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def add(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
"""


class Made:
    """The driver of a GPU that counts what is launched on it."""

    def __init__(self) -> None:
        self.count = 0
        self.driver = recording_driver(device_of("sm_90"), self._took, True)

    def _took(self, *_: Any) -> None:
        self.count += 1


@pytest.fixture
def made() -> Iterator[Made]:
    from triton.runtime import driver

    before = getattr(driver, "_active", None)
    found = Made()
    driver.set_active(found.driver)
    yield found
    driver._active = before


@pytest.fixture
def add(made: Made, tmp_path: Path) -> Iterator[Any]:
    from importlib.util import module_from_spec, spec_from_file_location

    path = tmp_path / "kernel.py"
    path.write_text(KERNEL, encoding="utf-8")
    spec = spec_from_file_location("watched_kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.add
    # What is loaded is unloaded while there is a driver.
    module.add.device_caches.clear()
    gc.collect()


def test_each_launch_is_made_and_taken_in(made: Made, add: Any) -> None:
    import torch
    from triton.runtime import driver

    x = torch.zeros(64)
    # Compiled before anybody looks.
    add[(1,)](x, 50, BLOCK=64)
    other = Made()
    with recording("sm_90", Options(gpu=True)) as record:
        add[(2,)](x, 50, BLOCK=64)
        add[(3,)](x, 60, BLOCK=64)
        # As torch's compiler does.
        driver.set_active(other.driver)
        add[(4,)](x, 50, BLOCK=64)
    add[(5,)](x, 50, BLOCK=64)
    assert (made.count, other.count) == (3, 2)
    assert record.troubles == []
    (kernel,) = record.kernels
    assert [launch.grid[0] for launch in kernel.launches] == [2, 3, 4]
    assert kernel.launches[1].arguments["n"] == Scalar("i32", 60)
    assert kernel.launches[1].arguments["BLOCK"] == Constant("64")


def test_a_kernel_kept_from_before_is_not_taken_in_afterwards(made: Made, add: Any) -> None:
    import torch

    x = torch.zeros(64)
    with recording("sm_90", Options(gpu=True)) as record:
        compiled = add[(1,)](x, 50, BLOCK=64)
        run = compiled.run
    run(1, 1, 1, 0, compiled.function, None, None, None, None, x, 50, 64)
    assert made.count == 2
    assert [launch.times for launch in record.kernels[0].launches] == [1]


@pytest.mark.parametrize("pretend", [False, True])
def test_torch_compiles_where_nothing_is_pretended(pretend: bool) -> None:
    import torch

    compiled = []

    def backend(module: Any, _: Any) -> Any:
        compiled.append(module)
        return module

    def function(x: Any) -> Any:
        return x.sin() + 1

    with Stage(Storages(), pretend=pretend).active():
        torch.compile(function, backend=backend)(torch.ones(3))
    assert len(compiled) == (0 if pretend else 1)
