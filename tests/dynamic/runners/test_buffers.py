"""Margins around memory, on the CPU: what is written into them is told, and reads find NaN."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.cases.arrays import Placed
from ptxlint.dynamic.runners.buffers import MARGIN, Buffers, allocations_watched


@pytest.fixture
def buffers() -> Buffers:
    return Buffers()


def near(tensor: Any, byte: int) -> Any:
    """A byte in front of (below 0) or behind a tensor's first."""
    return ctypes.c_uint8.from_address(tensor.data_ptr() + byte)


def test_new_memory_lies_between_margins_and_is_no_larger(buffers: Buffers) -> None:
    import torch

    pairs: list[tuple[Any, Any]] = []
    with allocations_watched(buffers, "cpu", lambda new, old: pairs.append((new, old))):
        empty = torch.empty(3, 5)
        zeros = torch.zeros(4, dtype=torch.int16)
        like = torch.empty_like(empty.t())
        computed = zeros + 1
    assert [new.data_ptr() for new, _ in pairs] == [t.data_ptr() for t in (empty, zeros, like)]
    assert (empty.untyped_storage().nbytes(), empty.storage_offset()) == (60, 0)
    assert torch.isnan(empty).all()
    assert zeros.tolist() == [0, 0, 0, 0]
    assert like.stride() == (1, 5)
    assert computed.tolist() == [1, 1, 1, 1]
    assert [near(empty, at).value for at in (-MARGIN, -1, 60, 60 + MARGIN - 1)] == [0xFF] * 4
    assert buffers.trampled() == ()


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (-8, "1 bytes before the tensor of shape (3, 5) that the operator allocates were written, "
             "the nearest 8 bytes before it"),
        (63, "1 bytes behind the tensor of shape (3, 5) that the operator allocates were written, "
             "the first 3 bytes behind its end"),
    ],
)  # fmt: skip
def test_what_is_written_into_a_margin_is_told(buffers: Buffers, at: int, said: str) -> None:
    import torch

    with allocations_watched(buffers, "cpu", lambda new, old: None):
        tensor = torch.empty(3, 5)
    near(tensor, at).value = 7
    assert buffers.trampled() == (said,)


def test_a_tensor_of_a_case_lies_as_the_case_has_it(buffers: Buffers) -> None:
    storage = np.arange(40, dtype=np.float16)
    tensor = buffers.placed(Placed("float16", (3, 4), (10, 1), 2, storage), "cpu", "the input x")
    assert tensor.tolist() == [[2, 3, 4, 5], [12, 13, 14, 15], [22, 23, 24, 25]]
    assert (tensor.stride(), tensor.storage_offset()) == ((10, 1), 2)
    assert tensor.untyped_storage().nbytes() == 80
    near(tensor, 80 - 4).value = 0
    assert buffers.trampled()[0].startswith("1 bytes behind the input x were written, the first 0")


def test_other_bytes_may_be_asked_for() -> None:
    import torch

    buffers = Buffers(poison=0x11, margin=0)
    with allocations_watched(buffers, "cpu", lambda new, old: None):
        tensor = torch.empty(0, dtype=torch.uint8), torch.empty(2, dtype=torch.uint8)
    assert tensor[1].tolist() == [0x11, 0x11]
    assert near(tensor[1], 2).value == 0
